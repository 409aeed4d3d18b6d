//! The thread pool for blocking calls: bounded, fair between clients, with a limit of threads for
//! each device.
//!
//! ```text
//! worker ── run(client, device, call) ──> queue of the client ──> thread ──> result to the worker
//! ```
//! Jobs run round-robin by client, however many each has queued. A job whose device is at its limit
//! waits while others go ahead, so a slow mount does not take the threads away from a disk. Threads
//! are started when jobs are queued and end when they are idle.

mod futex_event;
mod job_queue;
mod sync;
mod thread_demand;

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use fathom_io::fault::point;
use fathom_io::sys::lower_priority;
use fathom_io::threads;
use futures_util::FutureExt;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;

use job_queue::JobQueue;
use thread_demand::ThreadDemand;

use crate::read_buffers::ReadBuffers;

/// The time that an idle thread waits for a job before it ends.
const IDLE: Duration = Duration::from_secs(10);
/// Jobs make system calls with little code around them: no deep recursion, no large arrays.
const STACK_BYTES: usize = 256 << 10;

/// The minimum of directories of one device that are read at once for listings, on machines with
/// fewer processors: a slow device answers one request as slowly as four.
const LISTINGS_MIN: usize = 4;

/// The client of jobs without a waiting request.
const NO_CLIENT: u64 = u64::MAX;
/// The nice values of pool threads (sched_setattr(2)), which yield to workers: a call that blocks
/// anyway takes longer, but requests that need no call do not. The first threads get a lower nice
/// value, so that other programs do not hold them up for long. All pool threads together weigh
/// little more than one worker; at the same nice value, many threads would leave the worker no
/// processor.
const NICE: [(usize, i32); 2] = [(2, 10), (usize::MAX, 19)];
/// The time slice of a pool thread on a processor that a worker waits for: about as long as one job
/// computes, and as short as the kernel allows.
const SLICE: Duration = Duration::from_micros(100);

/// The resource that a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Resource {
    /// A device, by `st_dev`.
    Device(u64),
    /// Processor time: compression, password hashing, rendering of listings.
    Cpu,
    /// A directory on this device, read for a listing or an archive. If the directory is cached,
    /// the job takes processor time.
    Listing(u64),
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QueueFull;

/// The reason why a call has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The queue is full.
    QueueFull,
    /// The call panicked.
    Panicked,
}

impl From<QueueFull> for CallError {
    fn from(QueueFull: QueueFull) -> Self {
        Self::QueueFull
    }
}

/// A function of the payload of a panic.
type PanicReport = dyn Fn(&(dyn Any + Send)) + Send + Sync;

/// A function that reports the panic of a call, on its pool thread.
struct PanicHandler(Box<PanicReport>);

impl fmt::Debug for PanicHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PanicHandler").finish_non_exhaustive()
    }
}

impl PanicHandler {
    /// Runs `call`, and handles its panic.
    fn catch<T>(&self, call: impl FnOnce() -> T) -> Result<T, CallError> {
        // The call owns all that it uses, apart from locks, whose users take a poisoned one.
        catch_unwind(AssertUnwindSafe(call)).map_err(|payload| self.handle(&*payload))
    }

    fn handle(&self, payload: &(dyn Any + Send)) -> CallError {
        (self.0)(payload);
        CallError::Panicked
    }
}

/// The limits of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// The most threads. They are started on demand.
    pub threads: usize,
    /// The most threads that wait for one device.
    pub per_device: usize,
    /// The most jobs that wait for a thread. A further job is refused.
    pub queue: usize,
}

/// The load of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolLoad {
    /// The number of jobs that no thread has taken.
    pub queued: usize,
    /// The number of threads.
    pub threads: usize,
}

/// A handle of the pool. Clones share the threads, which end with the last handle.
///
/// ```
/// use fathom_files::pool::{CallError, PoolLimits, Resource, ThreadPool};
///
/// let limits = PoolLimits { threads: 4, per_device: 3, queue: 100 };
/// let pool = ThreadPool::new(limits, 1, |_panic| eprintln!("a call panicked"));
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let (client, device) = (1, Resource::Device(0));
/// assert_eq!(runtime.block_on(pool.run(client, device, || 6 * 7)), Ok(42));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ThreadPool(Arc<PoolOwner>);

#[derive(Debug)]
struct PoolOwner(Arc<PoolShared>);

impl Drop for PoolOwner {
    fn drop(&mut self) {
        self.0.demand.close();
    }
}

