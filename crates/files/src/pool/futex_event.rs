//! A futex-based event: wakes pool threads without a lock.

use std::time::Duration;

use super::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use super::sync::{futex_wait, futex_wake};

/// A counting event whose [`notify`](Self::notify) never waits. Waiting threads have low priority,
/// and the scheduler may preempt one for a long time at any instruction, so a worker must not share
/// a lock with them.
#[derive(Debug, Default)]
pub(super) struct FutexEvent {
    count: AtomicU32,
    waiters: AtomicUsize,
}

impl FutexEvent {
    /// Returns the number of notifications. Read it before looking for work, and pass it to
    /// [`wait`](Self::wait) if there was none.
    pub(super) fn count(&self) -> u32 {
        // Pairs with the increment in `notify`: work that was queued before a counted notification
        // is visible to the thread that reads the count.
        self.count.load(Ordering::SeqCst)
    }

    /// Returns the number of threads that wait, or were woken and have not run yet.
    pub(super) fn waiters(&self) -> usize {
        // Pairs with the increment in `wait`; see `notify`.
        self.waiters.load(Ordering::SeqCst)
    }

    /// Counts a notification, and wakes up to `threads` waiting threads.
    pub(super) fn notify(&self, threads: u32) {
        // Count first, then look for waiters. Pairs with `wait`, which announces itself first and
        // then compares the count: in the total order of SeqCst one of the two sees the other. With
        // weaker orderings both could miss each other, and the thread would sleep until its
        // timeout.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.waiters() > 0 {
            futex_wake(&self.count, threads);
        }
    }

    /// Waits for a notification, unless there was one since `count` returned `seen`. Returns false
    /// if there was none for all of `timeout`.
    pub(super) fn wait(&self, seen: u32, timeout: Duration) -> bool {
        // Before the kernel compares the count; see `notify`.
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let woken = futex_wait(&self.count, seen, timeout);
        // Before the caller looks at the queue again: an enqueuer that still counted this thread as
        // a waiter, and so started no other, had queued its job before.
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        woken
    }
}
