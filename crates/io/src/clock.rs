//! The clock that is handed to what has deadlines, so that tests can hold it still and move it.
//!
//! Owns: the time now. Does not own: sleeping, and measurements of how long something took, which
//! are of the machine's time whatever the clock says.

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};

/// A clock: the machine's, or one that stands still until it is moved. Clones show the same time.
///
/// ```
/// use std::time::Duration;
/// let clock = fathom_io::Clock::held();
/// let (fine, coarse) = (clock.now(), clock.coarse_now());
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now() - fine, Duration::from_secs(60));
/// assert!(clock.coarse_now().is_over(coarse, Duration::from_secs(60)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<Arc<HeldTime>>);

#[derive(Debug)]
struct HeldTime {
    start: Instant,
    coarse_start: CoarseInstant,
    wall_start: SystemTime,
    /// The nanoseconds by which the clock was moved.
    moved: AtomicU64,
}

impl HeldTime {
    fn moved(&self) -> Duration {
        // Relaxed: the time orders nothing else.
        Duration::from_nanos(self.moved.load(Ordering::Relaxed))
    }
}

impl Clock {
    /// Returns a clock that stands still.
    #[must_use]
    pub fn held() -> Self {
        Self(Some(Arc::new(HeldTime {
            start: Instant::now(),
            coarse_start: CoarseInstant::of_machine(),
            wall_start: SystemTime::now(),
            moved: AtomicU64::new(0),
        })))
    }

    /// Moves a clock of [`Clock::held`]. The clock of the machine cannot be moved.
    pub fn advance(&self, by: Duration) {
        if let Some(held) = &self.0 {
            let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
            held.moved.fetch_add(by, Ordering::Relaxed);
        }
    }

    /// Returns the time now.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.0.as_ref().map_or_else(Instant::now, |held| held.start + held.moved())
    }

    /// Returns the time of day now, which is compared with the times of files.
    #[must_use]
    pub fn wall_now(&self) -> SystemTime {
        self.0.as_ref().map_or_else(SystemTime::now, |held| held.wall_start + held.moved())
    }

    /// Returns the time now with the resolution of the kernel's tick.
    #[must_use]
    pub fn coarse_now(&self) -> CoarseInstant {
        let held = self.0.as_ref().map(|held| held.coarse_start + held.moved());
        held.unwrap_or_else(CoarseInstant::of_machine)
    }
}

/// A point in time with the resolution of `CLOCK_MONOTONIC_COARSE` (clock_gettime(2)), some
/// milliseconds, which suffices for timeouts of seconds. This clock costs a fifth of
/// `CLOCK_MONOTONIC`, for what reads it with every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CoarseInstant(Duration);

impl CoarseInstant {
    fn of_machine() -> Self {
        #[cfg(target_os = "linux")]
        const CLOCK: ClockId = ClockId::MonotonicCoarse;
        #[cfg(not(target_os = "linux"))]
        const CLOCK: ClockId = ClockId::Monotonic;
        let now = clock_gettime(CLOCK);
        let (sec, nsec) = (u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0));
        Self(Duration::new(sec, nsec))
    }

    /// Returns whether at least `limit` has passed from `since` to `self`.
    #[must_use]
    pub fn is_over(self, since: Self, limit: Duration) -> bool {
        self.0.saturating_sub(since.0) >= limit
    }
}

impl Add<Duration> for CoarseInstant {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0 + by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_the_machine_runs_and_is_not_moved() {
        let clock = Clock::default();
        let before = Instant::now();
        clock.advance(Duration::from_secs(1 << 30));
        let now = clock.now();
        assert!(now >= before && now <= Instant::now());
        assert!(!clock.coarse_now().is_over(clock.coarse_now(), Duration::from_secs(3_600)));
    }

    #[test]
    fn a_held_clock_and_its_clones_move_together() {
        let clock = Clock::held();
        let (clone, start, wall) = (clock.clone(), clock.now(), clock.wall_now());
        assert_eq!(clone.now(), start, "it stands still");
        clone.advance(Duration::from_millis(1_500));
        clock.advance(Duration::from_millis(500));
        assert_eq!(clone.now() - start, Duration::from_secs(2));
        assert_eq!(clone.wall_now(), wall + Duration::from_secs(2));
    }
}