/// The state that handles and threads share. While threads run, workers take no lock here: a
/// low-priority pool thread that is preempted with a lock held would hold up the worker that
/// preempted it.
#[derive(Debug)]
struct PoolShared {
    limits: PoolLimits,
    cpus: usize,
    sender: Sender<(u64, PoolJob)>,
    /// Jobs that are not in `jobs` yet, with their client.
    incoming: Receiver<(u64, PoolJob)>,
    demand: ThreadDemand,
    /// The queue. Pool threads lock it, and a worker only if no thread exists.
    jobs: Mutex<JobQueue>,
    read_buffers: ReadBuffers,
    on_panic: PanicHandler,
}

struct PoolJob {
    on: Resource,
    run: Box<dyn FnOnce(&PanicHandler) + Send>,
}

impl fmt::Debug for PoolJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("on", &self.on).finish_non_exhaustive()
    }
}

impl ThreadPool {
    /// Creates a pool without threads. At most `cpus` jobs for [`Resource::Cpu`] run at a time.
    /// `on_panic` is called with the payload of a call's panic.
    #[must_use]
    pub fn new(
        limits: PoolLimits,
        cpus: usize,
        on_panic: impl Fn(&(dyn Any + Send)) + Send + Sync + 'static,
    ) -> Self {
        let (sender, incoming) = crossbeam_channel::unbounded();
        let demand = ThreadDemand::new(limits.queue, limits.threads);
        let shared = PoolShared {
            limits,
            cpus,
            sender,
            incoming,
            demand,
            jobs: Mutex::default(),
            read_buffers: ReadBuffers::default(),
            on_panic: PanicHandler(Box::new(on_panic)),
        };
        Self(Arc::new(PoolOwner(Arc::new(shared))))
    }

    /// Runs `call`, which waits for `on`, on a pool thread, queued as a job of `client`. Returns
    /// its result. If the future is dropped before a thread takes the call, the call is dropped in
    /// its turn; a call under way goes on. Clients with queued jobs take turns.
    ///
    /// # Errors
    /// [`CallError::QueueFull`], and [`CallError::Panicked`] after `on_panic` has returned.
    pub async fn run<T: Send + 'static>(
        &self,
        client: u64,
        on: Resource,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let (tell, told) = oneshot::channel();
        let run = Box::new(move |on_panic: &PanicHandler| {
            // The future has been dropped.
            if tell.is_closed() {
                return;
            }
            let result = on_panic.catch(|| {
                point("pool-call");
                call()
            });
            drop(tell.send(result));
        });
        self.enqueue(client, PoolJob { on, run })?;
        // The channel closes without a result only if the call was rejected.
        told.await.map_err(|_closed| QueueFull)?
    }

    /// Runs `call` on a pool thread without waiting for it. If the queue is full, `call` is dropped
    /// on this thread.
    pub fn spawn(&self, on: Resource, call: impl FnOnce() + Send + 'static) {
        let run = Box::new(move |on_panic: &PanicHandler| {
            let _reported = on_panic.catch(call);
        });
        // A rejected job is dropped, and with it the values it owns.
        let _refused = self.enqueue(NO_CLIENT, PoolJob { on, run });
    }

    /// Runs `call` on this thread, and handles its panic like a job's.
    pub(crate) fn catch<T>(&self, call: impl FnOnce() -> T) -> Result<T, CallError> {
        self.0.0.on_panic.catch(call)
    }

    /// Runs `future`, and handles its panic like a job's.
    pub(crate) async fn contain<T, E: From<CallError>>(
        &self,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let ended = AssertUnwindSafe(future).catch_unwind().await;
        ended.unwrap_or_else(|payload| Err(self.0.0.on_panic.handle(&*payload).into()))
    }

    /// Returns the buffers that pool threads read into.
    pub(crate) fn read_buffers(&self) -> &ReadBuffers {
        &self.0.0.read_buffers
    }

    /// Frees the idle buffers that pool threads read into, if none was used since the last call.
    pub fn sweep(&self) {
        self.0.0.read_buffers.sweep();
    }

    /// Returns the load of the pool.
    #[must_use]
    pub fn load(&self) -> PoolLoad {
        let demand = &self.0.0.demand;
        PoolLoad { queued: demand.queued(), threads: demand.threads() }
    }

    fn enqueue(&self, client: u64, job: PoolJob) -> Result<(), QueueFull> {
        let shared = &self.0.0;
        if !shared.demand.count_job() {
            return Err(QueueFull);
        }
        // The channel is unbounded and its receiver lives in `shared`: the send cannot fail.
        let _sent = shared.sender.send((client, job));
        shared.demand.request_thread().map_or(Ok(()), |number| self.start_thread(number))
    }

    /// Starts the thread with the number `number`. If that fails and no other thread runs, no job
    /// would ever be taken: rejects the queued jobs.
    fn start_thread(&self, number: usize) -> Result<(), QueueFull> {
        let shared = Arc::clone(&self.0.0);
        let thread = thread::Builder::new().name("fathom-pool".to_owned()).stack_size(STACK_BYTES);
        let started = match threads::has_address_space(STACK_BYTES) {
            true => thread.spawn(move || shared.run_thread(number)),
            false => Err(io::ErrorKind::OutOfMemory.into()),
        };
        started.map(drop).or_else(|_error: io::Error| {
            // Without another thread, the jobs queued so far are rejected.
            if self.0.0.demand.release_thread() > 0 { Ok(()) } else { Err(self.0.0.reject_queued()) }
        })
    }
}

