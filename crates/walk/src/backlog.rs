//! How much has come of one device's tasks and waits for its turn, and whether that is too much to go on as before.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of outcomes that may wait for their turn.
const BYTES_MAX: usize = 2 << 20;
/// The same where each call is a round trip: while the consumer waits for one directory after another, each several calls
/// away, all other workers go on.
const BYTES_MAX_REMOTE: usize = 16 << 20;
/// Tasks executed at once when the backlog is full where each call is a round trip: what the consumer waits for next is
/// among the first ones, and one at a time they would take as long as if there were one worker.
const FEW: usize = 16;

/// The backlog of one device.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    bytes: AtomicUsize,
    full: AtomicBool,
}

impl Backlog {
    fn bytes_max(remote: bool) -> usize {
        if remote { BYTES_MAX_REMOTE } else { BYTES_MAX }
    }

    /// Whether it has been too much, and not been halved since.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Tasks that may be executed at once besides the one the consumer waits for, while this is full: none when it has grown to
    /// twice what fills it.
    pub(crate) fn in_flight_max(&self, remote: bool) -> usize {
        if remote && self.bytes.load(Ordering::Relaxed) < 2 * BYTES_MAX_REMOTE { FEW } else { 0 }
    }

    /// An outcome of `bytes` is going to wait.
    pub(crate) fn add(&self, bytes: usize, remote: bool) {
        if self.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes > Self::bytes_max(remote) {
            self.full.store(true, Ordering::Release);
        }
    }

    /// An outcome of `bytes` has its turn; whether this ends being full.
    pub(crate) fn subtract(&self, bytes: usize, remote: bool) -> bool {
        let rest = self.bytes.fetch_sub(bytes, Ordering::AcqRel) - bytes;
        let ends = rest < Self::bytes_max(remote) / 2 && self.is_full();
        if ends {
            self.full.store(false, Ordering::Release);
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_until_half_of_it_has_had_its_turn() {
        for (remote, max) in [(false, BYTES_MAX), (true, BYTES_MAX_REMOTE)] {
            let backlog = Backlog::default();
            backlog.add(max, remote);
            assert!(!backlog.is_full());
            backlog.add(1, remote);
            assert!(backlog.is_full());
            assert!(!backlog.subtract(max / 2, remote) && backlog.is_full());
            assert!(backlog.subtract(2, remote) && !backlog.is_full());
        }
    }

    #[test]
    fn a_server_is_asked_a_little_more_until_twice_as_much_waits() {
        let backlog = Backlog::default();
        backlog.add(BYTES_MAX_REMOTE + 1, true);
        assert_eq!((backlog.in_flight_max(true), backlog.in_flight_max(false)), (FEW, 0));
        backlog.add(BYTES_MAX_REMOTE, true);
        assert_eq!(backlog.in_flight_max(true), 0);
    }
}
