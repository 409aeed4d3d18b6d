//! The inodes with several names: each counts once, in one of the directories that have a name of
//! it. If that name goes, it counts in another of these directories.

use std::collections::HashMap;

use fathom_remove::Identity;

use super::tree::NONE;
use crate::source::Amount;

/// The inodes with several names that have been found.
#[derive(Clone, Debug)]
pub(super) struct LinkedInodes {
    inodes: HashMap<Identity, LinkedInode>,
    /// The further names of all inodes, in linked lists.
    names: Vec<FurtherName>,
    /// The first unused element of `names`.
    unused: u32,
}

#[derive(Clone, Copy, Debug)]
struct LinkedInode {
    sizes: Amount<u64>,
    /// The directory in which it counts.
    dir: u32,
    /// The first further name.
    further: u32,
}

#[derive(Clone, Copy, Debug)]
struct FurtherName {
    dir: u32,
    next: u32,
}

/// The consequence of a name that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GoneName {
    /// The inode does not count under this name, so no sum changes.
    Uncounted,
    /// The inode no longer counts in the directory of the name.
    Counted {
        /// The sizes of the inode when it was counted.
        sizes: Amount<u64>,
        /// The directory in which it counts from now on, if it has another name.
        moved_to: Option<u32>,
    },
}

impl LinkedInodes {
    pub(super) fn new() -> Self {
        Self { inodes: HashMap::new(), names: Vec::new(), unused: NONE }
    }

    /// Adds a name in the directory `dir`. Returns whether the inode counts under it.
    pub(super) fn add(&mut self, identity: Identity, sizes: Amount<u64>, dir: u32) -> bool {
        let Some(inode) = self.inodes.get(&identity).copied() else {
            self.inodes.insert(identity, LinkedInode { sizes, dir, further: NONE });
            return true;
        };
        if let Some(further) = self.link(FurtherName { dir, next: inode.further }) {
            self.inodes.insert(identity, LinkedInode { further, ..inode });
        }
        false
    }

    /// Returns whether an inode with several names was found.
    pub(super) fn knows(&self, identity: Identity) -> bool {
        self.inodes.contains_key(&identity)
    }

    /// Removes one name in the directory `dir`. Returns `None` if the inode is not known to have
    /// had several names.
    pub(super) fn remove(&mut self, identity: Identity, dir: u32) -> Option<GoneName> {
        let mut inode = *self.inodes.get(&identity)?;
        // A directory may have several names of the inode: the one that does not count goes first.
        if self.unlink(&mut inode, |further| further == dir).is_some() {
            self.inodes.insert(identity, inode);
            return Some(GoneName::Uncounted);
        }
        if inode.dir != dir {
            return Some(GoneName::Uncounted);
        }
        let moved_to = self.unlink(&mut inode, |_| true);
        match moved_to {
            Some(dir) => drop(self.inodes.insert(identity, LinkedInode { dir, ..inode })),
            None => drop(self.inodes.remove(&identity)),
        }
        Some(GoneName::Counted { sizes: inode.sizes, moved_to })
    }

    /// Removes all names in directories for which `is_gone` returns true. Returns the inodes that
    /// counted there and count elsewhere from now on: their sizes, and the directory.
    pub(super) fn remove_dirs(&mut self, is_gone: impl Fn(u32) -> bool) -> Vec<(Amount<u64>, u32)> {
        let mut moved = Vec::new();
        let mut inodes = std::mem::take(&mut self.inodes);
        inodes.retain(|_, inode| {
            while self.unlink(inode, &is_gone).is_some() {}
            if !is_gone(inode.dir) {
                return true;
            }
            let next = self.unlink(inode, |_| true);
            if let Some(dir) = next {
                inode.dir = dir;
                moved.push((inode.sizes, dir));
            }
            next.is_some()
        });
        self.inodes = inodes;
        moved
    }

    /// Stores a further name. Returns its index, or `None` if there are too many.
    fn link(&mut self, name: FurtherName) -> Option<u32> {
        let index = self.unused;
        if let Some(unused) = self.names.get_mut(index as usize) {
            self.unused = std::mem::replace(unused, name).next;
            return Some(index);
        }
        let index = u32::try_from(self.names.len()).ok().filter(|index| *index != NONE)?;
        self.names.push(name);
        Some(index)
    }

    /// Removes the first further name whose directory `is_it` accepts. Returns its directory.
    fn unlink(&mut self, inode: &mut LinkedInode, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let (mut before, mut at) = (NONE, inode.further);
        while at != NONE {
            let name = self.names[at as usize];
            if is_it(name.dir) {
                match self.names.get_mut(before as usize) {
                    Some(before) => before.next = name.next,
                    None => inode.further = name.next,
                }
                self.names[at as usize].next = std::mem::replace(&mut self.unused, at);
                return Some(name.dir);
            }
            (before, at) = (at, name.next);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INODE: Identity = Identity { dev: 1, ino: 2 };
    const SIZES: Amount<u64> = Amount { apparent: 5, allocated: 8, entries: 0 };

    fn with_names(dirs: &[u32]) -> LinkedInodes {
        let mut linked = LinkedInodes::new();
        for (at, dir) in dirs.iter().enumerate() {
            assert_eq!(linked.add(INODE, SIZES, *dir), at == 0, "only the first name counts");
        }
        linked
    }

    #[test]
    fn the_last_name_takes_the_inode_along() {
        let mut linked = with_names(&[3, 4]);
        assert_eq!(linked.remove(INODE, 4), Some(GoneName::Uncounted));
        assert_eq!(linked.remove(INODE, 3), Some(GoneName::Counted { sizes: SIZES, moved_to: None }));
        assert!(linked.add(INODE, SIZES, 5));
        assert_eq!(linked.names.len(), 1, "places are used again");
    }

    #[test]
    fn an_inode_moves_to_another_name() {
        let mut linked = with_names(&[3, 3, 4]);
        assert_eq!(linked.remove(INODE, 3), Some(GoneName::Uncounted));
        assert_eq!(linked.remove(INODE, 3), Some(GoneName::Counted { sizes: SIZES, moved_to: Some(4) }));
        assert_eq!(linked.remove(INODE, 3), Some(GoneName::Uncounted));
        assert_eq!(linked.remove(INODE, 4), Some(GoneName::Counted { sizes: SIZES, moved_to: None }));
        assert_eq!(linked.remove(INODE, 4), None);
    }

    #[test]
    fn names_in_directories_that_are_gone_do_not_count() {
        let mut linked = with_names(&[1, 2, 3, 2, 9]);
        assert_eq!(linked.remove_dirs(|dir| dir < 4), [(SIZES, 9)]);
        assert_eq!(linked.remove_dirs(|dir| dir == 9), []);
        assert!(linked.inodes.is_empty());
        let mut linked = with_names(&[7, 2]);
        assert_eq!(linked.remove_dirs(|dir| dir == 2), []);
        assert_eq!(linked.remove(INODE, 7), Some(GoneName::Counted { sizes: SIZES, moved_to: None }));
    }
}
