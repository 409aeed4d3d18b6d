//! A whole run as it is saved: samples, statistics, and the conditions of the measurement.

use serde::{Deserialize, Deserializer, Serialize};

use crate::{LatencyBucket, Row};

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub median: f64,
    /// The lower end; NaN, in JSON `null`, if there are too few values for an interval.
    #[serde(deserialize_with = "number_or_nan")]
    pub low: f64,
    /// The upper end; as the lower one.
    #[serde(deserialize_with = "number_or_nan")]
    pub high: f64,
}

fn number_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// Statistics of the samples of one arm on one cell. Discarded samples are excluded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// The label of the cell, as in `write 1 GiB in 4 KiB blocks, warm`.
    pub cell: String,
    /// See [`Row::lang`].
    pub lang: String,
    /// See [`Row::method`].
    pub method: String,
    /// See [`Row::model`].
    pub model: String,
    /// See [`Row::threads`].
    pub threads: u32,
    /// See [`Row::depth`].
    pub depth: u32,
    /// See [`Row::cache`].
    pub cache: String,
    /// Number of counted samples.
    pub runs: u32,
    /// Number of discarded samples.
    pub discarded: u32,
    /// The median of [`Row::compared_s`] with its interval.
    pub seconds: Interval,
    /// Time divided by the time of the cell's baseline: the median of the ratios within blocks.
    /// `None` for the baseline itself.
    pub ratio: Option<Interval>,
    /// Time divided by the time of the fastest arm of the cell, estimated in the same way.
    pub ratio_to_best: Option<Interval>,
    /// Time divided by the time of the `blocking` arm of the same language, estimated in the same
    /// way.
    pub ratio_to_own: Option<Interval>,
    /// Whether the arm is not shown to be slower than the fastest by more than the margin.
    pub among_best: bool,
    /// Median of [`Row::bytes_per_s`].
    pub bytes_per_s: f64,
    /// Median of [`Row::ops_per_s`].
    pub ops_per_s: f64,
    /// CPU seconds for 10^9 bytes; `None` if the workload moves no bytes.
    pub cpu_s_per_gb: Option<f64>,
    /// CPU seconds for 10^6 operations.
    pub cpu_s_per_million_ops: f64,
    /// Median, over the samples, of the median latency.
    pub p50_us: Option<f64>,
    /// Median, over the samples, of the 95th percentile.
    pub p95_us: Option<f64>,
    /// Median, over the samples, of the 99th percentile.
    pub p99_us: Option<f64>,
    /// Median of [`Row::read_p50_us`].
    #[serde(default)]
    pub read_p50_us: Option<f64>,
    /// Median of [`Row::read_p95_us`].
    #[serde(default)]
    pub read_p95_us: Option<f64>,
    /// Median of [`Row::read_p99_us`].
    #[serde(default)]
    pub read_p99_us: Option<f64>,
    /// Median of [`Row::write_p50_us`].
    #[serde(default)]
    pub write_p50_us: Option<f64>,
    /// Median of [`Row::write_p95_us`].
    #[serde(default)]
    pub write_p95_us: Option<f64>,
    /// Median of [`Row::write_p99_us`].
    #[serde(default)]
    pub write_p99_us: Option<f64>,
    /// Median of [`Row::fdatasync_p50_us`].
    #[serde(default)]
    pub fdatasync_p50_us: Option<f64>,
    /// Median of [`Row::fdatasync_p95_us`].
    #[serde(default)]
    pub fdatasync_p95_us: Option<f64>,
    /// Median of [`Row::fdatasync_p99_us`].
    #[serde(default)]
    pub fdatasync_p99_us: Option<f64>,
    /// Context switches for each operation.
    pub switches_per_op: Option<f64>,
    /// Median of [`Row::memory_bytes`].
    pub memory_bytes: Option<f64>,
    /// Median of [`Row::punted`].
    pub punted: Option<f64>,
    /// Median of [`Row::device_reads`] for each operation.
    #[serde(default)]
    pub device_reads_per_op: Option<f64>,
    /// Median, over the samples, of the 99.9th percentile.
    #[serde(default)]
    pub p999_us: Option<f64>,
    /// Median of [`Row::mean_us`].
    #[serde(default)]
    pub mean_us: Option<f64>,
    /// The sum, over the samples, of the histograms of latencies.
    #[serde(default)]
    pub histogram: Vec<LatencyBucket>,
    /// `None` for other workloads than `run`.
    #[serde(default)]
    pub command: Option<CommandUse>,
}

/// The use of resources by the processes of a command, each number the median over the samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandUse {
    /// User CPU time.
    pub cpu_user_s: f64,
    /// System CPU time.
    pub cpu_sys_s: f64,
    /// Voluntary and involuntary context switches.
    pub switches: Option<f64>,
    /// See [`Row::migrations`].
    pub migrations: Option<f64>,
    /// See [`Row::faults`].
    pub faults: Option<f64>,
    /// See [`Row::faults_major`].
    pub faults_major: Option<f64>,
    /// See [`Row::read_bytes`].
    pub read_bytes: Option<f64>,
    /// See [`Row::written_bytes`].
    pub written_bytes: Option<f64>,
}

/// The measured difference between two copies of the same arm. Smaller differences are not ranked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The label of the cell.
    pub cell: String,
    /// The arm that ran twice in each block.
    pub method: String,
    /// The time of the second copy divided by the time of the first. The interval contains 1 if the
    /// measurement is unbiased.
    pub ratio: Interval,
    /// The smallest difference that is ranked, as a fraction: a ratio is noise from
    /// `1 / (1 + floor)` to `1 + floor`, the smallest such range that holds the interval.
    pub floor: f64,
}

/// An arm that could not run, with the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableArm {
    /// The language of the arm.
    pub lang: String,
    /// The name of the arm.
    pub method: String,
    /// The reason.
    pub reason: String,
}

/// Whether a requirement was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequirementOutcome {
    /// It was met.
    Met,
    /// The estimate is above the limit, but the limit lies within its interval.
    Unsure,
    /// It was missed.
    Missed,
    /// A command was not measured.
    #[default]
    Unmeasured,
}

impl RequirementOutcome {
    /// Returns the word for tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Unsure => "unsure",
            Self::Missed => "missed",
            Self::Unmeasured => "not measured",
        }
    }
}

/// A requirement, and what was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequirementVerdict {
    /// The label of the cell.
    pub cell: String,
    /// The requirement as a sentence.
    pub requirement: String,
    /// The measurement as text; empty if there is none.
    pub measured: String,
    /// Whether the requirement was met.
    pub outcome: RequirementOutcome,
}

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version of the format, 1.
    pub schema: u32,
    /// Name and version of the program.
    pub program: String,
    /// The command line, for repetition.
    pub command: String,
    /// Start time in UTC, formatted as in RFC 3339.
    pub started: String,
    /// The seed of the sample order, of the data and of the intervals.
    pub seed: u64,
    /// Number of repetitions requested.
    pub blocks: u32,
    /// Names and values of properties of the machine, the filesystem and its device.
    pub machine: Vec<(String, String)>,
    /// Notes for the reader, one sentence each.
    pub notes: Vec<String>,
    /// Statistics of all arms, grouped by cell, the fastest first.
    pub arms: Vec<ArmSummary>,
    /// The noise of each cell.
    pub noise: Vec<Noise>,
    /// Arms that could not run.
    pub unavailable: Vec<UnavailableArm>,
    /// Every sample, in order of execution.
    pub rows: Vec<Row>,
    /// The requirements on commands, and whether they were met; empty for other workloads.
    #[serde(default)]
    pub verdicts: Vec<RequirementVerdict>,
}
