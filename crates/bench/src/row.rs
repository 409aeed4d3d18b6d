//! The result of one sample. The field names are the CSV columns and the JSON keys, in this order.

use serde::{Deserialize, Serialize};

use crate::LatencyBucket;

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// `write`, `read`, `append-sync`, `random-read`, `random-write`, `mixed`, `stat`, `walk`,
    /// `small-files`, `serve`, `copy`, or `run` for a command of the user's own.
    pub workload: String,
    /// `rust`, `bun`, `c`, `cpp`, `deno`, `go`, `java`, `node`, `python`, `rust-crates`, `zig`,
    /// `control` for a program that is not part of this project, or `command` for a command of the
    /// user's own.
    pub lang: String,
    /// The name of the arm, as in `threads=10`.
    pub method: String,
    /// The I/O model of the arm, as in `threads`.
    pub model: String,
    /// Threads that issue operations.
    pub threads: u32,
    /// Limit of operations in flight for each thread.
    pub depth: u32,
    /// Bytes of one operation.
    pub block_bytes: u64,
    /// Bytes of all operations. 0 for workloads on trees, whose size is `ops` entries.
    pub size_bytes: u64,
    /// `warm`, `cold`, or `none` if the cache state makes no difference.
    pub cache: String,
    /// Whether the page cache is bypassed (`O_DIRECT`).
    pub direct: bool,
    /// The fdatasync calls within `seconds`: `none`, `data` (once at the end), or `each` (after
    /// every operation).
    pub sync: String,
    /// The repetition, from 1.
    pub block: u32,
    /// From the start of the first operation to the end of the last.
    pub seconds: f64,
    /// Bytes divided by `seconds`.
    pub bytes_per_s: f64,
    /// CPU time of user and system, including kernel workers. For a server, from its start to its
    /// end, without the client.
    pub cpu_s: f64,
    /// Operations submitted at once.
    pub batch: u32,
    /// The way of waiting for completions: `wait`, `spin` or `adaptive`.
    pub wait: String,
    /// User CPU time.
    pub cpu_user_s: f64,
    /// System CPU time.
    pub cpu_sys_s: f64,
    /// From the start of the first operation to the end of the fdatasync that follows the last.
    pub sync_s: Option<f64>,
    /// From the start of the first operation to the end of the close that follows the fdatasync.
    pub close_s: Option<f64>,
    /// Operations completed.
    pub ops: u64,
    /// Operations divided by `seconds`.
    pub ops_per_s: f64,
    /// Highest observed number of operations in flight.
    pub in_flight_max: u32,
    /// Median latency of the timed operations.
    pub p50_us: Option<f64>,
    /// 95th percentile of the latency.
    pub p95_us: Option<f64>,
    /// 99th percentile of the latency.
    pub p99_us: Option<f64>,
    /// Maximum latency.
    pub max_us: Option<f64>,
    /// Voluntary context switches.
    pub switches: Option<u64>,
    /// Involuntary context switches.
    pub switches_forced: Option<u64>,
    /// Peak resident memory of the process of a server, a command or a walk; `None` for others.
    pub memory_bytes: Option<u64>,
    /// Fraction of operations that io_uring punted to a kernel worker (io-wq); `None` if it is
    /// unknown.
    pub punted: Option<f64>,
    /// Reads that the device completed during the sample, for whomever; `None` if the workload does
    /// not depend on them, or the filesystem has no block device.
    #[serde(default)]
    pub device_reads: Option<u64>,
    /// Fraction of the file's pages in the page cache immediately before the first operation.
    pub cached_before: Option<f64>,
    /// Fraction of the file's pages in the page cache immediately after the last operation.
    pub cached_after: Option<f64>,
    /// Fraction of CPU time stolen by the hypervisor during the sample (`steal` in proc_stat(5)).
    pub steal: f64,
    /// Whether the data was right: every written byte as an independent reader found it, or the
    /// stamp of every page that was read.
    pub verified: bool,
    /// The reason why this sample is not counted; empty if it is counted.
    pub discarded: String,
    /// The use of the machine by others during this sample; empty if none was noticed.
    #[serde(default)]
    pub disturbed: String,
    /// The label of the cell, as in `write 1 GiB in 4 KiB blocks`.
    #[serde(default)]
    pub cell: String,
    /// Whether this is the baseline's second copy. In JSON its method ends with `(again)`.
    #[serde(default)]
    pub second_copy: bool,
    /// Median latency of the reads of `mixed`.
    #[serde(default)]
    pub read_p50_us: Option<f64>,
    /// 95th percentile of the latency of the reads of `mixed`.
    #[serde(default)]
    pub read_p95_us: Option<f64>,
    /// 99th percentile of the latency of the reads of `mixed`.
    #[serde(default)]
    pub read_p99_us: Option<f64>,
    /// Maximum latency of the reads of `mixed`.
    #[serde(default)]
    pub read_max_us: Option<f64>,
    /// Median latency of the writes of `append-sync` and `mixed`.
    #[serde(default)]
    pub write_p50_us: Option<f64>,
    /// 95th percentile of the latency of the writes of `append-sync` and `mixed`.
    #[serde(default)]
    pub write_p95_us: Option<f64>,
    /// 99th percentile of the latency of the writes of `append-sync` and `mixed`.
    #[serde(default)]
    pub write_p99_us: Option<f64>,
    /// Maximum latency of the writes of `append-sync` and `mixed`.
    #[serde(default)]
    pub write_max_us: Option<f64>,
    /// Median latency of the fdatasync calls of `append-sync`.
    #[serde(default)]
    pub fdatasync_p50_us: Option<f64>,
    /// 95th percentile of the latency of the fdatasync calls of `append-sync`.
    #[serde(default)]
    pub fdatasync_p95_us: Option<f64>,
    /// 99th percentile of the latency of the fdatasync calls of `append-sync`.
    #[serde(default)]
    pub fdatasync_p99_us: Option<f64>,
    /// Maximum latency of the fdatasync calls of `append-sync`.
    #[serde(default)]
    pub fdatasync_max_us: Option<f64>,
    /// 99.9th percentile of the latency; `None` for fewer than 1,000 timed operations, and for
    /// other languages than Rust.
    #[serde(default)]
    pub p999_us: Option<f64>,
    /// The latencies of the timed operations; empty for fewer than 100, and for other languages.
    #[serde(default)]
    pub histogram: Vec<LatencyBucket>,
    /// Page faults of a command without I/O; `None` for other workloads.
    #[serde(default)]
    pub faults: Option<u64>,
    /// Page faults of a command with I/O; `None` for other workloads.
    #[serde(default)]
    pub faults_major: Option<u64>,
    /// How often the kernel moved a process of a command to another CPU; `None` for other
    /// workloads, and for users who may not count that.
    #[serde(default)]
    pub migrations: Option<u64>,
    /// Bytes that devices read for a command; `None` for other workloads.
    #[serde(default)]
    pub read_bytes: Option<u64>,
    /// Bytes that a command has left for devices to write; `None` for other workloads.
    #[serde(default)]
    pub written_bytes: Option<u64>,
    /// Mean latency of requests at a given rate, each from the time at which it was due; `None` for
    /// other workloads.
    #[serde(default)]
    pub mean_us: Option<f64>,
}

impl Row {
    /// Returns the time in seconds by which arms are compared: the mean latency of requests at a
    /// given rate, else the time of the sample. The time of a sample at a given rate is given, too.
    #[must_use]
    pub fn compared_s(&self) -> f64 {
        self.mean_us.map_or(self.seconds, |latency| latency / 1e6)
    }
}
