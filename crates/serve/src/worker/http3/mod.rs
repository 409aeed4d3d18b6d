//! HTTP/3: a UDP socket on each encrypted address, all on one worker, and the connections of QUIC on
//! them.
//!
//! Owns: which connections are let in, and what each may make the server keep. Does not own: QUIC
//! (`quinn`), frames (`h3`), what is answered.

mod connection;
mod exchange;
mod quic;
mod stream;

use std::cell::{Cell, RefCell};
use std::io;
use std::net::UdpSocket;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    ConnectionError, Endpoint, EndpointConfig, IdleTimeout, Incoming, ServerConfig, TokioRuntime,
    TransportConfig,
};
use rustls::pki_types::CertificateDer;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

use super::accept::Open;
use super::connection::unless_ended;
use super::{Peer, Worker};
use crate::config::Limits;
use crate::conn::outbox::Outbox;
use crate::conn::pulse::Pulse;
use crate::log::Trouble;
use crate::tls::client_name;

/// The name in ALPN (RFC 9114, section 3.1).
const PROTOCOL: &[u8] = b"h3";
/// With so many handshakes under way, clients have to prove their address first (RFC 9000, section
/// 8.1.2): a forged one cannot.
const HANDSHAKES_UNPROVEN: usize = 32;
/// Handshakes under way at most.
const HANDSHAKES_MAX: usize = 512;
/// Connections that wait for this task to look at them, and bytes that they have sent meanwhile.
const INCOMING_MAX: usize = 256;
const INCOMING_BYTES: u64 = 16 << 10;
const INCOMING_BYTES_ALL: u64 = 2 << 20;
/// Streams in one direction at once: clients need three.
const CONTROL_STREAMS: u32 = 8;
/// Bytes of a stream, and of a connection, that may arrive before they are read.
const STREAM_WINDOW_BYTES: u32 = 32 << 10;
const WINDOW_BYTES: u32 = 256 << 10;
/// Bytes that a connection sends ahead of acknowledgements: more than bodies may have, so that these
/// are what counts.
const SEND_BYTES: u64 = 4 << 20;
/// A client that is not heard of for so long is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// How often a client is asked for a sign: it may wait for a response, and say nothing.
const SIGN: Duration = Duration::from_secs(10);
/// How long the last packets may take.
const LAST_PACKETS: Duration = Duration::from_millis(100);

/// The sockets of a worker, and the tasks that accept connections on them.
pub(super) struct Endpoints {
    endpoints: Vec<(Endpoint, JoinHandle<()>)>,
}

impl Endpoints {
    /// Opens endpoints on `sockets`, and has connections accepted; refused, when the worker drains.
    pub(super) fn open(worker: &Rc<Worker>, sockets: Vec<UdpSocket>) -> io::Result<Self> {
        let mut open = Self { endpoints: Vec::new() };
        for socket in sockets {
            let settings = Settings::new(worker)?;
            let (config, runtime) = (EndpointConfig::default(), Arc::new(TokioRuntime));
            let endpoint = Endpoint::new(config, Some(settings.current(worker)?), socket, runtime)?;
            let accepting = spawn_local(accept(Rc::clone(worker), endpoint.clone(), settings));
            open.endpoints.push((endpoint, accepting));
        }
        Ok(open)
    }

    /// Closes what is left, and has the last packets sent.
    pub(super) async fn close(&self) {
        for (endpoint, accepting) in &self.endpoints {
            accepting.abort();
            endpoint.close(exchange::code(h3::error::Code::H3_NO_ERROR), b"");
            let _silent = timeout(LAST_PACKETS, endpoint.wait_idle()).await;
        }
    }
}

/// The settings of connections, made anew when certificates or limits have changed.
struct Settings {
    known: RefCell<(Arc<rustls::ServerConfig>, ServerConfig)>,
}

impl Settings {
    fn new(worker: &Worker) -> io::Result<Self> {
        let tls = tls(worker)?;
        let mut config = ServerConfig::with_crypto(crypto(&tls)?);
        // Rules and logs are of the address that a connection began with.
        config.migration(false);
        config.max_incoming(INCOMING_MAX);
        config.incoming_buffer_size(INCOMING_BYTES).incoming_buffer_size_total(INCOMING_BYTES_ALL);
        Ok(Self { known: RefCell::new((tls, config)) })
    }

    /// The settings for a connection that begins now.
    fn current(&self, worker: &Worker) -> io::Result<ServerConfig> {
        let (tls, mut known) = (tls(worker)?, self.known.borrow_mut());
        if !Arc::ptr_eq(&tls, &known.0) {
            // The rest stays: the key of the tokens that prove addresses is in it.
            known.1.crypto = crypto(&tls)?;
            known.0 = tls;
        }
        let mut config = known.1.clone();
        config.transport_config(Arc::new(transport(&worker.plan().limits)));
        Ok(config)
    }
}

