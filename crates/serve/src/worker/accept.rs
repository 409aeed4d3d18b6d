//! A worker's life: accepting connections, doing what the server says, ending.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fathom_io::Errno;
use fathom_io::sys::release_freed_memory;
use fathom_io::uring::FileRing;
use rustls::ServerConfig;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::sleep;

use super::connection::{serve, serve_encrypted, unless_ended};
use super::flags::Flags;
use super::introduction::introduce;
use super::load::Load;
use super::refused::answer_plain;
use super::{Current, Peer, Worker, http2};
use crate::conn::chunk::Parts;
use crate::conn::outbox::Outbox;
use crate::conn::pulse::{Order, Patience, Pulse, Pulses};
use crate::conn::transport::{First, Socket, Transport};
use crate::conn::turns::Turns;
use crate::conn::way::Way;
use crate::date::Clock;
use crate::error::cause;
use crate::files::Files;
use crate::files::cache::Cache;
use crate::listen::Listener;
use crate::log::{Logger, Trouble};
use crate::server::{Orders, Phase, Sendfile, Shared};
use crate::tls::client_name;

/// How often connections that take too long are looked for.
const TICK: Duration = Duration::from_millis(250);
/// Tasks that are looked after before sockets are asked again: each may send a large part of a file, and others wait for it.
const EVENTS_EVERY: u32 = 16;
/// How often what is under way is looked at while the server ends.
const LOOK: Duration = Duration::from_millis(10);
/// Connections that are idle for so long are put away, ...
const PARK_AFTER: Duration = Duration::from_secs(2);
/// ... and their memory goes back to the system when they are so many: a few MiB.
const PARKED_MANY: usize = 256;
/// Streams of HTTP/2 wait for their windows for so long at most when memory for responses is short,
/// ...
const STALL_SHORT: Duration = Duration::from_secs(1);
/// ... and connections that have nothing under way for so long when the server ends: they have been
/// told.
const GOODBYE: Duration = Duration::from_secs(1);
/// How many ticks it has to be quiet after a burst until its memory goes back to the system, too.
const QUIET_TICKS: usize = 8;
/// How long nothing is accepted when there is no descriptor or memory for it.
const NO_ROOM: Duration = Duration::from_millis(50);

/// What a worker starts with.
pub(crate) struct Start {
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) orders: watch::Receiver<Orders>,
    /// With the port of the encrypted site, for those that only lead there.
    pub(crate) listeners: Vec<(Listener, Option<u16>)>,
    /// UDP sockets of HTTP/3; none for all workers but one.
    #[cfg(feature = "http3")]
    pub(crate) sockets: Vec<std::net::UdpSocket>,
    pub(crate) logger: Option<Logger>,
    pub(crate) ring: Option<FileRing>,
}

/// A worker's thread, to its end.
///
/// # Errors
/// If it cannot start.
pub(crate) fn run(start: Start) -> io::Result<()> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(start.shared.pool_threads)
        .event_interval(EVENTS_EVERY)
        .build_local(LocalOptions::default())?;
    let ended = runtime.block_on(work(start));
    // Calls that are under way may never end.
    runtime.shutdown_background();
    ended
}

async fn work(start: Start) -> io::Result<()> {
    let Start { number, shared, mut orders, listeners, logger, ring, .. } = start;
    #[cfg(feature = "http3")]
    let sockets = start.sockets;
    let ring = ring.map(Rc::new);
    if let Some(ring) = ring.clone() {
        spawn_local(async move { ring.drive().await });
    }
    let plan = Arc::clone(&orders.borrow_and_update().plan);
    let worker = Rc::new(Worker {
        number,
        files: Files::new(
            shared.model,
            shared.pool.clone(),
            ring,
            Way::new(shared.sendfile == Sendfile::Always),
        ),
        turns: Turns::default(),
        cache: Cache::new(&shared.cache, shared.workers),
        shared,
        plan: RefCell::new(Rc::new(Current(plan))),
        flags: Flags::default(),
        roots: Default::default(),
        pulses: Pulses::default(),
        connections: Cell::new(0),
        load: Load::default(),
        logger: RefCell::new(logger),
        leaving: Cell::new(false),
        drains: Cell::new(false),
        clock: Clock::default(),
        room: Notify::new(),
    });
    let accepting = listeners.into_iter().map(|(listener, redirect)| {
        Ok(spawn_local(accept(Rc::clone(&worker), Acceptor::new(listener)?, redirect)))
    });
    let accepting = accepting.collect::<io::Result<Vec<JoinHandle<()>>>>()?;
    #[cfg(feature = "http3")]
    let endpoints = super::http3::Endpoints::open(&worker, sockets)?;
    let ticking = spawn_local(tick(Rc::clone(&worker)));
    let calls = Rc::clone(&worker);
    let calling = spawn_local(async move { calls.turns.call().await });
    worker.obey(orders, &accepting).await;
    #[cfg(feature = "http3")]
    endpoints.close().await;
    ticking.abort();
    calling.abort();
    Ok(())
}

