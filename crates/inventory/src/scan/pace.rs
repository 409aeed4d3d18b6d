//! No more than so many entries a second: a server that many depend on has other work as well.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the workers of a scan share.
#[derive(Debug)]
pub(crate) struct Pace {
    each: Duration,
    /// When the next entries may be looked at.
    next: Mutex<Instant>,
}

impl Pace {
    /// `rate` entries a second, 1 at least.
    pub(crate) fn new(rate: u64) -> Self {
        Self {
            each: Duration::from_secs(1) / u32::try_from(rate.max(1)).unwrap_or(u32::MAX),
            next: Mutex::new(Instant::now()),
        }
    }

    /// Waits until those before are over; then it is the turn of `count` entries.
    pub(crate) fn keep(&self, count: usize) {
        let wait = self.book(Instant::now(), count);
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
    }

    /// How long to wait from `now` on.
    fn book(&self, now: Instant, count: usize) -> Duration {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = (*next).max(now);
        *next = turn + self.each.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        next.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_takes_its_share_of_a_second() {
        let pace = Pace::new(100);
        let now = Instant::now() + Duration::from_secs(1);
        assert_eq!(pace.book(now, 50), Duration::from_millis(500));
        assert_eq!(pace.book(now, 10), Duration::from_millis(600));
        assert_eq!(
            pace.book(now + Duration::from_secs(9), 1),
            Duration::from_millis(10),
            "what is past is past"
        );
    }
}
