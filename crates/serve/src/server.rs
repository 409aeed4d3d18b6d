//! The server: start, reload and stop.
//!
//! Owns: threads, sockets, the log, certificates. Does not own: signals and the environment, which
//! belong to the program.

use std::any::Any;
use std::collections::hash_map::RandomState;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fathom_files::pool::ThreadPool;
use fathom_io::sys::{cpus_allowed, fd_limit};
use fathom_io::threads;
use fathom_io::uring::FileRing;
use fathom_io::{Clock, Model};
use tokio::sync::watch;

use crate::archive_slots::ArchiveSlots;
use crate::auth::PasswordChecks;
use crate::config::words::SendfilePolicy;
use crate::config::{self, Config};
use crate::conn::send_budget::SendBudget;
use crate::error::{Error, Op, cause};
use crate::generated_places::GeneratedPlaces;
use crate::generator::Generator;
use crate::listen::{Activation, ListenAddress, ListenSpec, Listeners, SocketFile, listen, socket_mode};
use crate::listings::ListingCache;
use crate::log::{AccessLogWriter, log_style, open_access_log, open_error_log};
use crate::metrics::Metrics;
use crate::panics::PanicReporter;
use crate::plan::{Plan, SitePlan};
use crate::rate::RateLimiter;
use crate::state::{ControlState, ServerPhase, SharedState};
use crate::tls::ReloadableTls;
use crate::worker::{self, WorkerParams};

/// The stack size of a worker, in bytes.
const STACK_BYTES: usize = 2 << 20;
/// The address space that a worker needs besides its stack: its runtime, buffers and first
/// connections.
const WORKER_ROOM: usize = 8 << 20;

/// The default address.
const ADDRESS: &str = "127.0.0.1:8080";
/// The most operations in flight on a worker's ring.
pub(crate) const RING_DEPTH: usize = 256;
/// How long past the deadline `stop` waits for workers, and how often it checks.
const STOP_GRACE: Duration = Duration::from_secs(1);
const STOP_POLL: Duration = Duration::from_millis(5);
/// The longest wait for the last lines of the logs.
const LOG_TIMEOUT: Duration = Duration::from_secs(2);

/// The parameters of a start besides the configuration.
#[derive(Default)]
pub struct StartOptions<'a> {
    /// The inherited sockets, as the environment describes them.
    pub activation: Activation<'a>,
    /// The destination of an access log without a file.
    pub stream: Option<Box<dyn std::io::Write + Send>>,
    /// The destination of an error log without a file; each message is one write. Without it such
    /// messages are discarded.
    pub errors: Option<Box<dyn std::io::Write + Send>>,
    /// Generates the answers of sites with the setting `explore`.
    pub generator: Option<Arc<dyn Generator>>,
    /// Called on the thread of a worker that has ended although the server was not stopped. The
    /// server should then be stopped and started again.
    pub on_failure: Option<Box<dyn Fn() + Send + Sync>>,
    /// The clock of all deadlines, limits and ages; by default the machine's.
    pub clock: Clock,
}

/// A running server. Dropping it ends it at once.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::TcpStream;
/// use std::time::Duration;
/// use fathom_serve::Config;
/// use fathom_serve::server::{Server, StartOptions};
///
/// let config = Config::from_toml(r#"
///     listen = ["127.0.0.1:0"]
///     workers = 1
///     site = { root = "src" }
/// "#)?;
/// let warnings = Server::check(&config)?;
/// let server = Server::start(&config, StartOptions::default())?;
/// let url = &server.addresses()[0];
/// let address = url.trim_start_matches("http://").trim_end_matches('/');
/// let mut stream = TcpStream::connect(address)?;
/// stream.write_all(b"GET /lib.rs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
/// let mut response = String::new();
/// stream.read_to_string(&mut response)?;
/// assert!(response.starts_with("HTTP/1.1 200 OK\r\n"));
/// assert!(server.drain(Duration::from_secs(10)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    shared: Arc<SharedState>,
    control: watch::Sender<ControlState>,
    threads: Vec<JoinHandle<()>>,
    addresses: Vec<(ListenAddress, UrlScheme)>,
    _socket_files: Vec<SocketFile>,
    config: Config,
    warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UrlScheme {
    Http,
    Https,
}

