//! The peer of a connection.

use std::net::SocketAddr;
use std::rc::Rc;

use crate::conn::chunk::SendfileQueue;
use crate::conn::send_budget::ConnectionSendBudget;
use crate::places::PlaceClient;

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
    pub(crate) is_proxy: bool,
    /// The port of the encrypted site, if the connection only redirects there.
    pub(crate) redirect_port: Option<u16>,
    /// The value of `Alt-Svc` (RFC 7838) in responses, if HTTP/3 is served.
    #[cfg(feature = "http3")]
    pub(crate) alt_svc: Option<http::HeaderValue>,
}

impl Peer {
    /// Returns the client for limits of places.
    pub(crate) fn place_client(&self) -> PlaceClient {
        PlaceClient { key: self.client, are_many: self.address.is_none() }
    }
}
