//! Limits the rate of a scan, for the sake of other users of the server.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fathom_walk::Clock;
use fathom_walk::fault::point;

/// Limits the rate at which all workers together examine entries.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    clock: Clock,
    interval: Duration,
    state: Mutex<LimiterState>,
    /// Notified when the limit is cancelled.
    cancelled: Condvar,
}

#[derive(Debug)]
struct LimiterState {
    /// The time from which on the next entries may be examined.
    next: Instant,
    cancelled: bool,
}

impl RateLimiter {
    /// Creates a limit of `rate` entries a second, at least 1.
    pub(crate) fn new(rate: u64, clock: Clock) -> Self {
        Self {
            interval: Duration::from_secs(1) / u32::try_from(rate.max(1)).unwrap_or(u32::MAX),
            state: Mutex::new(LimiterState { next: clock.now(), cancelled: false }),
            cancelled: Condvar::new(),
            clock,
        }
    }

    /// Waits until the time of the entries before these is over, or the limit is cancelled.
    pub(crate) fn wait(&self, count: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let start = state.next.max(self.clock.now());
        state.next = start + self.interval.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        loop {
            let wait = start.saturating_duration_since(self.clock.now());
            if state.cancelled || wait.is_zero() {
                return;
            }
            point("rate-wait");
            let woken = self.cancelled.wait_timeout(state, wait);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Cancels the limit, also for calls under way: a stopping scan must not wait for it.
    pub(crate) fn cancel(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.cancelled, true) {
            self.cancelled.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_entry_takes_its_share_of_a_second() {
        let clock = Clock::held();
        let rate_limit = RateLimiter::new(100, clock.clone());
        let (begin, next) = (clock.now(), || rate_limit.state.lock().unwrap().next);
        rate_limit.wait(5);
        assert_eq!(next() - begin, Duration::from_millis(50));
        clock.advance(Duration::from_millis(50));
        rate_limit.wait(1);
        assert_eq!(next() - begin, Duration::from_millis(60));
        clock.advance(Duration::from_millis(1_000));
        rate_limit.wait(1);
        assert_eq!(next() - begin, Duration::from_millis(1_060), "a pause is not made up for");
    }

    #[test]
    fn a_wait_ends_with_the_limit() {
        let rate_limit = Arc::new(RateLimiter::new(1, Clock::held()));
        rate_limit.wait(1);
        let waiting = {
            let rate_limit = rate_limit.clone();
            std::thread::spawn(move || rate_limit.wait(1))
        };
        rate_limit.cancel();
        waiting.join().unwrap();
        rate_limit.wait(1);
    }
}
