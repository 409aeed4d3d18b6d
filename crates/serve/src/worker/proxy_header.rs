//! The client behind a trusted proxy, named in a PROXY header once for the connection, or in a
//! header of each request.

use std::hash::BuildHasher;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use http::HeaderMap;

use super::connection::unless_draining;
use crate::conn::deadlines::ConnectionState;
use crate::conn::transport::Transport;
use crate::log::ErrorCategory;
use crate::state::{Peer, Worker};

/// Reads the PROXY header of a connection whose peer has to send one. Returns whether the
/// connection goes on.
pub(super) async fn read_client_address(
    worker: &Worker,
    transport: &mut Transport,
    peer: &mut Peer,
    state: &ConnectionState,
) -> bool {
    let plan = worker.plan();
    let Some(proxies) = plan.proxies.as_ref().filter(|proxies| proxies.trusts(peer.address)) else {
        return true;
    };
    peer.is_proxy = !proxies.use_proxy_protocol();
    if peer.is_proxy {
        return true;
    }
    drop(plan);
    match unless_draining(state, transport.read_proxy_header()).await {
        Some(Ok(client)) => {
            if let Some(client) = client {
                worker.set_client_address(peer, client);
            }
            true
        }
        Some(Err(error)) => {
            if error.kind() == io::ErrorKind::InvalidData {
                let proxy = peer.address.map_or("unix".to_owned(), |address| address.ip().to_string());
                worker.report(ErrorCategory::Proxy, || {
                    format!("connection from proxy {proxy} has no PROXY header")
                });
            }
            false
        }
        None => false,
    }
}

impl Worker {
    /// Returns the peer for which a request on the connection of `peer` was sent.
    pub(super) fn peer_for_request(&self, peer: Rc<Peer>, fields: &HeaderMap) -> Rc<Peer> {
        if !peer.is_proxy {
            return peer;
        }
        let plan = self.plan();
        match plan.proxies.as_ref().and_then(|proxies| proxies.client(fields)) {
            Some(client) => {
                let mut other = Peer::clone(&peer);
                self.set_client_address(&mut other, SocketAddr::new(client, 0));
                Rc::new(other)
            }
            None => peer,
        }
    }

    fn set_client_address(&self, peer: &mut Peer, client: SocketAddr) {
        peer.address = Some(client);
        peer.client = self.client(Some(client.ip()));
    }

    /// Returns the key of `address` in the fair queue of the pool.
    pub(super) fn client(&self, address: Option<IpAddr>) -> u64 {
        self.shared.hasher.hash_one(address.map(|address| address.to_canonical()))
    }
}
