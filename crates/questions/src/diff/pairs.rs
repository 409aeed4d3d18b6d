//! Pairs the directories of two inventories. Directories that were not moved are paired by name,
//! renamed ones by inode, and the remaining ones by name again: those replaced a directory of that
//! name.

use std::collections::{HashMap, VecDeque};

use super::inode_info::DeviceMap;
use super::tree::{DirTree, NONE};
use super::{Side, Sides};
use fathom_inventory::normal::normal;
use fathom_inventory::store::DirState;

/// Most directories of one inode that are examined. There are several if bind mounts or overlapping
/// operands reach the inode on several paths.
const CANDIDATES_MAX: usize = 16;

/// The pairs of directories.
pub(super) struct DirPairs {
    /// The counterpart of each directory, or [`NONE`].
    of: Sides<Vec<u32>>,
    /// For each directory, whether its entries may be in a part that the other inventory does not
    /// cover.
    hidden: Sides<Vec<bool>>,
    pub(super) devices: DeviceMap,
}

impl DirPairs {
    /// Pairs the directories of the `trees`. Roots are paired by path. If `single`, each inventory
    /// has one root, and the two are paired whatever their paths.
    pub(super) fn new(trees: &mut Sides<DirTree>, single: bool) -> Self {
        let of = Sides { old: vec![NONE; trees.old.len()], new: vec![NONE; trees.new.len()] };
        let hidden = Sides { old: Vec::new(), new: Vec::new() };
        let mut pairs = Self { of, hidden, devices: DeviceMap::new() };
        pairs.join(0, 0);
        pairs.join_roots(trees, single);
        pairs.join_unmoved(trees);
        trees.old.index_inodes(&DeviceMap::new());
        trees.new.index_inodes(&pairs.devices);
        pairs.join_others(trees);
        pairs.hidden =
            Sides { old: pairs.hidden_dirs(trees, Side::Old), new: pairs.hidden_dirs(trees, Side::New) };
        pairs
    }

    /// Returns the counterpart of a directory.
    pub(super) fn of(&self, side: Side, dir: u32) -> Option<u32> {
        Some(self.of.get(side)[dir as usize]).filter(|counterpart| *counterpart != NONE)
    }

    /// Returns whether the entries of `dir`, or `dir` itself if it has no counterpart, may be in a
    /// part that the other inventory does not cover.
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

    fn join_roots(&mut self, trees: &Sides<DirTree>, single: bool) {
        let mut by_path: HashMap<Vec<u8>, VecDeque<u32>> = HashMap::new();
        for root in roots(&trees.old) {
            let path = if single { Vec::new() } else { normal(trees.old.name(root)) };
            by_path.entry(path).or_default().push_back(root);
        }
        for root in roots(&trees.new) {
            let path = if single { Vec::new() } else { normal(trees.new.name(root)) };
            if let Some(old) = by_path.get_mut(&path).and_then(VecDeque::pop_front) {
                self.map_device(trees, old, root);
                self.join(old, root);
            }
        }
    }

    /// Maps the device number of `new` to the number of `old` if both are on one device. A device
    /// may have another number after a restart; it is the same one if a directory of the same path
    /// has the same inode number and creation time.
    fn map_device(&mut self, trees: &Sides<DirTree>, old: u32, new: u32) {
        let (before, after) = (trees.old.inode(old).0, trees.new.inode(new).0);
        let is_same =
            trees.old.has_ino_of(old, &trees.new, new) && trees.old.has_btime_of(old, &trees.new, new);
        if before != after && is_same {
            self.devices.entry(after).or_insert(before);
        }
    }

    /// Returns whether a directory has the same device and inode number in both inventories.
    fn is_unmoved(&self, trees: &Sides<DirTree>, old: u32, new: u32) -> bool {
        let (before, after) = (trees.old.inode(old).0, trees.new.inode(new).0);
        let after = self.devices.get(&after).copied().unwrap_or(after);
        trees.old.has_ino_of(old, &trees.new, new) && before == after
    }

    /// Returns the unpaired directory of the same name in the counterpart of the parent.
    fn same_name(&self, trees: &Sides<DirTree>, new: u32) -> Option<u32> {
        let above = self.of(Side::New, trees.new.parent(new)?)?;
        trees.old.child(above, trees.new.name(new)).filter(|old| self.is_free(Side::Old, *old))
    }

    /// Pairs the directories that kept name and inode, from the roots down. This comes first:
    /// otherwise a second path of such an inode would be taken for its new path.
    fn join_unmoved(&mut self, trees: &Sides<DirTree>) {
        for new in trees.new.all() {
            if let Some(old) = self.same_name(trees, new) {
                self.map_device(trees, old, new);
                if self.is_unmoved(trees, old, new) {
                    self.join(old, new);
                }
            }
        }
    }

    /// Pairs the other directories, from the roots down: renamed ones, those below them, and those
    /// that replaced a directory of their name.
    fn join_others(&mut self, trees: &Sides<DirTree>) {
        for new in trees.new.all() {
            if !self.is_free(Side::New, new) || trees.new.parent(new).is_none() {
                continue;
            }
            let same_name = self.same_name(trees, new);
            let same = |old: &u32| trees.old.inode(*old) == trees.new.inode(new);
            let stayed = same_name.filter(same).filter(|old| trees.old.has_ino_of(*old, &trees.new, new));
            let found = stayed
                .or_else(|| self.find_moved(trees, Side::New, new))
                .or_else(|| same_name.filter(|old| self.find_moved(trees, Side::Old, *old).is_none()));
            if let Some(old) = found {
                self.join(old, new);
            }
        }
    }

