//! What a disk-usage run is asked to measure and how its lines look. Plain data: parsing command lines and
//! environments into it is the caller's, acting on it is `scan.rs`'s and `print.rs`'s.

use crate::exclude::Exclude;
use crate::scan::Line;
use crate::threshold::Threshold;
use fathom_text::human::BlockSize;
use fathom_text::time::{TimeField, TimeStyle};

/// What is added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Measure {
    /// Bytes allocated on disk: `st_blocks` * 512.
    #[default]
    Usage,
    /// `st_size` of regular files and symbolic links; everything else counts 0 (GNU du since 9.2).
    Apparent,
    /// `st_size` of regular files alone.
    Lengths,
    /// One for each inode.
    Inodes,
}

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Follow {
    /// None (`-P`).
    #[default]
    Never,
    /// Those given as operands (`-D`, `-H`).
    Operands,
    /// All of them (`-L`).
    Always,
}

/// How often a file with several names, or met again through another operand, counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Links {
    /// Once, where it is met first.
    #[default]
    Once,
    /// Every time (`-l`).
    EachTime,
}

/// What is measured, and which lines are wanted.
#[derive(Debug, Default)]
pub struct Options {
    /// What is added up.
    pub measure: Measure,
    /// Which symbolic links are followed.
    pub follow: Follow,
    /// How often a file met again counts.
    pub links: Links,
    /// A line for every entry, not only for directories (`-a`).
    pub all: bool,
    /// Deepest level that gets a line; an operand is level 0 (`-d`, `-s`).
    pub depth_max: Option<u64>,
    /// A directory's line leaves its subdirectories out (`-S`).
    pub separate_dirs: bool,
    /// Stay on each operand's file system (`-x`).
    pub one_file_system: bool,
    /// A last line with the total of all operands (`-c`).
    pub total: bool,
    /// Lines below (or above) it are left out (`-t`).
    pub threshold: Option<Threshold>,
    /// The newest of this time stamp in the subtree gets a column (`--time`).
    pub time: Option<TimeField>,
    /// Names that are passed over.
    pub exclude: Exclude,
}

impl Options {
    /// Whether nothing at this depth below an operand gets a line.
    pub(crate) fn is_too_deep(&self, depth: usize) -> bool {
        self.depth_max.is_some_and(|max| depth as u64 > max)
    }

    /// Whether the threshold admits a line.
    pub(crate) fn shows(&self, line: &Line<'_>) -> bool {
        let value = match self.measure {
            Measure::Inodes => line.totals.inodes,
            _ => line.totals.bytes,
        };
        self.threshold.as_ref().is_none_or(|threshold| threshold.admits(value))
    }
}

/// How a line looks.
#[derive(Clone, Debug)]
pub struct Format {
    /// Unit and suffix of the size column.
    pub block_size: BlockSize,
    /// How `--time` prints.
    pub time_style: TimeStyle,
    /// The byte that ends a line: `\n`, or `\0` for `-0`.
    pub terminator: u8,
}
