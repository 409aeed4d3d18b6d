//! The main loop of a worker: accepting connections, the periodic sweep, following the server's
//! control state, draining.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fathom_io::Errno;
use fathom_io::fault::point;
use fathom_io::sys::release_freed_memory;
use fathom_io::uring::FileRing;
use futures_util::future::{Either, select};
use rustls::ServerConfig;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::sleep;

use super::connection::{serve, serve_encrypted, unless_draining};
use super::http2;
use super::open_connection::OpenConnection;
use super::proxy_header::read_client_address;
use super::refused::refuse_plaintext;
use crate::config::words::SendfilePolicy;
use crate::conn::chunk::SendfileQueue;
use crate::conn::deadlines::{ConnectionCommand, ConnectionState, Timeouts};
use crate::conn::send_budget::ConnectionSendBudget;
use crate::conn::transport::{InitialProtocol, Socket, Transport};
use crate::error::cause;
use crate::listen::Listener;
use crate::log::{ErrorCategory, WorkerLogger};
use crate::state::{ControlState, Peer, ServerPhase, SharedState, Worker};
use crate::tls::client_name;

/// The interval of the sweep over connections, roots and logs.
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);
/// The tasks that the runtime polls before it polls the sockets again (tokio's default is 61): each
/// task may send a long piece of a file, and new requests wait meanwhile.
const EVENT_INTERVAL: u32 = 16;
/// The interval at which a draining worker checks for open connections.
const DRAIN_POLL: Duration = Duration::from_millis(10);
/// Connections are parked after this idle time.
const PARK_AFTER: Duration = Duration::from_secs(2);
/// Freed memory is returned to the system once this many connections were commanded to park: a few
/// MiB.
const PARKED_TRIM_MIN: usize = 256;
/// The longest time that a stream may wait for flow control while the send budget is exhausted.
const STALL_TIMEOUT_SHORT: Duration = Duration::from_secs(1);
/// The idle timeout while the worker drains: idle connections have been commanded to end, and get
/// this long to close.
const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of sweeps from one check for the end of a burst to the next.
const BURST_CHECK_TICKS: usize = 8;
/// The pause in accepting after an accept failed for want of descriptors or memory.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// The parameters of a worker.
pub(crate) struct WorkerParams {
    pub(crate) number: usize,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) control: watch::Receiver<ControlState>,
    /// The listeners. A port is the port of the encrypted site to which all requests of the
    /// listener are redirected.
    pub(crate) listeners: Vec<(Listener, Option<u16>)>,
    /// The UDP sockets of HTTP/3; empty for all workers but one.
    #[cfg(feature = "http3")]
    pub(crate) sockets: Vec<std::net::UdpSocket>,
    pub(crate) logger: Option<WorkerLogger>,
    pub(crate) ring: Option<FileRing>,
}

/// Runs a worker on this thread until it has drained.
///
/// # Errors
/// If the runtime, a listener or an endpoint cannot be set up.
pub(crate) fn run(params: WorkerParams) -> io::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(params.shared.pool_threads)
        .event_interval(EVENT_INTERVAL)
        .build_local(LocalOptions::default())?;
    let ended = runtime.block_on(work(params));
    // Do not wait for blocking calls under way: they may never return.
    runtime.shutdown_background();
    ended
}

async fn work(params: WorkerParams) -> io::Result<()> {
    let WorkerParams { number, shared, mut control, listeners, logger, ring, .. } = params;
    #[cfg(feature = "http3")]
    let sockets = params.sockets;
    let ring = ring.map(Rc::new);
    let plan = Arc::clone(&control.borrow_and_update().plan);
    let worker = Rc::new(Worker::new(number, shared, plan, ring.clone(), logger));
    if let Some(ring) = ring {
        worker.spawn_essential(async move {
            // It fails only at the start, if no descriptor is left.
            let _error = ring.drive().await;
        });
    }
    let accepting = listeners.into_iter().map(|(listener, redirect)| {
        Ok(worker.spawn_essential(accept(Rc::clone(&worker), AsyncListener::new(listener)?, redirect)))
    });
    let accepting = accepting.collect::<io::Result<Vec<JoinHandle<()>>>>()?;
    #[cfg(feature = "http3")]
    let endpoints = super::http3::Endpoints::open(&worker, sockets)?;
    let ticking = worker.spawn_essential(tick(Rc::clone(&worker)));
    let queue = Rc::clone(&worker);
    let calling = worker.spawn_essential(async move { queue.body_queue.run().await });
    let ended = worker.run_until_drained(control, &accepting).await;
    #[cfg(feature = "http3")]
    endpoints.close().await;
    ticking.abort();
    calling.abort();
    ended
}

