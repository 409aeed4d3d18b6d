//! Response bytes in this process's memory that no socket has taken yet: the limit of each
//! connection, and the limit of all connections together.
//!
//! Owns: both limits, and the tasks of the bodies that wait for them. Does not own: the buffers.
//! Cached bodies are shared and belong to the cache, and sendfile placeholders ([`super::chunk`])
//! take no memory: neither counts here.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use fathom_files::WorkerBuffer;

#[cfg(feature = "http3")]
use super::unacked::UnacknowledgedBytes;

/// Unsent bytes at which a connection reads no further piece.
pub(super) const FULL_BYTES: usize = 1 << 20;
/// The size of a piece while the budget of all connections is exhausted; a connection then has one
/// such piece at a time. An HTTP/2 frame holds as much. The buffer of a piece is no longer than the
/// piece.
pub(crate) const SMALL_BYTES: usize = WorkerBuffer::UNPOOLED_MAX;
/// About the memory of a stalled stream besides its body: its task, its state in `h2`, its file.
pub(crate) const STREAM_BYTES: usize = 4 << 10;

/// The unsent bytes of all connections.
#[derive(Debug)]
pub(crate) struct SendBudget {
    used: AtomicUsize,
    limit: AtomicUsize,
}

impl SendBudget {
    /// Creates a budget that is exhausted at `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: AtomicUsize::new(0), limit: AtomicUsize::new(limit) }
    }

    /// Sets the limit.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the unsent bytes.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts `bytes`.
    #[cfg(feature = "http3")]
    pub(super) fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Removes `bytes` from the count.
    #[cfg(feature = "http3")]
    pub(super) fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns whether connections are restricted to [`SMALL_BYTES`] at a time.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.used() >= self.limit.load(Ordering::Relaxed)
    }
}

/// The unsent bytes of one connection. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionSendBudget(Rc<ConnectionSendState>);

#[derive(Debug)]
struct ConnectionSendState {
    budget: Arc<SendBudget>,
    bytes: Cell<usize>,
    #[cfg(feature = "http3")]
    unacked: UnacknowledgedBytes,
    /// Streams that wait for flow control and hold a [`StreamCharge`].
    stalled_streams: Cell<usize>,
    /// Wakers of the bodies that wait for room: no more than the connection has streams.
    wakers: RefCell<Vec<Waker>>,
}

impl ConnectionSendBudget {
    pub(crate) fn new(budget: Arc<SendBudget>) -> Self {
        Self(Rc::new(ConnectionSendState {
            bytes: Cell::new(0),
            #[cfg(feature = "http3")]
            unacked: UnacknowledgedBytes::new(Arc::clone(&budget)),
            budget,
            stalled_streams: Cell::new(0),
            wakers: RefCell::default(),
        }))
    }

    /// Returns the count of bytes that a QUIC connection has sent and its client not acknowledged.
    /// They take room like unsent bytes.
    #[cfg(feature = "http3")]
    pub(crate) fn unacked(&self) -> &UnacknowledgedBytes {
        &self.0.unacked
    }

    #[cfg(feature = "http3")]
    fn bytes(&self) -> usize {
        self.0.bytes.get() + self.0.unacked.bytes()
    }

    #[cfg(not(feature = "http3"))]
    fn bytes(&self) -> usize {
        self.0.bytes.get()
    }

    /// Returns the bytes that the next piece may have; `None` while the connection has enough
    /// unsent bytes. A connection without unsent bytes always has room, so no connection waits for
    /// another.
    fn room(&self) -> Option<usize> {
        let bytes = self.bytes();
        match self.0.budget.is_exhausted() {
            true => (bytes == 0).then_some(SMALL_BYTES),
            false => (bytes < FULL_BYTES).then_some(usize::MAX),
        }
    }

    /// Returns `Ready` with the bytes that the next piece may have. Otherwise the task is woken
    /// when unsent bytes of this connection are dropped.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<usize> {
        let room = self.room();
        if room.is_none() {
            let mut wakers = self.0.wakers.borrow_mut();
            if !wakers.iter().any(|known| known.will_wake(cx.waker())) {
                wakers.push(cx.waker().clone());
            }
            #[cfg(feature = "http3")]
            self.0.unacked.wake_on_release(cx);
        }
        room.map_or(Poll::Pending, Poll::Ready)
    }

    /// Counts `bytes` until the charge is dropped.
    pub(crate) fn charge(&self, bytes: usize) -> SendCharge {
        self.0.bytes.set(self.0.bytes.get() + bytes);
        self.0.budget.used.fetch_add(bytes, Ordering::Relaxed);
        SendCharge { bytes, send_budget: self.clone() }
    }

    /// Counts a stream that waits for flow control and holds `bytes` of its own. Returns `None` if
    /// the budget is exhausted and the connection has another such stream.
    pub(crate) fn charge_stalled(&self, bytes: usize) -> Option<StreamCharge> {
        if self.0.budget.is_exhausted() && self.0.stalled_streams.get() > 0 {
            return None;
        }
        let bytes = bytes + STREAM_BYTES;
        self.0.stalled_streams.set(self.0.stalled_streams.get() + 1);
        self.0.budget.used.fetch_add(bytes, Ordering::Relaxed);
        Some(StreamCharge { bytes, send_budget: self.clone() })
    }
}

