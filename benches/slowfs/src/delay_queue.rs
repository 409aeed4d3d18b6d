//! A queue that runs each job a fixed time after its submission; any number of jobs wait
//! concurrently. Does not own: filesystem operations.
//!
//! The delay is the same for all jobs, so submission order is deadline order. A worker that has
//! taken the front job can sleep until its deadline, because no queued job is due earlier.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

/// The queue and the threads that run its jobs when they are due.
pub(crate) struct DelayQueue {
    delay: Duration,
    queue: Arc<JobQueue>,
}

#[derive(Default)]
struct JobQueue {
    queue: Mutex<VecDeque<(Instant, Job)>>,
    not_empty: Condvar,
}

impl DelayQueue {
    /// Starts `workers` threads, which live as long as the process. They bound the number of jobs
    /// that *run* concurrently, not of those that wait: a job takes a few microseconds of cached
    /// system calls.
    pub(crate) fn start(delay: Duration, workers: usize) -> std::io::Result<DelayQueue> {
        let queue = Arc::new(JobQueue::default());
        for index in 0..workers {
            let queue = Arc::clone(&queue);
            thread::Builder::new().name(format!("delay-{index}")).spawn(move || queue.run_worker())?;
        }
        Ok(DelayQueue { delay, queue })
    }

    /// Runs `job` on a worker once the delay has passed.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.queue.lock();
        // Read the clock under the lock: otherwise a job with a later deadline could be queued
        // first.
        queue.push_back((Instant::now() + self.delay, Box::new(job)));
        drop(queue);
        self.queue.not_empty.notify_one();
    }
}

impl JobQueue {
    fn run_worker(&self) -> ! {
        // The default timer slack of 50 us (prctl(2), PR_SET_TIMERSLACK) would delay each wake-up
        // and add noise to the benchmark.
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
        let queue = DelayQueue::start(delay, 2).expect("two threads");
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
        let queue = DelayQueue::start(Duration::from_millis(50), 1).expect("one thread");
        let (sender, receiver) = mpsc::channel();
        let start = Instant::now();
        for index in 0..400 {
            let sender = sender.clone();
            queue.run(move || sender.send(index).expect("the receiver waits"));
        }
        drop(sender);
        assert!(receiver.iter().eq(0..400), "one worker keeps the order");
        // One after another, the jobs would take 20 s.
        assert!(start.elapsed() < Duration::from_secs(10));
    }
}