fn tls(worker: &Worker) -> io::Result<Arc<rustls::ServerConfig>> {
    let holder = worker.shared.tls.as_ref().ok_or_else(|| io::Error::other("HTTP/3 takes TLS"))?;
    Ok(holder.current())
}

/// The same certificates, keys and rules for clients' certificates as for TCP.
fn crypto(tls: &rustls::ServerConfig) -> io::Result<Arc<QuicServerConfig>> {
    let mut tls = tls.clone();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    // Early data can be replayed by anyone who has seen it.
    tls.max_early_data_size = 0;
    QuicServerConfig::try_from(tls).map(Arc::new).map_err(io::Error::other)
}

fn transport(limits: &Limits) -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(limits.streams.into())
        .max_concurrent_uni_streams(CONTROL_STREAMS.into())
        .stream_receive_window(STREAM_WINDOW_BYTES.into())
        .receive_window(WINDOW_BYTES.into())
        .send_window(SEND_BYTES)
        .max_idle_timeout(IdleTimeout::try_from(SILENCE).ok())
        .keep_alive_interval(Some(SIGN))
        .datagram_receive_buffer_size(None)
        .datagram_send_buffer_size(0);
    transport
}

async fn accept(worker: Rc<Worker>, endpoint: Endpoint, settings: Settings) {
    let handshakes = Rc::<Cell<usize>>::default();
    while let Some(incoming) = endpoint.accept().await {
        if let Some((incoming, peer)) = admit(&worker, &handshakes, incoming)
            && let Ok(config) = settings.current(&worker)
        {
            let open = Open::new(&worker);
            let handshake = Handshake::new(&handshakes);
            spawn_local(shake_hands(open, handshake, incoming, config, peer));
        }
    }
}

/// A handshake under way, counted.
struct Handshake(Rc<Cell<usize>>);

impl Handshake {
    fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Handshake {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Lets `incoming` in, sends it back to prove its address, or refuses it.
fn admit(worker: &Rc<Worker>, handshakes: &Cell<usize>, incoming: Incoming) -> Option<(Incoming, Peer)> {
    if worker.drains.get() || worker.has_no_room() || handshakes.get() >= HANDSHAKES_MAX {
        incoming.refuse();
        return None;
    }
    if handshakes.get() >= HANDSHAKES_UNPROVEN && !incoming.remote_address_validated() {
        // It fails where the client has proven its address, which was looked at.
        drop(incoming.retry());
        return None;
    }
    let address = incoming.remote_address();
    let (is_proxy, speaks_protocol) = match &worker.plan().proxies {
        Some(proxies) if proxies.trust(Some(address)) => {
            (!proxies.speak_protocol(), proxies.speak_protocol())
        }
        _ => (false, false),
    };
    // QUIC carries no header of the PROXY protocol: the address of the client would be unknown.
    if speaks_protocol {
        incoming.refuse();
        return None;
    }
    let peer = Peer {
        address: Some(address),
        client: worker.client(Some(address.ip())),
        tls: true,
        name: None,
        parts: None,
        outbox: Outbox::new(Arc::clone(&worker.shared.send_budget)),
        may_share: false,
        is_proxy,
        redirect: None,
        alt_svc: None,
    };
    Some((incoming, peer))
}

async fn shake_hands(
    open: Open,
    handshake: Handshake,
    incoming: Incoming,
    config: ServerConfig,
    mut peer: Peer,
) {
    let (worker, pulse) = (open.worker(), Pulse::new());
    worker.pulses.add(&pulse);
    let Ok(connecting) = incoming.accept_with(Arc::new(config)) else { return };
    match unless_ended(&pulse, connecting).await {
        Some(Ok(connection)) => {
            drop(handshake);
            peer.name = name(&connection).map(Rc::from);
            connection::serve(worker, connection, Rc::new(peer), pulse).await;
        }
        Some(Err(error)) => report(&worker, &peer, &error),
        None => {}
    }
}

/// The name in the client's certificate.
fn name(connection: &quinn::Connection) -> Option<String> {
    let chain = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    client_name(&chain)
}

/// Reports a failed handshake, unless the client just went away.
fn report(worker: &Worker, peer: &Peer, error: &ConnectionError) {
    let failed = matches!(error, ConnectionError::TransportError(_) | ConnectionError::ConnectionClosed(_));
    if let Some(address) = peer.address.filter(|_| failed) {
        let client = address.ip().to_canonical();
        worker.report(Trouble::Tls, || format!("TLS handshake with {client} failed: {error}"));
    }
}
