//! A worker's life: accepting connections, doing what the server says, ending.

use std::cell::{Cell, RefCell};
use std::hash::BuildHasher;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
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

use super::connection::{Protocol, serve, serve_encrypted, unless_ended};
use super::flags::Flags;
use super::{Current, Peer, Worker};
use crate::conn::chunk::Parts;
use crate::conn::pulse::{Order, Pulse, Pulses};
use crate::conn::transport::{Socket, Transport};
use crate::conn::turns::Turns;
use crate::conn::way::Way;
use crate::files::Files;
use crate::files::cache::Cache;
use crate::listen::Listener;
use crate::log::Logger;
use crate::server::{Orders, Phase, Sendfile, Shared};

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
/// How long nothing is accepted when there is no descriptor or memory for it.
const NO_ROOM: Duration = Duration::from_millis(50);

/// What a worker starts with.
pub(crate) struct Start {
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) orders: watch::Receiver<Orders>,
    /// With the port of the encrypted site, for those that only lead there.
    pub(crate) listeners: Vec<(Listener, Option<u16>)>,
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
    let Start { number, shared, mut orders, listeners, logger, ring } = start;
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
        pulses: Pulses::default(),
        connections: Cell::new(0),
        logger: RefCell::new(logger),
        leaving: Cell::new(false),
        room: Notify::new(),
    });
    let accepting = listeners.into_iter().map(|(listener, redirect)| {
        Ok(spawn_local(accept(Rc::clone(&worker), Acceptor::new(listener)?, redirect)))
    });
    let accepting = accepting.collect::<io::Result<Vec<JoinHandle<()>>>>()?;
    let ticking = spawn_local(tick(Rc::clone(&worker)));
    let calls = Rc::clone(&worker);
    let calling = spawn_local(async move { calls.turns.call().await });
    worker.obey(orders, &accepting).await;
    ticking.abort();
    calling.abort();
    Ok(())
}

async fn tick(worker: Rc<Worker>) {
    let mut parked = 0;
    loop {
        let start = Instant::now();
        sleep(TICK).await;
        // What is over the time, somebody has made the worker wait.
        if let (Some(counters), Some(away)) = (worker.counters(), start.elapsed().checked_sub(TICK)) {
            counters.stall(away);
        }
        // Those that were told to last time have done it by now.
        if parked >= PARKED_MANY {
            parked = 0;
            release_freed_memory();
        }
        if worker.number == 0 {
            worker.files.pool.spare().sweep();
        }
        parked += worker.pulses.sweep(&worker.plan().deadlines, PARK_AFTER);
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
        accepting.iter().for_each(JoinHandle::abort);
        self.pulses.tell(Order::Drain);
        while self.connections.get() > 0 && Instant::now() < end {
            sleep(LOOK).await;
            // Another order may bring the end forward.
            if orders.has_changed().is_err() || orders.borrow_and_update().is_over() {
                break;
            }
        }
        self.pulses.tell(Order::Close);
        tokio::task::yield_now().await;
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
        let client = |address| worker.shared.hasher.hash_one(address);
        let peer = |address: Option<std::net::SocketAddr>| Peer {
            address,
            client: client(address.map(|address| address.ip())),
            tls: false,
            parts: None,
            may_share: false,
            redirect: None,
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
    loop {
        while worker.connections.get() >= worker.connections_max() {
            worker.room.notified().await;
        }
        match acceptor.accept(&worker).await {
            Ok((socket, mut peer)) => {
                peer.redirect = redirect;
                spawn_local(connection(Open::new(&worker), socket, peer));
            }
            Err(error) if is_no_room(&error) => {
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
struct Open(Rc<Worker>);

impl Open {
    fn new(worker: &Rc<Worker>) -> Self {
        worker.connections.set(worker.connections.get() + 1);
        worker.counters().into_iter().for_each(crate::metrics::Counters::opened);
        Self(Rc::clone(worker))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get().saturating_sub(1));
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
    let transport = Transport::new(socket, parts.clone(), Rc::clone(&pulse));
    let tls = worker.shared.tls.as_ref().filter(|_| peer.redirect.is_none() && peer.address.is_some());
    let Some(tls) = tls.map(crate::tls::Holder::current) else {
        let sendfile = worker.shared.sendfile;
        peer.parts = (sendfile != Sendfile::Never).then_some(parts);
        peer.may_share = sendfile == Sendfile::Always || is_remote;
        return serve(worker, transport, peer, pulse).await;
    };
    peer.tls = true;
    // On the heap: connections that are not encrypted need not have room for it.
    Box::pin(secure(worker, tls, transport, peer, pulse)).await;
}

async fn secure(
    worker: Rc<Worker>,
    tls: Arc<ServerConfig>,
    transport: Transport,
    peer: Peer,
    pulse: Rc<Pulse>,
) {
    let handshake = tokio_rustls::TlsAcceptor::from(tls).accept(transport);
    let Some(Ok(stream)) = unless_ended(&pulse, handshake).await else { return };
    let protocol = match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Protocol::Http2,
        _ => Protocol::Http1,
    };
    serve_encrypted(worker, stream, peer, pulse, protocol).await;
}
