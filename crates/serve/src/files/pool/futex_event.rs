//! A futex-based event: wakes pool threads without a lock.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

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
            // The call cannot fail: the address is valid.
            let _woken = futex::wake(&self.count, Flags::PRIVATE, threads);
        }
    }

    /// Waits for a notification, unless there was one since `count` returned `seen`. Returns false
    /// if there was none for all of `timeout`.
    pub(super) fn wait(&self, seen: u32, timeout: Duration) -> bool {
        let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
        let timeout = Timespec { tv_sec: seconds, tv_nsec: timeout.subsec_nanos().into() };
        // Before the kernel compares the count; see `notify`.
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let woken = futex::wait(&self.count, Flags::PRIVATE, seen, Some(&timeout));
        // Before the caller looks at the queue again: an enqueuer that still counted this thread as
        // a waiter, and so started no other, had queued its job before.
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        woken != Err(Errno::TIMEDOUT)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_waiting_thread_is_woken_and_an_earlier_notification_is_not_missed() {
        let event = Arc::new(FutexEvent::default());
        assert!(!event.wait(event.count(), Duration::from_millis(1)));
        let seen = event.count();
        event.notify(1);
        assert!(event.wait(seen, LONG), "the notification came before the wait");
        let (seen, other) = (event.count(), Arc::clone(&event));
        let waiting = thread::spawn(move || other.wait(seen, LONG));
        while event.waiters() == 0 {
            thread::yield_now();
        }
        event.notify(1);
        assert!(waiting.join().unwrap());
        assert_eq!(event.waiters(), 0);
    }
}