impl PoolShared {
    /// Locks the queue and moves incoming jobs to it. A panic cannot poison its state: no call runs
    /// with the lock held.
    fn jobs(&self) -> MutexGuard<'_, JobQueue> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok((client, job)) = self.incoming.try_recv() {
            jobs.push(client, job);
        }
        jobs
    }

    /// Drops all queued jobs. Their callers get [`QueueFull`].
    fn reject_queued(&self) -> QueueFull {
        let rejected = self.jobs().take_all();
        let jobs = rejected.values().map(VecDeque::len).sum::<usize>();
        // No thread can take these jobs any more.
        self.demand.uncount_jobs(jobs);
        QueueFull
    }

    fn run_thread(&self, number: usize) {
        // Without permission to lower the priority, the thread runs at the normal one.
        let _ = lower_priority(nice(number), SLICE);
        let (mut done, mut yielded) = (None, thread_cpu_time());
        self.demand.run_thread(IDLE, || {
            let Some(PoolJob { on, run }) = self.next(done.take()) else { return false };
            // Catches what drops of results and arguments do; a panic of the call itself is caught
            // in `run`, before its caller learns of it.
            let _reported = self.on_panic.catch(|| run(&self.on_panic));
            yielded = yield_after_slice(yielded);
            done = Some(on);
            true
        });
    }

    /// Returns the next job for a thread that is `done` with a job on a resource. The thread that
    /// completes a job of a device at its limit can take the next one of that device.
    fn next(&self, done: Option<Resource>) -> Option<PoolJob> {
        let mut jobs = self.jobs();
        if let Some(on) = done {
            jobs.done(on);
        }
        let job = jobs.next(|on| self.limit(on))?;
        self.demand.uncount_jobs(1);
        Some(job)
    }

    fn limit(&self, on: Resource) -> usize {
        match on {
            Resource::Device(_) => self.limits.per_device,
            Resource::Cpu => self.cpus.max(1),
            Resource::Listing(_) => self.cpus.max(LISTINGS_MIN).min(self.limits.per_device),
        }
    }
}

/// Yields the processor if this thread has used a slice since `yielded`. Returns the thread's
/// processor time at the last yield. The kernel checks slices only every 4 ms or so, and a worker
/// would wait for many calls until then.
fn yield_after_slice(yielded: Duration) -> Duration {
    let now = thread_cpu_time();
    if now.saturating_sub(yielded) < SLICE {
        return yielded;
    }
    thread::yield_now();
    now
}

/// A limit on the processor time of a long call between two yields, so that no worker waits for the
/// end of the call.
#[derive(Debug)]
pub struct TimeSlice {
    yielded: Duration,
}

impl TimeSlice {
    /// Starts the first slice. Call it on the thread that runs the call.
    #[must_use]
    pub fn start() -> Self {
        Self { yielded: thread_cpu_time() }
    }

    /// Yields if the slice is used up. Costs a system call (clock_gettime(2) of the thread): call
    /// it every few microseconds of work.
    pub fn check(&mut self) {
        self.yielded = yield_after_slice(self.yielded);
    }
}

