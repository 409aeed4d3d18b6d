//! The counts of jobs and threads from which the pool decides to wake, start or end a thread.

use std::time::Duration;

use super::futex_event::FutexEvent;
use super::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The numbers of queued jobs and of threads, and the event that idle threads wait for. As long as
/// a job is queued, a thread runs, is woken or is started for it.
#[derive(Debug)]
pub(super) struct ThreadDemand {
    queued_max: usize,
    threads_max: usize,
    event: FutexEvent,
    /// The number of jobs that no thread has taken.
    queued: AtomicUsize,
    threads: AtomicUsize,
    closed: AtomicBool,
}

impl ThreadDemand {
    /// Allows at most `queued_max` queued jobs and `threads_max` threads, but at least one thread.
    pub(super) fn new(queued_max: usize, threads_max: usize) -> Self {
        Self {
            queued_max,
            threads_max: threads_max.max(1),
            event: FutexEvent::default(),
            queued: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Returns the number of jobs that no thread has taken.
    pub(super) fn queued(&self) -> usize {
        // SeqCst as all accesses of `queued`; see `count_job`.
        self.queued.load(Ordering::SeqCst)
    }

    /// Returns the number of threads.
    pub(super) fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }

    /// Counts a job that is about to be queued. Returns false if the queue is full.
    pub(super) fn count_job(&self) -> bool {
        // Count first, then look for threads (`waiters`, `reserve_thread`). An idle thread does the
        // reverse: it leaves the counts of waiters and threads first and then reads `queued`. In
        // the total order of SeqCst one sees the other; otherwise the job could stay without a
        // thread.
        let has_room = self.queued.fetch_add(1, Ordering::SeqCst) < self.queued_max;
        if !has_room {
            self.uncount_jobs(1);
        }
        has_room
    }

    /// Notes that `jobs` jobs were taken or rejected.
    pub(super) fn uncount_jobs(&self, jobs: usize) {
        // An enqueuer that reads the count too early starts a thread too many, which finds no job.
        // SeqCst as all accesses of `queued`; see `count_job`.
        self.queued.fetch_sub(jobs, Ordering::SeqCst);
    }

    /// Wakes a thread for a job that was counted and then queued. Returns the number of a thread
    /// that the caller has to start, if too few are waiting.
    pub(super) fn request_thread(&self) -> Option<usize> {
        self.event.notify(1);
        if self.event.waiters() >= self.queued() { None } else { self.reserve_thread() }
    }

    /// Reserves one more thread below the limit. Returns the number of threads with it.
    fn reserve_thread(&self) -> Option<usize> {
        let more = |threads| (threads < self.threads_max).then_some(threads + 1);
        // Pairs with the decrement in `release_thread`; see `count_job`.
        self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok().map(|before| before + 1)
    }

    /// Gives up a reserved thread. Returns the number of other threads.
    pub(super) fn release_thread(&self) -> usize {
        // SeqCst as all changes of `threads`; see `count_job`.
        self.threads.fetch_sub(1, Ordering::SeqCst) - 1
    }

    /// Ends all threads once no job is left for them.
    pub(super) fn close(&self) {
        // Pairs with the loads in `is_closed`: the notification wakes each thread, and a thread
        // that runs after it must see the flag, or it would wait for its idle timeout.
        self.closed.store(true, Ordering::SeqCst);
        self.event.notify(u32::MAX >> 1);
    }

    fn is_closed(&self) -> bool {
        // Pairs with the store in `close`.
        self.closed.load(Ordering::SeqCst)
    }

    /// Runs jobs on a reserved thread until the pool is closed, or until there was no job for a
    /// time of `idle`. `run_job` runs the next job and returns false if there is none.
    pub(super) fn run_thread(&self, idle: Duration, mut run_job: impl FnMut() -> bool) {
        loop {
            self.run_jobs(idle, &mut run_job);
            // Leave the count first, then look at the queue again: an enqueuer that found the pool
            // at its limit has left its job to this thread. Pairs with `count_job`.
            self.release_thread();
            if self.is_closed() || self.queued() == 0 || self.reserve_thread().is_none() {
                return;
            }
        }
    }

    fn run_jobs(&self, idle: Duration, run_job: &mut impl FnMut() -> bool) {
        loop {
            let count = self.event.count();
            if run_job() {
                continue;
            }
            if self.is_closed() {
                return;
            }
            // After a timeout: a job whose enqueuer still counted this thread as a waiter was
            // queued before `wait` left the count, so this load sees it.
            if !self.event.wait(count, idle) && self.queued() == 0 {
                return;
            }
        }
    }
}
