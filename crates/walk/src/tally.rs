//! Counters of completed work, without contention between workers.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one worker on one device. Only this worker writes them: counters that all
/// workers share would cost more than everything else between two system calls.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    pub(crate) entries: Count,
    pub(crate) directories: Count,
    pub(crate) batches: Count,
    pub(crate) stats: Count,
    pub(crate) measured: Count,
    pub(crate) failures: Count,
}

/// A counter with one writer.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.get().wrapping_add(count), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
