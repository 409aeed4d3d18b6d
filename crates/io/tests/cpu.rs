//! Kernel threads that serve a ring count in the CPU time that [`usage`] returns. The tests compare
//! it with the CPU time of each thread in proc_pid_stat(5).
//!
//! A test is skipped, with the reason, if there is no ring, or no kernel thread for it.

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

/// CPU time that the kernel threads must use before the comparison: twenty clock ticks.
const CPU_MIN: Duration = Duration::from_millis(200);

/// Serializes the tests, because the CPU times cover the whole process.
fn serialize() -> MutexGuard<'static, ()> {
    static SERIAL: Mutex<()> = Mutex::new(());
    SERIAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the CPU time of the threads of this process whose names begin with `name`. `None` if
/// there is no such thread.
fn cpu_of_threads(name: &str) -> Option<Duration> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("stat")).ok());
    let ticks = stats.filter_map(|stat| {
        let (start, fields) = stat.rsplit_once(") ")?;
        start.split_once('(').filter(|(_, found)| found.starts_with(name))?;
        // The first field here is field 3; utime and stime are fields 14 and 15.
        Some(fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>())
    });
    let ticks = ticks.reduce(|sum, ticks| sum + ticks)?;
    Some(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap())
}

fn cpu_of_this_thread() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Calls `work`, at most `times` times, until the threads called `name` have used enough CPU time.
/// Then checks that the CPU time of the process includes it, and that it exceeds the CPU time of
/// this thread.
fn assert_charged(name: &str, times: usize, mut work: impl FnMut()) {
    let (all, own, theirs) = (usage().cpu, cpu_of_this_thread(), cpu_of_threads(name).unwrap_or_default());
    let spent = || cpu_of_threads(name).map(|now| now.saturating_sub(theirs));
    let done = (0..times).any(|_| {
        work();
        spent().is_some_and(|spent| spent >= CPU_MIN)
    });
    let Some(theirs) = spent() else { return println!("skipped: the ring has no thread {name}") };
    assert!(done, "{name} have used {theirs:?} only");
    let (all, own) = (usage().cpu - all, cpu_of_this_thread() - own);
    assert!(own < theirs / 2, "this thread used {own:?}, {name} {theirs:?}");
    assert!(all >= (theirs + own) * 9 / 10, "{all:?} of this thread's {own:?} and of {theirs:?} by {name}");
}

/// Returns a ring with a temporary file.
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
fn a_polling_kernel_thread_is_charged() {
    let _serial = serialize();
    let Some((mut ring, file)) = ring(RingOptions { sqpoll: true, ..RingOptions::default() }) else { return };
    let mut op = None;
    assert_charged("iou-sqp", 3000, || {
        op = Some(write(&mut ring, file, op.take(), 512));
        // The kernel thread polls for longer than this.
        std::thread::sleep(Duration::from_millis(10));
    });
}

#[test]
fn writing_kernel_threads_are_charged() {
    let _serial = serialize();
    let Some((mut ring, file)) = ring(RingOptions::default()) else { return };
    let mut op = None;
    assert_charged("iou-wrk", 1000, || op = Some(write(&mut ring, file, op.take(), 16 << 20)));
}
