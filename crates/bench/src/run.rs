//! A whole run, as it is saved: samples, what the statistics make of them, and the conditions under which they hold.

use serde::{Deserialize, Serialize};

use crate::Row;

/// A number with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What the samples of one arm on one cell come to. Discarded samples are not in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The cell, as in `write 1 GiB in 4 KiB blocks, warm`.
    pub cell: String,
    /// Language and method of the arm.
    pub lang: String,
    /// As in [`Row::method`].
    pub method: String,
    /// As in [`Row::model`].
    pub model: String,
    /// As in [`Row::threads`].
    pub threads: u32,
    /// As in [`Row::depth`].
    pub depth: u32,
    /// As in [`Row::cache`].
    pub cache: String,
    /// Samples counted.
    pub runs: u32,
    /// Samples not counted.
    pub discarded: u32,
    /// The median of [`Row::seconds`], with its interval.
    pub seconds: Interval,
    /// Time in relation to the cell's baseline: the median of ratios within a block. `None` for the baseline itself.
    pub ratio: Option<Interval>,
    /// The same in relation to the fastest arm of the cell.
    pub ratio_to_best: Option<Interval>,
    /// The same in relation to the `blocking` arm of the same language.
    pub ratio_to_own: Option<Interval>,
    /// Whether nothing shows that any other arm of the cell is faster.
    pub among_best: bool,
    /// Medians of the columns of that name.
    pub bytes_per_s: f64,
    /// Operations a second.
    pub ops_per_s: f64,
    /// Processor seconds for 10^9 bytes; `None` where no bytes are moved.
    pub cpu_s_per_gb: Option<f64>,
    /// Processor seconds for 10^6 operations.
    pub cpu_s_per_million_ops: f64,
    /// Medians of the latencies.
    pub p50_us: Option<f64>,
    /// The 95th percentile.
    pub p95_us: Option<f64>,
    /// The 99th percentile.
    pub p99_us: Option<f64>,
    /// Context switches an operation.
    pub switches_per_op: Option<f64>,
    /// The share of operations handed to kernel workers.
    pub punted: Option<f64>,
}

/// What two copies of the same arm differ by: less than this is no difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The cell.
    pub cell: String,
    /// The arm that ran twice a block.
    pub method: String,
    /// Its second copy in relation to its first; covers 1 if all is well.
    pub ratio: Interval,
    /// Half the width of that interval: the smallest difference that is ranked.
    pub floor: f64,
}

/// An arm that could not run, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// Language of the arm.
    pub lang: String,
    /// The arm.
    pub method: String,
    /// The reason.
    pub reason: String,
}

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The format's version, 1.
    pub schema: u32,
    /// Program and version.
    pub program: String,
    /// The command line, to run it again.
    pub command: String,
    /// When it began, in UTC, as RFC 3339 has it.
    pub started: String,
    /// The seed of the order, of the data and of the intervals.
    pub seed: u64,
    /// Repetitions asked for.
    pub blocks: u32,
    /// What the machine, the filesystem and its device are, as name and value.
    pub machine: Vec<(String, String)>,
    /// Whatever the reader should know, a sentence each.
    pub notes: Vec<String>,
    /// Arms, cell by cell, the fastest first.
    pub arms: Vec<Summary>,
    /// One a cell.
    pub noise: Vec<Noise>,
    /// What did not run.
    pub unavailable: Vec<Unavailable>,
    /// Every sample, in the order they were made.
    pub rows: Vec<Row>,
}
