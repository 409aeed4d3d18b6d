//! The server: what its workers share, how it starts, changes and ends.
//!
//! Owns: threads, sockets, the log, certificates. Does not own: signals and the environment, which whoever runs it sees to.

use std::collections::hash_map::RandomState;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fathom_io::sys::{cpus_allowed, fd_limit};
use fathom_io::threads;
use fathom_io::uring::FileRing;
use tokio::sync::watch;

use crate::answer::Listings;
use crate::budget::Budget;
use crate::config::{self, Config};
use crate::conn::outbox::SendBudget;
use crate::error::{Error, Op, cause};
use crate::files::Model;
use crate::files::pool::Pool;
use crate::listen::{Activation, Address, Listening, SocketFile, Word, listen, socket_mode};
use crate::log::{Errors, Log, Style, Target, Trouble};
use crate::metrics::{Metrics, Outside};
use crate::plan::{Plan, Site};
use crate::rate::Buckets;
use crate::tls::Holder;
use crate::worker::{self, Start};

/// A worker's stack.
const STACK_BYTES: usize = 2 << 20;
/// Address space that a worker needs besides: its runtime, buffers and first connections.
const WORKER_ROOM: usize = 8 << 20;

/// Where nobody says otherwise.
const ADDRESS: &str = "127.0.0.1:8080";
/// Operations in flight on a worker's ring.
pub(crate) const RING_DEPTH: usize = 256;
/// How long a worker that is to end is waited for, and how often it is looked at.
const LAST_CALL: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);
/// How long the last lines of the log are waited for.
const LOG_TIMEOUT: Duration = Duration::from_secs(2);

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) model: Model,
    pub(crate) workers: usize,
    pub(crate) sendfile: Sendfile,
    pub(crate) pool: Pool,
    pub(crate) pool_threads: usize,
    pub(crate) cache: config::Cache,
    pub(crate) metrics: Metrics,
    pub(crate) listings: Listings,
    /// Counts the archives that are being sent.
    pub(crate) archives: Budget,
    pub(crate) tls: Option<Holder>,
    /// Whether all encrypted addresses are those of HTTP/3, too.
    #[cfg(feature = "http3")]
    pub(crate) http3: bool,
    pub(crate) errors: Errors,
    pub(crate) buckets: Buckets,
    /// Bytes of responses in memory, of all connections.
    pub(crate) send_budget: Arc<SendBudget>,
    /// Whether a request was under way when the time to end was over.
    pub(crate) has_cut: AtomicBool,
    /// Tells clients from each other without keeping their addresses.
    pub(crate) hasher: RandomState,
    log: Mutex<Option<Log>>,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Option<Log>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The metrics; `mute` devices could not be asked for what they have in memory.
    pub(crate) fn render_metrics(&self, nowait_unsupported: Vec<(u32, u32)>) -> String {
        let load = self.pool.load();
        self.metrics.render(&Outside {
            pool_queue: load.queued as u64,
            pool_threads: load.threads as u64,
            listings: self.listings.load(),
            buffered_bytes: self.send_budget.used() as u64,
            log_lines_dropped: self.log().as_ref().map_or(0, Log::dropped),
            nowait_unsupported,
        })
    }
}

/// To whom large files go by sendfile(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sendfile {
    Remote,
    Always,
    Never,
}

/// What workers are told.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) plan: Arc<Plan>,
    pub(crate) phase: Phase,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    Serve,
    /// To go on, and to say at the health endpoint that this ends.
    Notice,
    /// To accept no more, and to end when nothing is under way, or then.
    Drain(Instant),
}

impl Orders {
    /// Whether the time to end has come.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Drain(end) if end <= Instant::now())
    }
}

/// What a server is started with, beside its configuration.
#[derive(Default)]
pub struct Outfit<'a> {
    /// What the environment says of inherited sockets.
    pub activation: Activation<'a>,
    /// Where the access log goes that is to go to no file.
    pub stream: Option<Box<dyn std::io::Write + Send>>,
    /// Where the error log goes that is to go to no file; each message is one write. Without it
    /// those messages go nowhere.
    pub errors: Option<Box<dyn std::io::Write + Send>>,
}