async fn tick(worker: Rc<Worker>) {
    let mut parked = 0;
    for round in 0.. {
        let start = Instant::now();
        sleep(SWEEP_INTERVAL).await;
        point("serve-sweep");
        // A sleep longer than the interval means that a task blocked the worker for the difference.
        if let (Some(counters), Some(delay)) =
            (worker.counters(), start.elapsed().checked_sub(SWEEP_INTERVAL))
        {
            counters.record_stall(delay);
        }
        // Connections that the previous sweep commanded to park have freed their memory by now.
        let is_burst_over = round % BURST_CHECK_TICKS == 0 && worker.burst.is_burst_over();
        if parked >= PARKED_TRIM_MIN || is_burst_over {
            parked = 0;
            worker.files.sweep_buffers();
            release_freed_memory();
        }
        if worker.number == 0 {
            worker.files.pool().sweep();
            worker.shared.errors.sweep();
            worker.shared.listings.sweep();
        }
        worker.sweep_roots(round);
        parked +=
            worker.connection_table.sweep(&worker.timeouts(), PARK_AFTER, worker.shared.clock.coarse_now());
        if let Some(logger) = &mut *worker.logger.borrow_mut() {
            logger.flush_if_due(worker.now());
        }
    }
}

impl Worker {
    /// Spawns a task without which the worker cannot serve: its panic ends the worker.
    pub(super) fn spawn_essential(
        self: &Rc<Self>,
        task: impl Future<Output = ()> + 'static,
    ) -> JoinHandle<()> {
        let worker = Rc::clone(self);
        spawn_local(self.contain("a worker", task, move || worker.failed.notify_one()))
    }

    /// Follows the control state of the server until it says to drain, then drains.
    ///
    /// # Errors
    /// If an essential task panicked.
    async fn run_until_drained(
        self: &Rc<Self>,
        mut control: watch::Receiver<ControlState>,
        accepting: &[JoinHandle<()>],
    ) -> io::Result<()> {
        let end = loop {
            let now = control.borrow_and_update().clone();
            self.follow_plan(now.plan);
            match now.phase {
                ServerPhase::Serve => {}
                ServerPhase::Notice => self.is_leaving.set(true),
                ServerPhase::Drain(end) => break end,
            }
            match select(pin!(control.changed()), pin!(self.failed.notified())).await {
                Either::Left((Ok(()), _)) => {}
                Either::Left((Err(_), _)) => break self.now(),
                Either::Right(_) => return Err(io::Error::other("one of its tasks panicked")),
            }
        };
        self.is_leaving.set(true);
        self.is_draining.set(true);
        accepting.iter().for_each(JoinHandle::abort);
        self.connection_table.send_command(ConnectionCommand::Drain);
        while self.connections.get() > 0 && self.now() < end {
            sleep(DRAIN_POLL).await;
            // A new control state may bring the deadline forward.
            if control.has_changed().is_err() || control.borrow_and_update().is_over(self.now()) {
                break;
            }
        }
        self.close_all().await;
        Ok(())
    }

    /// Closes the connections that are left. Clients past a deadline are closed first and do not
    /// count as cut off.
    async fn close_all(&self) {
        self.connection_table.sweep(&self.timeouts(), Duration::MAX, self.shared.clock.coarse_now());
        // The first yield runs the connections, the second their streams.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
        if self.connection_table.is_any_busy() {
            self.shared.has_cut_requests.store(true, Ordering::Relaxed);
        }
        self.connection_table.send_command(ConnectionCommand::Close);
        tokio::task::yield_now().await;
    }

    /// Returns the timeouts of connections and streams under the present conditions.
    fn timeouts(&self) -> Timeouts {
        let mut timeouts = self.plan().deadlines;
        if self.shared.send_budget.is_exhausted() {
            timeouts.stall = timeouts.stall.min(STALL_TIMEOUT_SHORT);
        }
        if self.is_draining.get() {
            timeouts.idle = timeouts.idle.min(DRAIN_IDLE_TIMEOUT);
            timeouts.gone = Duration::ZERO;
        }
        timeouts
    }

    /// Reports a failed TLS handshake, unless the client closed the connection.
    fn report_handshake(&self, peer: &Peer, error: &io::Error) {
        if error.kind() == io::ErrorKind::InvalidData
            && let Some(address) = peer.address
        {
            let client = address.ip().to_canonical();
            self.report(ErrorCategory::Tls, || {
                format!("TLS handshake with {client} failed: {}", cause(error))
            });
        }
    }

    /// Returns whether this worker has its maximum of connections, and reports that.
    pub(super) fn is_full(&self) -> bool {
        let is_full = self.connections.get() >= self.connections_max();
        if is_full {
            let most = self.plan().limits.connections;
            self.report(ErrorCategory::Connections, || {
                format!("reached the limit of {most} connections: others wait")
            });
        }
        is_full
    }

    /// Returns the value of `Alt-Svc` in responses to clients of `acceptor`, if HTTP/3 is served.
    #[cfg(feature = "http3")]
    fn alt_svc(&self, acceptor: &AsyncListener, redirect: Option<u16>) -> Option<http::HeaderValue> {
        match acceptor {
            AsyncListener::Tcp(listener) if self.shared.http3 && redirect.is_none() => {
                let port = listener.local_addr().ok()?.port();
                http::HeaderValue::try_from(format!("h3=\":{port}\"; ma=86400")).ok()
            }
            _ => None,
        }
    }