impl Server {
    /// Starts a server with `config`. When this returns, connections are accepted.
    ///
    /// # Errors
    /// If a value of the configuration is invalid, a directory or certificate cannot be opened, an
    /// address cannot be listened on, or the I/O model is not available here.
    pub fn start(config: &Config, options: StartOptions<'_>) -> Result<Self, Error> {
        let PreparedServer { plan, tls, model, listen, mut warnings } = PreparedServer::new(config)?;
        let (workers, pool) = (workers(config), config.pool.clone().unwrap_or_default());
        let listening = listen.bind(workers, options.activation)?;
        let errors = open_error_log(config, options.errors, options.clock.clone())?;
        let (log, log_warning) = open_access_log(config, options.stream, &errors)?;
        warnings.extend(log_warning);
        let panics = PanicReporter::new(errors.clone());
        let pool_panics = panics.clone();
        let on_panic =
            move |payload: &(dyn Any + Send)| pool_panics.report("a call for a file or a listing", payload);
        let shared = Arc::new(SharedState {
            model,
            workers,
            sendfile: sendfile(config, model),
            pool_threads: pool.threads.max(1),
            pool: ThreadPool::new(pool.limits(), cpus_allowed(), on_panic),
            cache: cache(config, model),
            metrics: Metrics::new(workers),
            listings: ListingCache::default(),
            generator: options.generator,
            generated: GeneratedPlaces::default(),
            archives: ArchiveSlots::default(),
            #[cfg(feature = "http3")]
            http3: !listening.sockets.is_empty(),
            tls,
            errors,
            panics,
            buckets: RateLimiter::new(),
            address_connections: Arc::default(),
            password_checks: PasswordChecks::new(),
            send_budget: Arc::new(SendBudget::new(config.limits.buffer_bytes)),
            has_cut_requests: AtomicBool::new(false),
            hasher: RandomState::new(),
            log: Mutex::new(log),
            clock: options.clock,
            on_failure: options.on_failure,
            has_failed: AtomicBool::new(false),
        });
        let (control, _) = watch::channel(ControlState { plan, phase: ServerPhase::Serve });
        let mut server = Self {
            shared,
            control,
            threads: Vec::new(),
            addresses: Vec::new(),
            _socket_files: Vec::new(),
            config: config.clone(),
            warnings,
        };
        server.start_workers(listening)?;
        Ok(server)
    }

    /// Opens everything that [`Server::start`] opens, but binds no address and starts no thread. A
    /// log file that does not exist is created and removed again. Returns the warnings of a start.
    ///
    /// # Errors
    /// The errors of a start, except for addresses.
    pub fn check(config: &Config) -> Result<Vec<String>, Error> {
        let prepared = PreparedServer::new(config)?;
        ring(prepared.model)?;
        if let (Some(_), Some(file)) = (log_style(config), &config.access_log.file) {
            AccessLogWriter::check(file)?;
        }
        config.error_log.file.as_ref().map_or(Ok(()), |file| AccessLogWriter::check(file))?;
        Ok(prepared.warnings)
    }

    fn start_workers(&mut self, sockets: BoundSockets) -> Result<(), Error> {
        let BoundSockets { listening, redirecting, .. } = sockets;
        #[cfg(feature = "http3")]
        let mut sockets = sockets.sockets;
        let tls = self.shared.tls.is_some();
        let port = listening.addresses.iter().find_map(port_of);
        let scheme = |address: &ListenAddress| match (tls, address) {
            (true, ListenAddress::Tcp(_)) => UrlScheme::Https,
            _ => UrlScheme::Http,
        };
        self.addresses =
            listening.addresses.iter().map(|address| (address.clone(), scheme(address))).collect();
        self._socket_files = listening.files;
        let mut redirecting = redirecting.map(|listening| listening.workers).unwrap_or_default().into_iter();
        for (number, listeners) in listening.workers.into_iter().enumerate() {
            let redirecting = redirecting.next().unwrap_or_default();
            let listeners = listeners.into_iter().map(|listener| (listener, None));
            let listeners =
                listeners.chain(redirecting.into_iter().map(|listener| (listener, port))).collect();
            let params = WorkerParams {
                number,
                shared: Arc::clone(&self.shared),
                control: self.control.subscribe(),
                listeners,
                // The first worker gets all of them.
                #[cfg(feature = "http3")]
                sockets: std::mem::take(&mut sockets),
                logger: self.shared.log().as_ref().map(AccessLogWriter::logger),
                ring: ring(self.shared.model)?,
            };
            let name = format!("fathom-worker-{number}");
            let shared = Arc::clone(&self.shared);
            let run = move || run_worker(&shared, params);
            let thread = threads::spawn(&name, STACK_BYTES, WORKER_ROOM, run);
            self.threads.push(thread.map_err(|error| Error::new(Op::Start, name, error))?);
        }
        Ok(())
    }

