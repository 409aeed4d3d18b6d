//! The inodes with several names: each counts once in every directory that has a name of it, at any
//! depth, as in ncdu.

use std::collections::HashMap;

use fathom_remove::Identity;

use super::tree::NONE;
use crate::source::Amount;

/// The inodes with several names that have been found.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkedInodes {
    inodes: HashMap<Identity, LinkedInode>,
    /// The bytes that directories share with others; `None` once they may have changed.
    shared: Option<HashMap<u32, u64>>,
}

#[derive(Clone, Debug)]
struct LinkedInode {
    /// The sizes of the inode when it was counted.
    sizes: Amount<u64>,
    /// The number of its names, found or not.
    links: u64,
    /// The directories of its names, in the order of the tree, in which everything below a
    /// directory is together. So no other name is nearer to one than its neighbours.
    dirs: Vec<u32>,
}

/// The directories in which an inode begins or ends to count, with a name that comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkChange {
    /// The sizes of the inode when it was counted.
    pub(super) sizes: Amount<u64>,
    /// The directory of the name.
    pub(super) dir: u32,
    /// The first of the directories from `dir` upwards that has another name, and counts it anyway.
    /// `NONE` if its root has no other name.
    pub(super) end: u32,
    /// Whether there is no other name at all.
    pub(super) is_only: bool,
}

impl LinkedInodes {
    /// Adds a name in the directory `dir`. `parent` returns the directory above one.
    pub(super) fn add(
        &mut self,
        identity: Identity,
        sizes: Amount<u64>,
        links: u64,
        dir: u32,
        parent: impl Fn(u32) -> u32,
    ) -> LinkChange {
        self.shared = None;
        let inode = self.inodes.entry(identity).or_insert(LinkedInode { sizes, links, dirs: Vec::new() });
        inode.links = links;
        let (path, mut of_other) = (path(dir, &parent), Vec::new());
        let at = inode.dirs.partition_point(|other| {
            fill_path(&mut of_other, *other, &parent);
            of_other < path
        });
        let near = [at.checked_sub(1), Some(at)].map(|at| inode.dirs.get(at?).copied());
        let change = inode.change(dir, near, &parent);
        inode.dirs.insert(at, dir);
        change
    }

    /// Returns whether an inode with several names was found.
    pub(super) fn knows(&self, identity: Identity) -> bool {
        self.inodes.contains_key(&identity)
    }

    /// Removes one name in the directory `dir`. Returns `None` if the inode is not known to have
    /// had several names.
    pub(super) fn remove(
        &mut self,
        identity: Identity,
        dir: u32,
        parent: impl Fn(u32) -> u32,
    ) -> Option<LinkChange> {
        self.shared = None;
        let inode = self.inodes.get_mut(&identity)?;
        let Some(at) = inode.dirs.iter().position(|other| *other == dir) else {
            // The name was not found before it went, so it has not counted.
            return Some(LinkChange { sizes: inode.sizes, dir, end: dir, is_only: false });
        };
        inode.dirs.remove(at);
        inode.links = inode.links.saturating_sub(1);
        let near = [at.checked_sub(1), Some(at)].map(|at| inode.dirs.get(at?).copied());
        let change = inode.change(dir, near, &parent);
        if change.is_only {
            self.inodes.remove(&identity);
        }
        Some(change)
    }

    /// Removes all names in directories for which `is_gone` returns true. Returns the changes, in
    /// their order.
    pub(super) fn remove_dirs(
        &mut self,
        is_gone: impl Fn(u32) -> bool,
        parent: impl Fn(u32) -> u32,
    ) -> Vec<LinkChange> {
        let mut changes = Vec::new();
        self.shared = None;
        self.inodes.retain(|_, inode| {
            if !inode.dirs.iter().any(|dir| is_gone(*dir)) {
                return true;
            }
            let mut gone = 0;
            let (mut kept, mut dirs) = (Vec::new(), std::mem::take(&mut inode.dirs).into_iter().peekable());
            while let Some(dir) = dirs.next() {
                if is_gone(dir) {
                    gone += 1;
                    let near = [kept.last().copied(), dirs.peek().copied()];
                    changes.push(inode.change(dir, near, &parent));
                } else {
                    kept.push(dir);
                }
            }
            // Names that a walk finds again set the number again.
            inode.links = inode.links.saturating_sub(gone);
            inode.dirs = kept;
            !inode.dirs.is_empty()
        });
        changes
    }