/// A server that runs. Dropping it ends it at once.
pub struct Server {
    shared: Arc<Shared>,
    orders: watch::Sender<Orders>,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
    addresses: Vec<(Address, Scheme)>,
    _files: Vec<SocketFile>,
    config: Config,
    warnings: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Server {
    /// Starts what `config` says. When this returns, connections are accepted.
    ///
    /// # Errors
    /// If something makes no sense, a directory or a certificate cannot be opened, an address not be listened on, or a model is not
    /// available here.
    pub fn start(config: &Config, outfit: Outfit<'_>) -> Result<Self, Error> {
        let Prepared { plan, tls, model, listen, mut warnings } = Prepared::new(config)?;
        let (workers, pool) = (workers(config), config.pool.clone().unwrap_or_default());
        let listening = listen.bind(workers, outfit.activation)?;
        let errors = errors(config, outfit.errors)?;
        let (log, log_warning) = log(config, outfit.stream, &errors)?;
        warnings.extend(log_warning);
        let shared = Arc::new(Shared {
            model,
            workers,
            sendfile: sendfile(config, model),
            pool_threads: pool.threads.max(1),
            pool: Pool::new(pool, cpus_allowed()),
            cache: cache(config, model),
            metrics: Metrics::new(workers),
            listings: Listings::default(),
            archives: Budget::default(),
            #[cfg(feature = "http3")]
            http3: !listening.sockets.is_empty(),
            tls,
            errors,
            buckets: Buckets::new(),
            send_budget: Arc::new(SendBudget::new(config.limits.buffer_bytes)),
            has_cut: AtomicBool::new(false),
            hasher: RandomState::new(),
            log: Mutex::new(log),
        });
        let (orders, _) = watch::channel(Orders { plan, phase: Phase::Serve });
        let mut server = Self {
            shared,
            orders,
            threads: Vec::new(),
            addresses: Vec::new(),
            _files: Vec::new(),
            config: config.clone(),
            warnings,
        };
        server.start_workers(listening)?;
        Ok(server)
    }

    /// Opens everything that [`Server::start`] opens, but takes no address and starts no thread. A
    /// log file that is not there is made and removed again. Returns the warnings of a start.
    ///
    /// # Errors
    /// As for a start, but for addresses.
    pub fn check(config: &Config) -> Result<Vec<String>, Error> {
        let prepared = Prepared::new(config)?;
        ring(prepared.model)?;
        if let (Some(_), Some(file)) = (log_style(config), &config.access_log.file) {
            Log::check(file)?;
        }
        config.error_log.file.as_ref().map_or(Ok(()), |file| Log::check(file))?;
        Ok(prepared.warnings)
    }

    fn start_workers(&mut self, sockets: Sockets) -> Result<(), Error> {
        let Sockets { listening, redirecting, .. } = sockets;
        #[cfg(feature = "http3")]
        let mut sockets = sockets.sockets;
        let tls = self.shared.tls.is_some();
        let port = listening.addresses.iter().find_map(port_of);
        let scheme = |address: &Address| match (tls, address) {
            (true, Address::Tcp(_)) => Scheme::Https,
            _ => Scheme::Http,
        };
        self.addresses =
            listening.addresses.iter().map(|address| (address.clone(), scheme(address))).collect();
        self._files = listening.files;
        let mut redirecting = redirecting.map(|listening| listening.workers).unwrap_or_default().into_iter();
        for (number, listeners) in listening.workers.into_iter().enumerate() {
            let redirecting = redirecting.next().unwrap_or_default();
            let listeners = listeners.into_iter().map(|listener| (listener, None));
            let listeners =
                listeners.chain(redirecting.into_iter().map(|listener| (listener, port))).collect();
            let start = Start {
                number,
                shared: Arc::clone(&self.shared),
                orders: self.orders.subscribe(),
                listeners,
                // One worker has all of them.
                #[cfg(feature = "http3")]
                sockets: std::mem::take(&mut sockets),
                logger: self.shared.log().as_ref().map(Log::logger),
                ring: ring(self.shared.model)?,
            };
            let name = format!("fathom-worker-{number}");
            let thread = threads::spawn(&name, STACK_BYTES, WORKER_ROOM, move || worker::run(start));
            self.threads.push(thread.map_err(|error| Error::new(Op::Start, name, error))?);
        }
        Ok(())
    }

    /// Where clients find it, as URLs, with the base of the default site and the name of the file if
    /// it is one; a Unix socket as `unix:PATH`.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let plan = Arc::clone(&self.orders.borrow().plan);
        let path = plan.default_site().map(Site::address).unwrap_or_default();
        let url = |(address, scheme): &(Address, Scheme)| match (address, scheme) {
            (Address::Tcp(address), Scheme::Https) => format!("https://{address}/{path}"),
            (Address::Tcp(address), Scheme::Http) => format!("http://{address}/{path}"),
            (address, _) => address.to_string(),
        };
        self.addresses.iter().map(url).collect()
    }

