//! Samples of many small files: each file is opened, read completely and closed.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use fathom_io::Model;
use fathom_io::sys::usage;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::io_loop::IoTotals;
use super::spec::{SampleError, SampleSpec};
use super::usage_between;
use crate::lang::Measurement;
use crate::pattern::{PAGE_BYTES, Pattern};

/// Files in each directory.
pub(crate) const WIDTH: u64 = 100;

/// Returns the path of file `number` relative to the tree.
pub(crate) fn relative_path(number: u64) -> String {
    format!("{:04}/file-{number}", number / WIDTH)
}

/// Returns the path of file `number` in the tree at `tree`.
pub(crate) fn path_of(tree: &std::path::Path, number: u64) -> PathBuf {
    tree.join(relative_path(number))
}

/// Returns the length of file `number`, where all files together have `size` bytes and each but the
/// last has `block`.
pub(crate) fn len(size: u64, block: usize, number: u64) -> usize {
    let left = size.saturating_sub(number * block as u64);
    usize::try_from(left).unwrap_or(block).min(block)
}

/// Returns the pattern offset of file `number`: the files are laid out one after the other, each
/// from a page boundary.
pub(crate) fn offset(number: u64, block: usize) -> u64 {
    number * (block.next_multiple_of(PAGE_BYTES) as u64)
}

/// Reads `size / block` files of `block` bytes.
pub(super) fn read(spec: &SampleSpec) -> Result<Measurement, SampleError> {
    let pattern = Pattern::new(spec.seed, spec.generation);
    let (before, start) = (usage(), Instant::now());
    let totals = match spec.model {
        Some(Model::Tokio) => with_tokio(spec, &pattern)?,
        _ => with_threads(spec, &pattern)?,
    };
    Ok(totals.measurement(start.elapsed().as_secs_f64(), &usage_between(&before, &usage())))
}

/// Verifies the content of a file and adds it to the totals.
fn record(
    spec: &SampleSpec,
    pattern: &Pattern,
    number: u64,
    bytes: &[u8],
    totals: &mut IoTotals,
) -> Result<(), SampleError> {
    let right = pattern.check_stamps(offset(number, spec.block), bytes);
    totals.pages_ok += right.map_err(|page| SampleError::Wrong(path_of(&spec.path, number), page))?;
    totals.ops += 1;
    totals.bytes += bytes.len() as u64;
    Ok(())
}

/// Reads the files with `threads` threads that share a counter.
fn with_threads(spec: &SampleSpec, pattern: &Pattern) -> Result<IoTotals, SampleError> {
    let next = AtomicU64::new(0);
    let work = || {
        let (mut totals, mut bytes) = (IoTotals { in_flight_max: 1, ..IoTotals::default() }, Vec::new());
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= spec.blocks() {
                return Ok(totals);
            }
            let path = path_of(&spec.path, number);
            bytes.clear();
            let read = File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
            read.map_err(|error| SampleError::io("read", &path, error))?;
            record(spec, pattern, number, &bytes, &mut totals)?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (1..spec.threads).map(|_| scope.spawn(work)).collect();
        let mut totals: IoTotals = work()?;
        for thread in threads {
            let other: Result<IoTotals, SampleError> =
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            totals.add(other?);
        }
        Ok(totals)
    })
}

/// Reads the files with up to `depth` concurrent futures.
fn with_tokio(spec: &SampleSpec, pattern: &Pattern) -> Result<IoTotals, SampleError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| SampleError::io("start tokio for", &spec.path, error))?;
    let one = |number: u64| async move {
        let path = path_of(&spec.path, number);
        (number, tokio::fs::read(&path).await.map_err(|error| SampleError::io("read", &path, error)))
    };
    runtime.block_on(async {
        let (mut totals, mut in_flight) = (IoTotals::default(), FuturesUnordered::new());
        let mut numbers = 0..spec.blocks();
        loop {
            while in_flight.len() < spec.depth
                && let Some(number) = numbers.next()
            {
                in_flight.push(one(number));
            }
            totals.in_flight_max = totals.in_flight_max.max(in_flight.len());
            let Some((number, bytes)) = in_flight.next().await else { return Ok(totals) };
            record(spec, pattern, number, &bytes?, &mut totals)?;
        }
    })
}
