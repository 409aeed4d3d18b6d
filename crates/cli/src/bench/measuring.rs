//! The parts of all measurements: the record of a run, its progress line, and how it ends.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fathom_bench::advise::AdviceObserver;
use fathom_bench::runner::{Progress, RunEnd, RunObserver};
use fathom_bench::{Run, machine, report};

use super::values;
use crate::shared::cmdline::OptionValue;
use crate::shared::flag::{Flag, ValueKind, long};
use crate::shared::output::{ERASE, draw, reason};
use crate::shared::progress::format_seconds;

/// The heading of the options about a run.
pub(super) const RUN: &str = "Measurement";

/// The options about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunOption {
    Blocks,
    Time,
    Seed,
}

pub(super) const fn blocks<K: Copy>(key: K, brief: &'static str) -> Flag<K> {
    long(key, "blocks", RUN, brief).required("N", ValueKind::Text)
}

pub(super) const fn time<K: Copy>(key: K, brief: &'static str) -> Flag<K> {
    long(key, "time", RUN, brief).required("TIME", ValueKind::Text)
}

pub(super) const fn seed<K: Copy>(key: K) -> Flag<K> {
    long(key, "seed", RUN, "seed the order, the data and the intervals (default: random, and shown)")
        .required("N", ValueKind::Text)
}

/// The values of the options about a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunArgs {
    /// Repetitions.
    pub(crate) blocks: Option<u32>,
    /// The time within which to answer.
    pub(crate) time: Option<Duration>,
    pub(crate) seed: Option<u64>,
}

impl RunArgs {
    pub(super) fn apply(&mut self, key: RunOption, option: &OptionValue) -> Result<(), Vec<u8>> {
        match key {
            RunOption::Blocks => self.blocks = Some(values::blocks(option)?),
            RunOption::Time => self.time = Some(values::time(option)?),
            RunOption::Seed => self.seed = Some(values::whole(option)?),
        }
        Ok(())
    }
}

/// The default number of repetitions.
pub(super) const BLOCKS: u32 = 10;

/// How a run ended.
#[derive(Debug)]
pub(super) enum BenchEnd {
    Complete,
    Interrupted,
    Failed(String),
}

/// Paths from the environment.
#[derive(Debug)]
pub(super) struct BenchPaths {
    /// The path of this program.
    pub(super) own: PathBuf,
    /// The search path for toolchains.
    pub(super) search: std::ffi::OsString,
    /// The directory for built programs.
    pub(super) cache: PathBuf,
}

pub(super) fn bench_paths() -> Result<BenchPaths, String> {
    let own = std::env::current_exe();
    let own = own.map_err(|error| format!("cannot find this program: {}", error_text(&error)))?;
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).unwrap_or_else(std::env::temp_dir);
    Ok(BenchPaths { own, search: set("PATH").unwrap_or_default(), cache: cache.join("fathom/playground") })
}

/// The progress line on a terminal.
pub(super) struct BenchMeter<'a> {
    stop: &'a AtomicBool,
    label: String,
    started: Instant,
    /// The time from which on no sample begins.
    end: Option<Instant>,
    shown: bool,
}

impl<'a> BenchMeter<'a> {
    /// Creates a progress line for the cell `label`. `stop` tells the runner to stop.
    pub(super) fn new(stop: &'a AtomicBool, label: String) -> Self {
        let shown = std::io::stderr().is_terminal();
        Self { stop, label, started: Instant::now(), end: None, shown }
    }

    /// Has the runner stop at `end`, too.
    pub(super) fn until(mut self, end: Option<Instant>) -> Self {
        self.end = end;
        self
    }
}

/// Returns the end of `time` from now on; `None` if there is none.
pub(super) fn end_of(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}

/// Returns how a run ended, with a note if its time was over before all repetitions were done.
pub(super) fn run_end(end: RunEnd, blocks: (u32, u32), stop: &AtomicBool) -> (BenchEnd, Option<String>) {
    match end {
        RunEnd::Failed(error) => (BenchEnd::Failed(error.to_string()), None),
        RunEnd::Complete => (BenchEnd::Complete, None),
        RunEnd::Interrupted if stop.load(Ordering::Relaxed) => (BenchEnd::Interrupted, None),
        RunEnd::Interrupted => {
            let (done, all) = blocks;
            (BenchEnd::Complete, Some(format!("out of time after {done} of {all} repetitions")))
        }
    }
}

impl AdviceObserver for BenchMeter<'_> {
    fn cell(&mut self, label: &str) {
        label.clone_into(&mut self.label);
        self.started = Instant::now();
    }
}

impl RunObserver for BenchMeter<'_> {
    fn next(&mut self, progress: &Progress<'_>) {
        if self.shown {
            let Progress { block, blocks, arm, done, left } = progress;
            let all = done + left;
            let over = (f64::from(block - 1) + *done as f64 / all as f64) / f64::from(*blocks);
            let left = self.started.elapsed().as_secs_f64() * (1.0 - over) / over;
            // Before the first block is over, a guess is worth little.
            let left =
                if *block > 1 { format!(", about {} left", format_seconds(left)) } else { String::new() };
            let line = format!(
                "\r\x1b[K{}: block {block} of {blocks}, {} of {all}{left}: {arm}",
                self.label,
                done + 1
            );
            draw(line.as_bytes());
        }
    }

    fn stop(&mut self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.end.is_some_and(|end| Instant::now() >= end)
    }
}

impl Drop for BenchMeter<'_> {
    fn drop(&mut self) {
        if self.shown {
            draw(ERASE);
        }
    }
}

/// Creates the record of a run of `command` on the filesystem of `path` that starts now.
pub(super) fn new_run(command: String, seed: Option<u64>, path: &Path) -> Run {
    Run {
        schema: report::SCHEMA,
        program: format!("fathom {}", env!("CARGO_PKG_VERSION")),
        command,
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        seed: seed.unwrap_or_else(any_seed),
        machine: machine::fingerprint(path),
        ..Run::default()
    }
}

/// Returns an arbitrary seed, short enough to type.
fn any_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_nanos())
}

pub(super) fn error_text(error: &std::io::Error) -> String {
    String::from_utf8_lossy(&reason(error)).into_owned()
}
