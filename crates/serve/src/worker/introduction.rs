//! The client that a trusted proxy speaks for: told once for a connection, or with each request.

use std::hash::BuildHasher;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use http::HeaderMap;

use super::connection::unless_ended;
use super::{Peer, Worker};
use crate::conn::pulse::Pulse;
use crate::conn::transport::Transport;
use crate::log::Trouble;

/// Reads the PROXY header of a connection, where the neighbour has to send one. Returns whether the
/// connection goes on.
pub(super) async fn introduce(
    worker: &Worker,
    transport: &mut Transport,
    peer: &mut Peer,
    pulse: &Pulse,
) -> bool {
    let plan = worker.plan();
    let Some(proxies) = plan.proxies.as_ref().filter(|proxies| proxies.trust(peer.address)) else {
        return true;
    };
    peer.is_proxy = !proxies.speak_protocol();
    if peer.is_proxy {
        return true;
    }
    drop(plan);
    match unless_ended(pulse, transport.introduction()).await {
        Some(Ok(client)) => {
            if let Some(client) = client {
                worker.stand_for(peer, client);
            }
            true
        }
        Some(Err(error)) => {
            if error.kind() == io::ErrorKind::InvalidData {
                let proxy = peer.address.map_or("unix".to_owned(), |address| address.ip().to_string());
                worker.report(Trouble::Proxy, || {
                    format!("connection of proxy {proxy} begins without a PROXY header")
                });
            }
            false
        }
        None => false,
    }
}

impl Worker {
    /// Returns the peer that a request on the connection of `peer` was sent for.
    pub(super) fn peer_of(&self, peer: Rc<Peer>, fields: &HeaderMap) -> Rc<Peer> {
        if !peer.is_proxy {
            return peer;
        }
        let plan = self.plan();
        match plan.proxies.as_ref().and_then(|proxies| proxies.client(fields)) {
            Some(client) => {
                let mut other = Peer::clone(&peer);
                self.stand_for(&mut other, SocketAddr::new(client, 0));
                Rc::new(other)
            }
            None => peer,
        }
    }

    fn stand_for(&self, peer: &mut Peer, client: SocketAddr) {
        peer.address = Some(client);
        peer.client = self.client(Some(client.ip()));
    }

    /// Returns the key under which the work for `address` takes its turn.
    pub(super) fn client(&self, address: Option<IpAddr>) -> u64 {
        self.shared.hasher.hash_one(address.map(|address| address.to_canonical()))
    }
}
