//! An HTTP/3 client of the same libraries, and a QUIC client for bytes that those would not send.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::{Buf, Bytes, BytesMut};
use fathom_serve::config::TlsConfig;
use h3::client::SendRequest;
use h3::error::{ConnectionError, StreamError};
use http::{HeaderMap, Request, StatusCode};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Endpoint, TransportConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::support::{LONG, Tree};

/// Runs `future`, beside a thread that drives the sockets and timers of all tests.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    let handle = RUNTIME.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        handle
    });
    handle.block_on(async { timeout(LONG, future).await.expect("it takes too long") })
}

/// A certificate authority.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    /// Writes a certificate for `name` and its key beside the served directory.
    pub(crate) fn certify(&self, tree: &Tree, name: &str) -> (TlsConfig, KeyPair) {
        let (certificate, key) = self.sign(name);
        tree.write("../cert.pem", certificate.pem().as_bytes());
        tree.write("../key.pem", key.serialize_pem().as_bytes());
        let owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(tree.at("../key.pem"), owner).unwrap();
        let path = |name: &str| Some(tree.at(name));
        let tls = TlsConfig {
            certificate: path("../cert.pem"),
            key: path("../key.pem"),
            http3: true,
            ..TlsConfig::default()
        };
        (tls, key)
    }

    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// Returns the authority's certificate, for the verification of clients.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a client certificate with its key.
    pub(crate) fn identity(&self, name: &str) -> Identity {
        let (certificate, key) = self.sign(name);
        (certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }

    /// Returns the root store of a client that trusts the authority.
    pub(crate) fn trust(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }
}

pub(crate) type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

/// The parameters of a client's connection.
pub(crate) struct Connector {
    pub(crate) roots: RootCertStore,
    pub(crate) name: &'static str,
    pub(crate) identity: Option<Identity>,
    pub(crate) transport: TransportConfig,
}

impl Connector {
    pub(crate) fn new(authority: &Authority) -> Self {
        Self {
            roots: authority.trust(),
            name: "localhost",
            identity: None,
            transport: TransportConfig::default(),
        }
    }

    /// Limits the unread bytes of each stream.
    pub(crate) fn window(mut self, bytes: u32) -> Self {
        self.transport.stream_receive_window(bytes.into());
        self
    }

    fn config(self) -> quinn::ClientConfig {
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).unwrap();
        let builder = builder.with_root_certificates(self.roots);
        let mut tls = match self.identity {
            Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
            None => builder.with_no_client_auth(),
        };
        tls.alpn_protocols = vec![b"h3".to_vec()];
        let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        config.transport_config(Arc::new(self.transport));
        config
    }

    /// Opens a QUIC connection without HTTP.
    pub(crate) async fn quic(self, address: &str) -> Result<Quic, quinn::ConnectionError> {
        let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        let (name, address) = (self.name, address.parse::<SocketAddr>().unwrap());
        let connection = endpoint.connect_with(self.config(), address, name).unwrap().await?;
        Ok(Quic { connection, _endpoint: endpoint })
    }

    /// Starts a handshake, which continues until the value is dropped.
    pub(crate) fn start(self, address: &str) -> impl Sized {
        run(async {
            let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let (name, address) = (self.name, address.parse::<SocketAddr>().unwrap());
            let connecting = endpoint.connect_with(self.config(), address, name).unwrap();
            (connecting, endpoint)
        })
    }

    pub(crate) async fn connect(self, address: &str) -> Result<Client, ConnectionError> {
        let quic = self.quic(address).await.expect("no connection");
        let connection = h3_quinn::Connection::new(quic.connection.clone());
        let (mut driver, requests) = h3::client::new(connection).await?;
        let driver = tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
        Ok(Client { quic, requests, driver })
    }
}

/// A QUIC connection.
pub(crate) struct Quic {
    pub(crate) connection: quinn::Connection,
    _endpoint: Endpoint,
}

/// An HTTP/3 connection.
pub(crate) struct Client {
    pub(crate) quic: Quic,
    pub(crate) requests: SendRequest<h3_quinn::OpenStreams, Bytes>,
    /// The task that drives the connection; it ends with the connection.
    pub(crate) driver: JoinHandle<ConnectionError>,
}

pub(crate) type Stream = h3::client::RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Client {
    /// Sends a request without a body.
    pub(crate) async fn begin(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<Stream, StreamError> {
        let mut request = Request::builder().method(method).uri(format!("https://localhost{path}"));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut stream = self.requests.send_request(request.body(()).unwrap()).await?;
        stream.finish().await?;
        Ok(stream)
    }

    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<Response, StreamError> {
        let mut stream = self.begin(method, path, fields).await?;
        finish(&mut stream).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response {
        self.ask("GET", path, &[]).await.unwrap()
    }
}

/// Reads the response to the end.
pub(crate) async fn finish(stream: &mut Stream) -> Result<Response, StreamError> {
    let (head, ()) = stream.recv_response().await?.into_parts();
    let mut body = BytesMut::new();
    while let Some(mut piece) = stream.recv_data().await? {
        body.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
    }
    Ok(Response { status: head.status, fields: head.headers, body: body.to_vec() })
}