async fn tick(worker: Rc<Worker>) {
    let mut parked = 0;
    for round in 0.. {
        let start = Instant::now();
        sleep(TICK).await;
        // What is over the time, somebody has made the worker wait.
        if let (Some(counters), Some(away)) = (worker.counters(), start.elapsed().checked_sub(TICK)) {
            counters.stall(away);
        }
        // Those that were told to last time have done it by now.
        let is_burst_over = round % QUIET_TICKS == 0 && worker.load.is_burst_over();
        if parked >= PARKED_MANY || is_burst_over {
            parked = 0;
            worker.files.buffers.sweep();
            release_freed_memory();
        }
        if worker.number == 0 {
            worker.files.pool.spare().sweep();
            worker.shared.errors.sweep(Instant::now());
            worker.shared.listings.sweep();
        }
        worker.sweep_roots(round);
        parked += worker.pulses.sweep(&worker.patience(), PARK_AFTER);
        if let Some(logger) = &mut *worker.logger.borrow_mut() {
            logger.flush_if_due(Instant::now());
        }
    }
}

impl Worker {
    /// Does what the server says until that is to end.
    async fn obey(self: &Rc<Self>, mut orders: watch::Receiver<Orders>, accepting: &[JoinHandle<()>]) {
        let end = loop {
            let now = orders.borrow_and_update().clone();
            if !Arc::ptr_eq(&self.plan().0, &now.plan) {
                self.plan.replace(Rc::new(Current(now.plan)));
                self.cache.clear();
                self.flags.clear();
                self.forget_roots();
            }
            match now.phase {
                Phase::Serve => {}
                Phase::Notice => self.leaving.set(true),
                Phase::Drain(end) => break end,
            }
            if orders.changed().await.is_err() {
                break Instant::now();
            }
        };
        self.leaving.set(true);
        self.drains.set(true);
        accepting.iter().for_each(JoinHandle::abort);
        self.pulses.tell(Order::Drain);
        while self.connections.get() > 0 && Instant::now() < end {
            sleep(LOOK).await;
            // Another order may bring the end forward.
            if orders.has_changed().is_err() || orders.borrow_and_update().is_over() {
                break;
            }
        }
        self.close_all().await;
    }

    /// Closes what is left. Clients that have had their time to take something are not cut off:
    /// their time is over.
    async fn close_all(&self) {
        self.pulses.sweep(&self.patience(), Duration::MAX);
        // Connections and then their streams see that.
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
        if self.pulses.are_busy() {
            self.shared.has_cut.store(true, Ordering::Relaxed);
        }
        self.pulses.tell(Order::Close);
        tokio::task::yield_now().await;
    }

    /// How long connections and streams may take now.
    fn patience(&self) -> Patience {
        let mut patience = self.plan().deadlines;
        if self.shared.send_budget.is_exhausted() {
            patience.stall = patience.stall.min(STALL_SHORT);
        }
        if self.drains.get() {
            patience.idle = patience.idle.min(GOODBYE);
        }
        patience
    }

    /// Reports a failed handshake, unless the client just went away.
    fn report_handshake(&self, peer: &Peer, error: &io::Error) {
        if error.kind() == io::ErrorKind::InvalidData
            && let Some(address) = peer.address
        {
            let client = address.ip().to_canonical();
            self.report(Trouble::Tls, || format!("TLS handshake with {client} failed: {}", cause(error)));
        }
    }

    /// Whether this worker has as many connections as it may have, which is reported.
    pub(super) fn has_no_room(&self) -> bool {
        let is_full = self.connections.get() >= self.connections_max();
        if is_full {
            let most = self.plan().limits.connections;
            self.report(Trouble::Connections, || {
                format!("{most} connections are open, which is the limit: others wait")
            });
        }
        is_full
    }

    /// Returns the value of `Alt-Svc` in responses to clients of `acceptor`, if HTTP/3 is served.
    #[cfg(feature = "http3")]
    fn alt_svc(&self, acceptor: &Acceptor, redirect: Option<u16>) -> Option<http::HeaderValue> {
        match acceptor {
            Acceptor::Tcp(listener) if self.shared.http3 && redirect.is_none() => {
                let port = listener.local_addr().ok()?.port();
                http::HeaderValue::try_from(format!("h3=\":{port}\"; ma=86400")).ok()
            }
            _ => None,
        }
    }

