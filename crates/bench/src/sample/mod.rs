//! Execution of one sample in this process: the implementation of `fathom bench sample`, the
//! counterpart of the playground's programs.
//!
//! Owns: the parameters of such a process ([`SampleSpec`]), partitions, the I/O loop, clocks and
//! counters. Does not own: the cache state of the file, and the evaluation of the result.

mod barrier;
mod block_order;
mod call_latency;
mod copy;
mod hint;
mod io_loop;
mod latency;
mod model;
mod null;
mod op_kinds;
mod read_choice;
pub(crate) mod serve;
pub(crate) mod small_files;
mod spec;
mod tree;

pub use crate::workload::NULL;
pub use call_latency::{CallLatencies, LatencyPercentiles};
pub use copy::copy_of;
pub use hint::AccessHint;
pub(crate) use read_choice::ReadChoice;
pub use spec::{SampleError, SampleSpec, arguments};

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use fathom_io::sys::{Usage, usage};
use fathom_io::threads::panic_message;
use fathom_io::{Model, Unavailable};

use crate::Workload;
use crate::lang::Measurement;
use barrier::StartBarrier;
use io_loop::{InFlightCount, IoTotals, PartitionTask};

/// Executes `spec`. `program` is started as `program serve` for [`Workload::Serve`].
///
/// # Errors
/// [`SampleError::Usage`] for an invalid combination of parameters, [`SampleError::Unavailable`] if
/// the method cannot run on this machine, [`SampleError::Refused`] with the server's reason if it
/// does not start, [`SampleError::Io`] for a failed operation.
pub fn execute(spec: &SampleSpec, program: &Path) -> Result<Measurement, SampleError> {
    spec.check()?;
    match spec.workload {
        Workload::Walk | Workload::Stat => return tree::walk(spec),
        Workload::SmallFiles => return small_files::read(spec),
        Workload::Serve => return serve::serve(spec, program),
        Workload::Copy => return copy::copy(spec),
        _ => {}
    }
    let file: Arc<OwnedFd> = Arc::new(open(spec)?.into());
    let (barrier, count) = (StartBarrier::default(), InFlightCount::default());
    let (start, usage_before, results) = thread::scope(|scope| {
        let job =
            |number| PartitionTask { spec, number, file: file.clone(), barrier: &barrier, count: &count };
        let spawn = |number| {
            let job = job(number);
            thread::Builder::new().spawn_scoped(scope, move || job.run())
        };
        let handles: Result<Vec<_>, _> = (0..spec.threads).map(spawn).collect();
        // The limit on processes is a property of the machine, and other arms have fewer threads.
        let handles = handles.map_err(|error| {
            barrier.release(false);
            SampleError::Unavailable(Unavailable::no_threads(&error))
        })?;
        let are_ready = barrier.wait_for_threads(spec.threads);
        let (usage_before, start) = (usage(), Instant::now());
        barrier.release(are_ready);
        Ok((start, usage_before, handles.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()))
    })?;
    let (seconds, usage_after) = (start.elapsed().as_secs_f64(), usage());
    let mut totals = IoTotals::default();
    for result in results {
        totals.add(result.map_err(|payload| {
            let cause = io::Error::other(format!("a thread panicked: {}", panic_message(&*payload)));
            SampleError::io("execute", &spec.path, cause)
        })??);
    }
    let calls = totals.calls.percentiles();
    let mut measurement = totals.measurement(seconds, &usage_between(&usage_before, &usage_after));
    measurement.in_flight_max = count.max();
    if spec.workload.writes() {
        time_sync_and_close(spec, file, start, &mut measurement)?;
    }
    if let Some(path) = &spec.calls {
        std::fs::write(path, calls.to_string()).map_err(|error| SampleError::io("write", path, error))?;
    }
    Ok(measurement)
}

fn open(spec: &SampleSpec) -> Result<File, SampleError> {
    let mut options = OpenOptions::new();
    // A writable shared mapping requires a file that is open for reading (mmap(2)).
    options.read(spec.workload.reads() || spec.model == Some(Model::Mmap));
    if spec.workload.writes() {
        let creates = spec.workload.creates();
        options.write(true).create(creates).truncate(creates);
    }
    if spec.direct {
        options.custom_flags(rustix::fs::OFlags::DIRECT.bits().cast_signed());
    }
    let file = options.open(&spec.path).map_err(|error| {
        let errno = rustix::io::Errno::from_io_error(&error);
        errno.map_or_else(|| SampleError::io("open", &spec.path, error), |errno| spec.error("open", errno))
    })?;
    if spec.hint == AccessHint::HighPriority && !fathom_io::filesystem::has_poll_queue(&spec.path) {
        let cause = "the device has no queue for polling ('io_poll' of its queue is 0)";
        return Err(SampleError::Refused(cause.to_owned()));
    }
    if let Some(advice) = spec.hint.advice() {
        let advised = rustix::fs::fadvise(&file, 0, None, advice);
        advised
            .map_err(|errno| SampleError::io("advise the kernel of reads of", &spec.path, errno.into()))?;
    }
    if spec.workload.creates() && spec.model == Some(Model::Mmap) {
        // A mapping does not extend the file, so the blocks are allocated before the clock starts.
        let allocated = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, spec.size);
        allocated.map_err(|errno| SampleError::io("allocate", &spec.path, errno.into()))?;
    }
    Ok(file)
}

fn usage_between(before: &Usage, after: &Usage) -> Usage {
    Usage {
        cpu: after.cpu.saturating_sub(before.cpu),
        cpu_user: after.cpu_user.saturating_sub(before.cpu_user),
        waits: after.waits.saturating_sub(before.waits),
        preemptions: after.preemptions.saturating_sub(before.preemptions),
    }
}

/// Measures `sync_s` and `close_s`.
fn time_sync_and_close(
    spec: &SampleSpec,
    file: Arc<OwnedFd>,
    start: Instant,
    measurement: &mut Measurement,
) -> Result<(), SampleError> {
    let failed = |action, errno: rustix::io::Errno| SampleError::io(action, &spec.path, errno.into());
    rustix::fs::fdatasync(file.as_fd()).map_err(|errno| failed("sync", errno))?;
    measurement.sync_s = start.elapsed().as_secs_f64();
    drop(file);
    measurement.close_s = start.elapsed().as_secs_f64();
    Ok(())
}
