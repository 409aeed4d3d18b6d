//! The state of one worker.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fathom_files::{FileError, FileIo};
use fathom_io::uring::FileRing;
use futures_util::FutureExt;
use tokio::sync::Notify;

use super::burst::BurstDetector;
use super::flag_files::FlagFiles;
use super::roots::RootViews;
use super::shared::SharedState;
use crate::cache::{CacheEntry, FileCache};
use crate::config::words::SendfilePolicy;
use crate::conn::body_queue::BodyQueue;
use crate::conn::deadlines::ConnectionTable;
use crate::conn::send_cost::SendCostEstimator;
use crate::date::DateCache;
use crate::log::{ErrorCategory, WorkerLogger};
use crate::metrics::WorkerCounters;
use crate::plan::{Plan, SitePlan};
use crate::representation::FileRepresentations;

/// The state that all requests of a thread share.
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) shared: Arc<SharedState>,
    plan: RefCell<Rc<WorkerPlan>>,
    pub(crate) files: Rc<FileIo>,
    pub(crate) send_costs: Rc<SendCostEstimator>,
    pub(crate) body_queue: BodyQueue,
    pub(crate) cache: FileCache<FileRepresentations>,
    pub(crate) flag_files: FlagFiles,
    pub(super) roots: RootViews,
    /// The time at which roots were last checked without a request.
    pub(super) roots_checked: Cell<Instant>,
    pub(crate) connection_table: ConnectionTable,
    pub(crate) connections: Cell<usize>,
    pub(crate) burst: BurstDetector,
    pub(crate) logger: RefCell<Option<WorkerLogger>>,
    /// Whether the server has given notice of its end, or the worker drains.
    pub(crate) is_leaving: Cell<bool>,
    /// Whether the worker accepts no more connections and drains.
    pub(crate) is_draining: Cell<bool>,
    /// The value of the header `Date`, for connections on which hyper does not write it.
    pub(crate) date: DateCache,
    /// Notified when a connection has closed.
    pub(crate) connection_closed: Notify,
    /// Notified when an essential task has panicked.
    pub(crate) failed: Notify,
}

/// The plan of all threads behind this worker's own reference count: a count that all workers
/// change for each request would be a contended cache line.
pub(crate) struct WorkerPlan(Arc<Plan>);

impl Deref for WorkerPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl Worker {
    /// Creates the state of the worker `number`, which serves `plan`.
    pub(crate) fn new(
        number: usize,
        shared: Arc<SharedState>,
        plan: Arc<Plan>,
        ring: Option<Rc<FileRing>>,
        logger: Option<WorkerLogger>,
    ) -> Self {
        Self {
            number,
            files: FileIo::new(shared.model, shared.pool.clone(), ring),
            send_costs: Rc::new(SendCostEstimator::new(shared.sendfile == SendfilePolicy::Always)),
            body_queue: BodyQueue::default(),
            cache: FileCache::new(&shared.cache, shared.workers, shared.clock.clone()),
            roots_checked: Cell::new(shared.clock.now()),
            shared,
            plan: RefCell::new(Rc::new(WorkerPlan(plan))),
            flag_files: FlagFiles::default(),
            roots: RootViews::default(),
            connection_table: ConnectionTable::default(),
            connections: Cell::new(0),
            burst: BurstDetector::default(),
            logger: RefCell::new(logger),
            is_leaving: Cell::new(false),
            is_draining: Cell::new(false),
            date: DateCache::default(),
            connection_closed: Notify::new(),
            failed: Notify::new(),
        }
    }

    /// Serves `plan` from now on. Files and roots of another plan are forgotten.
    pub(crate) fn follow_plan(&self, plan: Arc<Plan>) {
        if !Arc::ptr_eq(&self.plan().0, &plan) {
            self.plan.replace(Rc::new(WorkerPlan(plan)));
            self.cache.clear();
            self.flag_files.clear();
            self.forget_roots();
        }
    }

    /// Returns the time now, for deadlines and ages.
    pub(crate) fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// Looks up `path` below the root of `site`, in the cache first.
    pub(crate) async fn look_up(
        &self,
        site: &SitePlan,
        path: &[u8],
        client: u64,
    ) -> Result<Rc<CacheEntry<FileRepresentations>>, FileError> {
        let now = self.now();
        let root = self.root(&site.root, client, now).await?;
        self.cache.look_up(&self.files, &root, path, client, now).await
    }

    /// Removes `path` from the cache and looks it up.
    pub(crate) async fn look_up_uncached(
        &self,
        site: &SitePlan,
        path: &[u8],
        client: u64,
    ) -> Result<Rc<CacheEntry<FileRepresentations>>, FileError> {
        let now = self.now();
        let root = self.root(&site.root, client, now).await?;
        self.cache.remove(root.number, path);
        self.cache.look_up(&self.files, &root, path, client, now).await
    }

    /// Returns whether the server has given notice of its end or drains.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.get()
    }

    /// Returns the metrics of all workers in Prometheus text format.
    pub(crate) fn metrics(&self) -> Bytes {
        self.shared.render_metrics(self.files.devices_without_nowait()).into()
    }

    /// Reports `trouble` in the error log.
    pub(crate) fn report(&self, trouble: ErrorCategory, message: impl FnOnce() -> String) {
        self.shared.errors.report(trouble, message);
    }

    /// Returns the plan of new requests.
    pub(crate) fn plan(&self) -> Rc<WorkerPlan> {
        Rc::clone(&self.plan.borrow())
    }

    /// Returns the counters of this worker in the metrics.
    pub(crate) fn counters(&self) -> Option<&WorkerCounters> {
        self.shared.metrics.worker(self.number)
    }

    /// Runs `future`, which a panic ends: it is dropped, the panic is reported as the end of
    /// `ended`, and `after` is called.
    pub(crate) fn contain<F: Future<Output = ()>, A: FnOnce()>(
        self: &Rc<Self>,
        ended: &'static str,
        future: F,
        after: A,
    ) -> impl Future<Output = ()> + use<F, A> {
        let worker = Rc::clone(self);
        // Combinators, not an async block: a block would hold the future twice, before and during
        // its poll.
        AssertUnwindSafe(future).catch_unwind().map(move |result| {
            if let Err(payload) = result {
                worker.shared.panics.report(ended, &*payload);
                after();
            }
        })
    }
}
