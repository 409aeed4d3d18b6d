//! One sample, executed by this process: what `fathom bench sample` does, and the playground's programs in their languages.
//!
//! Owns: the command that such a process is given ([`Spec`]), partitions, the loop that keeps operations under way, clocks and counts.
//! Does not own: the file's state before, and what is thought of the result.

mod copy;
mod drive;
mod gate;
mod latency;
mod model;
mod null;
mod order;
pub(crate) mod serve;
pub(crate) mod small;
mod spec;
mod tree;

pub use copy::copy_of;
pub use model::METHODS;
pub use spec::{Deed, Failure, Method, Spec, arguments};

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use fathom_io::sys::{Usage, usage};

use crate::lang::Answer;
use drive::{Job, Tally};
use gate::Gate;

/// Executes `spec`.
///
/// # Errors
/// [`Failure::Usage`] for a combination that makes no sense, [`Failure::Unavailable`] where the method cannot run here,
/// [`Failure::Io`] for what fails.
pub fn execute(spec: &Spec) -> Result<Answer, Failure> {
    spec.check()?;
    match spec.deed {
        Deed::Walk | Deed::Stat => return tree::walk(spec),
        Deed::SmallFiles => return small::read(spec),
        Deed::Serve => return serve::serve(spec),
        Deed::Copy => return copy::copy(spec),
        _ => {}
    }
    let file: Arc<OwnedFd> = Arc::new(open(spec)?.into());
    let gate = Gate::default();
    let (start, usage_before, results) = thread::scope(|scope| {
        let job = |number| Job { spec, number, file: file.clone(), gate: &gate };
        let spawn = |number| {
            let job = job(number);
            thread::Builder::new().spawn_scoped(scope, move || job.run())
        };
        let handles: Result<Vec<_>, _> = (0..spec.threads).map(spawn).collect();
        let Ok(handles) = handles.inspect_err(|_| gate.open(false)) else {
            return Err(Failure::io("start threads for", &spec.path, std::io::ErrorKind::OutOfMemory.into()));
        };
        gate.wait_for(spec.threads);
        let (usage_before, start) = (usage(), Instant::now());
        gate.open(true);
        Ok((start, usage_before, handles.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()))
    })?;
    let (seconds, usage_after) = (start.elapsed().as_secs_f64(), usage());
    let mut tally = Tally::default();
    for result in results {
        tally.add(result.map_err(|_| Failure::io("execute", &spec.path, std::io::ErrorKind::Other.into()))??);
    }
    let mut answer = tally.answer(seconds, &spent(&usage_before, &usage_after));
    if spec.deed.writes() {
        finish(spec, file, start, &mut answer)?;
    }
    Ok(answer)
}

fn open(spec: &Spec) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    // A map that is written must be readable, too.
    options.read(!spec.deed.writes() || spec.method == Method::Mmap);
    if spec.deed.writes() {
        options.write(true).create(true).truncate(true);
    }
    if spec.direct {
        options.custom_flags(rustix::fs::OFlags::DIRECT.bits().cast_signed());
    }
    let file = options.open(&spec.path).map_err(|error| Failure::io("open", &spec.path, error))?;
    if spec.deed.writes() && spec.method == Method::Mmap {
        // A map does not grow with the file: its space is allocated before the clock starts.
        let allocated = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, spec.size);
        allocated.map_err(|errno| Failure::io("allocate", &spec.path, errno.into()))?;
    }
    Ok(file)
}

fn spent(before: &Usage, after: &Usage) -> Usage {
    Usage {
        cpu: after.cpu.saturating_sub(before.cpu),
        cpu_user: after.cpu_user.saturating_sub(before.cpu_user),
        waits: after.waits.saturating_sub(before.waits),
        preemptions: after.preemptions.saturating_sub(before.preemptions),
    }
}

/// The other two clocks.
fn finish(spec: &Spec, file: Arc<OwnedFd>, start: Instant, answer: &mut Answer) -> Result<(), Failure> {
    let failed = |deed, errno: rustix::io::Errno| Failure::io(deed, &spec.path, errno.into());
    rustix::fs::fdatasync(file.as_fd()).map_err(|errno| failed("sync", errno))?;
    answer.sync_s = start.elapsed().as_secs_f64();
    drop(file);
    answer.close_s = start.elapsed().as_secs_f64();
    Ok(())
}
