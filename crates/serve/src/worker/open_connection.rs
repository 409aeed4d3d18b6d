//! The count of the open connections of a worker.

use std::rc::Rc;

use crate::metrics::WorkerCounters;
use crate::state::Worker;

/// An open connection, counted until this guard is dropped.
pub(super) struct OpenConnection(Rc<Worker>);

impl OpenConnection {
    pub(super) fn new(worker: &Rc<Worker>) -> Self {
        worker.connections.set(worker.connections.get() + 1);
        worker.burst.begin();
        worker.counters().into_iter().for_each(WorkerCounters::connection_opened);
        Self(Rc::clone(worker))
    }

    /// Returns the worker of the connection.
    pub(super) fn worker(&self) -> Rc<Worker> {
        Rc::clone(&self.0)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get().saturating_sub(1));
        self.0.burst.end();
        self.0.counters().into_iter().for_each(WorkerCounters::connection_closed);
        self.0.connection_closed.notify_waiters();
    }
}
