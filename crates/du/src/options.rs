//! Options of a disk-usage run: what it measures and the format of its lines. Plain data: the
//! caller parses command lines and environments into it; `scan.rs` and `accumulator.rs` act on it.

use crate::exclude::Exclude;
use crate::scan::Line;
use crate::threshold::Threshold;
use fathom_text::human::BlockSize;
use fathom_text::time::{TimeField, TimeStyle};

/// The quantity that is summed up. A new one is a breaking change, because programs label each one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Measure {
    /// Bytes allocated on disk: `st_blocks` * 512.
    #[default]
    Usage,
    /// `st_size` of regular files and symbolic links; 0 for everything else (GNU du since 9.2).
    Apparent,
    /// `st_size` of regular files only.
    Lengths,
    /// The number of inodes.
    Inodes,
}

/// The symbolic links that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Follow {
    /// None (`-P`).
    #[default]
    Never,
    /// Operands only (`-D`, `-H`).
    Operands,
    /// All (`-L`).
    Always,
}

/// The accounting of a file with several links, or reached through several operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum HardLinks {
    /// Once, at the first link.
    #[default]
    Once,
    /// At every link (`-l`).
    EachTime,
}

/// The measured quantity, the entries that are measured, and the lines that are printed.
///
/// ```
/// use fathom_du::options::{Measure, Options};
/// use fathom_du::threshold::Threshold;
///
/// let options = Options {
///     measure: Measure::Apparent,
///     depth_max: Some(1),
///     threshold: Threshold::parse(b"1M").ok(),
///     ..Options::default()
/// };
/// ```
#[derive(Debug, Default)]
pub struct Options {
    /// The quantity that is summed up.
    pub measure: Measure,
    /// The symbolic links that are followed.
    pub follow: Follow,
    /// The accounting of files with several links.
    pub links: HardLinks,
    /// Print a line for every entry, not only for directories (`-a`).
    pub all: bool,
    /// The deepest level that gets a line; an operand is level 0 (`-d`, `-s`).
    pub depth_max: Option<u64>,
    /// Exclude subdirectories from a directory's line (`-S`).
    pub separate_dirs: bool,
    /// Stay on each operand's filesystem (`-x`).
    pub one_file_system: bool,
    /// Print a last line with the total of all operands (`-c`).
    pub total: bool,
    /// Omit lines below (or above) this size (`-t`).
    pub threshold: Option<Threshold>,
    /// Add a column with the newest of this time stamp in the subtree (`--time`).
    pub time: Option<TimeField>,
    /// The names that are excluded.
    pub exclude: Exclude,
}

impl Options {
    /// Returns whether entries at this depth below an operand get no line.
    pub(crate) fn is_too_deep(&self, depth: usize) -> bool {
        self.depth_max.is_some_and(|max| depth as u64 > max)
    }

    /// Returns whether the threshold admits a line.
    pub(crate) fn shows(&self, line: &Line<'_>) -> bool {
        let value = match self.measure {
            Measure::Inodes => line.totals.inodes,
            _ => line.totals.bytes,
        };
        self.threshold.as_ref().is_none_or(|threshold| threshold.admits(value))
    }
}

/// The format of a line.
#[derive(Clone, Debug)]
pub struct LineFormat {
    /// Unit and suffix of the size column.
    pub block_size: BlockSize,
    /// The format of the time column.
    pub time_style: TimeStyle,
    /// The byte at the end of a line: `\n`, or `\0` for `-0`.
    pub terminator: u8,
}
