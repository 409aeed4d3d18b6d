//! Starts a walk: the model, the workers, the controller that adds and removes them.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fathom_io::blocking::Blocking;
use fathom_io::calls::Native;
use fathom_io::tokio_fs::{AsyncPar, AsyncSeq};
use fathom_io::{Choice, Fields, Follow, Model, Unavailable, sys, sys::Usage};

use crate::arrival::lead;
use crate::control::{Controller, Sample, WORKERS_MAX};
use crate::duty::{AsFound, Duty, InOrder};
use crate::error::{Error, Op};
use crate::fds::Budget;
use crate::gather::{Gather, Roots};
use crate::lane::Lane;
use crate::order::{Order, Tick};
use crate::schedule::Schedule;
use crate::visit::{Consume, Visit};
use crate::worker::{Shared, Worker};

/// Time between two samples of the controllers, at first and once there is not much to decide any more: with many workers, a sample
/// is work.
const SAMPLE: Duration = Duration::from_millis(1);
const SAMPLE_LATER: Duration = Duration::from_millis(5);
const LATER: Duration = Duration::from_millis(50);
/// Workers made ready ahead of their work in a millisecond of waiting for a server: about half of one CPU's time.
const READY_PER_MS: usize = 8;
/// A worker's stack: no recursion, and the buffers are on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// How to walk.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The I/O model.
    pub choice: Choice,
    /// This many workers, whatever the model would have.
    pub threads: Option<usize>,
    /// Whether a root that is a symbolic link is followed.
    pub roots: Follow,
    /// Whether any other symbolic link is.
    pub links: Follow,
    /// Metadata wanted of every entry.
    pub fields: Fields,
    /// Take the metadata of directories with their parent's other entries, not only once they are open.
    pub stat_dirs: bool,
    /// A directory may be met several times and the consumer wants it once: do not list it twice on suspicion.
    pub once: bool,
    /// Very wide directories may be taken in pieces smaller than those that are ordered by inode number, for less memory: items
    /// of [`Emit::item`](crate::Emit::item) then come out of order within their directory, all else as ever.
    pub loose: bool,
}

/// How a walk is doing; the numbers only grow, but for `workers` and `busy`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Entries seen, roots and directories included.
    pub entries: u64,
    /// Directories opened, or tried.
    pub directories: u64,
    /// What the visitor measured with [`Emit::measure`](crate::Emit::measure), whatever that is.
    pub measured: u64,
    /// Workers there are.
    pub workers: usize,
    /// Parts being executed: for a blocking model, the workers inside a system call or close to one.
    pub busy: usize,
}

/// What was asked of the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calls {
    /// Directories opened, or tried.
    pub open: u64,
    /// Batches of names read.
    pub read: u64,
    /// Entries whose metadata was taken, open directories included.
    pub stat: u64,
    /// Directories opened again because their descriptor had not been kept.
    pub reopen: u64,
}

/// How a walk went.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// False if it was stopped before its end.
    pub complete: bool,
    /// The last progress.
    pub progress: Progress,
    /// From the first worker's start to the end.
    pub elapsed: Duration,
    /// What was asked of the model.
    pub calls: Calls,
    /// When, since the start, how many workers there were: one element a change.
    pub workers_over_time: Vec<(Duration, usize)>,
}

/// Walks the roots `consume` names, on the calling thread and workers of its own.
///
/// `watch` is called every few milliseconds.
///
/// # Errors
/// If the model cannot run here, no worker can be started, or `visit` panics. Everything else that goes wrong is an event.
pub fn run<V: Visit, C: Consume<V::Item>>(
    options: Options,
    visit: V,
    consume: &mut C,
    watch: &mut dyn FnMut(Progress),
) -> Result<Summary, Error> {
    choose(options, InOrder(visit), watch, |shared, pool| Order::new(shared, pool, consume).run())
}

/// The same over models `make` makes, one for every worker, on the worker's own thread.
///
/// # Errors
/// As [`run`].
pub fn run_with<V: Visit, C: Consume<V::Item>, M: Model>(
    options: Options,
    visit: V,
    consume: &mut C,
    watch: &mut dyn FnMut(Progress),
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
) -> Result<Summary, Error> {
    walk(options, InOrder(visit), watch, make, |shared, pool| Order::new(shared, pool, consume).run())
}