/// Returns the processor time of this thread.
fn thread_cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Returns the nice value of the thread that is number `number`.
fn nice(number: usize) -> i32 {
    NICE.iter().find(|(last, _)| number <= *last).map_or(0, |(_, nice)| *nice)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::futex_event::FutexEvent;
    use super::*;

    const DISK: Resource = Resource::Device(1);

    fn pool(threads: usize, per_device: usize, queue: usize) -> ThreadPool {
        ThreadPool::new(PoolLimits { threads, per_device, queue }, 1, |_| ())
    }

    /// Occupies a thread until the returned sender is dropped.
    fn hold(pool: &ThreadPool, client: u64, on: Resource) -> mpsc::Sender<()> {
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let run = Box::new(move |_: &PanicHandler| {
            begin.send(()).unwrap();
            let _ = ended.recv();
        });
        pool.enqueue(client, PoolJob { on, run }).unwrap();
        begun.recv().unwrap();
        end
    }

    /// Queues a job that sends `word` to `list`.
    fn note(
        pool: &ThreadPool,
        client: u64,
        on: Resource,
        word: u32,
        list: &mpsc::Sender<u32>,
    ) -> Result<(), QueueFull> {
        let list = list.clone();
        pool.enqueue(client, PoolJob { on, run: Box::new(move |_| list.send(word).unwrap()) })
    }

    #[test]
    fn a_waiting_thread_is_woken_and_an_earlier_notification_is_not_missed() {
        const LONG: Duration = Duration::from_secs(60);
        let event = Arc::new(FutexEvent::default());
        assert!(!event.wait(event.count(), Duration::from_millis(1)));
        let seen = event.count();
        event.notify(1);
        assert!(event.wait(seen, LONG), "the notification came before the wait");
        let (seen, other) = (event.count(), Arc::clone(&event));
        let waiting = thread::spawn(move || other.wait(seen, LONG));
        while event.waiters() == 0 {
            thread::yield_now();
        }
        event.notify(1);
        assert!(waiting.join().unwrap());
        assert_eq!(event.waiters(), 0);
    }

    #[test]
    fn clients_take_turns() {
        let (pool, (list, listed)) = (pool(1, 1, 100), mpsc::channel());
        let held = hold(&pool, 0, DISK);
        for word in 0..10 {
            note(&pool, 1, DISK, word, &list).unwrap();
        }
        note(&pool, 2, DISK, 100, &list).unwrap();
        drop((held, list));
        assert_eq!(listed.iter().collect::<Vec<_>>(), [0, 100, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn a_device_does_not_take_all_threads() {
        let (pool, (list, listed)) = (pool(2, 1, 100), mpsc::channel());
        let held = hold(&pool, 1, DISK);
        note(&pool, 1, DISK, 1, &list).unwrap();
        note(&pool, 2, Resource::Device(2), 2, &list).unwrap();
        assert_eq!(listed.recv(), Ok(2));
        assert!(listed.try_recv().is_err(), "the disk is busy");
        drop(held);
        assert_eq!(listed.recv(), Ok(1));
    }

    #[test]
    fn the_queue_and_the_threads_are_bounded() {
        let (pool, (list, listed)) = (pool(2, 8, 3), mpsc::channel());
        let held = [hold(&pool, 1, DISK), hold(&pool, 1, DISK)];
        for word in 0..3 {
            note(&pool, 1, DISK, word, &list).unwrap();
        }
        assert_eq!(note(&pool, 1, DISK, 3, &list), Err(QueueFull));
        assert_eq!(pool.load(), PoolLoad { queued: 3, threads: 2 });
        drop((held, list));
        assert_eq!(listed.iter().count(), 3);
    }

    #[test]
    fn a_call_that_nobody_waits_for_is_dropped_in_its_turn() {
        let (pool, (list, listed)) = (pool(1, 1, 100), mpsc::channel());
        let held = hold(&pool, 0, DISK);
        let [dropped, kept] = [1, 2].map(|word| {
            let (pool, list) = (pool.clone(), list.clone());
            Box::pin(async move { pool.run(word, DISK, move || list.send(word).unwrap()).await })
        });
        // Polled once, both wait.
        let mut both = [Some(dropped), Some(kept)];
        both.iter_mut().flatten().for_each(|call| assert!(call.now_or_never().is_none()));
        assert_eq!(pool.load().queued, 2);
        both[0] = None;
        drop((held, list));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(both[1].take().unwrap()), Ok(()));
        drop(both);
        assert_eq!(listed.iter().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn what_a_call_returned_arrives_and_a_panic_is_survived() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (reports, reported) = mpsc::channel();
        let limits = PoolLimits { threads: 1, per_device: 1, queue: 10 };
        let pool = ThreadPool::new(limits, 1, move |payload| {
            reports.send(fathom_io::threads::panic_message(payload).to_owned()).unwrap();
        });
        let panicked = runtime.block_on(pool.run(1, DISK, || panic!("on purpose")));
        assert_eq!(
            (panicked, reported.try_recv()),
            (Err::<(), _>(CallError::Panicked), Ok("on purpose".to_owned()))
        );
        pool.spawn(DISK, || panic!("without a caller"));
        assert_eq!(runtime.block_on(pool.run(1, Resource::Cpu, || 7)), Ok(7));
        assert_eq!((reported.recv(), pool.load().queued), (Ok("without a caller".to_owned()), 0));
        let shared = Arc::downgrade(&pool.0.0);
        drop(pool);
        while shared.upgrade().is_some() {
            thread::yield_now();
        }
    }
}