/// Unsent bytes of one connection, counted until this charge is dropped.
#[derive(Debug)]
pub(crate) struct SendCharge {
    bytes: usize,
    send_budget: ConnectionSendBudget,
}

impl SendCharge {
    /// Splits a charge of `bytes` off this one.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { bytes, send_budget: self.send_budget.clone() }
    }
}

impl Drop for SendCharge {
    fn drop(&mut self) {
        let inner = &self.send_budget.0;
        inner.bytes.set(inner.bytes.get().saturating_sub(self.bytes));
        inner.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        // Wake all waiting bodies: a single one might have been dropped or have nothing left to
        // read.
        inner.wakers.take().into_iter().for_each(Waker::wake);
    }
}

/// A stream that waits for flow control, counted until this charge is dropped.
#[derive(Debug)]
pub(crate) struct StreamCharge {
    bytes: usize,
    send_budget: ConnectionSendBudget,
}

impl Drop for StreamCharge {
    fn drop(&mut self) {
        let inner = &self.send_budget.0;
        inner.stalled_streams.set(inner.stalled_streams.get().saturating_sub(1));
        inner.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    #[test]
    fn a_connection_has_a_limit_of_unsent_bytes() {
        let send_budget = ConnectionSendBudget::new(Arc::new(SendBudget::new(usize::MAX)));
        assert_eq!(send_budget.poll_room(&cx()), Poll::Ready(usize::MAX));
        let mut load = send_budget.charge(FULL_BYTES);
        assert!(send_budget.poll_room(&cx()).is_pending());
        drop(load.split(1));
        assert!(send_budget.poll_room(&cx()).is_ready());
        drop(load);
        assert_eq!((send_budget.0.bytes.get(), send_budget.0.budget.used()), (0, 0));
    }

    #[test]
    fn an_exhausted_budget_leaves_each_connection_one_small_piece() {
        let budget = Arc::new(SendBudget::new(100));
        let [one, other] = [(); 2].map(|()| ConnectionSendBudget::new(Arc::clone(&budget)));
        let many = one.charge(100);
        assert!(one.poll_room(&cx()).is_pending());
        assert_eq!(other.poll_room(&cx()), Poll::Ready(SMALL_BYTES), "it waits for no other connection");
        let piece = other.charge(SMALL_BYTES);
        assert!(other.poll_room(&cx()).is_pending());
        drop(piece);
        assert!(other.poll_room(&cx()).is_ready());
        budget.set_limit(101);
        assert_eq!(one.poll_room(&cx()), Poll::Ready(usize::MAX));
        drop(many);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    #[cfg(feature = "http3")]
    fn unacknowledged_bytes_take_room() {
        let budget = Arc::new(SendBudget::new(FULL_BYTES + 1));
        let send_budget = ConnectionSendBudget::new(Arc::clone(&budget));
        let read = send_budget.charge(FULL_BYTES / 2);
        let sent = send_budget.unacked().count(vec![0; FULL_BYTES / 2]);
        assert!(send_budget.poll_room(&cx()).is_pending());
        drop(read);
        assert_eq!(send_budget.poll_room(&cx()), Poll::Ready(usize::MAX));
        budget.set_limit(1);
        assert!(send_budget.poll_room(&cx()).is_pending());
        let other = ConnectionSendBudget::new(Arc::clone(&budget));
        assert_eq!(other.poll_room(&cx()), Poll::Ready(SMALL_BYTES));
        drop(sent);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_stream_of_a_connection_may_always_wait() {
        let budget = Arc::new(SendBudget::new(2 * STREAM_BYTES));
        let [one, other] = [(); 2].map(|()| ConnectionSendBudget::new(Arc::clone(&budget)));
        let held = [one.charge_stalled(0).unwrap(), one.charge_stalled(0).unwrap()];
        assert!(one.charge_stalled(0).is_none());
        let first = other.charge_stalled(1000).unwrap();
        assert!(other.charge_stalled(0).is_none());
        drop((held, first));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn all_waiting_bodies_are_woken_once() {
        struct WakeCount(AtomicUsize);
        impl std::task::Wake for WakeCount {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let send_budget = ConnectionSendBudget::new(Arc::new(SendBudget::new(usize::MAX)));
        let full = send_budget.charge(FULL_BYTES);
        let woken = [(); 2].map(|()| Arc::new(WakeCount(AtomicUsize::new(0))));
        for task in &woken {
            let waker = Waker::from(Arc::clone(task));
            (0..3).for_each(|_| assert!(send_budget.poll_room(&Context::from_waker(&waker)).is_pending()));
        }
        drop(full);
        assert_eq!(woken.map(|task| task.0.load(Ordering::Relaxed)), [1, 1]);
    }
}
