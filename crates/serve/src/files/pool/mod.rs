//! Threads for calls that wait: bounded, fair between clients, and never all of them at one device.
//!
//! ```text
//! worker ── run(client, device, call) ──> queue of the client ──> thread ──> waiting worker
//! ```
//! Clients take turns, whatever each has waiting. A call that would be one too many for its device waits while others go ahead, so a slow
//! mount does not take the threads away from a disk. Threads are started when there is work for them and end when there is none.

mod bell;
mod turns;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use fathom_io::sys::give_way;
use fathom_io::threads;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;

use bell::Bell;
use turns::Turns;

use super::spare::Spare;
use crate::config;

/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);
/// Calls into the kernel and a little of ours: no deep recursion, no large arrays.
const STACK_BYTES: usize = 256 << 10;

/// Most directories of one device that are read for listings at once, if there are fewer
/// processors: a slow device answers one as slowly as four.
const LISTINGS_MIN: usize = 4;

/// The client of calls nobody waits for.
const NOBODY: u64 = u64::MAX;
/// Threads of the pool give way to workers: a call that took a while anyway takes longer, and not those of everybody else. By how much
/// each does (sched_setattr(2)): the first ones by less, who are not held up for long by other programs then. Together all of them weigh little
/// more than one worker, or many threads would leave it no processor.
const NICE: [(usize, i32); 2] = [(2, 10), (usize::MAX, 19)];
/// For how long each has the processor that a worker waits for: about as long as one of its calls takes there, and as short as the kernel allows.
const SLICE: Duration = Duration::from_micros(100);

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    /// A device, by `st_dev`.
    Device(u64),
    /// A processor: compression, passwords, pages of listings.
    Cpu,
    /// A directory on this device, read for a listing or an archive: where it is in memory, that is
    /// processor time.
    Listing(u64),
}

/// There is too much waiting already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

/// What the pool is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Calls no thread has taken.
    pub(crate) queued: usize,
    /// Threads there are.
    pub(crate) threads: usize,
}

/// The threads. Clones are the same threads; with the last one they end.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Owner>);

#[derive(Debug)]
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.0.bell.ring(u32::MAX >> 1);
    }
}

/// Workers take no lock: a thread of the pool that has one and is interrupted, because it gives way, would hold up those it gave way to.
#[derive(Debug)]
struct Shared {
    limits: config::Pool,
    cpus: usize,
    put: Sender<(u64, Job)>,
    /// What no thread has seen yet, by client.
    inbox: Receiver<(u64, Job)>,
    bell: Bell,
    /// Jobs no thread has taken.
    queued: AtomicUsize,
    threads: AtomicUsize,
    closed: AtomicBool,
    /// The threads' own.
    turns: Mutex<Turns>,
    spare: Spare,
}

struct Job {
    on: Resource,
    run: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("on", &self.on).finish_non_exhaustive()
    }
}

impl Pool {
    /// With no thread yet; calls that compute get `cpus` at most.
    pub(crate) fn new(limits: config::Pool, cpus: usize) -> Self {
        let (put, inbox) = crossbeam_channel::unbounded();
        let shared = Shared {
            limits,
            cpus,
            put,
            inbox,
            bell: Bell::default(),
            queued: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            turns: Mutex::default(),
            spare: Spare::default(),
        };
        Self(Arc::new(Owner(Arc::new(shared))))
    }

    /// Has a thread make `call`, which waits for `on`, in the turn of `client`; what it returned. A future that is dropped does not stop
    /// the call.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        client: u64,
        on: Resource,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let (tell, told) = oneshot::channel();
        let run = Box::new(move || drop(tell.send(call())));
        self.enqueue(client, Job { on, run })?;
        // The channel closes without a word only if the call panicked.
        told.await.map_err(|_closed| Busy)
    }

    /// Has a thread make `call`, which nobody waits for; it is dropped here if there is too much to do.
    pub(crate) fn spawn(&self, on: Resource, call: impl FnOnce() + Send + 'static) {
        // A job that is refused is dropped, and with it what it was to drop.
        let _refused = self.enqueue(NOBODY, Job { on, run: Box::new(call) });
    }

    /// Buffers for what its threads read.
    pub(crate) fn spare(&self) -> &Spare {
        &self.0.0.spare
    }

    /// What it is doing.
    pub(crate) fn load(&self) -> Load {
        let Shared { queued, threads, .. } = &*self.0.0;
        Load { queued: queued.load(Ordering::SeqCst), threads: threads.load(Ordering::SeqCst) }
    }

    fn enqueue(&self, client: u64, job: Job) -> Result<(), Busy> {
        let shared = &self.0.0;
        if shared.queued.fetch_add(1, Ordering::SeqCst) >= shared.limits.queue {
            shared.queued.fetch_sub(1, Ordering::SeqCst);
            return Err(Busy);
        }
        // It has no bound of its own, and there is somebody to receive: so it takes what it is given.
        let _sent = shared.put.send((client, job));
        shared.bell.ring(1);
        if shared.bell.sleepers() >= shared.queued.load(Ordering::SeqCst) {
            return Ok(());
        }
        shared.hire().map_or(Ok(()), |number| self.start(number))
    }

    /// Where no thread can be started and there is none, nobody would ever take what is queued.
    fn start(&self, number: usize) -> Result<(), Busy> {
        let shared = Arc::clone(&self.0.0);
        let thread = thread::Builder::new().name("fathom-pool".to_owned()).stack_size(STACK_BYTES);
        let started = match threads::has_room(STACK_BYTES) {
            true => thread.spawn(move || shared.work(number)),
            false => Err(io::ErrorKind::OutOfMemory.into()),
        };
        started.map(drop).or_else(|_error: io::Error| {
            let others = self.0.0.threads.fetch_sub(1, Ordering::SeqCst) - 1;
            if others > 0 { Ok(()) } else { Err(self.0.0.clear()) }
        })
    }
}