    /// What whoever started it should know.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Goes on with `config` for the requests from now on, reads certificates again, and opens the log anew. What cannot be exchanged
    /// while it runs is named in the warnings.
    ///
    /// # Errors
    /// As for a start; then everything is as it was.
    pub fn reload(&mut self, config: &Config) -> Result<Vec<String>, Error> {
        let plan = Plan::new(config)?;
        let mut warnings = self.fixed(config);
        if let Some(tls) = &self.shared.tls {
            warnings.extend(tls.reload()?);
        }
        warnings.extend(self.reopen_logs());
        self.shared.send_budget.set_limit(config.limits.buffer_bytes);
        self.orders.send_modify(|orders| orders.plan = plan);
        Ok(warnings)
    }

    /// Goes on with newly opened files under the names of the logs, after the old ones were
    /// renamed. Files that cannot be opened are named in the warnings; then the old ones are kept.
    pub fn reopen_logs(&self) -> Vec<String> {
        let access = self.shared.log().as_ref().and_then(|log| log.reopen().err());
        access.into_iter().chain(self.shared.errors.reopen().err()).map(|error| error.to_string()).collect()
    }

    /// What `config` says otherwise than the server was started, and can have no effect before the next start.
    fn fixed(&self, config: &Config) -> Vec<String> {
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
        let said = |(key, _): &(&str, bool)| format!("'{key}' has changed, which takes a new start");
        changed.iter().filter(|(_, changed)| *changed).map(said).collect()
    }

    /// Gives the configured notice at the health endpoint; then accepts no more connections, lets what is under way end, for `timeout` at
    /// most, and ends. Whether no request was cut off that its client was still taking.
    #[must_use]
    pub fn drain(mut self, timeout: Duration) -> bool {
        self.give_notice();
        self.stop(Instant::now() + timeout) && !self.shared.has_cut.load(Ordering::Relaxed)
    }

    fn give_notice(&self) {
        let notice = Duration::from_millis(self.orders.borrow().plan.limits.drain_notice_ms);
        let end = Instant::now() + notice;
        self.orders.send_modify(|orders| orders.phase = Phase::Notice);
        while Instant::now() < end && !self.has_failed() {
            thread::sleep(LOOK);
        }
    }

    /// The configured time for [`Server::drain`].
    #[must_use]
    pub fn drain_timeout(&self) -> Duration {
        Duration::from_millis(self.orders.borrow().plan.limits.drain_timeout_ms)
    }

    /// Whether a worker has ended without being told to.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Ends by `end`, or a moment after: a worker may be in a call that waits for ever. Whether all
    /// workers have ended and the logs are complete.
    fn stop(&mut self, end: Instant) -> bool {
        self.orders.send_modify(|orders| orders.phase = Phase::Drain(end));
        while Instant::now() < end + LAST_CALL && self.threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(LOOK);
        }
        let ended = self.threads.iter().all(JoinHandle::is_finished);
        let log = self.shared.log().take();
        let closed = log.is_none_or(|log| log.close(LOG_TIMEOUT));
        // Last: the access log's failures are among its messages.
        self.shared.errors.close(LOG_TIMEOUT) && closed && ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.orders.borrow().is_over() {
            self.stop(Instant::now());
        }
    }
}

/// What is listened on, and what only leads there.
struct Sockets {
    listening: Listening,
    redirecting: Option<Listening>,
    /// Those of HTTP/3, on the addresses of `listening`.
    #[cfg(feature = "http3")]
    sockets: Vec<std::net::UdpSocket>,
}

/// All that a start opens before it takes an address.
struct Prepared {
    plan: Arc<Plan>,
    tls: Option<Holder>,
    model: Model,
    listen: Listen,
    warnings: Vec<String>,
}

impl Prepared {
    fn new(config: &Config) -> Result<Self, Error> {
        let plan = Plan::new(config)?;
        let (tls, warnings) = certificates(config)?;
        Ok(Self { plan, tls, model: model(config)?, listen: Listen::new(config)?, warnings })
    }
}

/// The addresses of a configuration, read and not yet taken.
struct Listen {
    words: Vec<Word>,
    redirecting: Option<Word>,
    mode: u32,
    #[cfg(feature = "http3")]
    http3: bool,
}

