//! The numbers that a walk reports: its progress while it runs, its summary at the end.

use std::time::Duration;

/// The progress of a walk. All numbers but `workers` and `busy` only grow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Entries seen, roots and directories included.
    pub entries: u64,
    /// Directories opened, or tried.
    pub directories: u64,
    /// The sum of the amounts that the visitor passed to [`Emit::measure`](crate::Emit::measure).
    pub measured: u64,
    /// Failures reported to the visitor of an unordered walk. The consumer of an ordered walk
    /// receives them itself.
    pub failures: u64,
    /// Number of workers.
    pub workers: usize,
    /// Tasks being executed: for a blocking model, the workers inside a system call or close to
    /// one.
    pub busy: usize,
}

/// Number of operations of the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calls {
    /// Directories opened, or tried.
    pub open: u64,
    /// Batches of names read.
    pub read: u64,
    /// Entries whose metadata was taken, open directories included.
    pub stat: u64,
    /// Directories opened again because their descriptor had not been kept.
    pub reopen: u64,
}

/// The result of a walk.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// False if the walk was stopped before its end; for a [gatherer](crate::gatherer), also if
    /// anything failed.
    pub complete: bool,
    /// The last progress.
    pub progress: Progress,
    /// From the first worker's start to the end.
    pub elapsed: Duration,
    /// Number of operations of the model.
    pub calls: Calls,
    /// The number of workers over time since the start: one element for each change.
    pub workers_over_time: Vec<(Duration, usize)>,
    /// Devices (`st_dev`) of directories that were opened, as far as they were kept apart.
    pub devices: Vec<u64>,
}