    /// Returns this worker's share of the connection limit.
    fn connections_max(&self) -> usize {
        self.plan().limits.connections.div_ceil(self.shared.workers.max(1)).max(1)
    }
}

enum AsyncListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl AsyncListener {
    fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    async fn accept(&self, worker: &Worker) -> io::Result<(Socket, Peer)> {
        let peer = |address: Option<std::net::SocketAddr>| Peer {
            address,
            client: worker.client(address.map(|address| address.ip())),
            tls: false,
            certificate_name: None,
            sendfile_queue: None,
            send_budget: ConnectionSendBudget::new(Arc::clone(&worker.shared.send_budget)),
            may_sendfile_files: false,
            is_proxy: false,
            redirect_port: None,
            #[cfg(feature = "http3")]
            alt_svc: None,
        };
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Socket::Tcp(stream), peer(Some(address))))
            }
            Self::Unix(listener) => {
                let (stream, _unnamed) = listener.accept().await?;
                Ok((Socket::Unix(stream), peer(None)))
            }
        }
    }
}

async fn accept(worker: Rc<Worker>, acceptor: AsyncListener, redirect: Option<u16>) {
    #[cfg(feature = "http3")]
    let alt_svc = worker.alt_svc(&acceptor, redirect);
    loop {
        while worker.is_full() {
            worker.connection_closed.notified().await;
        }
        match acceptor.accept(&worker).await {
            Ok((socket, mut peer)) => {
                peer.redirect_port = redirect;
                #[cfg(feature = "http3")]
                peer.alt_svc.clone_from(&alt_svc);
                let connection = connection(OpenConnection::new(&worker), socket, peer);
                spawn_local(worker.contain("a connection", connection, || ()));
            }
            Err(error) if is_out_of_resources(&error) => {
                worker.report(ErrorCategory::Accept, || {
                    format!("cannot accept connections: {}", cause(&error))
                });
                // The descriptors of cached files make room for connections.
                worker.cache.clear();
                sleep(ACCEPT_BACKOFF).await;
            }
            // The client closed the connection before it was accepted.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

fn is_out_of_resources(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

async fn connection(open: OpenConnection, socket: Socket, mut peer: Peer) {
    let worker = open.worker();
    let (state, is_remote) = (ConnectionState::new(worker.shared.clock.clone()), socket.is_remote());
    if !is_remote {
        socket.limit_unsent();
    }
    let parts = SendfileQueue::new(Rc::clone(&state), Rc::clone(&worker.send_costs));
    let entry = worker.connection_table.add(&state);
    let mut transport = Transport::new(socket, parts.clone(), Rc::clone(&state));
    // Read this before the PROXY header, which gives a Unix socket's peer an address. Unix sockets
    // have no TLS.
    let is_unix = peer.address.is_none();
    if !read_client_address(&worker, &mut transport, &mut peer, &state).await || !open.is_admitted(&peer) {
        return;
    }
    let Some(Ok(first)) = unless_draining(&state, transport.detect_protocol()).await else { return };
    let tls = worker.shared.tls.as_ref().filter(|_| peer.redirect_port.is_none() && !is_unix);
    let tls = tls.map(crate::tls::ReloadableTls::current);
    // Box the large futures: a task of plain HTTP/1.1 need not be large enough for them.
    match (tls, first) {
        (Some(_), InitialProtocol::Http1 | InitialProtocol::Http2) => {
            Box::pin(refuse_plaintext(worker, transport, &peer, &state)).await;
        }
        (Some(tls), InitialProtocol::Other) => {
            peer.tls = true;
            Box::pin(secure(worker, tls, transport, peer, state)).await;
        }
        (None, InitialProtocol::Http2) => {
            Box::pin(http2::serve(worker, transport, Rc::new(peer), state)).await
        }
        (None, InitialProtocol::Http1 | InitialProtocol::Other) => {
            let sendfile = worker.shared.sendfile;
            peer.sendfile_queue = (sendfile != SendfilePolicy::Never).then_some(parts);
            peer.may_sendfile_files = sendfile == SendfilePolicy::Always || is_remote;
            // Spawn a task of its own: this one is as large as the whole handshake and would stay
            // so while the connection is idle.
            let contained = Rc::clone(&worker);
            let serve = async move {
                let _open = (entry, open);
                serve(worker, transport, Rc::new(peer), state).await;
            };
            spawn_local(contained.contain("a connection", serve, || ()));
        }
    }
}

async fn secure(
    worker: Rc<Worker>,
    tls: Arc<ServerConfig>,
    transport: Transport,
    mut peer: Peer,
    state: Rc<ConnectionState>,
) {
    let handshake = tokio_rustls::TlsAcceptor::from(tls).accept(transport);
    let stream = match unless_draining(&state, handshake).await {
        Some(Ok(stream)) => stream,
        Some(Err(error)) => return worker.report_handshake(&peer, &error),
        None => return,
    };
    peer.certificate_name = stream.get_ref().1.peer_certificates().and_then(client_name).map(Rc::from);
    let peer = Rc::new(peer);
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => http2::serve(worker, stream, peer, state).await,
        _ => serve_encrypted(worker, stream, peer, state).await,
    }
}
