//! Response bytes that a QUIC connection keeps until its client acknowledges them. For TCP the
//! kernel keeps them; here they are this process's memory, so they count toward the same limits as
//! other unsent bytes ([`super::send_budget`]).
//!
//! Owns: the count of one connection, and the tasks that wait for it to fall. Does not own: the
//! bytes, which the QUIC library drops when they are acknowledged or their stream is reset.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use bytes::Bytes;

use super::send_budget::SendBudget;

/// The unacknowledged bytes of one connection. Clones share the count. `Bytes` may be dropped on
/// any thread as far as types go, so the count is atomic; in fact each connection has one thread,
/// and no other data depends on the values, so `Relaxed` suffices.
#[derive(Clone, Debug)]
pub(crate) struct UnacknowledgedBytes(Arc<UnacknowledgedState>);

#[derive(Debug)]
struct UnacknowledgedState {
    budget: Arc<SendBudget>,
    bytes: AtomicUsize,
    /// Bytes dropped since the connection began.
    released: AtomicUsize,
    /// Wakers of the tasks that wait for bytes to be dropped: no more than the connection has
    /// streams.
    wakers: Mutex<Vec<Waker>>,
}

impl UnacknowledgedBytes {
    pub(crate) fn new(budget: Arc<SendBudget>) -> Self {
        let (bytes, released) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(UnacknowledgedState { budget, bytes, released, wakers: Mutex::default() }))
    }

    /// Returns the unacknowledged bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Wakes the task once when bytes are dropped.
    pub(crate) fn wake_on_release(&self, cx: &Context<'_>) {
        let mut wakers = self.0.wakers();
        if !wakers.iter().any(|known| known.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
    }

    /// Returns the bytes dropped since the connection began.
    pub(crate) fn released(&self) -> usize {
        self.0.released.load(Ordering::Relaxed)
    }

    /// Returns `piece`, counted until its last reference is dropped.
    pub(crate) fn count(&self, piece: impl AsRef<[u8]> + Send + 'static) -> Bytes {
        let bytes = piece.as_ref().len();
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.0.budget.add(bytes);
        Bytes::from_owner(CountedPiece { piece, bytes, of: self.clone() })
    }
}

impl UnacknowledgedState {
    fn wakers(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct CountedPiece<T> {
    piece: T,
    bytes: usize,
    of: UnacknowledgedBytes,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for CountedPiece<T> {
    fn as_ref(&self) -> &[u8] {
        self.piece.as_ref()
    }
}

impl<T> Drop for CountedPiece<T> {
    fn drop(&mut self) {
        let inner = &self.of.0;
        inner.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        inner.released.fetch_add(self.bytes, Ordering::Relaxed);
        inner.budget.remove(self.bytes);
        // Wake without the lock: a waker may run or drop anything.
        let wakers = std::mem::take(&mut *inner.wakers());
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_their_last_reference_is_gone() {
        let budget = Arc::new(SendBudget::new(usize::MAX));
        let unacked = UnacknowledgedBytes::new(Arc::clone(&budget));
        let counts = || (budget.used(), unacked.bytes(), unacked.released());
        let mut piece = unacked.count(vec![0; 100]);
        let part = piece.split_to(1);
        drop(piece);
        assert_eq!(counts(), (100, 100, 0), "a part of it is left");
        drop(part);
        assert_eq!(counts(), (0, 0, 100));
    }

    #[test]
    fn a_release_wakes_all_that_wait() {
        struct ReleaseCount(AtomicUsize);
        impl std::task::Wake for ReleaseCount {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let unacked = UnacknowledgedBytes::new(Arc::new(SendBudget::new(usize::MAX)));
        let woken = [(); 2].map(|()| Arc::new(ReleaseCount(AtomicUsize::new(0))));
        for task in &woken {
            let waker = Waker::from(Arc::clone(task));
            (0..3).for_each(|_| unacked.wake_on_release(&Context::from_waker(&waker)));
        }
        drop(unacked.count(vec![0; 1]));
        assert_eq!(woken.map(|task| task.0.load(Ordering::Relaxed)), [1, 1]);
    }
}
