//! The list of workloads, with what each of them does and needs.

use fathom_io::Use;

/// The value of `--method` for the loop without I/O calls, which measures its own cost.
pub const NULL: &str = "null";
/// The language of control programs, which are not part of this project (dd).
pub(crate) const CONTROL: &str = "control";
/// Percentiles of fewer timed operations say nothing about the others.
pub(crate) const TIMED_OPS_MIN: u64 = 100;
/// The same for the 99.9th percentile.
pub(crate) const TIMED_OPS_FOR_P999: u64 = 1000;

/// The workload of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Writes each block once, in ascending order.
    Write,
    /// Reads each block once, in ascending order.
    Read,
    /// Reads each block once, in random order.
    RandomRead,
    /// Overwrites each block of an existing file once, in random order.
    RandomWrite,
    /// Reads some blocks of an existing file and overwrites the others, each once, in random order.
    Mixed,
    /// Appends blocks, each followed by an fdatasync before the next.
    AppendSync,
    /// Reads all names of a tree.
    Walk,
    /// Reads all names of a tree and the metadata of every entry.
    Stat,
    /// Opens, reads and closes files of one block each.
    SmallFiles,
    /// Requests files of one block each from a static file server, each once, in random order.
    Serve,
    /// Copies the file.
    Copy,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Self; 11] = [
        Self::Write,
        Self::Read,
        Self::RandomRead,
        Self::RandomWrite,
        Self::Mixed,
        Self::AppendSync,
        Self::Walk,
        Self::Stat,
        Self::SmallFiles,
        Self::Serve,
        Self::Copy,
    ];

    /// Returns whether the workload writes the file, or parts of it.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AppendSync | Self::RandomWrite | Self::Mixed)
    }

    /// Returns whether the workload reads files or trees, or parts of them.
    #[must_use]
    pub fn reads(self) -> bool {
        !matches!(self, Self::Write | Self::AppendSync | Self::RandomWrite)
    }

    /// Returns whether the workload writes to an existing file.
    #[must_use]
    pub fn overwrites(self) -> bool {
        matches!(self, Self::RandomWrite | Self::Mixed)
    }

    /// Returns whether a sample creates the file, or truncates it.
    pub(crate) fn creates(self) -> bool {
        self.writes() && !self.overwrites()
    }

    /// Returns whether a sample makes calls of several kinds, whose latencies are reported apart.
    pub(crate) fn has_kinds_of_calls(self) -> bool {
        matches!(self, Self::AppendSync | Self::Mixed)
    }

    /// Returns whether the blocks are in random order.
    pub(crate) fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite | Self::Mixed)
    }

    /// Returns whether the workload walks a tree.
    #[must_use]
    pub fn is_of_tree(self) -> bool {
        matches!(self, Self::Walk | Self::Stat)
    }

    /// Returns whether the workload reads many files of one block.
    #[must_use]
    pub fn is_of_small_files(self) -> bool {
        matches!(self, Self::SmallFiles | Self::Serve)
    }

    /// Returns the use that a model must have for the workload.
    #[must_use]
    pub fn wanted(self) -> Use {
        match self {
            Self::Walk | Self::Stat => Use::Metadata,
            Self::Write
            | Self::Read
            | Self::RandomRead
            | Self::RandomWrite
            | Self::Mixed
            | Self::AppendSync => Use::Ranges,
            Self::SmallFiles => Use::SmallFiles,
            Self::Serve => Use::Serve,
            Self::Copy => Use::Copy,
        }
    }

    /// Returns the name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::RandomRead => "random-read",
            Self::RandomWrite => "random-write",
            Self::Mixed => "mixed",
            Self::AppendSync => "append-sync",
            Self::Walk => "walk",
            Self::Stat => "stat",
            Self::SmallFiles => "small-files",
            Self::Serve => "serve",
            Self::Copy => "copy",
        }
    }

    /// Returns the workload called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }
}