/// Walks what `roots` has, and tells `gather` of everything as it is found, on workers of its own.
///
/// `watch` is called every few milliseconds.
///
/// # Errors
/// As [`run`].
pub fn gather<G: Gather>(
    options: Options,
    gather: G,
    roots: &mut dyn Roots,
    watch: &mut dyn FnMut(Progress),
) -> Result<Summary, Error> {
    choose(options, AsFound(gather), watch, |shared, pool| lead(shared, pool, roots))
}

/// The same over models `make` makes, one for every worker, on the worker's own thread.
///
/// # Errors
/// As [`run`].
pub fn gather_with<G: Gather, M: Model>(
    options: Options,
    gather: G,
    roots: &mut dyn Roots,
    watch: &mut dyn FnMut(Progress),
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
) -> Result<Summary, Error> {
    walk(options, AsFound(gather), watch, make, |shared, pool| lead(shared, pool, roots))
}

/// Walks over the model the options name.
fn choose<D: Duty>(
    options: Options,
    duty: D,
    watch: &mut dyn FnMut(Progress),
    lead: impl FnOnce(&Shared<D>, &mut dyn Tick) -> bool,
) -> Result<Summary, Error> {
    match options.choice {
        Choice::Sync | Choice::Threads(_) | Choice::Auto => {
            walk(options, duty, watch, || Ok(Blocking::<Native>::default()), lead)
        }
        Choice::AsyncSeq => walk(options, duty, watch, AsyncSeq::new, lead),
        Choice::AsyncPar => walk(options, duty, watch, AsyncPar::new, lead),
        #[cfg(all(target_os = "linux", not(fathom_posix)))]
        Choice::Uring(depth) => {
            let make = move || fathom_io::uring::Uring::new(depth.unwrap_or(fathom_io::uring::DEPTH));
            walk(options, duty, watch, make, lead)
        }
        #[cfg(not(all(target_os = "linux", not(fathom_posix))))]
        Choice::Uring(_) => {
            Err(Error::new(Op::StartModel, std::io::Error::from(std::io::ErrorKind::Unsupported)))
        }
    }
}

/// Starts workers and leaves the calling thread to `lead`, which returns whether the walk came to its end.
fn walk<D: Duty, M: Model>(
    options: Options,
    duty: D,
    watch: &mut dyn FnMut(Progress),
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
    lead: impl FnOnce(&Shared<D>, &mut dyn Tick) -> bool,
) -> Result<Summary, Error> {
    let (workers, workers_max) = workers(&options, sys::cpus_allowed());
    let budget = Budget::new(sys::fd_limit(), workers_max * M::WIDTH);
    let workers_max = workers_max.min(budget.units);
    let adaptive = options.choice == Choice::Auto && options.threads.is_none();
    let schedule = Schedule::new(workers_max, if adaptive { workers.min(workers_max) } else { usize::MAX });
    let shared = Arc::new(Shared::new(duty, options, schedule, budget.kept));
    let spawner = Spawner { shared: shared.clone(), make: Arc::new(make), width: budget.units / workers_max };
    let (report, refusal) = mpsc::channel();
    spawner.spawn(Some(report)).map_err(|error| Error::new(Op::StartWorker, error))?;
    let mut pool = Pool {
        shared: &shared,
        workers_max,
        adaptive,
        controllers: None,
        spawn: &|| spawner.spawn(None).is_ok(),
        refusal,
        refused: None,
        watch,
        sized: false,
        wanted: 1,
        spawned: 1,
        start: Instant::now(),
        last: Reading::now(),
        over_time: vec![(Duration::ZERO, 1)],
    };
    let complete = lead(&shared, &mut pool);
    shared.schedule.stop();
    shared.schedule.part();
    if let Some(unavailable) = pool.refused {
        return Err(Error::new(Op::StartModel, std::io::Error::other(unavailable)));
    }
    if shared.schedule.has_panicked() {
        return Err(Error::new(Op::Work, std::io::Error::other("a worker thread panicked")));
    }
    Ok(Summary {
        complete,
        progress: pool.progress(),
        elapsed: pool.start.elapsed(),
        calls: shared.calls(),
        workers_over_time: pool.over_time,
    })
}

