//! The count of the open connections of a worker.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::address_connections::AddressConnection;
use crate::log::ErrorCategory;
use crate::metrics::WorkerCounters;
use crate::state::{Peer, Worker};

/// An open connection, counted until this guard is dropped.
pub(super) struct OpenConnection {
    worker: Rc<Worker>,
    /// The count for the client's address, if connections are limited by address.
    of_address: OnceCell<AddressConnection>,
}

impl OpenConnection {
    pub(super) fn new(worker: &Rc<Worker>) -> Self {
        worker.connections.set(worker.connections.get() + 1);
        worker.burst.begin();
        worker.counters().into_iter().for_each(WorkerCounters::connection_opened);
        Self { worker: Rc::clone(worker), of_address: OnceCell::new() }
    }

    /// Returns the worker of the connection.
    pub(super) fn worker(&self) -> Rc<Worker> {
        Rc::clone(&self.worker)
    }

    /// Counts the connection for the client's address. Returns false if there are too many; the
    /// connection is then to be closed.
    pub(super) fn is_admitted(&self, peer: &Peer) -> bool {
        let most = self.worker.plan().limits.connections_per_address;
        let Some(address) = peer.address.filter(|_| most > 0 && !peer.is_proxy) else { return true };
        let Some(counted) = self.worker.shared.address_connections.open(address.ip(), most) else {
            self.worker.report(ErrorCategory::Connections, || {
                format!("{} has {most} connections, the limit: a further one was closed", address.ip())
            });
            return false;
        };
        // Each connection is counted once.
        let _ = self.of_address.set(counted);
        true
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.worker.connections.set(self.worker.connections.get().saturating_sub(1));
        self.worker.burst.end();
        self.worker.counters().into_iter().for_each(WorkerCounters::connection_closed);
        self.worker.connection_closed.notify_waiters();
    }
}
