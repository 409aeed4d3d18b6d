//! The interface of the trees that are explored. A source runs on a thread of its own, so its calls
//! may wait; the state and the views never call it directly.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fathom_io::{Errno, FileTime, FileType};
use fathom_remove::Identity;

/// A directory of a source: one of its roots, and a path below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The index of the root, in the order of the operands.
    pub root: usize,
    /// The path below the root, without a slash at either end; empty for the root itself.
    pub below: Vec<u8>,
}

/// How much of a directory a source knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// Everything below it, or the row is no directory.
    Complete,
    /// It is being walked: the sums still grow.
    Walking,
    /// Something below it could not be read.
    Partial,
    /// Everything below it, but for entries in it that match a pattern of what to leave out.
    Excluded,
    /// Its entries could not be read.
    Unreadable,
    /// Its entries are left out: another filesystem, or one of its own ancestors.
    Skipped,
    /// The earlier inventory has it, and it is gone: it has no sizes, and its growth is negative.
    Gone,
}

/// The size of a row, or its growth since an earlier inventory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount<T> {
    /// Apparent size in bytes.
    pub apparent: T,
    /// Allocated size in bytes.
    pub allocated: T,
    /// Number of entries below the row, without itself: of names, not of inodes.
    pub entries: T,
}

/// An entry of a directory. For a directory, the sums include everything below it: the sizes of an
/// inode with several names once in each directory that has one of them below it, as in ncdu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name in the directory; for a root, the operand.
    pub name: Box<[u8]>,
    /// Device and inode.
    pub identity: Identity,
    /// The change time, if it is known, by which another file with the same inode number is
    /// recognized. `None` for a directory, which changes with its entries, and for an inode with
    /// several names, which changes when another one is removed.
    pub ctime: Option<FileTime>,
    /// The type.
    pub file_type: FileType,
    /// The number of hard links.
    pub links: u64,
    /// Owner, user ID, if it is known.
    pub uid: Option<u32>,
    /// Group ID.
    pub gid: u32,
    /// Sizes and number of entries.
    pub amount: Amount<u64>,
    /// The allocated bytes below a directory that also have names elsewhere (hard links): without
    /// these names, removing the directory does not free them.
    pub shared: u64,
    /// The newest modification of the entry or of anything below it, in seconds since 1970, if it
    /// is known.
    pub newest_mtime_s: Option<i64>,
    /// The growth since the earlier inventory. `None` without one, if the entry is new there, or
    /// while it is [being walked](RowState::Walking), when its sums say nothing about it.
    pub growth: Option<Amount<i64>>,
    /// How much is known.
    pub state: RowState,
}

impl Row {
    /// Returns whether the sizes are known: not of an entry that could not be examined, has not
    /// been yet, or is gone.
    #[must_use]
    pub fn has_meta(&self) -> bool {
        self.links > 0 || self.identity.dev != 0
    }
}

/// The sums of rows, which may have names of the same inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowSums {
    /// The sums of all rows and of their directory, as the row of the directory has them, if they
    /// are known.
    pub total: Option<Amount<u64>>,
    /// The growth of the total since the earlier inventory, if that is known.
    pub growth: Option<Amount<i64>>,
    /// Whether each name of an inode counts.
    pub counts_names: bool,
    /// The sums of all files that a search has found, of which the rows are the largest.
    pub found: Option<Amount<u64>>,
}

/// The progress of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceProgress {
    /// Entries that have been seen.
    pub entries: u64,
    /// Allocated bytes that have been seen.
    pub allocated: u64,
    /// Failures so far.
    pub failures: u64,
    /// Whether nothing is walked (any more).
    pub finished: bool,
    /// Grows whenever sums have changed.
    pub version: u64,
}

/// A file with its place, for lists across directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedRow {
    /// The directory.
    pub place: Place,
    /// The entry.
    pub row: Row,
}

/// A search for files.
#[derive(Clone)]
pub struct FileSearch {
    /// Whether a file is one of those that are searched for.
    pub admits: Arc<dyn Fn(&Row) -> bool + Send + Sync>,
    /// The most files that are returned.
    pub count_max: usize,
}

impl std::fmt::Debug for FileSearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSearch").field("count_max", &self.count_max).finish_non_exhaustive()
    }
}

/// The files that a search has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// The largest of them, the largest first.
    pub files: Vec<PlacedRow>,
    /// The sums of all of them; `entries` is their number. Each name of an inode counts.
    pub total: Amount<u64>,
}

/// The key by which a source sums up all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumKey {
    /// The extension, as in `fathom top --by ext`.
    Extension,
    /// The owner.
    Owner,
    /// The age of the last modification, in classes.
    Age,
}

/// A row of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumRow {
    /// The extension, the name or number of the owner, or the words of the age class.
    pub key: Vec<u8>,
    /// The sums; `entries` is the number of files.
    pub amount: Amount<u64>,
}

/// The cause of an answer that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceError {
    /// The directory could not be read.
    Os(&'static str, Errno),
    /// The caller does not want the answer any more.
    Cancelled,
    /// Another cause, in words (a damaged inventory).
    Other(String),
}

/// A tree, or several, that can be explored.
pub trait Source: Send {
    /// Returns the roots, in the order of the operands.
    fn roots(&mut self) -> Vec<Row>;

    /// Returns the entries of a directory, in no particular order. Returns soon after `cancelled`
    /// is true.
    ///
    /// # Errors
    /// Why the directory cannot be listed.
    fn list(&mut self, place: &Place, cancelled: &AtomicBool) -> Result<Vec<Row>, SourceError>;

    /// Returns the sums of a directory, or of all roots.
    fn row_sums(&mut self, _place: Option<&Place>) -> RowSums {
        RowSums::default()
    }

    /// Returns the progress.
    fn progress(&self) -> SourceProgress;

    /// Stops the walk; everything that is known stays.
    fn stop(&mut self);

    /// Pauses the walk, or continues it.
    fn pause(&mut self, paused: bool);

    /// Walks a directory again, with everything below it.
    ///
    /// # Errors
    /// If the directory cannot be reached, or if the source cannot do that (an inventory).
    fn rescan(&mut self, place: &Place) -> Result<(), SourceError>;

    /// Takes entries out of all sums, after they were deleted.
    fn removed(&mut self, gone: &[(Place, Row)]);

    /// Returns the largest files below `place`, largest first.
    ///
    /// # Errors
    /// As for [`list`](Source::list).
    fn largest(
        &mut self,
        place: &Place,
        count: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<PlacedRow>, SourceError>;

    /// Searches all files below `place`, under each of their names. `progress` is called now and
    /// then with the number of entries that have been looked at.
    ///
    /// # Errors
    /// As for [`list`](Source::list).
    fn search(
        &mut self,
        place: &Place,
        search: &FileSearch,
        cancelled: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<FoundFiles, SourceError>;

    /// Returns the sums of all files of the source by a key: the largest first, or by age the
    /// youngest first.
    ///
    /// # Errors
    /// As for [`list`](Source::list).
    fn sums(&mut self, key: SumKey, cancelled: &AtomicBool) -> Result<Vec<SumRow>, SourceError>;

    /// Returns the path of a root for the system, if the tree is on this machine: actions on
    /// entries need it.
    fn local_root(&self, root: usize) -> Option<Vec<u8>>;
}