/// How many workers to start with and to have at most.
fn workers(options: &Options, cpus: usize) -> (usize, usize) {
    let count = match (options.threads, options.choice) {
        (Some(count), _) | (None, Choice::Threads(Some(count))) => count,
        (None, Choice::Sync | Choice::AsyncSeq | Choice::AsyncPar) => 1,
        (None, Choice::Threads(None) | Choice::Uring(_)) => cpus,
        (None, Choice::Auto) => return (cpus, WORKERS_MAX.max(cpus)),
    };
    (count.max(1), count.max(1))
}

/// Starts workers on threads of their own. They are never joined: one that sits in a slow call must not hold up who
/// stops the walk, and ends by itself when the call returns.
struct Spawner<D: Duty, F> {
    shared: Arc<Shared<D>>,
    make: Arc<F>,
    /// Directories a worker may have under way.
    width: usize,
}

/// Stops the walk if its worker panics, which only what the caller supplied does.
struct Alarm<D: Duty>(Arc<Shared<D>>);

impl<D: Duty> Drop for Alarm<D> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.schedule.panic();
        }
    }
}

/// Where the first worker says that its model cannot run here.
type Report = mpsc::Sender<Unavailable>;

impl<D: Duty, M: Model, F: Fn() -> Result<M, Unavailable> + Send + Sync + 'static> Spawner<D, F> {
    fn spawn(&self, report: Option<Report>) -> std::io::Result<()> {
        let (shared, make) = (self.shared.clone(), self.make.clone());
        let width = self.width.clamp(1, M::WIDTH);
        let work = move || match make() {
            Ok(model) => {
                let number = shared.schedule.add_worker();
                let _alarm = Alarm(shared.clone());
                Worker::new(shared, number, model, width).run();
            }
            Err(unavailable) => {
                // Without a report there are workers whose model runs: they have to do.
                if let Some(report) = report {
                    // Nobody listens any more once the walk has been given up.
                    let _ = report.send(unavailable);
                    shared.schedule.wake_consumer();
                }
            }
        };
        let builder = thread::Builder::new().name("walk".to_owned()).stack_size(STACK_BYTES);
        builder.spawn(work).map(drop)
    }
}

/// Readings of counters that only grow.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    usage: Usage,
    idle: Option<Duration>,
}

impl Reading {
    fn now() -> Self {
        Self { at: Instant::now(), usage: sys::usage(), idle: None }
    }
}

/// One controller a device.
struct Controllers {
    cpus: usize,
    workers_max: usize,
    /// With the units done there at the last sample.
    lanes: Vec<(Controller, u64)>,
}

impl Controllers {
    /// Takes a sample of every lane; `common` is what can be told of the process alone. How many workers there should be.
    fn sample<T>(&mut self, schedule: &Schedule<T>, common: Sample) -> usize {
        for (number, lane) in schedule.lanes.iter().enumerate() {
            if self.lanes.len() == number {
                self.lanes.push((Controller::new(self.cpus, self.workers_max), 0));
            }
            let (controller, last) = &mut self.lanes[number];
            let units = schedule.count_on(lane, |tally| &tally.entries)
                + schedule.count_on(lane, |tally| &tally.directories);
            let limit = controller.tick(Sample {
                units: units - *last,
                remote: lane.is_remote(),
                saturated: common.saturated && lane.outstanding() > lane.limit() && !lane.is_throttled(),
                ..common
            });
            *last = units;
            schedule.set_limit(lane, limit);
        }
        let total: usize = self.lanes.iter().map(|(controller, _)| controller.workers()).sum();
        total.min(self.workers_max)
    }
}