    /// Returns the URLs of the server, with the base of the default site and the file name if the
    /// root is a file. A Unix socket is `unix:PATH`.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let plan = Arc::clone(&self.control.borrow().plan);
        let path = plan.default_site().map(SitePlan::address).unwrap_or_default();
        let url = |(address, scheme): &(ListenAddress, UrlScheme)| match (address, scheme) {
            (ListenAddress::Tcp(address), UrlScheme::Https) => format!("https://{address}/{path}"),
            (ListenAddress::Tcp(address), UrlScheme::Http) => format!("http://{address}/{path}"),
            (address, _) => address.to_string(),
        };
        self.addresses.iter().map(url).collect()
    }

    /// Returns the warnings of the start.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Applies `config` to the requests from now on, reloads certificates and reopens the logs.
    /// Returns warnings that name the settings that need a restart, and the reason why a restart
    /// would fail.
    ///
    /// # Errors
    /// The errors of a start; then nothing has changed.
    pub fn reload(&mut self, config: &Config) -> Result<Vec<String>, Error> {
        let plan = Plan::new(config)?;
        let mut warnings = self.restart_only_changes(config);
        if !warnings.is_empty()
            && let Err(error) = Self::check(config)
        {
            warnings.push(format!("a restart would fail: {error}"));
        }
        if let Some(tls) = &self.shared.tls {
            warnings.extend(tls.reload()?);
        }
        warnings.extend(self.reopen_logs());
        self.shared.send_budget.set_limit(config.limits.buffer_bytes);
        self.control.send_modify(|control| control.plan = plan);
        Ok(warnings)
    }

    /// Opens the log files anew, after they were renamed. Returns a warning for each file that
    /// cannot be opened; its old file stays in use.
    pub fn reopen_logs(&self) -> Vec<String> {
        let access = self.shared.log().as_ref().and_then(|log| log.reopen().err());
        access.into_iter().chain(self.shared.errors.reopen().err()).map(|error| error.to_string()).collect()
    }

    /// Returns a warning for each setting of `config` that differs from the start and needs a
    /// restart.
    fn restart_only_changes(&self, config: &Config) -> Vec<String> {
        let old = &self.config;
        let changed = [
            ("listen", old.listen != config.listen),
            ("socket-mode", old.socket_mode != config.socket_mode),
            ("workers", old.workers != config.workers),
            ("io", old.io != config.io),
            ("sendfile", old.sendfile != config.sendfile),
            ("pool", old.pool != config.pool),
            ("cache", old.cache != config.cache),
            ("tls", old.tls != config.tls),
            ("access-log", old.access_log != config.access_log),
            ("error-log", old.error_log != config.error_log),
        ];
        let said = |(key, _): &(&str, bool)| format!("'{key}' has changed, which needs a restart");
        changed.iter().filter(|(_, changed)| *changed).map(said).collect()
    }

    /// Gives the configured notice at the health endpoint, then accepts no more connections, lets
    /// requests under way end for at most `timeout`, and ends. Returns whether all workers ended,
    /// the logs are complete and no request was cut off while its client was still reading.
    #[must_use]
    pub fn drain(mut self, timeout: Duration) -> bool {
        self.give_notice();
        self.stop(self.shared.clock.now() + timeout) && !self.shared.has_cut_requests.load(Ordering::Relaxed)
    }

    fn give_notice(&self) {
        let notice = Duration::from_millis(self.control.borrow().plan.limits.drain_notice_ms);
        let end = self.shared.clock.now() + notice;
        self.control.send_modify(|control| control.phase = ServerPhase::Notice);
        while self.shared.clock.now() < end && !self.has_failed() {
            thread::sleep(STOP_POLL);
        }
    }

    /// Returns the configured timeout for [`Server::drain`].
    #[must_use]
    pub fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.control.borrow().plan.limits.drain_timeout_ms)
    }

    /// Returns whether a worker has ended before the server was stopped.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        // Pairs with the Release in `run_worker`.
        self.shared.has_failed.load(Ordering::Acquire)
    }

    /// Ends by `end`, or [`STOP_GRACE`] later: a worker may be in a call that never returns.
    /// Returns whether all workers have ended and the logs are complete.
    fn stop(&mut self, end: Instant) -> bool {
        self.control.send_modify(|control| control.phase = ServerPhase::Drain(end));
        // Poll rather than join: a worker in a call that never returns must not block the end.
        let is_running = || self.threads.iter().any(|thread| !thread.is_finished());
        while self.shared.clock.now() < end && is_running() {
            thread::sleep(STOP_POLL);
        }
        // The machine's time: a held clock must not wait for a worker that hangs.
        let grace = Instant::now() + STOP_GRACE;
        while Instant::now() < grace && is_running() {
            thread::sleep(STOP_POLL);
        }
        let ended = self.threads.iter().all(JoinHandle::is_finished);
        let log = self.shared.log().take();
        let closed = log.is_none_or(|log| log.close(LOG_TIMEOUT));
        // Close the error log last: it takes the failures of the access log.
        self.shared.errors.close(LOG_TIMEOUT) && closed && ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        if !self.control.borrow().is_over(now) {
            self.stop(now);
        }
    }
}

