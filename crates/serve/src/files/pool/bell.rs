//! How threads that wait for work are woken without a lock.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

/// A bell that may be rung by whoever must never wait: threads that wait for it have low priority, and one of them may be interrupted for a long
/// time, wherever it is.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rings: AtomicU32,
    sleepers: AtomicUsize,
}

impl Bell {
    /// How often it has rung. To be asked before looking for work, and handed to [`wait`](Self::wait) if there was none.
    pub(super) fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Threads that wait, or have been woken and not come to themselves.
    pub(super) fn sleepers(&self) -> usize {
        self.sleepers.load(Ordering::SeqCst)
    }

    /// Rings, and wakes up to `threads` of those that wait.
    pub(super) fn ring(&self, threads: u32) {
        // Before it looks for sleepers, as they say that they sleep before they look: one of the two sees the other.
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.sleepers() > 0 {
            // It cannot fail: the address is one.
            let _woken = futex::wake(&self.rings, Flags::PRIVATE, threads);
        }
    }

    /// Waits until it rings, unless it has rung since there were `seen` rings; false if it has not for all of `timeout`.
    pub(super) fn wait(&self, seen: u32, timeout: Duration) -> bool {
        let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
        let timeout = Timespec { tv_sec: seconds, tv_nsec: timeout.subsec_nanos().into() };
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let woken = futex::wait(&self.rings, Flags::PRIVATE, seen, Some(&timeout));
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
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
    fn who_waits_is_woken_and_a_ring_before_is_not_missed() {
        let bell = Arc::new(Bell::default());
        assert!(!bell.wait(bell.rings(), Duration::from_millis(1)));
        let seen = bell.rings();
        bell.ring(1);
        assert!(bell.wait(seen, LONG), "it has rung");
        let (seen, other) = (bell.rings(), Arc::clone(&bell));
        let waiting = thread::spawn(move || other.wait(seen, LONG));
        while bell.sleepers() == 0 {
            thread::yield_now();
        }
        bell.ring(1);
        assert!(waiting.join().unwrap());
        assert_eq!(bell.sleepers(), 0);
    }
}