/// The workers, as the consumer's thread looks after them between its other work.
struct Pool<'a, D: Duty> {
    shared: &'a Shared<D>,
    workers_max: usize,
    adaptive: bool,
    controllers: Option<Controllers>,
    spawn: &'a dyn Fn() -> bool,
    refusal: mpsc::Receiver<Unavailable>,
    refused: Option<Unavailable>,
    watch: &'a mut dyn FnMut(Progress),
    /// How many workers are wanted has been found out.
    sized: bool,
    wanted: usize,
    spawned: usize,
    start: Instant,
    last: Reading,
    over_time: Vec<(Duration, usize)>,
}

impl<D: Duty> Pool<'_, D> {
    fn progress(&self) -> Progress {
        Progress {
            entries: self.shared.schedule.count(|tally| &tally.entries),
            directories: self.shared.schedule.count(|tally| &tally.directories),
            measured: self.shared.schedule.count(|tally| &tally.measured),
            workers: self.spawned.min(self.wanted),
            busy: self.shared.schedule.lanes.iter().map(Lane::active).sum(),
        }
    }

    /// How many workers to have, at first: while the first one is at work, for it takes a while to find out what share of the CPUs
    /// this process may have.
    fn size(&mut self) {
        self.sized = true;
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        self.wanted = workers(&self.shared.options, cpus).0.min(self.workers_max);
        self.shared.schedule.set_hiring(self.wanted > 1);
        let workers_max = self.workers_max;
        self.controllers = self.adaptive.then(|| Controllers { cpus, workers_max, lanes: Vec::new() });
    }

    /// Starts workers up to the wanted number, but none that would find nothing to do; where each call is a round trip, some
    /// are made ready while the first directories are waited for.
    fn hire(&mut self) {
        let mut useful = self.shared.schedule.outstanding();
        if self.shared.schedule.lanes.iter().any(Lane::is_remote) {
            useful = useful.max(self.start.elapsed().as_millis() as usize * READY_PER_MS);
        }
        let before = self.spawned;
        while self.spawned < self.wanted.min(useful) {
            if !(self.spawn)() {
                // The system has no room for more threads: these have to do.
                self.wanted = self.spawned;
                break;
            }
            self.spawned += 1;
        }
        if self.spawned != before {
            self.shared.schedule.set_hiring(self.spawned < self.wanted);
            self.note_workers();
        }
    }

    fn note_workers(&mut self) {
        let workers = self.spawned.min(self.wanted);
        if self.over_time.last().is_none_or(|last| last.1 != workers) {
            self.over_time.push((self.start.elapsed(), workers));
        }
    }

    fn sample(&mut self) {
        let Some(controllers) = &mut self.controllers else { return };
        let mut now = Reading::now();
        // Before there are many workers nobody asks, and the answer takes three system calls.
        if self.wanted > controllers.cpus {
            now.idle = sys::machine_idle();
        }
        let elapsed = now.at - self.last.at;
        let idle = now.idle.zip(self.last.idle).map(|(now, last)| now.saturating_sub(last));
        let common = Sample {
            elapsed,
            idle: idle.unwrap_or(elapsed * controllers.cpus as u32),
            cpu: now.usage.cpu.saturating_sub(self.last.usage.cpu),
            waits: now.usage.waits - self.last.usage.waits,
            saturated: self.spawned >= self.wanted,
            ..Sample::default()
        };
        self.last = now;
        let wanted = controllers.sample(&self.shared.schedule, common);
        if wanted != self.wanted {
            self.wanted = wanted;
            self.shared.schedule.allow(wanted);
            self.shared.schedule.set_hiring(self.spawned < wanted);
            self.note_workers();
        }
    }
}

impl<D: Duty> Tick for Pool<'_, D> {
    fn tick(&mut self) -> bool {
        self.refused = self.refusal.try_recv().ok();
        if self.refused.is_some() || self.shared.schedule.has_panicked() {
            return true;
        }
        if !self.sized {
            self.size();
        }
        if self.spawned < self.wanted {
            self.hire();
        }
        let pause = if self.last.at - self.start < LATER { SAMPLE } else { SAMPLE_LATER };
        if self.last.at.elapsed() >= pause {
            self.sample();
            let progress = self.progress();
            (self.watch)(progress);
        }
        false
    }
}