impl Shared {
    /// A call that panicked leaves nothing half done here: the turns are never locked while one runs.
    fn turns(&self) -> MutexGuard<'_, Turns> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok((client, job)) = self.inbox.try_recv() {
            turns.push(client, job);
        }
        turns
    }

    /// One thread more, if there may be one: how many there are with it.
    fn hire(&self) -> Option<usize> {
        let most = self.limits.threads.max(1);
        let more = |threads| (threads < most).then_some(threads + 1);
        self.threads.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).ok().map(|before| before + 1)
    }

    /// Forgets what is queued: those who wait for it are told so.
    fn clear(&self) -> Busy {
        let forgotten = self.turns().take_all();
        let jobs = forgotten.values().map(VecDeque::len).sum::<usize>();
        self.queued.fetch_sub(jobs, Ordering::SeqCst);
        Busy
    }

    fn work(&self, number: usize) {
        // Where that is refused, they do not.
        let _ = give_way(nice(number), SLICE);
        loop {
            self.work_while_there_is_some();
            self.threads.fetch_sub(1, Ordering::SeqCst);
            // What came just now may have been left to this thread.
            let is_over = self.closed.load(Ordering::SeqCst) || self.queued.load(Ordering::SeqCst) == 0;
            if is_over || self.hire().is_none() {
                return;
            }
        }
    }

    fn work_while_there_is_some(&self) {
        let (mut done, mut yielded) = (None, processor_time());
        loop {
            let rings = self.bell.rings();
            match self.next(done.take()) {
                Some(Job { on, run }) => {
                    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
                    drop(panicked);
                    yielded = yield_if_over(yielded);
                    done = Some(on);
                }
                None if self.closed.load(Ordering::SeqCst) => return,
                None => {
                    if !self.bell.wait(rings, IDLE) && self.queued.load(Ordering::SeqCst) == 0 {
                        return;
                    }
                }
            }
        }
    }

    /// What a thread that is `done` with a job does next. Of jobs that wait for their device, the thread that is done with one there
    /// takes the next.
    fn next(&self, done: Option<Resource>) -> Option<Job> {
        let mut turns = self.turns();
        if let Some(on) = done {
            turns.done(on);
        }
        let job = turns.next(|on| self.limit(on))?;
        self.queued.fetch_sub(1, Ordering::SeqCst);
        Some(job)
    }

    fn limit(&self, on: Resource) -> usize {
        match on {
            Resource::Device(_) => self.limits.per_device(),
            Resource::Cpu => self.cpus.max(1),
            Resource::Listing(_) => self.cpus.max(LISTINGS_MIN).min(self.limits.per_device()),
        }
    }
}

/// Lets others go if this thread has had the processor for a slice since `yielded`, and says when it has last done so. The kernel looks at
/// slices every 4 ms or so, and a worker would wait for many calls until then; but who gives up a slice early has had all of it.
fn yield_if_over(yielded: Duration) -> Duration {
    let now = processor_time();
    if now.saturating_sub(yielded) < SLICE {
        return yielded;
    }
    thread::yield_now();
    now
}

/// Gives up the processor in the middle of a long call, each time that has had a slice of it, so
/// that no worker waits for its end.
#[derive(Debug)]
pub(crate) struct Pace {
    yielded: Duration,
}

impl Pace {
    /// Begins now, on the thread that makes the call.
    pub(crate) fn new() -> Self {
        Self { yielded: processor_time() }
    }

    /// Yields if a slice is over. Costs a system call (clock_gettime of the thread): call it every
    /// few microseconds of work.
    pub(crate) fn step(&mut self) {
        self.yielded = yield_if_over(self.yielded);
    }
}

/// What this thread has had of a processor.
fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Of the thread that came when there were `number` with it.
fn nice(number: usize) -> i32 {
    NICE.iter().find(|(last, _)| number <= *last).map_or(0, |(_, nice)| *nice)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const DISK: Resource = Resource::Device(1);

    fn pool(threads: usize, per_device: usize, queue: usize) -> Pool {
        Pool::new(config::Pool { threads, per_device: Some(per_device), queue }, 1)
    }

    /// Holds a thread until the sender is dropped.
    fn hold(pool: &Pool, client: u64, on: Resource) -> mpsc::Sender<()> {
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let run = Box::new(move || {
            begin.send(()).unwrap();
            let _ = ended.recv();
        });
        pool.enqueue(client, Job { on, run }).unwrap();
        begun.recv().unwrap();
        end
    }

    /// Puts down `word` in `list` when its turn comes.
    fn note(pool: &Pool, client: u64, on: Resource, word: u32, list: &mpsc::Sender<u32>) -> Result<(), Busy> {
        let list = list.clone();
        pool.enqueue(client, Job { on, run: Box::new(move || list.send(word).unwrap()) })
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
        assert_eq!(note(&pool, 1, DISK, 3, &list), Err(Busy));
        assert_eq!(pool.load(), Load { queued: 3, threads: 2 });
        drop((held, list));
        assert_eq!(listed.iter().count(), 3);
    }

    #[test]
    fn what_a_call_returned_arrives_and_a_panic_is_survived() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let pool = pool(1, 1, 10);
        assert_eq!(runtime.block_on(pool.run(1, DISK, || panic!("on purpose"))), Err::<(), _>(Busy));
        assert_eq!(runtime.block_on(pool.run(1, Resource::Cpu, || 7)), Ok(7));
        let shared = Arc::downgrade(&pool.0.0);
        drop(pool);
        while shared.upgrade().is_some() {
            thread::yield_now();
        }
    }
}
