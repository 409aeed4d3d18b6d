//! A worker: one thread with its own runtime, listeners, connections and open files.
//!
//! Owns: the state that all requests of a thread share. Does not own: the content of responses, the
//! state that all threads share ([`crate::server`]).

mod accept;
mod accounting;
mod burst;
mod connection;
mod flag_files;
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod proxy_header;
mod redirect;
mod refused;
mod roots;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fathom_files::{FileError, FileIo};
use tokio::sync::Notify;

use crate::answer::FileRepresentations;
use crate::cache::{CacheEntry, FileCache};
use crate::conn::body_queue::BodyQueue;
use crate::conn::chunk::SendfileQueue;
use crate::conn::deadlines::ConnectionTable;
use crate::conn::send_budget::ConnectionSendBudget;
use crate::conn::send_cost::SendCostEstimator;
use crate::date::DateCache;
use crate::log::{ErrorCategory, WorkerLogger};
use crate::metrics::WorkerCounters;
use crate::plan::{Plan, SitePlan};
use crate::server::SharedState;
use burst::BurstDetector;
use flag_files::FlagFiles;
use roots::RootViews;

pub(crate) use accept::{WorkerParams, run};
pub(crate) use accounting::RequestAccount;

/// The state that all requests of a thread share.
pub(crate) struct Worker {
    number: usize,
    pub(crate) shared: Arc<SharedState>,
    plan: RefCell<Rc<WorkerPlan>>,
    pub(crate) files: Rc<FileIo>,
    pub(crate) send_costs: Rc<SendCostEstimator>,
    pub(crate) body_queue: BodyQueue,
    pub(crate) cache: FileCache<FileRepresentations>,
    pub(crate) flag_files: FlagFiles,
    roots: RootViews,
    connection_table: ConnectionTable,
    connections: Cell<usize>,
    burst: BurstDetector,
    logger: RefCell<Option<WorkerLogger>>,
    /// Whether the server has given notice of its end, or the worker drains.
    is_leaving: Cell<bool>,
    /// Whether the worker accepts no more connections and drains.
    is_draining: Cell<bool>,
    /// The value of the header `Date`, for connections on which hyper does not write it.
    date: DateCache,
    /// Notified when a connection has closed.
    connection_closed: Notify,
    /// Notified when an essential task has panicked.
    failed: Notify,
}

/// The plan of all threads behind this worker's own reference count: a count that all workers
/// change for each request would be a contended cache line.
struct WorkerPlan(Arc<Plan>);

impl Deref for WorkerPlan {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0
    }
}

impl Peer {
    /// Returns the client's key, and whether it may be many behind a proxy.
    pub(crate) fn places_key(&self) -> (u64, bool) {
        (self.client, self.address.is_none())
    }
}

/// The peer of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// The address; `None` on a Unix socket.
    pub(crate) address: Option<SocketAddr>,
    /// The client's key in the fair queue of the pool: the same for all connections from one
    /// address.
    pub(crate) client: u64,
    pub(crate) tls: bool,
    /// The name in the client's certificate.
    pub(crate) certificate_name: Option<Rc<str>>,
    /// The queue of sendfile segments; `None` if the connection cannot use sendfile(2).
    pub(crate) sendfile_queue: Option<SendfileQueue>,
    /// The unsent bytes of the connection.
    pub(crate) send_budget: ConnectionSendBudget,
    /// Whether `sendfile_queue` may hold segments of files, whose unsent bytes change with the
    /// file.
    pub(crate) may_sendfile_files: bool,
    /// Whether requests name the client they are sent for.
    is_proxy: bool,
    /// The port of the encrypted site, if the connection only redirects there.
    redirect_port: Option<u16>,
    /// The value of `Alt-Svc` (RFC 7838) in responses, if HTTP/3 is served.
    #[cfg(feature = "http3")]
    alt_svc: Option<http::HeaderValue>,
}

impl Worker {
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

    fn plan(&self) -> Rc<WorkerPlan> {
        Rc::clone(&self.plan.borrow())
    }

    fn counters(&self) -> Option<&WorkerCounters> {
        self.shared.metrics.worker(self.number)
    }
}
