//! The weight of one device's outputs that wait for the consumer, and whether it is too much for
//! workers to go on.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The maximum weight of waiting outputs, in bytes.
pub(crate) const BYTES_MAX: usize = 2 << 20;
/// The maximum if each call is a round trip to a server: while the consumer waits for one directory
/// after another, each several calls away, all other workers go on.
pub(crate) const BYTES_MAX_REMOTE: usize = 16 << 20;
/// Tasks that are executed at once while the backlog is full and each call is a round trip. The
/// consumer waits next for one of the first tasks, and one at a time they would take as long as
/// with one worker.
pub(crate) const IN_FLIGHT_REMOTE: usize = 16;

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

    /// Whether the weight exceeded its maximum and has not been halved since.
    pub(crate) fn is_full(&self) -> bool {
        // A hint for workers. The worker that takes no task because of it sleeps in `Parking`,
        // whose fence pairs with the wake-up after `subtract`.
        self.full.load(Ordering::Relaxed)
    }

    /// Returns the number of tasks that may be executed at once, besides the one that the consumer
    /// waits for, while the backlog is full: none if it has grown to twice its maximum.
    pub(crate) fn in_flight_max(&self, remote: bool) -> usize {
        let grows = self.bytes.load(Ordering::Relaxed) < 2 * BYTES_MAX_REMOTE;
        if remote && grows { IN_FLIGHT_REMOTE } else { 0 }
    }

    /// Adds an output of `bytes`. The worker calls it before it publishes the output: otherwise the
    /// consumer could subtract the weight first.
    pub(crate) fn add(&self, bytes: usize, remote: bool) {
        // Relaxed is enough, here and in `subtract`: the hand-off of the output orders both.
        if self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > Self::bytes_max(remote) {
            self.full.store(true, Ordering::Relaxed);
        }
    }

    /// Subtracts an output of `bytes`, which the consumer has taken or abandoned. Returns whether
    /// the backlog was full and no longer is: then the caller wakes the workers.
    pub(crate) fn subtract(&self, bytes: usize, remote: bool) -> bool {
        let rest = self.bytes.fetch_sub(bytes, Ordering::Relaxed) - bytes;
        // Not only when `rest` crosses the limit: `add` may set `full` after another output was
        // subtracted, and the last subtraction has to clear it.
        let ends = rest < Self::bytes_max(remote) / 2 && self.is_full();
        if ends {
            self.full.store(false, Ordering::Relaxed);
        }
        ends
    }
}
