//! A process seen from outside: when it only waits, on a machine however loaded.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(30);
/// In so many looks in a row no thread may want a processor.
const LOOKS: u32 = 4;
/// The part of the time that threads use which only look whether there is
/// something to do.
const IDLE_PART: u32 = 20;

/// Waits until `process` only waits: for a reader, for a file system or for a timer.
pub(crate) fn at_rest(process: u32) {
    let (mut start, mut used, mut looks) = (Instant::now(), used(process), 0);
    while looks < LOOKS {
        thread::sleep(LOOK);
        looks += 1;
        let now = self::used(process);
        if wants_processor(process) || now.saturating_sub(used) > start.elapsed() / IDLE_PART {
            (start, used, looks) = (Instant::now(), now, 0);
        }
    }
}

/// A file of each thread in /proc; a thread that has ended meanwhile has none.
fn of_threads(process: u32, file: &str) -> impl Iterator<Item = String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let file = file.to_owned();
    tasks.filter_map(move |task| fs::read_to_string(task.path().join(&file)).ok())
}

fn wants_processor(process: u32) -> bool {
    of_threads(process, "status").any(|status| status.contains("\nState:\tR"))
}

/// Processor time of all threads: the first number of schedstat, in nanoseconds
/// (Documentation/scheduler/sched-stats.rst of the kernel).
fn used(process: u32) -> Duration {
    let times = of_threads(process, "schedstat");
    times.filter_map(|text| text.split(' ').next()?.parse().ok()).map(Duration::from_nanos).sum()
}