    /// Returns an unpaired directory of the other inventory that is the same directory, wherever it
    /// is.
    fn find_moved(&self, trees: &Sides<DirTree>, side: Side, dir: u32) -> Option<u32> {
        let (here, there) = (trees.get(side), trees.get(side.other()));
        let mut candidates = there.with_inode(here.inode(dir)).take(CANDIDATES_MAX);
        candidates.find(|counterpart| {
            self.is_free(side.other(), *counterpart)
                && there.parent(*counterpart).is_some()
                && here.is_same(dir, there, *counterpart)
        })
    }

    fn hidden_dirs(&self, trees: &Sides<DirTree>, side: Side) -> Vec<bool> {
        let (here, there) = (trees.get(side), trees.get(side.other()));
        let mut hidden = vec![true; here.len()];
        for dir in here.all() {
            hidden[dir as usize] = match (self.of(side, dir), here.parent(dir)) {
                (Some(counterpart), _) => there.state(counterpart) != DirState::Complete,
                (None, Some(parent)) => hidden[parent as usize],
                (None, None) => true,
            };
        }
        hidden
    }
}

/// Iterates over the operands that are directories.
pub(super) fn roots(tree: &DirTree) -> impl Iterator<Item = u32> {
    tree.all().filter(|dir| tree.parent(*dir).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the counterpart of each directory of `new`.
    fn paired(old: &[(u32, &str, i64, i64)], new: &[(u32, &str, i64, i64)]) -> Vec<Option<u32>> {
        let mut trees = Sides { old: DirTree::of(old), new: DirTree::of(new) };
        let pairs = DirPairs::new(&mut trees, false);
        trees.new.all().map(|dir| pairs.of(Side::New, dir)).collect()
    }

    #[test]
    fn renamed_directories_are_found_by_inode_and_their_children_by_name() {
        let old = [(NONE, "r", 2, 0), (1, "a", 3, 0), (2, "x", 4, 0), (1, "b", 5, 0)];
        let moved = [(NONE, "r/", 2, 0), (1, "new", 9, 0), (2, "c", 3, 0), (3, "x", 4, 0), (1, "b", 5, 0)];
        assert_eq!(paired(&old, &moved), [Some(1), None, Some(2), Some(3), Some(4)]);
        let swapped = [(NONE, "r", 2, 0), (1, "a", 5, 0), (1, "b", 3, 0), (3, "x", 4, 0)];
        assert_eq!(paired(&old, &swapped), [Some(1), Some(4), Some(2), Some(3)]);
    }

    #[test]
    fn a_recreated_directory_is_paired_with_the_one_it_replaced() {
        let old = [(NONE, "r", 2, 0), (1, "a", 3, 0), (2, "x", 4, 0)];
        let again = [(NONE, "r", 2, 0), (1, "a", 3, 7), (2, "x", 8, 7)];
        assert_eq!(paired(&old, &again), [Some(1), Some(2), Some(3)]);
        let reused = [(NONE, "r", 2, 0), (1, "other", 3, 7)];
        assert_eq!(paired(&old, &reused), [Some(1), None]);
    }

    #[test]
    fn a_second_path_of_an_inode_is_not_a_rename() {
        let old = [(NONE, "r", 2, 0), (1, "b", 3, 0)];
        let bound = [(NONE, "r", 2, 0), (1, "a", 3, 0), (1, "b", 3, 0)];
        assert_eq!(paired(&old, &bound), [Some(1), None, Some(2)]);
    }

    #[test]
    fn a_device_may_have_another_number_afterwards() {
        let dirs = [(NONE, "r", 2, 5), (1, "a", 3, 6)];
        let moved = [(NONE, "r", 2, 5), (1, "b", 3, 6)];
        let mut trees = Sides { old: DirTree::of(&dirs), new: DirTree::of(&moved) };
        [1, 2].into_iter().for_each(|dir| trees.new.set(dir, 77, DirState::Complete));
        let pairs = DirPairs::new(&mut trees, false);
        assert_eq!(pairs.of(Side::New, 2), Some(2));
        // A copy on another device has other creation times.
        let copy = [(NONE, "r", 2, 8), (1, "b", 3, 8)];
        let mut trees = Sides { old: DirTree::of(&dirs), new: DirTree::of(&copy) };
        [1, 2].into_iter().for_each(|dir| trees.new.set(dir, 77, DirState::Complete));
        assert_eq!(DirPairs::new(&mut trees, false).of(Side::New, 2), None);
    }

    #[test]
    fn directories_in_an_uncovered_part_are_hidden() {
        let old = [(NONE, "r", 2, 0), (1, "a", 3, 0), (2, "x", 4, 0), (1, "gone", 5, 0), (NONE, "s", 6, 0)];
        let new = [(NONE, "r", 2, 0), (1, "a", 3, 0)];
        let mut trees = Sides { old: DirTree::of(&old), new: DirTree::of(&new) };
        trees.new.set(2, 1, DirState::Failed);
        let pairs = DirPairs::new(&mut trees, false);
        let hidden: Vec<_> = (0..6).map(|dir| pairs.is_hidden(Side::Old, dir)).collect();
        assert_eq!(hidden, [true, false, true, true, false, true]);
        assert!(!pairs.is_hidden(Side::New, 2));
    }
}