impl Listen {
    fn new(config: &Config) -> Result<Self, Error> {
        let default = [ADDRESS.to_owned()];
        let words = if config.listen.is_empty() { &default[..] } else { &config.listen };
        let parse = |word: &String| word.parse::<Word>();
        let from = config.tls.as_ref().and_then(|tls| tls.redirect_from.as_ref());
        Ok(Self {
            words: words.iter().map(parse).collect::<Result<_, _>>()?,
            redirecting: from.map(parse).transpose()?,
            mode: socket_mode(config.socket_mode.as_deref())?,
            #[cfg(feature = "http3")]
            http3: config.tls.as_ref().is_some_and(|tls| tls.http3),
        })
    }

    fn bind(self, workers: usize, activation: Activation<'_>) -> Result<Sockets, Error> {
        let listening = listen(&self.words, workers, self.mode, activation)?;
        #[cfg(feature = "http3")]
        let sockets = if self.http3 { crate::listen::udp(&listening.addresses)? } else { Vec::new() };
        let redirect = |word| listen(&[word], workers, self.mode, Activation::default());
        Ok(Sockets {
            listening,
            redirecting: self.redirecting.map(redirect).transpose()?,
            #[cfg(feature = "http3")]
            sockets,
        })
    }
}

fn port_of(address: &Address) -> Option<u16> {
    match address {
        Address::Tcp(address) => Some(address.port()),
        _ => None,
    }
}

fn certificates(config: &Config) -> Result<(Option<Holder>, Vec<String>), Error> {
    let Some(tls) = &config.tls else { return Ok((None, Vec::new())) };
    let (holder, warnings) = Holder::load(tls)?;
    Ok((Some(holder), warnings))
}

fn model(config: &Config) -> Result<Model, Error> {
    let word = config.io.as_deref().unwrap_or_default();
    if word.is_empty() {
        return Ok(Model::default());
    }
    word.parse().map_err(|unknown| Error::configure("io", unknown))
}

/// One a CPU this process may use.
pub(crate) fn workers(config: &Config) -> usize {
    config.workers.map_or_else(cpus_allowed, NonZeroUsize::get)
}

/// The caches are the model's `auto`. Most descriptors are for connections.
fn cache(config: &Config, model: Model) -> config::Cache {
    let files = match model {
        Model::Auto => config.cache.files.min(fd_limit() / 4),
        _ => 0,
    };
    config::Cache { files, ..config.cache.clone() }
}

fn sendfile(config: &Config, model: Model) -> Sendfile {
    match (model, config.sendfile.as_deref()) {
        (Model::Sendfile, _) | (_, Some("always")) => Sendfile::Always,
        (_, Some("never")) => Sendfile::Never,
        _ => Sendfile::Remote,
    }
}

fn ring(model: Model) -> Result<Option<FileRing>, Error> {
    let ring = (model == Model::Uring).then(|| FileRing::new(RING_DEPTH)).transpose();
    ring.map_err(|unavailable| Error::new(Op::Start, "io_uring", unavailable))
}

/// The format of the access log; `None` if there is no log.
fn log_style(config: &Config) -> Option<Style> {
    match config.access_log.format.as_deref() {
        Some("json") => Some(Style::Json),
        Some("combined") => Some(Style::Combined),
        None if config.access_log.file.is_some() => Some(Style::Combined),
        _ => None,
    }
}

fn errors(config: &Config, stream: Option<Box<dyn std::io::Write + Send>>) -> Result<Errors, Error> {
    match (&config.error_log.file, stream) {
        (Some(file), _) => Errors::start(Target::File(file.clone())),
        (None, Some(stream)) => Errors::start(Target::Stream(stream)),
        (None, None) => Ok(Errors::default()),
    }
}

fn log(
    config: &Config,
    stream: Option<Box<dyn std::io::Write + Send>>,
    errors: &Errors,
) -> Result<(Option<Log>, Option<String>), Error> {
    let Some(style) = log_style(config) else { return Ok((None, None)) };
    let target = match (&config.access_log.file, stream) {
        (Some(file), _) => Target::File(file.clone()),
        (None, Some(stream)) => Target::Stream(stream),
        (None, None) => return Ok((None, Some("there is nowhere for the access log to go".to_owned()))),
    };
    let errors = errors.clone();
    let name =
        config.access_log.file.as_ref().map_or_else(String::new, |file| format!(" '{}'", file.display()));
    let failed = move |error: &std::io::Error| {
        errors.report(Trouble::AccessLog, || format!("cannot write access log{name}: {}", cause(error)));
    };
    Ok((Some(Log::start(style, target, failed)?), None))
}
