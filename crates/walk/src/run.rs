//! Starts a walk: the model, and who leads.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use fathom_io::blocking::Blocking;
#[cfg(not(all(target_os = "linux", feature = "tokio", feature = "uring")))]
use fathom_io::offer;
use fathom_io::{MetadataModel, Model, Unavailable, sys};

use crate::adapter::{OrderedAdapter, UnorderedAdapter, VisitorAdapter};
use crate::arrival::lead;
use crate::control::WORKERS_MAX;
use crate::error::Error;
use crate::fds::Budget;
use crate::gather::{Gather, Roots};
use crate::options::Options;
use crate::order::{Order, Tick};
use crate::pool::{Pool, Setup};
use crate::schedule::Schedule;
use crate::threads::Threads;
use crate::visit::{Consume, Visit};
use crate::worker::Shared;

/// How a walk is doing; the numbers only grow, but for `workers` and `busy`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Entries seen, roots and directories included.
    pub entries: u64,
    /// Directories opened, or tried.
    pub directories: u64,
    /// What the visitor measured with [`Emit::measure`](crate::Emit::measure), whatever that is.
    pub measured: u64,
    /// Failures reported by a walk in no order; of a walk in order, its consumer knows.
    pub failures: u64,
    /// Workers there are.
    pub workers: usize,
    /// Tasks being executed: for a blocking model, the workers inside a system call or close to one.
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
    /// False if it was stopped before its end; of a [gatherer](crate::gatherer) also if anything
    /// failed.
    pub complete: bool,
    /// The last progress.
    pub progress: Progress,
    /// From the first worker's start to the end.
    pub elapsed: Duration,
    /// What was asked of the model.
    pub calls: Calls,
    /// When, since the start, how many workers there were: one element a change.
    pub workers_over_time: Vec<(Duration, usize)>,
    /// Devices (`st_dev`) of directories that were opened, as far as they were kept apart.
    pub devices: Vec<u64>,
}

/// Walks the roots `consume` names, on the calling thread and workers of its own.
///
/// `watch` is called every few milliseconds.
///
/// # Errors
/// If the model cannot run here, or `visit` panics. Everything else that goes wrong is an event;
/// where no thread can be started, the calling thread does the work.
pub fn run<V: Visit, C: Consume<V::Item>>(
    options: Options,
    visit: V,
    consume: &mut C,
    watch: &mut dyn FnMut(Progress),
) -> Result<Summary, Error> {
    choose(options, OrderedAdapter(visit), watch, |shared, pool| Order::new(shared, pool, consume).run())
}

/// The same over models `make` makes, one for every worker, on the worker's own thread.
///
/// # Errors
/// As [`run`].
pub fn run_with<V: Visit, C: Consume<V::Item>, M: MetadataModel>(
    options: Options,
    visit: V,
    consume: &mut C,
    watch: &mut dyn FnMut(Progress),
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
) -> Result<Summary, Error> {
    walk(options, OrderedAdapter(visit), watch, make, |shared, pool| Order::new(shared, pool, consume).run())
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
    choose(options, UnorderedAdapter(gather), watch, |shared, pool| lead(shared, pool, roots))
}

/// The same over models `make` makes, one for every worker, on the worker's own thread.
///
/// # Errors
/// As [`run`].
pub fn gather_with<G: Gather, M: MetadataModel>(
    options: Options,
    gather: G,
    roots: &mut dyn Roots,
    watch: &mut dyn FnMut(Progress),
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
) -> Result<Summary, Error> {
    walk(options, UnorderedAdapter(gather), watch, make, |shared, pool| lead(shared, pool, roots))
}

/// Walks over the model the options name.
fn choose<D: VisitorAdapter>(
    options: Options,
    visitor: D,
    watch: &mut dyn FnMut(Progress),
    lead: impl FnOnce(&Shared<D>, &mut dyn Tick) -> bool,
) -> Result<Summary, Error> {
    match options.model {
        Model::Sync | Model::Threads(_) | Model::Auto => walk(options, visitor, watch, || Ok(Blocking), lead),
        #[cfg(feature = "tokio")]
        Model::AsyncSeq => walk(options, visitor, watch, fathom_io::tokio_fs::AsyncSeq::new, lead),
        #[cfg(feature = "tokio")]
        Model::AsyncPar => walk(options, visitor, watch, fathom_io::tokio_fs::AsyncPar::new, lead),
        #[cfg(not(feature = "tokio"))]
        Model::AsyncSeq | Model::AsyncPar => {
            walk(options, visitor, watch, || Err::<Blocking, _>(offer::not_built("use tokio", "tokio")), lead)
        }
        #[cfg(all(target_os = "linux", feature = "uring"))]
        Model::Uring(depth) => {
            let make = move || fathom_io::uring::Uring::new(depth.unwrap_or(fathom_io::uring::DEPTH));
            walk(options, visitor, watch, make, lead)
        }
        #[cfg(not(all(target_os = "linux", feature = "uring")))]
        Model::Uring(_) => walk(
            options,
            visitor,
            watch,
            || Err::<Blocking, _>(offer::not_built("use io_uring", "uring")),
            lead,
        ),
    }
}

/// Starts workers and leaves the calling thread to `lead`, which returns whether the walk came to its end.
fn walk<D: VisitorAdapter, M: MetadataModel>(
    options: Options,
    visitor: D,
    watch: &mut dyn FnMut(Progress),
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
    lead: impl FnOnce(&Shared<D>, &mut dyn Tick) -> bool,
) -> Result<Summary, Error> {
    let (workers, workers_max) = workers(&options, sys::cpus_allowed());
    let budget =
        Budget::new(sys::fd_limit().min(options.fds_max.unwrap_or(usize::MAX)), workers_max * M::WIDTH);
    let workers_max = workers_max.min(budget.units);
    let adaptive = options.model == Model::Auto && options.threads.is_none();
    let schedule = Schedule::new(workers_max, if adaptive { workers.min(workers_max) } else { usize::MAX });
    let shared = Arc::new(Shared::new(visitor, options, schedule, budget.kept));
    let (report, refusal) = mpsc::channel();
    let threads = Threads::new(shared.clone(), make, budget.units / workers_max, report);
    let (staff, direct) = (&threads, M::DIRECT);
    let mut pool = Pool::new(Setup { shared: &shared, workers_max, adaptive, staff, direct, refusal, watch });
    if !direct {
        pool.spawn_first();
    }
    let complete = lead(&shared, &mut pool);
    shared.schedule.stop();
    shared.schedule.drain();
    pool.end(complete)
}

/// How many workers to start with and to have at most.
pub(crate) fn workers(options: &Options, cpus: usize) -> (usize, usize) {
    let count = match (options.threads, options.model) {
        (Some(count), _) | (None, Model::Threads(Some(count))) => count,
        (None, Model::Sync | Model::AsyncSeq | Model::AsyncPar) => 1,
        (None, Model::Threads(None) | Model::Uring(_)) => cpus,
        (None, Model::Auto) => cpus,
    };
    let adaptive = options.threads.is_none() && options.model == Model::Auto;
    let max = if adaptive { WORKERS_MAX.max(cpus) } else { count };
    let limit = options.workers_max.unwrap_or(usize::MAX);
    (count.min(limit).max(1), max.min(limit).max(1))
}
