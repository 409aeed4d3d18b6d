//! Which directory of one inventory is which of the other. One that stayed where it was is found by its name, one that was
//! renamed by its inode, and then again by name one that another directory has come in the place of.

use std::collections::{HashMap, VecDeque};

use super::facts::Devices;
use super::tree::{NONE, Tree};
use super::{Side, Sides};
use crate::normal::normal;
use crate::store::State;

/// Directories of the same inode that are looked at: more than one if it was reached on several ways, by bind mounts or by operands
/// within one another.
const TWINS_MAX: usize = 16;

/// Pairs of directories.
pub(super) struct Pairs {
    /// By directory its counterpart, or [`NONE`].
    of: Sides<Vec<u32>>,
    /// By directory whether what is in it may be in the other inventory's part that is not known.
    hidden: Sides<Vec<bool>>,
    pub(super) devices: Devices,
}

impl Pairs {
    /// Pairs the directories of the `trees`. Roots are of the same path, or if `single`, the only ones.
    pub(super) fn new(trees: &mut Sides<Tree>, single: bool) -> Self {
        let of = Sides { old: vec![NONE; trees.old.len()], new: vec![NONE; trees.new.len()] };
        let hidden = Sides { old: Vec::new(), new: Vec::new() };
        let mut pairs = Self { of, hidden, devices: Devices::new() };
        pairs.join(0, 0);
        pairs.join_roots(trees, single);
        pairs.join_unmoved(trees);
        trees.old.settle(&Devices::new());
        trees.new.settle(&pairs.devices);
        pairs.join_others(trees);
        pairs.hidden = Sides { old: pairs.hide(trees, Side::Old), new: pairs.hide(trees, Side::New) };
        pairs
    }

    /// The counterpart of a directory.
    pub(super) fn of(&self, side: Side, dir: u32) -> Option<u32> {
        Some(self.of.get(side)[dir as usize]).filter(|twin| *twin != NONE)
    }

    /// Whether what is in `dir`, or `dir` itself if it has no counterpart, may be in the other inventory's part that is not
    /// known.
    pub(super) fn is_hidden(&self, side: Side, dir: u32) -> bool {
        self.hidden.get(side)[dir as usize]
    }

    fn join(&mut self, old: u32, new: u32) {
        self.of.old[old as usize] = new;
        self.of.new[new as usize] = old;
    }

    fn is_free(&self, side: Side, dir: u32) -> bool {
        self.of.get(side)[dir as usize] == NONE
    }

    fn join_roots(&mut self, trees: &Sides<Tree>, single: bool) {
        let mut by_path: HashMap<Vec<u8>, VecDeque<u32>> = HashMap::new();
        for root in roots(&trees.old) {
            let path = if single { Vec::new() } else { normal(trees.old.name(root)) };
            by_path.entry(path).or_default().push_back(root);
        }
        for root in roots(&trees.new) {
            let path = if single { Vec::new() } else { normal(trees.new.name(root)) };
            if let Some(old) = by_path.get_mut(&path).and_then(VecDeque::pop_front) {
                self.learn(trees, old, root);
                self.join(old, root);
            }
        }
    }

    /// A device has another number after a restart: it is the same if a directory has the same place, inode and time of birth.
    fn learn(&mut self, trees: &Sides<Tree>, old: u32, new: u32) {
        let (before, after) = (trees.old.inode(old).0, trees.new.inode(new).0);
        let is_same =
            trees.old.has_number_of(old, &trees.new, new) && trees.old.was_born_with(old, &trees.new, new);
        if before != after && is_same {
            self.devices.entry(after).or_insert(before);
        }
    }

    /// Whether a directory has the same inode number in both.
    fn has_stayed(&self, trees: &Sides<Tree>, old: u32, new: u32) -> bool {
        let (before, after) = (trees.old.inode(old).0, trees.new.inode(new).0);
        let after = self.devices.get(&after).copied().unwrap_or(after);
        trees.old.has_number_of(old, &trees.new, new) && before == after
    }

    /// The directory of the same name in the counterpart of its parent.
    fn namesake(&self, trees: &Sides<Tree>, new: u32) -> Option<u32> {
        let above = self.of(Side::New, trees.new.parent(new)?)?;
        trees.old.child(above, trees.new.name(new)).filter(|old| self.is_free(Side::Old, *old))
    }

    /// From the roots down, what has kept name and inode. First, as then no other place of an inode is taken for where it went.
    fn join_unmoved(&mut self, trees: &Sides<Tree>) {
        for new in trees.new.all() {
            if let Some(old) = self.namesake(trees, new) {
                self.learn(trees, old, new);
                if self.has_stayed(trees, old, new) {
                    self.join(old, new);
                }
            }
        }
    }

    /// From the roots down, what is renamed, what is below such, and what has come in the place of another.
    fn join_others(&mut self, trees: &Sides<Tree>) {
        for new in trees.new.all() {
            if !self.is_free(Side::New, new) || trees.new.parent(new).is_none() {
                continue;
            }
            let namesake = self.namesake(trees, new);
            let same = |old: &u32| trees.old.inode(*old) == trees.new.inode(new);
            let stayed = namesake.filter(same).filter(|old| trees.old.has_number_of(*old, &trees.new, new));
            let found = stayed
                .or_else(|| self.elsewhere(trees, Side::New, new))
                .or_else(|| namesake.filter(|old| self.elsewhere(trees, Side::Old, *old).is_none()));
            if let Some(old) = found {
                self.join(old, new);
            }
        }
    }

