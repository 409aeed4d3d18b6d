//! The set of counted inodes.

use std::collections::{HashMap, HashSet};

/// A set of inodes, grouped by device so that a device number is not stored for every inode.
#[derive(Debug, Default)]
pub(crate) struct InodeSet {
    devices: HashMap<u64, HashSet<u64>>,
    /// The device of the last insertion: consecutive inodes are mostly on one device.
    last: Option<(u64, HashSet<u64>)>,
}

impl InodeSet {
    /// Inserts the inode. Returns whether it is new.
    pub(crate) fn insert(&mut self, id: (u64, u64)) -> bool {
        let (dev, ino) = id;
        if self.last.as_ref().is_none_or(|(last, _)| *last != dev) {
            let set = self.devices.remove(&dev).unwrap_or_default();
            if let Some((last, set)) = self.last.replace((dev, set)) {
                self.devices.insert(last, set);
            }
        }
        self.last.as_mut().is_some_and(|(_, set)| set.insert(ino))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inode_is_new_once_on_each_device() {
        let mut seen = InodeSet::default();
        let ids = [(1, 7), (2, 7), (1, 8), (1, 7), (2, 7), (3, 7), (1, 8)];
        assert_eq!(ids.map(|id| seen.insert(id)), [true, true, true, false, false, true, false]);
    }
}
