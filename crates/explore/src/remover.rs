//! The interface of the removal of entries. The explorer decides which entries; an implementation
//! deletes them beneath their roots, and only if they are still the inodes that were shown.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fathom_io::FileTime;
use fathom_remove::Identity;
pub use fathom_remove::RemovalLimit;
use fathom_text::counts::files_and_directories;
use fathom_text::human::BlockSize;

/// An entry to be removed, with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The path of the root for the system.
    pub root: Vec<u8>,
    /// The path of the entry below the root. Never empty.
    pub below: Vec<u8>,
    /// The inode that was shown under this path.
    pub identity: Identity,
    /// The change time that was shown, if it is known. It tells a file from a later one that has
    /// got its inode number.
    pub ctime: Option<FileTime>,
}

/// The place to which entries go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalKind {
    /// They are deleted for good.
    Delete,
    /// They are moved to the trash of their own filesystem.
    Trash,
}

/// The extent of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalPlan {
    /// The numbers of entries that will be tried, at most: of those that were counted, and of those
    /// that could not be looked into.
    pub possible: RemovalLimit,
    /// The allocated bytes of all of them; an inode with several names counts once.
    pub bytes: u64,
    /// The bytes that the filesystem gets back, if this is known: an inode with a further name
    /// outside keeps its blocks, and so does one that a process has open.
    pub freed: Option<u64>,
    /// The bytes of files that processes have open.
    pub held: u64,
    /// The name and the number of a process that has the largest of them open.
    pub holder: Option<String>,
    /// The first reason why something stays.
    pub kept: Option<Vec<u8>>,
}

/// The progress of a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovalProgress {
    /// The number of entries that are gone.
    pub entries: u64,
    /// The number of failures.
    pub failures: u64,
}

/// An amount of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedAmount {
    /// The number of files.
    pub files: u64,
    /// The number of directories.
    pub directories: u64,
    /// Their allocated bytes.
    pub bytes: u64,
}

impl RemovedAmount {
    /// Adds another amount.
    pub(crate) fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Returns the numbers and the bytes, as in "2 files, 960M".
    #[must_use]
    pub fn words(&self, units: BlockSize) -> String {
        let counts = files_and_directories(self.files, self.directories);
        format!("{counts}, {}", units.text(self.bytes))
    }
}

/// The end of a removal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalOutcome {
    /// For each entry in the order of the request, whether it is gone with everything below it.
    pub removed: Vec<bool>,
    /// The directories to which entries were moved, if they are in one of the trees: the path of
    /// the root for the system, and the path below it.
    pub trashes: Vec<(Vec<u8>, Vec<u8>)>,
    /// The entries that were deleted.
    pub amount: RemovedAmount,
    /// The free bytes of the filesystem of the first entry after the removal, if they are known.
    pub free_bytes: Option<u64>,
    /// The totals.
    pub progress: RemovalProgress,
    /// The first failure: the path and the cause.
    pub first_failure: Option<Vec<u8>>,
}

/// Removes entries. Its calls may wait: they are made on a thread of their own.
pub trait Remover: Send {
    /// Counts what would be removed. Returns soon after `stop` is true.
    ///
    /// # Errors
    /// A message, without the program's name, if nothing can be removed.
    fn plan(&mut self, removals: &[Removal], stop: &Arc<AtomicBool>) -> Result<RemovalPlan, Vec<u8>>;

    /// Removes the entries, no more than `limit`, and calls `progress` now and then. Returns soon
    /// after `stop` is true.
    fn remove(
        &mut self,
        kind: RemovalKind,
        limit: RemovalLimit,
        removals: &[Removal],
        progress: &mut dyn FnMut(RemovalProgress),
        stop: &Arc<AtomicBool>,
    ) -> RemovalOutcome;
}