    /// A directory of the other inventory that is this one, and has no counterpart.
    fn elsewhere(&self, trees: &Sides<Tree>, side: Side, dir: u32) -> Option<u32> {
        let (here, there) = (trees.get(side), trees.get(side.other()));
        let mut twins = there.with_inode(here.inode(dir)).take(TWINS_MAX);
        twins.find(|twin| {
            self.is_free(side.other(), *twin)
                && there.parent(*twin).is_some()
                && here.is_same(dir, there, *twin)
        })
    }

    fn hide(&self, trees: &Sides<Tree>, side: Side) -> Vec<bool> {
        let (here, there) = (trees.get(side), trees.get(side.other()));
        let mut hidden = vec![true; here.len()];
        for dir in here.all() {
            hidden[dir as usize] = match (self.of(side, dir), here.parent(dir)) {
                (Some(twin), _) => there.state(twin) != State::Complete,
                (None, Some(parent)) => hidden[parent as usize],
                (None, None) => true,
            };
        }
        hidden
    }
}

/// The operands that are directories.
pub(super) fn roots(tree: &Tree) -> impl Iterator<Item = u32> {
    tree.all().filter(|dir| tree.parent(*dir).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each directory of `new` was.
    fn paired(old: &[(u32, &str, i64, i64)], new: &[(u32, &str, i64, i64)]) -> Vec<Option<u32>> {
        let mut trees = Sides { old: Tree::of(old), new: Tree::of(new) };
        let pairs = Pairs::new(&mut trees, false);
        trees.new.all().map(|dir| pairs.of(Side::New, dir)).collect()
    }

    #[test]
    fn renamed_directories_are_found_by_inode_and_what_is_below_by_name() {
        let old = [(NONE, "r", 2, 0), (1, "a", 3, 0), (2, "x", 4, 0), (1, "b", 5, 0)];
        let moved = [(NONE, "r/", 2, 0), (1, "new", 9, 0), (2, "c", 3, 0), (3, "x", 4, 0), (1, "b", 5, 0)];
        assert_eq!(paired(&old, &moved), [Some(1), None, Some(2), Some(3), Some(4)]);
        let swapped = [(NONE, "r", 2, 0), (1, "a", 5, 0), (1, "b", 3, 0), (3, "x", 4, 0)];
        assert_eq!(paired(&old, &swapped), [Some(1), Some(4), Some(2), Some(3)]);
    }

    #[test]
    fn a_directory_made_anew_is_the_one_it_has_come_in_the_place_of() {
        let old = [(NONE, "r", 2, 0), (1, "a", 3, 0), (2, "x", 4, 0)];
        let again = [(NONE, "r", 2, 0), (1, "a", 3, 7), (2, "x", 8, 7)];
        assert_eq!(paired(&old, &again), [Some(1), Some(2), Some(3)]);
        let reused = [(NONE, "r", 2, 0), (1, "other", 3, 7)];
        assert_eq!(paired(&old, &reused), [Some(1), None]);
    }

    #[test]
    fn a_second_place_of_an_inode_is_not_where_it_went() {
        let old = [(NONE, "r", 2, 0), (1, "b", 3, 0)];
        let bound = [(NONE, "r", 2, 0), (1, "a", 3, 0), (1, "b", 3, 0)];
        assert_eq!(paired(&old, &bound), [Some(1), None, Some(2)]);
    }

    #[test]
    fn a_device_may_have_another_number_afterwards() {
        let dirs = [(NONE, "r", 2, 5), (1, "a", 3, 6)];
        let moved = [(NONE, "r", 2, 5), (1, "b", 3, 6)];
        let mut trees = Sides { old: Tree::of(&dirs), new: Tree::of(&moved) };
        [1, 2].into_iter().for_each(|dir| trees.new.set(dir, 77, State::Complete));
        let pairs = Pairs::new(&mut trees, false);
        assert_eq!(pairs.of(Side::New, 2), Some(2));
        // A copy on another device has other times of birth.
        let copy = [(NONE, "r", 2, 8), (1, "b", 3, 8)];
        let mut trees = Sides { old: Tree::of(&dirs), new: Tree::of(&copy) };
        [1, 2].into_iter().for_each(|dir| trees.new.set(dir, 77, State::Complete));
        assert_eq!(Pairs::new(&mut trees, false).of(Side::New, 2), None);
    }

    #[test]
    fn what_the_other_inventory_does_not_know_is_hidden() {
        let old = [(NONE, "r", 2, 0), (1, "a", 3, 0), (2, "x", 4, 0), (1, "gone", 5, 0), (NONE, "s", 6, 0)];
        let new = [(NONE, "r", 2, 0), (1, "a", 3, 0)];
        let mut trees = Sides { old: Tree::of(&old), new: Tree::of(&new) };
        trees.new.set(2, 1, State::Failed);
        let pairs = Pairs::new(&mut trees, false);
        let hidden: Vec<_> = (0..6).map(|dir| pairs.is_hidden(Side::Old, dir)).collect();
        assert_eq!(hidden, [true, false, true, true, false, true]);
        assert!(!pairs.is_hidden(Side::New, 2));
    }
}
