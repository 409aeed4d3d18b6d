//! HTTP/3: a UDP socket on each encrypted address, all on one worker, and the QUIC connections on
//! them.
//!
//! Owns: the admission of connections, and the limits on their memory. Does not own: QUIC
//! (`quinn`), frames (`h3`), the content of responses.

mod connection;
mod quic;
mod request;
mod streams;

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

use super::connection::unless_draining;
use super::open_connection::OpenConnection;
use crate::config::Limits;
use crate::conn::deadlines::ConnectionState;
use crate::conn::send_budget::ConnectionSendBudget;
use crate::log::ErrorCategory;
use crate::state::{Peer, Worker};
use crate::tls::client_name;

/// The ALPN protocol name (RFC 9114, section 3.1).
const PROTOCOL: &[u8] = b"h3";
/// With this many handshakes under way, clients have to validate their address first (RFC 9000,
/// section 8.1.2), which a forged address cannot.
const HANDSHAKES_UNVALIDATED_MAX: usize = 32;
/// The most handshakes under way.
const HANDSHAKES_MAX: usize = 512;
/// The most connections that wait for this task to accept them, and the bytes that each and all of
/// them may have sent meanwhile.
const INCOMING_MAX: usize = 256;
const INCOMING_BYTES: u64 = 16 << 10;
const INCOMING_BYTES_ALL: u64 = 2 << 20;
/// The most unidirectional streams at once: a client needs three.
const CONTROL_STREAMS: u32 = 8;
/// The receive windows of a stream and of a connection.
const STREAM_WINDOW_BYTES: u32 = 32 << 10;
const WINDOW_BYTES: u32 = 256 << 10;
/// The send window of a connection. It is larger than the send budget of a connection, so the send
/// budget is the effective limit.
const SEND_BYTES: u64 = 4 << 20;
/// QUIC's idle timeout: a client that sends no packet for this long is gone.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The interval of keep-alive packets, which make a client that silently waits for a response send
/// acknowledgements.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// The longest wait for the last packets of a closed endpoint.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(100);

/// The QUIC endpoints of a worker, and the tasks that accept connections on them.
pub(super) struct Endpoints {
    endpoints: Vec<(Endpoint, JoinHandle<()>)>,
}

impl Endpoints {
    /// Opens endpoints on `sockets` and spawns the tasks that accept connections.
    pub(super) fn open(worker: &Rc<Worker>, sockets: Vec<UdpSocket>) -> io::Result<Self> {
        let mut open = Self { endpoints: Vec::new() };
        for socket in sockets {
            let settings = QuicSettings::new(worker)?;
            let (config, runtime) = (EndpointConfig::default(), Arc::new(TokioRuntime));
            let endpoint = Endpoint::new(config, Some(settings.current(worker)?), socket, runtime)?;
            let accepting = worker.spawn_essential(accept(Rc::clone(worker), endpoint.clone(), settings));
            open.endpoints.push((endpoint, accepting));
        }
        Ok(open)
    }

    /// Closes the endpoints and waits for their last packets.
    pub(super) async fn close(&self) {
        for (endpoint, accepting) in &self.endpoints {
            accepting.abort();
            endpoint.close(streams::code(h3::error::Code::H3_NO_ERROR), b"");
            let _silent = timeout(CLOSE_TIMEOUT, endpoint.wait_idle()).await;
        }
    }
}

/// The QUIC configuration, updated when certificates or limits have changed.
struct QuicSettings {
    cached: RefCell<(Arc<rustls::ServerConfig>, ServerConfig)>,
}

impl QuicSettings {
    fn new(worker: &Worker) -> io::Result<Self> {
        let tls = tls(worker)?;
        let mut config = ServerConfig::with_crypto(crypto(&tls)?);
        // Access rules and logs refer to the address with which a connection began.
        config.migration(false);
        config.max_incoming(INCOMING_MAX);
        config.incoming_buffer_size(INCOMING_BYTES).incoming_buffer_size_total(INCOMING_BYTES_ALL);
        Ok(Self { cached: RefCell::new((tls, config)) })
    }

    /// Returns the configuration of a connection that begins now.
    fn current(&self, worker: &Worker) -> io::Result<ServerConfig> {
        let (tls, mut cached) = (tls(worker)?, self.cached.borrow_mut());
        if !Arc::ptr_eq(&tls, &cached.0) {
            // Keep the rest: it holds the key of the address validation tokens.
            cached.1.crypto = crypto(&tls)?;
            cached.0 = tls;
        }
        let mut config = cached.1.clone();
        config.transport_config(Arc::new(transport(&worker.plan().limits)));
        Ok(config)
    }
}

