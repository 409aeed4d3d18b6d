//! Stall clocks: how long a stream of HTTP/2 or HTTP/3 has waited for flow control. The periodic
//! sweep over connections also finds the streams that have waited too long, so no stream sets a
//! timer.

use std::cell::{Cell, RefCell};
use std::task::Waker;
use std::time::Duration;

use fathom_io::Clock;
use fathom_io::clock::CoarseInstant;

use super::deadlines::Timeouts;

/// Window updates of fewer bytes in all do not count as progress: a client could open the window by
/// one byte at a time.
const PROGRESS_BYTES: usize = 1 << 10;

/// The stall clock of one stream.
#[derive(Debug, Default)]
pub(crate) struct StreamStall {
    clock: Clock,
    /// The beginning of the first wait since the stream last made progress.
    since: Cell<Option<CoarseInstant>>,
    /// The bytes by which the window has opened since then.
    bytes: Cell<usize>,
    is_expired: Cell<bool>,
    /// Whether the stream waits for the connection rather than for its own window.
    #[cfg(feature = "http3")]
    waits_for_connection: Cell<bool>,
    /// The waker of the stream's task while the stream waits.
    waker: RefCell<Option<Waker>>,
}

impl StreamStall {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// Records that the stream waits, and registers `waker`.
    pub(crate) fn begin_wait(&self, waker: &Waker) {
        if self.since.get().is_none() {
            self.since.set(Some(self.clock.coarse_now()));
        }
        self.waker.replace(Some(waker.clone()));
    }

    /// Records that the window has opened by `bytes`.
    pub(crate) fn record_opened(&self, bytes: usize) {
        self.waker.take();
        let bytes = self.bytes.get().saturating_add(bytes);
        if bytes >= PROGRESS_BYTES {
            self.since.set(None);
        }
        self.bytes.set(if bytes >= PROGRESS_BYTES { 0 } else { bytes });
    }

    /// Sets whether the stream waits for the connection. Such a stream gets the write timeout of
    /// the connection, which a shortage of memory does not shorten.
    #[cfg(feature = "http3")]
    pub(crate) fn set_waits_for_connection(&self, waits_for_connection: bool) {
        self.waits_for_connection.set(waits_for_connection);
    }

    /// Returns the longest wait without progress.
    pub(super) fn limit(&self, timeouts: &Timeouts) -> Duration {
        #[cfg(feature = "http3")]
        if self.waits_for_connection.get() {
            return timeouts.write;
        }
        timeouts.stall
    }

    /// Returns whether the stream has waited too long.
    pub(crate) fn is_expired(&self) -> bool {
        self.is_expired.get()
    }

    /// Marks the stream as expired and wakes its task if it waits and has made no progress for
    /// `limit` at `now`.
    pub(super) fn expire(&self, limit: Duration, now: CoarseInstant) {
        if !self.since.get().is_some_and(|since| now.is_over(since, limit)) {
            return;
        }
        if let Some(waker) = self.waker.take() {
            self.is_expired.set(true);
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_expired(stall: &StreamStall) -> bool {
        stall.expire(Duration::ZERO, stall.clock.coarse_now());
        stall.is_expired()
    }

    #[test]
    fn a_stream_that_waits_is_over_in_time() {
        let stall = StreamStall::new(Clock::held());
        assert!(!is_expired(&stall), "it has a window");
        stall.begin_wait(Waker::noop());
        let limit = Duration::from_secs(10);
        stall.clock.advance(Duration::from_secs(9));
        stall.expire(limit, stall.clock.coarse_now());
        assert!(!stall.is_expired());
        stall.clock.advance(Duration::from_secs(1));
        stall.expire(limit, stall.clock.coarse_now());
        assert!(stall.is_expired());
    }

    #[test]
    fn a_window_that_opens_a_little_is_no_progress() {
        let stall = StreamStall::new(Clock::held());
        stall.begin_wait(Waker::noop());
        let since = stall.since.get();
        for _ in 1..PROGRESS_BYTES {
            stall.record_opened(1);
            assert!(!is_expired(&stall), "it does not wait");
            stall.begin_wait(Waker::noop());
            assert_eq!(stall.since.get(), since);
        }
        stall.record_opened(1);
        assert_eq!((stall.since.get(), stall.bytes.get()), (None, 0));
    }
}
