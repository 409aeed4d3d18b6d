//! The consumer's part in a cut: records the roots of a unit, and the directories that it leaves.

use fathom_walk::{Enter, Errno, FileType};

use super::ScanConsumer;
use crate::scan::cut::LeftDir;
use fathom_inventory::store::{DirState, EntryRow, OptionalValues};

impl ScanConsumer<'_> {
    /// Returns the number of the next directory and the number of rows of `entries` so far.
    pub(super) fn table_ends(&self) -> (i64, u64) {
        let id = self.position.next_id;
        (id, self.position.counts.entries - (id - 1).cast_unsigned())
    }

    /// Begins a root of a unit. Returns false if the unit leaves it.
    pub(super) fn begins_root(&mut self, root: usize, dev: u64) -> bool {
        let (id, row) = self.table_ends();
        self.cut.as_mut().is_none_or(|cut| cut.begin_root(root, id, row, dev))
    }

    /// Records a directory that other units read.
    pub(super) fn record_left(&mut self, enter: &Enter<'_>, slices: u32) {
        let optional_values = enter.node.finding::<OptionalValues<'static>>().cloned();
        let (id, row) = self.table_ends();
        let name = enter.node.name().to_bytes();
        self.open(name, EntryRow::new(FileType::Directory, Ok(enter.meta)), optional_values);
        let left = LeftDir { path: self.position.path.clone(), id, row, dev: enter.meta.dev, slices };
        self.cut.iter_mut().for_each(|cut| cut.left.push(left.clone()));
        self.close(DirState::Partial, None);
    }

    /// Records a root of a unit that another unit has found as a directory, and that is none any
    /// more. Returns false if the scan is no unit, or the root is an operand.
    pub(super) fn record_vanished_root(&mut self, root: usize, errno: Errno) -> bool {
        if self.cut.as_ref().is_none_or(|cut| cut.is_operand(root)) {
            return false;
        }
        let path = self.scan.roots.get(root).cloned().unwrap_or_default();
        self.position.root = root;
        self.record_unread(path.to_bytes(), Err(errno), None, DirState::Failed, Some(errno));
        true
    }
}
