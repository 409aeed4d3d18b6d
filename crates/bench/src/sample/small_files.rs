//! Samples of many small files: each file is opened, read completely and closed.

use std::fs::File;
use std::future::pending;
use std::io::{self, Read};
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use fathom_files::pool::{PoolLimits, ThreadPool};
use fathom_files::{FileError, FileIo, RangeReader, Root};
use fathom_io::Model;
use fathom_io::beneath::Links;
use fathom_io::sys::usage;
use fathom_io::uring::FileRing;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::runtime::{Builder, LocalOptions};

use super::io_loop::IoTotals;
use super::spec::{SampleError, SampleSpec};
use super::usage_between;
use crate::lang::Measurement;
use crate::pattern::{PAGE_BYTES, Pattern};

/// The only client of the pool.
const CLIENT: u64 = 0;
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
        Some(model @ (Model::Pool | Model::Nowait | Model::Uring(_) | Model::Auto)) => {
            with_file_io(spec, &pattern, model)?
        }
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

/// Reads the files with tokio's file calls.
fn with_tokio(spec: &SampleSpec, pattern: &Pattern) -> Result<IoTotals, SampleError> {
    let runtime = Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| SampleError::io("start tokio for", &spec.path, error))?;
    runtime
        .block_on(read_all(spec, pattern, async |number| tokio::fs::read(path_of(&spec.path, number)).await))
}

/// Reads the files as a worker of `fathom serve` does, beneath the directory of the tree.
fn with_file_io(spec: &SampleSpec, pattern: &Pattern, model: Model) -> Result<IoTotals, SampleError> {
    let failed = |error| SampleError::io("start tokio for", &spec.path, error);
    let ring = matches!(model, Model::Uring(_)).then(|| FileRing::new(spec.depth).map(Rc::new));
    let ring = ring.transpose().map_err(SampleError::Unavailable)?;
    let limits = PoolLimits { threads: spec.depth, per_device: spec.depth, queue: spec.depth };
    let files = FileIo::new(model, ThreadPool::new(limits, 1, |_panic| ()), ring.clone());
    let root = Root::open(&spec.path, Links::Never);
    let root = root.map_err(|errno| SampleError::io("open", &spec.path, errno.into()))?;
    let reading = read_all(spec, pattern, async |number| {
        let fetched = files.fetch(&root, relative_path(number).as_bytes(), CLIENT).await.map_err(cause)?;
        match fetched.body {
            Some(body) => Ok(body.into()),
            None => RangeReader::new(&files, &fetched.opened, CLIENT).read_to_end().await.map_err(cause),
        }
    });
    let driving = async {
        match ring {
            Some(ring) => ring.drive().await,
            None => pending().await,
        }
    };
    let options = LocalOptions::default();
    let runtime = Builder::new_current_thread().enable_io().build_local(options).map_err(failed)?;
    match runtime.block_on(select(pin!(driving), pin!(reading))) {
        Either::Left((driven, _)) => Err(failed(driven.err().unwrap_or(io::ErrorKind::Other.into()))),
        Either::Right((totals, _)) => totals,
    }
}

fn cause(error: FileError) -> io::Error {
    match error {
        FileError::System(errno) => errno.into(),
        error => io::Error::other(error),
    }
}

/// Reads the files with `read`, up to `depth` at once.
async fn read_all<B: AsRef<[u8]>>(
    spec: &SampleSpec,
    pattern: &Pattern,
    read: impl AsyncFn(u64) -> io::Result<B>,
) -> Result<IoTotals, SampleError> {
    let (mut totals, mut in_flight) = (IoTotals::default(), FuturesUnordered::new());
    let mut numbers = 0..spec.blocks();
    let one = async |number| (number, read(number).await);
    loop {
        while in_flight.len() < spec.depth
            && let Some(number) = numbers.next()
        {
            in_flight.push(one(number));
        }
        totals.in_flight_max = totals.in_flight_max.max(in_flight.len());
        let Some((number, bytes)) = in_flight.next().await else { return Ok(totals) };
        let bytes = bytes.map_err(|error| SampleError::io("read", &path_of(&spec.path, number), error))?;
        record(spec, pattern, number, bytes.as_ref(), &mut totals)?;
    }
}
