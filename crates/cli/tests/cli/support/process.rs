//! Detects from /proc when a process has become idle, on a machine under any load.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(30);
/// Number of consecutive samples in which no thread may be runnable.
const IDLE_SAMPLES: u32 = 4;
/// Upper bound of the CPU time of an idle process: one part in this many of the elapsed time.
/// Polling threads use that much.
const IDLE_CPU_SHARE: u32 = 20;

/// Waits until all threads of `process` are blocked, for a reader, a file system or a timer.
pub(crate) fn wait_until_idle(process: u32) {
    let (mut start, mut cpu_time, mut looks) = (Instant::now(), cpu_time(process), 0);
    while looks < IDLE_SAMPLES {
        thread::sleep(SAMPLE_INTERVAL);
        looks += 1;
        let now = self::cpu_time(process);
        if has_runnable_thread(process) || now.saturating_sub(cpu_time) > start.elapsed() / IDLE_CPU_SHARE {
            (start, cpu_time, looks) = (Instant::now(), now, 0);
        }
    }
}

/// Reads a file of each thread in /proc. Skips threads that ended meanwhile.
fn thread_files(process: u32, file: &str) -> impl Iterator<Item = String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let file = file.to_owned();
    tasks.filter_map(move |task| fs::read_to_string(task.path().join(&file)).ok())
}

fn has_runnable_thread(process: u32) -> bool {
    thread_files(process, "status").any(|status| status.contains("\nState:\tR"))
}

/// Returns the CPU time of all threads: the first number of schedstat, in nanoseconds
/// (Documentation/scheduler/sched-stats.rst of the kernel).
fn cpu_time(process: u32) -> Duration {
    let times = thread_files(process, "schedstat");
    times.filter_map(|text| text.split(' ').next()?.parse().ok()).map(Duration::from_nanos).sum()
}