    /// Returns the allocated bytes of inodes that have a name at or below `dir`, and another name
    /// that was not found there, as far as [`Self::find_shared`] has found them.
    pub(super) fn shared(&self, dir: u32) -> u64 {
        self.shared.as_ref().and_then(|shared| shared.get(&dir)).copied().unwrap_or_default()
    }

    /// Finds what directories share with others, unless that is known.
    pub(super) fn find_shared(&mut self, parent: impl Fn(u32) -> u32) {
        if self.shared.is_some() {
            return;
        }
        let mut shared: HashMap<u32, u64> = HashMap::new();
        let (mut last, mut here) = (Vec::new(), Vec::new());
        for LinkedInode { sizes, links, dirs } in self.inodes.values() {
            // The directories that have all names are those above the first and the last of them.
            let ends = dirs.first().zip(dirs.last()).filter(|_| dirs.len() as u64 >= *links);
            let common = ends.map_or(0, |(first, end)| {
                fill_path(&mut last, *end, &parent);
                fill_path(&mut here, *first, &parent);
                common_length(&here, &last)
            });
            last.clear();
            for dir in dirs {
                fill_path(&mut here, *dir, &parent);
                for above in &here[common_length(&here, &last).max(common).min(here.len())..] {
                    let bytes = shared.entry(*above).or_default();
                    *bytes = bytes.saturating_add(sizes.allocated);
                }
                std::mem::swap(&mut last, &mut here);
            }
        }
        self.shared = Some(shared);
    }
}

