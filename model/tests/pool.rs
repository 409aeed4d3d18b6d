//! The thread pool of `crates/files` under shuttle: notification, start and end of threads, with
//! the pool's own job queue.
//!
//! The protocol uses SeqCst accesses, which shuttle models (loom would treat them as AcqRel and
//! report deadlocks that cannot happen), and it needs more threads and steps than loom can exhaust.
//! So these tests find wrong orders of steps, not wrong memory orderings. A lost wake-up is a
//! deadlock, which shuttle reports. A test names the changes of the code that it was seen to fail
//! with.

#[allow(dead_code)]
#[path = "../../crates/files/src/pool/futex_event.rs"]
mod futex_event;
#[allow(dead_code)]
#[path = "../../crates/files/src/pool/job_queue.rs"]
mod job_queue;
mod sync;
#[allow(dead_code)]
#[path = "../../crates/files/src/pool/thread_demand.rs"]
mod thread_demand;

use std::sync::PoisonError;
use std::time::Duration;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, Runner};

use futex_event::FutexEvent;
use job_queue::JobQueue;
use sync::atomic::{AtomicUsize, Ordering};
use thread_demand::ThreadDemand;

/// Executions of each test with random interleavings, from a fixed seed.
const EXECUTIONS: usize = 1_000;
const SEED: u64 = 20;
/// The number of changes of priority that the second scheduler makes in one execution.
const DEPTH: usize = 3;
const IDLE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Resource {
    Disk,
}

#[derive(Debug)]
struct PoolJob {
    on: Resource,
}

fn check(model: impl Fn() + Clone + Send + Sync + 'static) {
    let random = RandomScheduler::new_from_seed(SEED, EXECUTIONS);
    Runner::new(random, Config::new()).run(model.clone());
    let priorities = PctScheduler::new_from_seed(SEED, DEPTH, EXECUTIONS);
    Runner::new(priorities, Config::new()).run(model);
}

/// The parts of the pool that model checking concerns: the order of calls is the order of
/// `ThreadPool::enqueue` and `PoolShared::run_thread`.
struct Pool {
    demand: ThreadDemand,
    jobs: Mutex<JobQueue>,
    per_device: usize,
    done: AtomicUsize,
}

impl Pool {
    fn new(threads: usize, per_device: usize) -> Arc<Self> {
        let (demand, jobs) = (ThreadDemand::new(usize::MAX, threads), Mutex::default());
        Arc::new(Self { demand, jobs, per_device, done: AtomicUsize::new(0) })
    }

    /// Queues a job. Returns the thread that was started for it.
    fn enqueue(self: &Arc<Self>, client: u64) -> Option<JoinHandle<()>> {
        assert!(self.demand.count_job());
        self.jobs().push(client, PoolJob { on: Resource::Disk });
        let _number = self.demand.request_thread()?;
        let pool = Arc::clone(self);
        Some(thread::spawn(move || pool.run_thread()))
    }

    fn run_thread(&self) {
        let mut done = None;
        self.demand.run_thread(IDLE, || {
            let Some(job) = self.next(done.take()) else { return false };
            thread::yield_now();
            self.done.fetch_add(1, Ordering::Relaxed);
            done = Some(job.on);
            true
        });
    }

    fn next(&self, done: Option<Resource>) -> Option<PoolJob> {
        let mut jobs = self.jobs();
        if let Some(on) = done {
            jobs.done(on);
        }
        let job = jobs.next(|_| self.per_device)?;
        self.demand.uncount_jobs(1);
        Some(job)
    }

    fn jobs(&self) -> shuttle::sync::MutexGuard<'_, JobQueue> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues `jobs` jobs on each of two workers. Returns all threads of the pool.
    fn enqueue_on_two_workers(self: &Arc<Self>, jobs: usize) -> Vec<JoinHandle<()>> {
        let workers = [0, 1].map(|client| {
            let pool = Arc::clone(self);
            thread::spawn(move || (0..jobs).filter_map(|_| pool.enqueue(client)).collect())
        });
        let threads = workers.map(|worker| worker.join().expect("no panic"));
        threads.into_iter().flat_map(|threads: Vec<_>| threads).collect()
    }
}

fn join(threads: Vec<JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

/// Fails if `notify` looks for waiters before it counts the notification.
#[test]
fn a_thread_that_waits_does_not_miss_a_notification() {
    check(|| {
        sync::set_timeouts(false);
        let (event, work) = (Arc::new(FutexEvent::default()), Arc::new(AtomicUsize::new(0)));
        let theirs = (Arc::clone(&event), Arc::clone(&work));
        let waiting = thread::spawn(move || {
            loop {
                let seen = theirs.0.count();
                if theirs.1.load(Ordering::Relaxed) == 1 {
                    break;
                }
                theirs.0.wait(seen, IDLE);
            }
        });
        work.store(1, Ordering::Relaxed);
        event.notify(1);
        join(vec![waiting]);
        assert_eq!(event.waiters(), 0);
    });
}

/// Without timeouts: a lost wake-up would leave a thread asleep with a job in the queue or after
/// the pool was closed. Fails if `close` notifies before it sets the flag.
#[test]
fn all_jobs_are_done_and_all_threads_end_after_the_close() {
    check(|| {
        sync::set_timeouts(false);
        let pool = Pool::new(2, 2);
        let threads = pool.enqueue_on_two_workers(2);
        pool.demand.close();
        join(threads);
        assert_eq!((pool.done.load(Ordering::Relaxed), pool.demand.queued()), (4, 0));
        assert_eq!(pool.demand.threads(), 0);
    });
}

/// Idle threads end at random, and each job still finds a thread.
#[test]
fn a_thread_that_ends_after_its_idle_time_leaves_no_job() {
    check(|| {
        sync::set_timeouts(true);
        let pool = Pool::new(1, 1);
        let threads = pool.enqueue_on_two_workers(2);
        join(threads);
        assert_eq!((pool.done.load(Ordering::Relaxed), pool.demand.queued()), (4, 0));
        assert_eq!(pool.demand.threads(), 0);
    });
}

/// A job whose device is at its limit is done by the thread that runs a job of this device.
#[test]
fn a_job_of_a_device_at_its_limit_is_done_later() {
    check(|| {
        sync::set_timeouts(false);
        let pool = Pool::new(2, 1);
        let threads = pool.enqueue_on_two_workers(2);
        pool.demand.close();
        join(threads);
        assert_eq!(pool.done.load(Ordering::Relaxed), 4);
    });
}
