//! Starts a walk with its model and its driver, ordered or unordered.

use std::sync::{Arc, mpsc};

use fathom_io::blocking::Blocking;
use fathom_io::{MetadataModel, Model, Unavailable, availability, sys};

use crate::arrival::lead;
use crate::driven::{Driven, Ordered, Unordered};
use crate::error::Error;
use crate::fds::Budget;
use crate::options::Options;
use crate::order::Order;
use crate::pool::{Pool, Setup};
use crate::schedule::Schedule;
use crate::summary::{Progress, Summary};
use crate::threads::Threads;
use crate::visitor::{Consumer, OrderedVisitor, RootSource, UnorderedVisitor};
use crate::worker::Shared;

/// Walks the roots of `consumer` in traversal order, on the calling thread and on workers.
///
/// `watch` is called every few milliseconds.
///
/// # Errors
/// If the model is not available here, or if `visitor` panics. If no thread can be started, the
/// calling thread executes all tasks.
///
/// ```
/// use std::ffi::CString;
/// use std::sync::Arc;
/// use fathom_walk::{
///     Consumer, Descend, Emit, Enter, Entry, Failure, Fields, FileType, Meta, NextRoot, Node,
///     Options, OrderedVisitor, RootSource, Visitor, run,
/// };
///
/// /// On the workers: emits the length of each entry that is not a directory, in bytes.
/// struct Lengths;
///
/// impl Visitor for Lengths {
///     type Item = i64;
///     type Local = ();
///
///     fn entries<'a>(
///         &self,
///         (): &mut (),
///         _dir: &Arc<Node>,
///         entries: impl Iterator<Item = Entry<'a>>,
///         emit: &mut Emit<'_, i64>,
///     ) {
///         for entry in entries {
///             match (entry.file_type(), entry.meta) {
///                 (FileType::Directory, _) => emit.descend(&entry),
///                 (_, Some(Ok(meta))) => emit.item(meta.size),
///                 (_, Some(Err(errno))) => emit.failed(&entry, errno),
///                 (_, None) => {}
///             }
///         }
///     }
/// }
///
/// impl OrderedVisitor for Lengths {}
///
/// /// On this thread: one line for each directory, and the sum.
/// #[derive(Default)]
/// struct Listing {
///     roots: Vec<CString>,
///     lines: Vec<String>,
///     bytes: i64,
/// }
///
/// impl RootSource for Listing {
///     fn next_root(&mut self, _wait: bool) -> NextRoot {
///         self.roots.pop().map_or(NextRoot::End, NextRoot::Path)
///     }
/// }
///
/// impl Consumer<i64> for Listing {
///     fn root_file(&mut self, _root: &Arc<Node>, meta: &Meta) {
///         self.bytes += meta.size;
///     }
///     fn enter(&mut self, enter: Enter<'_>) -> Descend {
///         self.lines.push(enter.node.to_path_buf().display().to_string());
///         Descend::Yes
///     }
///     fn item(&mut self, bytes: i64) {
///         self.bytes += bytes;
///     }
///     fn failed(&mut self, failure: Failure<'_>) {
///         self.lines.push(format!("cannot {}: {}", failure.operation, failure.errno));
///     }
///     fn leave(&mut self, _node: &Arc<Node>) {}
/// }
///
/// let roots = vec![c"missing".into(), c"src".into()];
/// let mut listing = Listing { roots, ..Listing::default() };
/// let summary = run(Options::default().fields(Fields::SIZE), Lengths, &mut listing, &mut |_| ())?;
/// assert!(summary.complete && listing.bytes > 0);
/// assert_eq!(listing.lines[..2], ["src", "src/gatherer"]);
/// assert!(listing.lines[2].starts_with("cannot access: No such file or directory"));
/// # Ok::<(), fathom_walk::Error>(())
/// ```
pub fn run<V: OrderedVisitor, C: Consumer<V::Item>>(
    options: Options,
    visitor: V,
    consumer: &mut C,
    watch: &mut dyn FnMut(Progress),
) -> Result<Summary, Error> {
    let lead = |shared: &Shared<Ordered<V>>, pool: &mut Pool<'_, Ordered<V>>| {
        Order::new(shared, pool, consumer).run()
    };
    choose(options, Ordered(visitor), watch, lead)
}

/// Like [`run`], with the models that `make` returns, one for each worker, on the worker's thread.
///
/// # Errors
/// As [`run`].
pub fn run_with<V: OrderedVisitor, C: Consumer<V::Item>, M: MetadataModel>(
    options: Options,
    visitor: V,
    consumer: &mut C,
    watch: &mut dyn FnMut(Progress),
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
) -> Result<Summary, Error> {
    let lead = |shared: &Shared<Ordered<V>>, pool: &mut Pool<'_, Ordered<V>>| {
        Order::new(shared, pool, consumer).run()
    };
    walk(options, Ordered(visitor), watch, make, lead)
}

