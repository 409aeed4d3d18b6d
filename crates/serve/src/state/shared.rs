//! The state that all workers share, and what the server prescribes to them.

use std::collections::hash_map::RandomState;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fathom_files::pool::ThreadPool;
use fathom_io::{Clock, Model};

use crate::address_connections::AddressConnections;
use crate::archive::Archive;
use crate::archive_slots::ArchiveSlots;
use crate::auth::PasswordChecks;
use crate::config;
use crate::config::words::SendfilePolicy;
use crate::conn::send_budget::SendBudget;
use crate::generated_places::GeneratedPlaces;
use crate::generator::Generator;
use crate::listings::ListingCache;
use crate::log::{AccessLogWriter, ErrorReporter};
use crate::metrics::{Gauges, Metrics};
use crate::panics::PanicReporter;
use crate::plan::Plan;
use crate::rate::RateLimiter;
use crate::tls::ReloadableTls;

/// The state that all workers share.
pub(crate) struct SharedState {
    pub(crate) model: Model,
    pub(crate) workers: usize,
    pub(crate) sendfile: SendfilePolicy,
    pub(crate) pool: ThreadPool,
    pub(crate) pool_threads: usize,
    pub(crate) cache: config::CacheConfig,
    pub(crate) metrics: Metrics,
    pub(crate) listings: ListingCache,
    /// Generates the answers of explored sites.
    pub(crate) generator: Option<Arc<dyn Generator>>,
    /// The places of answers that are being generated.
    pub(crate) generated: GeneratedPlaces,
    /// The places of archives that are being sent.
    pub(crate) archives: ArchiveSlots<Box<Archive>>,
    pub(crate) tls: Option<ReloadableTls>,
    /// Whether all encrypted addresses serve HTTP/3 as well.
    #[cfg(feature = "http3")]
    pub(crate) http3: bool,
    pub(crate) errors: ErrorReporter,
    pub(crate) panics: PanicReporter,
    pub(crate) buckets: RateLimiter,
    pub(crate) address_connections: Arc<AddressConnections>,
    pub(crate) password_checks: PasswordChecks,
    /// The unsent response bytes in memory, of all connections.
    pub(crate) send_budget: Arc<SendBudget>,
    /// Whether requests were under way when the drain deadline passed.
    pub(crate) has_cut_requests: AtomicBool,
    /// The hasher of client addresses, so that keys of clients do not reveal addresses.
    pub(crate) hasher: RandomState,
    /// The time of deadlines and ages.
    pub(crate) clock: Clock,
    pub(crate) log: Mutex<Option<AccessLogWriter>>,
    pub(crate) on_failure: Option<Box<dyn Fn() + Send + Sync>>,
    /// Whether a worker has ended before the server was stopped.
    pub(crate) has_failed: AtomicBool,
}

impl SharedState {
    /// Locks the access log.
    pub(crate) fn log(&self) -> MutexGuard<'_, Option<AccessLogWriter>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renders the metrics. `nowait_unsupported`: the devices (major, minor) that refuse
    /// `RWF_NOWAIT`.
    pub(crate) fn render_metrics(&self, nowait_unsupported: Vec<(u32, u32)>) -> String {
        let load = self.pool.load();
        self.metrics.render(&Gauges {
            pool_queue: load.queued as u64,
            pool_threads: load.threads as u64,
            listings: self.listings.load(),
            buffered_bytes: self.send_budget.used() as u64,
            panics: self.panics.count(),
            log_lines_dropped: self.log().as_ref().map_or(0, AccessLogWriter::dropped),
            nowait_unsupported,
        })
    }
}

/// The state that the server prescribes to its workers.
#[derive(Clone, Debug)]
pub(crate) struct ControlState {
    pub(crate) plan: Arc<Plan>,
    pub(crate) phase: ServerPhase,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ServerPhase {
    Serve,
    /// Go on, and let the health endpoint report the coming end.
    Notice,
    /// Accept no more connections, and end when no request is under way or at this time.
    Drain(Instant),
}

impl ControlState {
    /// Returns whether the drain deadline has passed at `now`.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        matches!(self.phase, ServerPhase::Drain(end) if end <= now)
    }
}
