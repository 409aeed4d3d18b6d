//! Samples of many small files: each opened, read whole and closed.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use fathom_io::sys::usage;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::drive::Tally;
use super::spec::{Failure, Method, Spec};
use super::spent;
use crate::lang::Answer;
use crate::pattern::{PAGE_BYTES, Pattern};

/// Files of a directory.
pub(crate) const WIDTH: u64 = 100;

/// What file `number` of a tree is called in it.
pub(crate) fn name(number: u64) -> String {
    format!("{:04}/file-{number}", number / WIDTH)
}

/// Where file `number` of a tree is.
pub(crate) fn file(spec_path: &std::path::Path, number: u64) -> PathBuf {
    spec_path.join(name(number))
}

/// Bytes of file `number` of files of `block` bytes, which have `size` together.
pub(crate) fn len(size: u64, block: usize, number: u64) -> usize {
    let left = size.saturating_sub(number * block as u64);
    usize::try_from(left).unwrap_or(block).min(block)
}

/// Where what file `number` has would stand if all files were one.
pub(crate) fn offset(number: u64, block: usize) -> u64 {
    number * (block.next_multiple_of(PAGE_BYTES) as u64)
}

/// Reads `size / block` files of `block` bytes.
pub(super) fn read(spec: &Spec) -> Result<Answer, Failure> {
    let pattern = Pattern::new(spec.seed, spec.generation);
    let (before, start) = (usage(), Instant::now());
    let tally = match spec.method {
        Method::Tokio => with_tokio(spec, &pattern)?,
        _ => with_threads(spec, &pattern)?,
    };
    Ok(tally.answer(start.elapsed().as_secs_f64(), &spent(&before, &usage())))
}

/// What one file's bytes add to the tally.
fn count(
    spec: &Spec,
    pattern: &Pattern,
    number: u64,
    bytes: &[u8],
    tally: &mut Tally,
) -> Result<(), Failure> {
    let right = pattern.check_stamps(offset(number, spec.block), bytes);
    tally.pages_ok += right.map_err(|page| Failure::Wrong(file(&spec.path, number), page))?;
    tally.ops += 1;
    tally.bytes += bytes.len() as u64;
    Ok(())
}

/// Each thread takes the next file.
fn with_threads(spec: &Spec, pattern: &Pattern) -> Result<Tally, Failure> {
    let next = AtomicU64::new(0);
    let work = || {
        let (mut tally, mut bytes) = (Tally { in_flight_max: 1, ..Tally::default() }, Vec::new());
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= spec.blocks() {
                return Ok(tally);
            }
            let path = file(&spec.path, number);
            bytes.clear();
            let read = File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes));
            read.map_err(|error| Failure::io("read", &path, error))?;
            count(spec, pattern, number, &bytes, &mut tally)?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (1..spec.threads).map(|_| scope.spawn(work)).collect();
        let mut tally: Tally = work()?;
        for thread in threads {
            let other: Result<Tally, Failure> =
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            tally.add(other?);
        }
        Ok(tally)
    })
}

/// `depth` futures at a time.
fn with_tokio(spec: &Spec, pattern: &Pattern) -> Result<Tally, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure::io("start tokio for", &spec.path, error))?;
    let one = |number: u64| async move {
        let path = file(&spec.path, number);
        (number, tokio::fs::read(&path).await.map_err(|error| Failure::io("read", &path, error)))
    };
    runtime.block_on(async {
        let (mut tally, mut under_way) = (Tally::default(), FuturesUnordered::new());
        let mut numbers = 0..spec.blocks();
        loop {
            while under_way.len() < spec.depth
                && let Some(number) = numbers.next()
            {
                under_way.push(one(number));
            }
            tally.in_flight_max = tally.in_flight_max.max(under_way.len());
            let Some((number, bytes)) = under_way.next().await else { return Ok(tally) };
            count(spec, pattern, number, &bytes?, &mut tally)?;
        }
    })
}
