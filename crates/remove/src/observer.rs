//! The receiver of events: entries that were removed, and failures.

use fathom_io::FileType;

use crate::failure::RemovalFailure;

/// An entry that was removed, moved to the trash, or in a dry run would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedEntry {
    /// The path: the target's, and the names below it.
    pub path: Vec<u8>,
    /// The type.
    pub file_type: FileType,
    /// Device number.
    pub dev: u64,
    /// Inode number, from the directory if the entry was not measured.
    pub ino: u64,
    /// Allocated bytes, if the entry was measured.
    pub allocated: Option<u64>,
}

/// Receives events on the threads that remove entries, several at once. A call that waits blocks
/// its thread.
///
/// `()` ignores all events.
pub trait Observer: Send + Sync + 'static {
    /// Returns whether [`Observer::removed`] is wanted, for which each entry's path is built.
    fn wants_entries(&self) -> bool {
        false
    }

    /// Receives entries that are gone: at most the entries of one batch of a directory.
    fn removed(&self, _entries: &[RemovedEntry]) {}

    /// Receives a failure.
    fn failed(&self, _failure: &RemovalFailure) {}
}

impl Observer for () {}
