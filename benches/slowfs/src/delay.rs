//! Runs each job a fixed time after it was handed in, any number of them waiting at once.
//! Knows nothing of filesystems.
//!
//! The delay is the same for all, so the queue is in order of deadline without sorting, and a worker that has
//! taken the front job can sleep until its deadline: nothing behind it is due earlier.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

/// A queue of jobs and the threads that run them when they are due.
pub(crate) struct Delay {
    delay: Duration,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<VecDeque<(Instant, Job)>>,
    not_empty: Condvar,
}

impl Delay {
    /// Starts `workers` threads, which live as long as the process. They bound how many jobs *run* at once, not how
    /// many wait: a job's own work is a few microseconds of cached system calls.
    pub(crate) fn start(delay: Duration, workers: usize) -> std::io::Result<Delay> {
        let shared = Arc::new(Shared::default());
        for index in 0..workers {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("delay-{index}")).spawn(move || shared.work())?;
        }
        Ok(Delay { delay, shared })
    }

    /// Runs `job` once the delay has passed, on a worker.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.lock();
        // The deadline is taken under the lock, or a later one could be queued in front of it.
        queue.push_back((Instant::now() + self.delay, Box::new(job)));
        drop(queue);
        self.shared.not_empty.notify_one();
    }
}

impl Shared {
    fn work(&self) -> ! {
        // A sleep of 1 ms otherwise ends up to 50 us late, which would be the benchmark's noise.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        loop {
            let (deadline, job) = self.next();
            thread::sleep(deadline.saturating_duration_since(Instant::now()));
            job();
        }
    }

    fn next(&self) -> (Instant, Job) {
        let mut queue = self.lock();
        loop {
            match queue.pop_front() {
                Some(entry) => return entry,
                None => queue = self.not_empty.wait(queue).expect("jobs run without the lock"),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, Job)>> {
        self.queue.lock().expect("jobs run without the lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn no_job_runs_early() {
        let delay = Duration::from_millis(20);
        let queue = Delay::start(delay, 2).expect("two threads");
        let (sender, receiver) = mpsc::channel();
        for _ in 0..8 {
            let sender = sender.clone();
            let handed_in = Instant::now();
            queue.run(move || sender.send(handed_in.elapsed()).expect("the receiver waits"));
        }
        drop(sender);
        let waited: Vec<Duration> = receiver.iter().collect();
        assert_eq!(waited.len(), 8);
        assert!(waited.iter().all(|&time| time >= delay), "{waited:?}");
    }

    #[test]
    fn waits_overlap_whatever_the_number_of_workers() {
        let queue = Delay::start(Duration::from_millis(50), 1).expect("one thread");
        let (sender, receiver) = mpsc::channel();
        let start = Instant::now();
        for index in 0..400 {
            let sender = sender.clone();
            queue.run(move || sender.send(index).expect("the receiver waits"));
        }
        drop(sender);
        assert!(receiver.iter().eq(0..400), "one worker keeps the order");
        // One after another they would take 20 s.
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