    /// Connections this worker may have: its part of them.
    fn connections_max(&self) -> usize {
        self.plan().limits.connections.div_ceil(self.shared.workers.max(1)).max(1)
    }
}

enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Acceptor {
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
            name: None,
            parts: None,
            outbox: Outbox::new(Arc::clone(&worker.shared.send_budget)),
            may_share: false,
            is_proxy: false,
            redirect: None,
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

async fn accept(worker: Rc<Worker>, acceptor: Acceptor, redirect: Option<u16>) {
    #[cfg(feature = "http3")]
    let alt_svc = worker.alt_svc(&acceptor, redirect);
    loop {
        while worker.has_no_room() {
            worker.room.notified().await;
        }
        match acceptor.accept(&worker).await {
            Ok((socket, mut peer)) => {
                peer.redirect = redirect;
                #[cfg(feature = "http3")]
                peer.alt_svc.clone_from(&alt_svc);
                spawn_local(connection(Open::new(&worker), socket, peer));
            }
            Err(error) if is_no_room(&error) => {
                worker.report(Trouble::Accept, || format!("cannot accept connections: {}", cause(&error)));
                // What is only kept open makes room for who comes.
                worker.cache.clear();
                sleep(NO_ROOM).await;
            }
            // It was gone before it was accepted.
            Err(_) => tokio::task::yield_now().await,
        }
    }
}

fn is_no_room(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

/// A connection, counted while it is there.
pub(super) struct Open(Rc<Worker>);

impl Open {
    pub(super) fn new(worker: &Rc<Worker>) -> Self {
        worker.connections.set(worker.connections.get() + 1);
        worker.load.begin();
        worker.counters().into_iter().for_each(crate::metrics::Counters::opened);
        Self(Rc::clone(worker))
    }

    /// The worker that has it.
    #[cfg(feature = "http3")]
    pub(super) fn worker(&self) -> Rc<Worker> {
        Rc::clone(&self.0)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get().saturating_sub(1));
        self.0.load.end();
        self.0.counters().into_iter().for_each(crate::metrics::Counters::closed);
        self.0.room.notify_waiters();
    }
}

async fn connection(open: Open, socket: Socket, mut peer: Peer) {
    let (worker, pulse, is_remote) = (Rc::clone(&open.0), Pulse::new(), socket.is_remote());
    if !is_remote {
        socket.queue_little();
    }
    let parts = Parts::new(Rc::clone(&pulse), Rc::clone(&worker.files.way));
    worker.pulses.add(&pulse);
    let mut transport = Transport::new(socket, parts.clone(), Rc::clone(&pulse));
    // A PROXY header gives the peer another address; a Unix socket stays one without TLS.
    let is_unix = peer.address.is_none();
    if !introduce(&worker, &mut transport, &mut peer, &pulse).await {
        return;
    }
    let Some(Ok(first)) = unless_ended(&pulse, transport.first()).await else { return };
    let tls = worker.shared.tls.as_ref().filter(|_| peer.redirect.is_none() && !is_unix);
    let tls = tls.map(crate::tls::Holder::current);
    // On the heap: connections of HTTP/1.1 that are not encrypted need not have room for the
    // others.
    match (tls, first) {
        (Some(_), First::Http1 | First::Http2) => {
            Box::pin(answer_plain(worker, transport, &peer, &pulse)).await;
        }
        (Some(tls), First::Other) => {
            peer.tls = true;
            Box::pin(secure(worker, tls, transport, peer, pulse)).await;
        }
        (None, First::Http2) => Box::pin(http2::serve(worker, transport, Rc::new(peer), pulse)).await,
        (None, First::Http1 | First::Other) => {
            let sendfile = worker.shared.sendfile;
            peer.parts = (sendfile != Sendfile::Never).then_some(parts);
            peer.may_share = sendfile == Sendfile::Always || is_remote;
            // A task of its own, so that a connection that waits does not have room for all of
            // this.
            spawn_local(async move {
                let _open = open;
                serve(worker, transport, Rc::new(peer), pulse).await;
            });
        }
    }
}

async fn secure(
    worker: Rc<Worker>,
    tls: Arc<ServerConfig>,
    transport: Transport,
    mut peer: Peer,
    pulse: Rc<Pulse>,
) {
    let handshake = tokio_rustls::TlsAcceptor::from(tls).accept(transport);
    let stream = match unless_ended(&pulse, handshake).await {
        Some(Ok(stream)) => stream,
        Some(Err(error)) => return worker.report_handshake(&peer, &error),
        None => return,
    };
    peer.name = stream.get_ref().1.peer_certificates().and_then(client_name).map(Rc::from);
    let peer = Rc::new(peer);
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => http2::serve(worker, stream, peer, pulse).await,
        _ => serve_encrypted(worker, stream, peer, pulse).await,
    }
}
