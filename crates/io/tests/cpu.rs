//! What the kernel's threads do for a ring counts as what the process uses: a model is charged for the CPUs it keeps busy, not only for
//! those its own threads run on. Their own count, by proc_pid_stat(5), is what [`usage`] is compared with.
//!
//! Where there is no ring, or the kernel gives it no thread, the reason is printed and counts as a skip.

#![cfg(all(target_os = "linux", not(feature = "posix")))]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fathom_io::data::{Buffer, Data, FileId, Op, OpKind};
use fathom_io::sys::usage;
use fathom_io::uring::{Ring, RingOptions};
use rustix::time::{ClockId, clock_gettime};

/// What the kernel's threads have to use before anybody compares: twenty of the steps in which it is told.
const ENOUGH: Duration = Duration::from_millis(200);

/// The counts are the process's, so there is one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CPU time of the threads of this process whose names begin with `name`; `None` without such a thread.
fn cpu_of_threads(name: &str) -> Option<Duration> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("stat")).ok());
    let ticks = stats.filter_map(|stat| {
        let (start, fields) = stat.rsplit_once(") ")?;
        start.split_once('(').filter(|(_, found)| found.starts_with(name))?;
        // Fields 14 and 15, of which the third is the first one here.
        Some(fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>())
    });
    let ticks = ticks.reduce(|sum, ticks| sum + ticks)?;
    Some(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap())
}

fn cpu_of_this_thread() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Has `work` done until the threads called `name` have used enough, at most so many `times`; then all they have used must be in what the
/// process has, and be more than this thread has used itself.
fn is_charged(name: &str, times: usize, mut work: impl FnMut()) {
    let (all, own, theirs) = (usage().cpu, cpu_of_this_thread(), cpu_of_threads(name).unwrap_or_default());
    let spent = || cpu_of_threads(name).map(|now| now.saturating_sub(theirs));
    let done = (0..times).any(|_| {
        work();
        spent().is_some_and(|spent| spent >= ENOUGH)
    });
    let Some(theirs) = spent() else { return println!("skipped: no thread {name} works for the ring") };
    assert!(done, "{name} have used {theirs:?} only");
    let (all, own) = (usage().cpu - all, cpu_of_this_thread() - own);
    assert!(own < theirs / 2, "this thread used {own:?}, {name} {theirs:?}");
    assert!(all >= (theirs + own) * 9 / 10, "{all:?} of this thread's {own:?} and of {theirs:?} by {name}");
}

/// A ring and a file of its own.
fn ring(options: RingOptions) -> Option<(Ring, FileId)> {
    let mut ring = Ring::new(options).inspect_err(|why| println!("skipped: {why}")).ok()?;
    let file: OwnedFd = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap().into();
    let id = ring.attach(Arc::new(file)).unwrap();
    Some((ring, id))
}

fn write(ring: &mut Ring, file: FileId, op: Option<Box<Op>>, bytes: usize) -> Box<Op> {
    let op = op.unwrap_or_else(|| Op::new(OpKind::Write, file, 0, Buffer::new(bytes)));
    ring.submit(op);
    let mut done = Vec::new();
    ring.complete(&mut done);
    let ended = done.remove(0);
    assert_eq!(ended.result(), Ok(bytes));
    ended.into_op()
}

#[test]
fn a_thread_that_looks_for_submissions_is_charged() {
    let _alone = alone();
    let Some((mut ring, file)) = ring(RingOptions { sqpoll: true, ..RingOptions::default() }) else { return };
    let mut op = None;
    is_charged("iou-sqp", 3000, || {
        op = Some(write(&mut ring, file, op.take(), 512));
        // It goes on looking, for longer than this.
        std::thread::sleep(Duration::from_millis(10));
    });
}

#[test]
fn threads_that_write_are_charged() {
    let _alone = alone();
    let Some((mut ring, file)) = ring(RingOptions::default()) else { return };
    let mut op = None;
    is_charged("iou-wrk", 1000, || op = Some(write(&mut ring, file, op.take(), 16 << 20)));
}
