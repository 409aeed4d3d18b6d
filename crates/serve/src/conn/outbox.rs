//! Bytes of response bodies that are in memory of their own and not yet in a socket: how many a
//! connection may have, and all connections together.
//!
//! Owns: both limits, and which bodies wait for them. Does not own: the buffers. Bodies that are
//! kept are the cache's and shared, and windows of files ([`super::chunk`]) are no memory: neither
//! counts here.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

/// A connection that has so many bytes on their way reads no more.
pub(super) const FULL_BYTES: usize = 1 << 20;
/// The only piece that a connection has on its way while all connections together have too much. A
/// frame of HTTP/2 holds as much.
pub(crate) const SMALL_BYTES: usize = 16 << 10;
/// About what a stream of HTTP/2 takes besides its body: its task, its state in `h2`, its file.
pub(crate) const STREAM_BYTES: usize = 4 << 10;

/// Bytes that all connections together have on their way.
#[derive(Debug)]
pub(crate) struct SendBudget {
    used: AtomicUsize,
    limit: AtomicUsize,
}

impl SendBudget {
    /// One that is exhausted at `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: AtomicUsize::new(0), limit: AtomicUsize::new(limit) }
    }

    /// Counts against `limit` from now on.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes on their way.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts `bytes` that are on their way now.
    #[cfg(feature = "http3")]
    pub(super) fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes `bytes` out of the count.
    #[cfg(feature = "http3")]
    pub(super) fn remove(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether connections get [`SMALL_BYTES`] at a time.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.used() >= self.limit.load(Ordering::Relaxed)
    }
}

/// The count of unsent bytes of one connection. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct Outbox(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    budget: Arc<SendBudget>,
    bytes: Cell<usize>,
    /// Streams of HTTP/2 that wait for their window and are counted for that.
    held: Cell<usize>,
    /// Bodies that wait for room: no more than the connection has streams.
    waiting: RefCell<Vec<Waker>>,
}

impl Outbox {
    pub(crate) fn new(budget: Arc<SendBudget>) -> Self {
        let (bytes, held, waiting) = (Cell::new(0), Cell::new(0), RefCell::default());
        Self(Rc::new(Inner { budget, bytes, held, waiting }))
    }

    /// Bytes that the next piece may have; none while the connection has enough on its way. A
    /// connection with nothing on its way always gets something, so that no connection waits for
    /// another.
    fn room(&self) -> Option<usize> {
        let bytes = self.0.bytes.get();
        match self.0.budget.is_exhausted() {
            true => (bytes == 0).then_some(SMALL_BYTES),
            false => (bytes < FULL_BYTES).then_some(usize::MAX),
        }
    }

    /// Ready with the bytes that the next piece may have. The task is woken when something of this
    /// connection is out.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<usize> {
        let room = self.room();
        if room.is_none() {
            let mut waiting = self.0.waiting.borrow_mut();
            if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
        }
        room.map_or(Poll::Pending, Poll::Ready)
    }

    /// Counts `bytes` until the value is dropped.
    pub(crate) fn load(&self, bytes: usize) -> Load {
        self.0.bytes.set(self.0.bytes.get() + bytes);
        self.0.budget.used.fetch_add(bytes, Ordering::Relaxed);
        Load { bytes, outbox: self.clone() }
    }

    /// Counts a stream that waits for its window with `bytes` of its own. None if memory is short
    /// and the connection has another one that waits.
    pub(crate) fn hold(&self, bytes: usize) -> Option<Hold> {
        if self.0.budget.is_exhausted() && self.0.held.get() > 0 {
            return None;
        }
        let bytes = bytes + STREAM_BYTES;
        self.0.held.set(self.0.held.get() + 1);
        self.0.budget.used.fetch_add(bytes, Ordering::Relaxed);
        Some(Hold { bytes, outbox: self.clone() })
    }
}

/// Bytes of a connection on their way.
#[derive(Debug)]
pub(crate) struct Load {
    bytes: usize,
    outbox: Outbox,
}

impl Load {
    /// Takes `bytes` of it out, to be counted apart.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { bytes, outbox: self.outbox.clone() }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let inner = &self.outbox.0;
        inner.bytes.set(inner.bytes.get().saturating_sub(self.bytes));
        inner.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        // All of them: one alone might be gone, or have nothing to read by now.
        inner.waiting.take().into_iter().for_each(Waker::wake);
    }
}

/// A stream that waits for its window.
#[derive(Debug)]
pub(crate) struct Hold {
    bytes: usize,
    outbox: Outbox,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let inner = &self.outbox.0;
        inner.held.set(inner.held.get().saturating_sub(1));
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
    fn a_connection_has_so_much_on_its_way() {
        let outbox = Outbox::new(Arc::new(SendBudget::new(usize::MAX)));
        assert_eq!(outbox.poll_room(&cx()), Poll::Ready(usize::MAX));
        let mut load = outbox.load(FULL_BYTES);
        assert!(outbox.poll_room(&cx()).is_pending());
        drop(load.split(1));
        assert!(outbox.poll_room(&cx()).is_ready());
        drop(load);
        assert_eq!((outbox.0.bytes.get(), outbox.0.budget.used()), (0, 0));
    }

    #[test]
    fn with_too_much_in_all_each_connection_has_a_little() {
        let budget = Arc::new(SendBudget::new(100));
        let [one, other] = [(); 2].map(|()| Outbox::new(Arc::clone(&budget)));
        let many = one.load(100);
        assert!(one.poll_room(&cx()).is_pending());
        assert_eq!(other.poll_room(&cx()), Poll::Ready(SMALL_BYTES), "it waits for no other connection");
        let piece = other.load(SMALL_BYTES);
        assert!(other.poll_room(&cx()).is_pending());
        drop(piece);
        assert!(other.poll_room(&cx()).is_ready());
        budget.set_limit(101);
        assert_eq!(one.poll_room(&cx()), Poll::Ready(usize::MAX));
        drop(many);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_stream_of_a_connection_may_always_wait() {
        let budget = Arc::new(SendBudget::new(2 * STREAM_BYTES));
        let [one, other] = [(); 2].map(|()| Outbox::new(Arc::clone(&budget)));
        let held = [one.hold(0).unwrap(), one.hold(0).unwrap()];
        assert!(one.hold(0).is_none());
        let first = other.hold(1000).unwrap();
        assert!(other.hold(0).is_none());
        drop((held, first));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn all_that_wait_for_room_are_woken_once() {
        struct Woken(AtomicUsize);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let outbox = Outbox::new(Arc::new(SendBudget::new(usize::MAX)));
        let full = outbox.load(FULL_BYTES);
        let woken = [(); 2].map(|()| Arc::new(Woken(AtomicUsize::new(0))));
        for task in &woken {
            let waker = Waker::from(Arc::clone(task));
            (0..3).for_each(|_| assert!(outbox.poll_room(&Context::from_waker(&waker)).is_pending()));
        }
        drop(full);
        assert_eq!(woken.map(|task| task.0.load(Ordering::Relaxed)), [1, 1]);
    }
}
