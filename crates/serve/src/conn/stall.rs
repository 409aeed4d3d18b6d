//! How long a stream of HTTP/2 has waited for its window: as with connections, one look at all of
//! them now and then finds those that have waited too long, and no stream sets a timer.

use std::cell::{Cell, RefCell};
use std::task::Waker;
use std::time::Duration;

use super::pulse::{Moment, Patience};

/// A window that opens by less in the time a stream may wait does not count as opened: a client
/// could open it by a byte at a time.
const PROGRESS_BYTES: usize = 1 << 10;

/// The clock of one stream.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    /// When it first waited since it last made progress.
    since: Cell<Option<Moment>>,
    /// Bytes that the window has opened by since then.
    bytes: Cell<usize>,
    is_over: Cell<bool>,
    /// Whether it waits for the connection, and not for its own window.
    #[cfg(feature = "http3")]
    of_connection: Cell<bool>,
    /// The waker of the stream's task, present while the stream waits.
    waker: RefCell<Option<Waker>>,
}

impl Stall {
    /// The stream waits.
    pub(crate) fn waits(&self, waker: &Waker) {
        if self.since.get().is_none() {
            self.since.set(Some(Moment::now()));
        }
        self.waker.replace(Some(waker.clone()));
    }

    /// The window has opened by `bytes`.
    pub(crate) fn opened(&self, bytes: usize) {
        self.waker.take();
        let bytes = self.bytes.get().saturating_add(bytes);
        if bytes >= PROGRESS_BYTES {
            self.since.set(None);
        }
        self.bytes.set(if bytes >= PROGRESS_BYTES { 0 } else { bytes });
    }

    /// Says whether it waits for the connection: it has as long as a connection then, which memory
    /// that is short does not shorten.
    #[cfg(feature = "http3")]
    pub(crate) fn set_of_connection(&self, of_connection: bool) {
        self.of_connection.set(of_connection);
    }

    /// How long it may wait.
    pub(super) fn limit(&self, patience: &Patience) -> Duration {
        #[cfg(feature = "http3")]
        if self.of_connection.get() {
            return patience.write;
        }
        patience.stall
    }

    /// Whether it has waited too long.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Wakes the stream if it waits and made no progress for `limit` at `now`.
    pub(super) fn look(&self, limit: Duration, now: Moment) {
        if !self.since.get().is_some_and(|since| now.is_over(since, limit)) {
            return;
        }
        if let Some(waker) = self.waker.take() {
            self.is_over.set(true);
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_over(stall: &Stall) -> bool {
        stall.look(Duration::ZERO, Moment::now());
        stall.is_over()
    }

    #[test]
    fn a_stream_that_waits_is_over_in_time() {
        let stall = Stall::default();
        assert!(!is_over(&stall), "it has a window");
        stall.waits(Waker::noop());
        stall.look(Duration::from_secs(3600), Moment::now());
        assert!(!stall.is_over());
        assert!(is_over(&stall));
    }

    #[test]
    fn a_window_that_opens_a_little_is_no_progress() {
        let stall = Stall::default();
        stall.waits(Waker::noop());
        let since = stall.since.get();
        for _ in 1..PROGRESS_BYTES {
            stall.opened(1);
            assert!(!is_over(&stall), "it does not wait");
            stall.waits(Waker::noop());
            assert_eq!(stall.since.get(), since);
        }
        stall.opened(1);
        assert_eq!((stall.since.get(), stall.bytes.get()), (None, 0));
    }
}
