//! No more than so many entries a second: a server that many depend on has other work as well.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The rate at which the workers of a scan together look at entries.
#[derive(Debug)]
pub(crate) struct Pace {
    each: Duration,
    state: Mutex<State>,
    /// Notified when the pace ends.
    ended: Condvar,
}

#[derive(Debug)]
struct State {
    /// When the next entries may be looked at.
    next: Instant,
    ended: bool,
}

impl Pace {
    /// `rate` entries a second, 1 at least.
    pub(crate) fn new(rate: u64) -> Self {
        Self {
            each: Duration::from_secs(1) / u32::try_from(rate.max(1)).unwrap_or(u32::MAX),
            state: Mutex::new(State { next: Instant::now(), ended: false }),
            ended: Condvar::new(),
        }
    }

    /// Waits until the entries before these have had their time, or the pace ends.
    pub(crate) fn keep(&self, count: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = state.next.max(Instant::now());
        state.next = turn + self.each.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        loop {
            let wait = turn.saturating_duration_since(Instant::now());
            if state.ended || wait.is_zero() {
                return;
            }
            let woken = self.ended.wait_timeout(state, wait);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends all waits, now and from now on: what is under way when a scan stops is not to hold it
    /// up.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut state.ended, true) {
            self.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn each_entry_takes_its_share_of_a_second() {
        let pace = Pace::new(100);
        let next = || pace.state.lock().unwrap().next;
        let begin = next();
        pace.keep(5);
        let first = next();
        assert!(first >= begin + Duration::from_millis(50));
        pace.keep(1);
        assert!(next() >= first + Duration::from_millis(10));
        assert!(Instant::now() >= first, "it waited for those before");
    }

    #[test]
    fn a_wait_ends_with_the_pace() {
        let pace = Arc::new(Pace::new(1));
        // A year's worth of entries is before these.
        pace.keep(31_000_000);
        let waiting = {
            let pace = pace.clone();
            std::thread::spawn(move || pace.keep(1))
        };
        pace.end();
        waiting.join().unwrap();
        pace.keep(1);
    }
}