/// Walks `roots` in no order: the workers call `visitor` when something happens.
///
/// `watch` is called every few milliseconds.
///
/// # Errors
/// As [`run`].
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use fathom_walk::{
///     Emit, Entry, Failure, FileType, NextRoot, Node, Options, RootSource, UnorderedVisitor,
///     Visitor, run_unordered,
/// };
///
/// /// Counts regular files and failures, on all workers at once.
/// #[derive(Clone, Default)]
/// struct Count(Arc<[AtomicU64; 2]>);
///
/// impl Visitor for Count {
///     type Item = Infallible;
///     type Local = ();
///
///     fn entries<'a>(
///         &self,
///         (): &mut (),
///         _dir: &Arc<Node>,
///         entries: impl Iterator<Item = Entry<'a>>,
///         emit: &mut Emit<'_, Infallible>,
///     ) {
///         for entry in entries {
///             match entry.file_type() {
///                 FileType::Directory => emit.descend(&entry),
///                 FileType::Regular => drop(self.0[0].fetch_add(1, Ordering::Relaxed)),
///                 _ => {}
///             }
///         }
///     }
/// }
///
/// impl UnorderedVisitor for Count {
///     fn failed(&self, (): &mut (), _failure: Failure<'_>) {
///         self.0[1].fetch_add(1, Ordering::Relaxed);
///     }
/// }
///
/// struct Once(bool);
///
/// impl RootSource for Once {
///     fn next_root(&mut self, _wait: bool) -> NextRoot {
///         if std::mem::take(&mut self.0) { NextRoot::Path(c"src".into()) } else { NextRoot::End }
///     }
/// }
///
/// let count = Count::default();
/// let summary = run_unordered(Options::default(), count.clone(), &mut Once(true), &mut |_| ())?;
/// assert!(summary.complete && count.0[0].load(Ordering::Relaxed) > 10);
/// assert_eq!(count.0[1].load(Ordering::Relaxed), summary.progress.failures);
/// # Ok::<(), fathom_walk::Error>(())
/// ```
pub fn run_unordered<V: UnorderedVisitor>(
    options: Options,
    visitor: V,
    roots: &mut dyn RootSource,
    watch: &mut dyn FnMut(Progress),
) -> Result<Summary, Error> {
    choose(options, Unordered(visitor), watch, |shared, pool| lead(shared, pool, roots))
}

/// Like [`run_unordered`], with the models that `make` returns, one for each worker, on the
/// worker's thread.
///
/// # Errors
/// As [`run`].
pub fn run_unordered_with<V: UnorderedVisitor, M: MetadataModel>(
    options: Options,
    visitor: V,
    roots: &mut dyn RootSource,
    watch: &mut dyn FnMut(Progress),
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
) -> Result<Summary, Error> {
    walk(options, Unordered(visitor), watch, make, |shared, pool| lead(shared, pool, roots))
}

/// Walks with the model that the options name.
fn choose<D: Driven>(
    options: Options,
    visitor: D,
    watch: &mut dyn FnMut(Progress),
    lead: impl FnOnce(&Shared<D>, &mut Pool<'_, D>) -> bool,
) -> Result<Summary, Error> {
    match options.model {
        Model::Sync | Model::Threads(_) | Model::Auto => walk(options, visitor, watch, || Ok(Blocking), lead),
        #[cfg(feature = "tokio")]
        Model::AsyncSeq => walk(options, visitor, watch, fathom_io::tokio_fs::AsyncSeq::new, lead),
        #[cfg(feature = "tokio")]
        Model::AsyncPar => walk(options, visitor, watch, fathom_io::tokio_fs::AsyncPar::new, lead),
        #[cfg(not(feature = "tokio"))]
        Model::AsyncSeq | Model::AsyncPar => walk(
            options,
            visitor,
            watch,
            || Err::<Blocking, _>(availability::not_built("use tokio", "tokio")),
            lead,
        ),
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
            || Err::<Blocking, _>(availability::not_built("use io_uring", "uring")),
            lead,
        ),
        other => {
            walk(options, visitor, watch, move || Err::<Blocking, _>(availability::no_metadata(other)), lead)
        }
    }
}

/// Starts workers and runs `lead` on the calling thread, which returns whether the walk came to its
/// end.
fn walk<D: Driven, M: MetadataModel>(
    options: Options,
    visitor: D,
    watch: &mut dyn FnMut(Progress),
    make: impl Fn() -> Result<M, Unavailable> + Send + Sync + 'static,
    lead: impl FnOnce(&Shared<D>, &mut Pool<'_, D>) -> bool,
) -> Result<Summary, Error> {
    let counts = options.worker_counts(sys::cpus_allowed());
    let budget =
        Budget::new(sys::fd_limit().min(options.fds_max.unwrap_or(usize::MAX)), counts.max * M::WIDTH);
    let (workers_max, adaptive) = (counts.max.min(budget.units), options.is_adaptive());
    let schedule =
        Schedule::new(workers_max, if adaptive { counts.start.min(workers_max) } else { usize::MAX });
    let shared = Arc::new(Shared::new(visitor, options, schedule, budget.kept));
    let (report, refusal) = mpsc::channel();
    let threads = Threads::new(shared.clone(), make, budget.units / workers_max, report);
    let (spawn, run_inline, direct) = (&|| threads.spawn_worker(), &|| threads.run_inline(), M::DIRECT);
    let shared_ref = &*shared;
    let setup =
        Setup { shared: shared_ref, workers_max, adaptive, spawn, run_inline, direct, refusal, watch };
    let mut pool = Pool::new(setup);
    if !direct {
        pool.spawn_first();
    }
    let complete = lead(&shared, &mut pool);
    shared.schedule.stop();
    shared.schedule.drain();
    pool.end(complete)
}