fn tls(worker: &Worker) -> io::Result<Arc<rustls::ServerConfig>> {
    let holder = worker.shared.tls.as_ref().ok_or_else(|| io::Error::other("HTTP/3 takes TLS"))?;
    Ok(holder.current())
}

/// Returns the TLS configuration for QUIC: the certificates, keys and client certificate rules of
/// TCP.
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
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .keep_alive_interval(Some(KEEP_ALIVE))
        .datagram_receive_buffer_size(None)
        .datagram_send_buffer_size(0);
    transport
}

async fn accept(worker: Rc<Worker>, endpoint: Endpoint, settings: QuicSettings) {
    let handshakes = Rc::<Cell<usize>>::default();
    while let Some(incoming) = endpoint.accept().await {
        if let Some((incoming, peer)) = admit(&worker, &handshakes, incoming)
            && let Ok(config) = settings.current(&worker)
        {
            let open = OpenConnection::new(&worker);
            let handshake = HandshakeGuard::new(&handshakes);
            let connection = handshake_and_serve(open, handshake, incoming, config, peer);
            spawn_local(worker.contain("a connection", connection, || ()));
        }
    }
}

/// A handshake under way, counted until this guard is dropped.
struct HandshakeGuard(Rc<Cell<usize>>);

impl HandshakeGuard {
    fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for HandshakeGuard {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Accepts `incoming`, makes its client validate the address, or refuses it.
fn admit(worker: &Rc<Worker>, handshakes: &Cell<usize>, incoming: Incoming) -> Option<(Incoming, Peer)> {
    if worker.is_draining.get() || worker.is_full() || handshakes.get() >= HANDSHAKES_MAX {
        incoming.refuse();
        return None;
    }
    if handshakes.get() >= HANDSHAKES_UNVALIDATED_MAX && !incoming.remote_address_validated() {
        // An error would mean that the address is validated, which was ruled out above.
        drop(incoming.retry());
        return None;
    }
    let address = incoming.remote_address();
    let (is_proxy, speaks_protocol) = match &worker.plan().proxies {
        Some(proxies) if proxies.trusts(Some(address)) => {
            (!proxies.use_proxy_protocol(), proxies.use_proxy_protocol())
        }
        _ => (false, false),
    };
    // QUIC carries no PROXY protocol header, so the client's address would be unknown.
    if speaks_protocol {
        incoming.refuse();
        return None;
    }
    let peer = Peer {
        address: Some(address),
        client: worker.client(Some(address.ip())),
        tls: true,
        certificate_name: None,
        sendfile_queue: None,
        send_budget: ConnectionSendBudget::new(Arc::clone(&worker.shared.send_budget)),
        may_sendfile_files: false,
        is_proxy,
        redirect_port: None,
        alt_svc: None,
    };
    Some((incoming, peer))
}

async fn handshake_and_serve(
    open: OpenConnection,
    handshake: HandshakeGuard,
    incoming: Incoming,
    config: ServerConfig,
    mut peer: Peer,
) {
    let (worker, state) = (open.worker(), ConnectionState::new(open.worker().shared.clock.clone()));
    let _entry = worker.connection_table.add(&state);
    let Ok(connecting) = incoming.accept_with(Arc::new(config)) else { return };
    match unless_draining(&state, connecting).await {
        Some(Ok(connection)) => {
            drop(handshake);
            // Only now is the address certain to be the client's.
            if !open.is_admitted(&peer) {
                return;
            }
            peer.certificate_name = name(&connection).map(Rc::from);
            connection::serve(worker, connection, Rc::new(peer), state).await;
        }
        Some(Err(error)) => report(&worker, &peer, &error),
        None => {}
    }
}

/// Returns the name in the client's certificate.
fn name(connection: &quinn::Connection) -> Option<String> {
    let chain = connection.peer_identity()?.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    client_name(&chain)
}

/// Reports a failed handshake, unless the client closed the connection.
fn report(worker: &Worker, peer: &Peer, error: &ConnectionError) {
    let failed = matches!(error, ConnectionError::TransportError(_) | ConnectionError::ConnectionClosed(_));
    if let Some(address) = peer.address.filter(|_| failed) {
        let client = address.ip().to_canonical();
        worker.report(ErrorCategory::Tls, || format!("TLS handshake with {client} failed: {error}"));
    }
}
