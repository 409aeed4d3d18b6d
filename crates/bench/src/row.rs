//! What one sample gave. The names of the fields are the columns of CSV and the keys of JSON, in this order.

use serde::{Deserialize, Serialize};

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// `write`, `read`, `append-sync`, `random-read`, `stat`, `walk`, `small-files`, `serve` or `copy`.
    pub workload: String,
    /// `rust`, `c`, `go`, `java`, `node`, `python`, `zig`, or `control` for a program of others.
    pub lang: String,
    /// The arm, as in `10_threads_pwrite`.
    pub method: String,
    /// The I/O model behind it, as in `threads`.
    pub model: String,
    /// Threads that make calls.
    pub threads: u32,
    /// Most operations each of them has in flight.
    pub depth: u32,
    /// Bytes of one operation.
    pub block_bytes: u64,
    /// Bytes of all operations; for workloads of files, their number is `ops`.
    pub size_bytes: u64,
    /// `warm`, `cold`, or `none` where it makes no difference.
    pub cache: String,
    /// Whether the page cache is passed by.
    pub direct: bool,
    /// What is synced within `seconds`: `none`, `data` at the end, or `each` operation.
    pub sync: String,
    /// The repetition, from 1.
    pub block: u32,
    /// From the first operation's start to the last one's end.
    pub seconds: f64,
    /// Bytes of the work by `seconds`.
    pub bytes_per_s: f64,
    /// Processor time, of user and system, kernel workers included.
    pub cpu_s: f64,
    /// Operations submitted at once.
    pub batch: u32,
    /// How completions are waited for: `wait`, `spin` or `adaptive`.
    pub wait: String,
    /// That of the user.
    pub cpu_user_s: f64,
    /// That of the system.
    pub cpu_sys_s: f64,
    /// From the start to the end of an fdatasync after it.
    pub sync_s: Option<f64>,
    /// From the start to the end of the close after that.
    pub close_s: Option<f64>,
    /// Operations made.
    pub ops: u64,
    /// Operations by `seconds`.
    pub ops_per_s: f64,
    /// Most operations under way at once, counted.
    pub in_flight_max: u32,
    /// Latency of timed operations: the median.
    pub p50_us: Option<f64>,
    /// The 95th percentile.
    pub p95_us: Option<f64>,
    /// The 99th percentile.
    pub p99_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
    /// Voluntary context switches.
    pub switches: Option<u64>,
    /// Involuntary ones.
    pub switches_forced: Option<u64>,
    /// The share of operations that the kernel handed to a worker of its own; `None` where that cannot be told.
    pub punted: Option<f64>,
    /// The share of the file's pages in the page cache right before the first operation.
    pub cached_before: Option<f64>,
    /// The same right after the last one.
    pub cached_after: Option<f64>,
    /// The share of processor time that the hypervisor gave to others during the sample.
    pub steal: f64,
    /// Whether an independent reader found every byte right.
    pub verified: bool,
    /// Why this sample is not counted; empty if it is.
    pub discarded: String,
}
