//! Threads for calls that wait: bounded, fair between clients, and never all of them at one device.
//!
//! ```text
//! worker ── run(client, device, call) ──> queue of the client ──> thread ──> waiting worker
//! ```
//! Clients take turns, whatever each has waiting. A call that would be one too many for its device waits while others go ahead, so a slow
//! mount does not take the threads away from a disk. Threads are started when there is work for them and end when there is none.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use super::spare::Spare;
use crate::config;

/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);
/// Calls into the kernel and a little of ours: no deep recursion, no large arrays.
const STACK_BYTES: usize = 256 << 10;

/// The client of calls nobody waits for.
const NOBODY: u64 = u64::MAX;
/// Threads of the pool give way to workers: a call that took a while anyway takes longer, and not those of everybody else. By how much
/// each does (setpriority(2)): the first so many by the one, the next by the other. Together all of them weigh about as much as one worker, or
/// many threads would leave it no processor; few are not held up for long by other programs.
const NICE: [(usize, i32); 3] = [(4, 10), (16, 15), (usize::MAX, 19)];

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    /// A device, by `st_dev`.
    Device(u64),
    /// A processor: compression, passwords.
    Cpu,
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
        self.0.state().closed = true;
        self.0.work.notify_all();
    }
}

#[derive(Debug)]
struct Shared {
    limits: config::Pool,
    cpus: usize,
    state: Mutex<State>,
    work: Condvar,
    spare: Spare,
}

#[derive(Debug, Default)]
struct State {
    /// By client; none is empty.
    queues: HashMap<u64, VecDeque<Job>>,
    /// Clients with something in their queue, in the order of their turns.
    turns: VecDeque<u64>,
    queued: usize,
    threads: usize,
    idle: usize,
    at_work: HashMap<Resource, usize>,
    closed: bool,
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
        let (state, work, spare) = (Mutex::default(), Condvar::new(), Spare::default());
        Self(Arc::new(Owner(Arc::new(Shared { limits, cpus, state, work, spare }))))
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
        let state = self.0.0.state();
        Load { queued: state.queued, threads: state.threads }
    }

    fn enqueue(&self, client: u64, job: Job) -> Result<(), Busy> {
        let shared = &self.0.0;
        let mut state = shared.state();
        if state.queued >= shared.limits.queue {
            return Err(Busy);
        }
        state.push(client, job);
        if state.idle >= state.queued {
            shared.work.notify_one();
        } else if state.threads < shared.limits.threads.max(1) {
            state.threads += 1;
            let number = state.threads;
            drop(state);
            return self.start(number);
        }
        Ok(())
    }

    /// Where no thread can be started and there is none, nobody would ever take what is queued.
    fn start(&self, number: usize) -> Result<(), Busy> {
        let shared = Arc::clone(&self.0.0);
        let started = thread::Builder::new()
            .name("fathom-pool".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || shared.work(number));
        started.map(drop).or_else(|_error: io::Error| {
            let mut state = self.0.0.state();
            state.threads -= 1;
            if state.threads > 0 { Ok(()) } else { Err(state.clear()) }
        })
    }
}

impl State {
    fn push(&mut self, client: u64, job: Job) {
        self.queued += 1;
        let queue = self.queues.entry(client).or_default();
        if queue.is_empty() {
            self.turns.push_back(client);
        }
        queue.push_back(job);
    }

    /// The next job that `may` be done now; its client's turn is over.
    fn next(&mut self, may: impl Fn(&Self, Resource) -> bool) -> Option<Job> {
        let can = |client: &u64| self.queues.get(client)?.front().map(|job| may(self, job.on));
        let at = self.turns.iter().position(|client| can(client) == Some(true))?;
        let client = self.turns.remove(at)?;
        let queue = self.queues.get_mut(&client)?;
        let job = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        self.queued -= 1;
        *self.at_work.entry(job.on).or_default() += 1;
        Some(job)
    }

    fn done(&mut self, on: Resource) {
        let at_work = self.at_work.entry(on).or_default();
        *at_work = at_work.saturating_sub(1);
        if *at_work == 0 {
            self.at_work.remove(&on);
        }
    }

    /// Forgets what is queued: those who wait for it are told so.
    fn clear(&mut self) -> Busy {
        (self.queues, self.turns, self.queued) = Default::default();
        Busy
    }
}

impl Shared {
    /// A call that panicked leaves nothing half done here: the state is never locked while one runs.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, number: usize) {
        // Where that is refused, they do not.
        let _ = setpriority_process(None, nice(number));
        let mut state = self.state();
        loop {
            let job = state.next(|state, on| state.at_work.get(&on).copied().unwrap_or(0) < self.limit(on));
            match job {
                Some(Job { on, run }) => {
                    drop(state);
                    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
                    drop(panicked);
                    state = self.state();
                    state.done(on);
                    // A thread may have found nothing it may do, because of this one.
                    if state.queued > 0 && state.idle > 0 {
                        self.work.notify_one();
                    }
                }
                None if state.closed => break,
                None => {
                    state.idle += 1;
                    let (locked, waited) =
                        self.work.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
                    state = locked;
                    state.idle -= 1;
                    if waited.timed_out() && state.queued == 0 {
                        break;
                    }
                }
            }
        }
        state.threads -= 1;
    }

    fn limit(&self, on: Resource) -> usize {
        match on {
            Resource::Device(_) => self.limits.per_device.max(1),
            Resource::Cpu => self.cpus.max(1),
        }
    }
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
        Pool::new(config::Pool { threads, per_device, queue }, 1)
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
