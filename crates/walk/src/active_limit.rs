//! The number of tasks of one device that are executed at once, and its limit.

use crate::sync::atomic::{AtomicUsize, Ordering};

/// A counter with a limit that may be changed at any time.
///
/// Relaxed is enough for all accesses: a worker that reads an old value and then sleeps is ordered
/// by the fences in `Parking`, and a worker that leaves searches for a task itself.
#[derive(Debug)]
pub(crate) struct ActiveLimit {
    limit: AtomicUsize,
    /// The limit at the start.
    initial: usize,
    active: AtomicUsize,
}

impl ActiveLimit {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: AtomicUsize::new(limit), initial: limit, active: AtomicUsize::new(0) }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit. Returns the limit before.
    pub(crate) fn set_limit(&self, limit: usize) -> usize {
        self.limit.swap(limit, Ordering::Relaxed)
    }

    /// Whether the limit is higher than at the start. A task that only a raised limit admits sees
    /// that.
    pub(crate) fn is_raised(&self) -> bool {
        self.limit() > self.initial
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }

    /// Counts one more task if fewer than the limit and than `throttle` are active.
    pub(crate) fn enter(&self, throttle: usize) -> bool {
        let limit = self.limit().min(throttle);
        // Not an increment that is taken back when it exceeds the limit: a worker that leaves
        // meanwhile would find the device full, and both would sleep beside a queued task.
        let more = |active| (active < limit).then_some(active + 1);
        self.active.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts one more task, whatever the limit.
    pub(crate) fn enter_anyway(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }
}