/// Runs a worker on this thread until it has drained, and reports another end.
fn run_worker(shared: &SharedState, params: WorkerParams) {
    let ended = catch_unwind(AssertUnwindSafe(|| worker::run(params)));
    let Err(error) = ended.unwrap_or_else(|payload| {
        shared.panics.report("a worker", &*payload);
        Err(std::io::Error::other("it panicked"))
    }) else {
        return;
    };
    shared.errors.note(&format!("a worker exited, shutting down: {}", cause(&error)));
    // Release: pairs with the Acquire in `has_failed`, for callers that learn of the failure by
    // a signal.
    shared.has_failed.store(true, Ordering::Release);
    if let Some(on_failure) = &shared.on_failure {
        on_failure();
    }
}

/// The sockets of a server: those that serve, and those that only redirect to them.
struct BoundSockets {
    listening: Listeners,
    redirecting: Option<Listeners>,
    /// The UDP sockets of HTTP/3, on the addresses of `listening`.
    #[cfg(feature = "http3")]
    sockets: Vec<std::net::UdpSocket>,
}

/// The parts of a server that are opened before an address is bound.
struct PreparedServer {
    plan: Arc<Plan>,
    tls: Option<ReloadableTls>,
    model: Model,
    listen: ListenAddresses,
    warnings: Vec<String>,
}

impl PreparedServer {
    fn new(config: &Config) -> Result<Self, Error> {
        let plan = Plan::new(config)?;
        let (tls, warnings) = certificates(config)?;
        Ok(Self {
            plan,
            tls,
            model: config.io.unwrap_or_default(),
            listen: ListenAddresses::new(config)?,
            warnings,
        })
    }
}

/// The addresses of a configuration, parsed and not yet bound.
struct ListenAddresses {
    words: Vec<ListenSpec>,
    redirecting: Option<ListenSpec>,
    mode: u32,
    #[cfg(feature = "http3")]
    http3: bool,
}

impl ListenAddresses {
    fn new(config: &Config) -> Result<Self, Error> {
        let default = [ADDRESS.to_owned()];
        let words = if config.listen.is_empty() { &default[..] } else { &config.listen };
        let parse = |word: &String| word.parse::<ListenSpec>();
        let from = config.tls.as_ref().and_then(|tls| tls.redirect_from.as_ref());
        Ok(Self {
            words: words.iter().map(parse).collect::<Result<_, _>>()?,
            redirecting: from.map(parse).transpose()?,
            mode: socket_mode(config.socket_mode.as_deref())?,
            #[cfg(feature = "http3")]
            http3: config.tls.as_ref().is_some_and(|tls| tls.http3),
        })
    }

    fn bind(self, workers: usize, activation: Activation<'_>) -> Result<BoundSockets, Error> {
        let listening = listen(&self.words, workers, self.mode, activation)?;
        #[cfg(feature = "http3")]
        let sockets = if self.http3 { crate::listen::udp(&listening.addresses)? } else { Vec::new() };
        let redirect = |word| listen(&[word], workers, self.mode, Activation::default());
        Ok(BoundSockets {
            listening,
            redirecting: self.redirecting.map(redirect).transpose()?,
            #[cfg(feature = "http3")]
            sockets,
        })
    }
}

fn port_of(address: &ListenAddress) -> Option<u16> {
    match address {
        ListenAddress::Tcp(address) => Some(address.port()),
        _ => None,
    }
}

fn certificates(config: &Config) -> Result<(Option<ReloadableTls>, Vec<String>), Error> {
    let Some(tls) = &config.tls else { return Ok((None, Vec::new())) };
    let (holder, warnings) = ReloadableTls::load(tls)?;
    Ok((Some(holder), warnings))
}

/// Returns the number of workers: by default the number of CPUs that this process may use.
pub(crate) fn workers(config: &Config) -> usize {
    config.workers.map_or_else(cpus_allowed, NonZeroUsize::get)
}

/// Returns the cache limits: only the model `auto` caches files. Most descriptors are left to
/// connections.
fn cache(config: &Config, model: Model) -> config::CacheConfig {
    let files = match model {
        Model::Auto => config.cache.files.min(fd_limit() / 4),
        _ => 0,
    };
    config::CacheConfig { files, ..config.cache.clone() }
}

fn sendfile(config: &Config, model: Model) -> SendfilePolicy {
    match model {
        Model::Sendfile => SendfilePolicy::Always,
        _ => config.sendfile.unwrap_or(SendfilePolicy::Remote),
    }
}

fn ring(model: Model) -> Result<Option<FileRing>, Error> {
    let ring = matches!(model, Model::Uring(_)).then(|| FileRing::new(RING_DEPTH)).transpose();
    ring.map_err(|unavailable| Error::new(Op::Start, "io_uring", unavailable))
}
