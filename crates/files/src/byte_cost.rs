//! The measured cost of moving a byte.

use std::cell::Cell;
use std::time::Duration;

/// The weight of old measurements in the moving average: about this many count.
const AVERAGE_WINDOW: f64 = 16.0;
/// How long one read or write may keep a worker from polling its sockets.
const CALL_TIME: Duration = Duration::from_micros(40);

/// The moving average of the time that calls of one kind take for a byte.
#[derive(Debug, Default)]
pub struct ByteCost(Cell<Option<f64>>);

impl ByteCost {
    /// Calls with fewer bytes are not recorded: their fixed cost hides the cost of a byte.
    pub const BYTES_MIN: usize = 16 << 10;

    /// Records that a call of `bytes` took `time`.
    #[inline]
    pub fn record(&self, time: Duration, bytes: usize) {
        if bytes < Self::BYTES_MIN {
            return;
        }
        let now = time.as_nanos() as f64 / bytes as f64;
        let cost = self.0.get().map_or(now, |before| before + (now - before) / AVERAGE_WINDOW);
        self.0.set(Some(cost));
    }

    /// Returns the nanoseconds of a byte; `None` before the first measurement.
    #[inline]
    #[must_use]
    pub fn nanoseconds(&self) -> Option<f64> {
        self.0.get()
    }

    /// Returns the bytes to move in one call: those that take 40 microseconds, as a power of two of
    /// at least [`ByteCost::BYTES_MIN`]. Pages that another processor has just filled may take
    /// twenty times as long as others.
    #[inline]
    #[must_use]
    pub fn call_bytes(&self) -> usize {
        let bytes = self.0.get().map_or(0.0, |cost| CALL_TIME.as_nanos() as f64 / cost) as usize;
        1 << bytes.max(Self::BYTES_MIN).ilog2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_about_as_long_whatever_a_byte_costs() {
        let cost = ByteCost::default();
        assert_eq!(cost.call_bytes(), ByteCost::BYTES_MIN, "nothing is known");
        cost.record(Duration::from_micros(40), 1 << 16);
        assert_eq!(cost.call_bytes(), 1 << 16);
        (0..100).for_each(|_| cost.record(Duration::from_micros(58), 1 << 16));
        assert_eq!(cost.call_bytes(), 32 << 10);
        (0..100).for_each(|_| cost.record(Duration::from_secs(1), 1 << 16));
        assert_eq!(cost.call_bytes(), ByteCost::BYTES_MIN);
        (0..200).for_each(|_| cost.record(Duration::ZERO, 1 << 16));
        assert!(cost.call_bytes() >= 1 << 20, "nothing is as cheap as that");
    }

    #[test]
    fn short_calls_do_not_count() {
        let cost = ByteCost::default();
        cost.record(Duration::from_secs(1), ByteCost::BYTES_MIN - 1);
        assert_eq!(cost.nanoseconds(), None);
    }
}