/// Returns the number of directories at the beginning of both paths.
fn common_length(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

impl LinkedInode {
    /// Returns the change by a name in `dir`, of which `near` are the neighbours.
    fn change(&self, dir: u32, near: [Option<u32>; 2], parent: &impl Fn(u32) -> u32) -> LinkChange {
        let path = path(dir, parent);
        let shared = |other: u32| {
            let both = path.iter().zip(self::path(other, parent));
            both.take_while(|(one, other)| *one == other).count()
        };
        let count = near.into_iter().flatten().map(shared).max();
        let end = count.and_then(|count| path.get(count.checked_sub(1)?).copied());
        LinkChange { sizes: self.sizes, dir, end: end.unwrap_or(NONE), is_only: count.is_none() }
    }
}

/// Returns the directories from a root to `dir`. They are in the order of the tree.
fn path(dir: u32, parent: &impl Fn(u32) -> u32) -> Vec<u32> {
    let mut path = Vec::new();
    fill_path(&mut path, dir, parent);
    path
}

fn fill_path(path: &mut Vec<u32>, dir: u32, parent: &impl Fn(u32) -> u32) {
    let above = |dir: u32| Some(dir).filter(|dir| *dir != NONE);
    path.clear();
    path.extend(std::iter::successors(above(dir), |dir| above(parent(*dir))));
    path.reverse();
}

#[cfg(test)]
mod tests {
    use fathom_io::Random;

    use super::*;

    const INODE: Identity = Identity { dev: 1, ino: 2 };
    const SIZES: Amount<u64> = Amount { apparent: 5, allocated: 8, entries: 0 };
    /// Directory 0 has 1 and 2, and 2 has 3 and 4; 5 is another root and has 6.
    const PARENTS: [u32; 7] = [NONE, 0, 0, 2, 2, NONE, 5];

    fn parent(dir: u32) -> u32 {
        PARENTS[dir as usize]
    }

    fn change(dir: u32, end: u32) -> LinkChange {
        LinkChange { sizes: SIZES, dir, end, is_only: false }
    }

    #[test]
    fn a_name_counts_up_to_the_first_directory_with_another_one() {
        let mut linked = LinkedInodes::default();
        let only = LinkChange { is_only: true, ..change(3, NONE) };
        assert_eq!(linked.add(INODE, SIZES, 9, 3, parent), only);
        assert_eq!(linked.add(INODE, SIZES, 9, 3, parent), change(3, 3), "a second name in it");
        assert_eq!(linked.add(INODE, SIZES, 9, 1, parent), change(1, 0));
        assert_eq!(linked.add(INODE, SIZES, 9, 6, parent), change(6, NONE), "the other root");
        assert_eq!(linked.add(INODE, SIZES, 9, 4, parent), change(4, 2));
        assert_eq!(linked.remove(INODE, 4, parent), Some(change(4, 2)));
        assert_eq!(linked.remove(INODE, 2, parent), Some(change(2, 2)), "it was not found");
        assert_eq!(linked.remove_dirs(|dir| dir == 1 || dir == 6, parent), [change(1, 0), change(6, NONE)]);
        assert_eq!(linked.remove(INODE, 3, parent), Some(change(3, 3)));
        assert_eq!(linked.remove(INODE, 3, parent), Some(only));
        assert_eq!(linked.remove(INODE, 3, parent), None);
        assert!(!linked.knows(INODE));
    }

    /// Counts by looking at the names below each directory, the virtual one above the roots last.
    fn counts(names: &[u32]) -> [u64; PARENTS.len() + 1] {
        std::array::from_fn(|dir| {
            let is_below = |name: &u32| path(*name, &parent).contains(&(dir as u32));
            u64::from(names.iter().any(|name| dir == PARENTS.len() || is_below(name)))
        })
    }

    fn apply(counts: &mut [u64; PARENTS.len() + 1], change: LinkChange, by: fn(u64, u64) -> u64) {
        let mut at = change.dir;
        while at != change.end {
            counts[at as usize] = by(counts[at as usize], 1);
            at = parent(at);
        }
        counts[PARENTS.len()] = by(counts[PARENTS.len()], u64::from(change.is_only));
    }

    #[test]
    fn the_changes_of_random_names_count_each_inode_once_in_each_directory() {
        for seed in fathom_cases::seeds(100) {
            let mut random = Random::new(seed);
            let (mut linked, mut names, mut counted) = (LinkedInodes::default(), Vec::new(), counts(&[]));
            for _ in 0..60 {
                let dir = random.below(PARENTS.len()) as u32;
                match random.below(8) {
                    0..4 => {
                        apply(&mut counted, linked.add(INODE, SIZES, 9, dir, parent), |a, b| a + b);
                        names.push(dir);
                    }
                    4..7 => {
                        let gone = linked.remove(INODE, dir, parent);
                        gone.into_iter().for_each(|change| apply(&mut counted, change, |a, b| a - b));
                        names.iter().position(|name| *name == dir).map(|at| names.swap_remove(at));
                    }
                    _ => {
                        let is_gone = |name: u32| path(name, &parent).contains(&dir);
                        let gone = linked.remove_dirs(is_gone, parent);
                        gone.into_iter().for_each(|change| apply(&mut counted, change, |a, b| a - b));
                        names.retain(|name| !is_gone(*name));
                    }
                }
                assert_eq!(counted, counts(&names), "seed {seed}: {names:?}");
                assert_eq!(linked.knows(INODE), !names.is_empty());
            }
        }
    }

    #[test]
    fn directories_share_inodes_with_names_outside() {
        for seed in fathom_cases::seeds(100) {
            let mut random = Random::new(seed);
            let names: Vec<_> =
                (0..1 + random.below(5)).map(|_| random.below(PARENTS.len()) as u32).collect();
            let links = names.len() as u64 + random.below(2) as u64;
            let mut linked = LinkedInodes::default();
            for dir in &names {
                linked.add(INODE, SIZES, links, *dir, parent);
            }
            linked.find_shared(parent);
            for dir in 0..PARENTS.len() as u32 {
                let inside = names.iter().filter(|name| path(**name, &parent).contains(&dir)).count() as u64;
                let expected = if inside > 0 && inside < links { SIZES.allocated } else { 0 };
                assert_eq!(linked.shared(dir), expected, "seed {seed}: {dir} of {names:?}, {links}");
            }
        }
    }
}
