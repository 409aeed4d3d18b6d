//! An estimator of which way to send bytes in memory is cheaper on this machine: sendfile(2), or
//! read(2) into a buffer and write(2).
//!
//! sendfile(2) shares pages that write(2) copies. The gain depends on the machine, the network and
//! the size. So both ways are timed in use and the way with the lower cost a byte is taken; the
//! other way is tried at intervals. The cost of reading also sets how much is read at once.

use std::cell::Cell;
use std::time::Duration;

/// One of this many decisions takes the dearer way, to keep its measurement current.
const TRIAL_INTERVAL: u32 = 64;
/// The weight of old measurements in the moving average: about this many count.
const AVERAGE_WINDOW: f64 = 16.0;

/// The measured costs of a worker, in nanoseconds a byte.
#[derive(Debug, Default)]
pub(crate) struct SendCostEstimator {
    /// Whether sendfile(2) is used whatever it costs.
    always_sendfile: bool,
    /// sendfile(2) of files.
    sendfile: ByteCost,
    sendfile_cached: ByteCost,
    read: ByteCost,
    written: ByteCost,
    /// Time spent writing response heads on their own since the last sendfile(2). It is part of the
    /// cost of the next one.
    head_time: Cell<Duration>,
    decisions: Cell<u32>,
}

#[derive(Debug, Default)]
struct ByteCost(Cell<Option<f64>>);

impl ByteCost {
    fn add(&self, time: Duration, bytes: usize) {
        if bytes < SendCostEstimator::BYTES_MIN {
            return;
        }
        let now = time.as_nanos() as f64 / bytes as f64;
        let cost = self.0.get().map_or(now, |before| before + (now - before) / AVERAGE_WINDOW);
        self.0.set(Some(cost));
    }

    fn bytes_in(&self, time: Duration) -> usize {
        let bytes = self.0.get().map_or(0.0, |cost| time.as_nanos() as f64 / cost) as usize;
        1 << bytes.max(SendCostEstimator::BYTES_MIN).ilog2()
    }
}

impl SendCostEstimator {
    /// Creates an estimator without measurements. `always_sendfile`: sendfile(2) is always
    /// preferred.
    pub(crate) fn new(always_sendfile: bool) -> Self {
        Self { always_sendfile, ..Self::default() }
    }

    /// Calls with fewer bytes are not recorded: their fixed cost hides the cost of a byte.
    pub(crate) const BYTES_MIN: usize = 16 << 10;
    /// How long one read or write may keep a worker from polling its sockets.
    const CALL_TIME: Duration = Duration::from_micros(40);
    /// Longer cached bodies always go by sendfile(2): the socket takes them in several calls, and
    /// copying was never cheaper in measurements.
    pub(crate) const CACHED_BYTES_MAX: usize = 64 << 10;

    /// Records that sendfile(2) of `bytes` of a file took `time`.
    pub(crate) fn record_sendfile(&self, time: Duration, bytes: usize) {
        self.sendfile.add(self.head_time.take() + time, bytes);
    }

    /// Records that sendfile(2) of `bytes` of a cached body took `time`.
    pub(crate) fn record_sendfile_cached(&self, time: Duration, bytes: usize) {
        let time = self.head_time.take() + time;
        // Longer bodies always go by sendfile(2), and their lower cost a byte would distort the
        // average.
        if bytes <= Self::CACHED_BYTES_MAX {
            self.sendfile_cached.add(time, bytes);
        }
    }

    /// Records that writing the head before a sendfile(2) took `time`. A buffered body goes in the
    /// same call as the head.
    pub(crate) fn record_head_write(&self, time: Duration, _: usize) {
        self.head_time.set(self.head_time.get() + time);
    }

    /// Records that reading `bytes` into a buffer took `time`.
    pub(crate) fn record_read(&self, time: Duration, bytes: usize) {
        self.read.add(time, bytes);
    }

    /// Returns the bytes to read in one call: those that take [`SendCostEstimator::CALL_TIME`], as
    /// a power of two of at least [`SendCostEstimator::BYTES_MIN`]. Pages that another processor
    /// has just filled may take twenty times as long as others.
    pub(crate) fn read_bytes(&self) -> usize {
        self.read.bytes_in(Self::CALL_TIME)
    }

    /// Returns the bytes to write in one call, by the same rule.
    pub(crate) fn write_bytes(&self) -> usize {
        self.written.bytes_in(Self::CALL_TIME)
    }

    /// Records that writing `bytes` of buffers took `time`.
    pub(crate) fn record_write(&self, time: Duration, bytes: usize) {
        self.written.add(time, bytes);
    }

    /// Returns whether the next bytes of a file are to go by sendfile(2).
    pub(crate) fn prefers_sendfile(&self) -> bool {
        let buffered = self.read.0.get().zip(self.written.0.get()).map(|(read, written)| read + written);
        self.choose_sendfile(&self.sendfile, buffered)
    }

    /// Returns whether `bytes` of a cached body are to go by sendfile(2).
    pub(crate) fn prefers_sendfile_cached(&self, bytes: usize) -> bool {
        bytes > Self::CACHED_BYTES_MAX || self.choose_sendfile(&self.sendfile_cached, self.written.0.get())
    }

    fn choose_sendfile(&self, sent: &ByteCost, buffered: Option<f64>) -> bool {
        if self.always_sendfile {
            return true;
        }
        let cheaper = match (sent.0.get(), buffered) {
            (Some(sent), Some(buffered)) => sent <= buffered,
            // A way without a measurement is taken next, to measure it.
            (Some(_), None) => false,
            (None, _) => true,
        };
        let decision = self.decisions.get().wrapping_add(1);
        self.decisions.set(decision);
        // Every TRIAL_INTERVAL-th decision is inverted.
        cheaper != decision.is_multiple_of(TRIAL_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most(costs: &SendCostEstimator) -> bool {
        (0..TRIAL_INTERVAL).filter(|_| costs.prefers_sendfile()).count() as u32 > TRIAL_INTERVAL / 2
    }

    #[test]
    fn both_are_tried_and_the_cheaper_one_is_taken() {
        let (costs, bytes) = (SendCostEstimator::default(), 1 << 16);
        assert!(costs.prefers_sendfile(), "nothing is known");
        costs.record_sendfile(Duration::from_micros(10), bytes);
        assert!(!costs.prefers_sendfile(), "the other one is not known");
        costs.record_read(Duration::from_micros(5), bytes);
        costs.record_write(Duration::from_micros(8), bytes);
        assert!(most(&costs));
        (0..100).for_each(|_| costs.record_write(Duration::from_micros(3), bytes));
        assert!(!most(&costs));
        assert_eq!((0..TRIAL_INTERVAL).filter(|_| costs.prefers_sendfile()).count(), 1, "one trial");
    }

    #[test]
    fn always_sendfile_ignores_costs() {
        let (costs, bytes) = (SendCostEstimator::new(true), 1 << 16);
        costs.record_sendfile(Duration::from_secs(1), bytes);
        costs.record_read(Duration::from_micros(1), bytes);
        costs.record_write(Duration::from_micros(1), bytes);
        assert!((0..TRIAL_INTERVAL * 2).all(|_| costs.prefers_sendfile()));
    }

    #[test]
    fn cached_bodies_are_decided_separately() {
        let (costs, bytes) = (SendCostEstimator::default(), 1 << 16);
        let sends = || {
            (0..TRIAL_INTERVAL).filter(|_| costs.prefers_sendfile_cached(bytes)).count() as u32
                > TRIAL_INTERVAL / 2
        };
        costs.record_write(Duration::from_micros(9), bytes);
        costs.record_sendfile_cached(Duration::from_micros(7), bytes);
        assert!(sends());
        (0..100).for_each(|_| {
            costs.record_head_write(Duration::from_micros(3), 200);
            costs.record_sendfile_cached(Duration::from_micros(7), bytes);
        });
        assert!(!sends(), "headers count");
        assert!(most(&costs), "nothing is known of files");
        (0..100).for_each(|_| costs.record_write(Duration::from_micros(30), bytes));
        assert!(sends(), "copying has become dear");
        assert!(
            (0..TRIAL_INTERVAL * 2).all(|_| costs.prefers_sendfile_cached(bytes + 1)),
            "long ones are not copied"
        );
    }

    #[test]
    fn a_read_takes_about_as_long_whatever_a_byte_costs() {
        let costs = SendCostEstimator::default();
        assert_eq!(costs.read_bytes(), SendCostEstimator::BYTES_MIN, "nothing is known");
        costs.record_read(Duration::from_micros(40), 1 << 16);
        assert_eq!((costs.read_bytes(), costs.write_bytes()), (1 << 16, SendCostEstimator::BYTES_MIN));
        (0..100).for_each(|_| costs.record_read(Duration::from_micros(58), 1 << 16));
        assert_eq!(costs.read_bytes(), 32 << 10);
        (0..100).for_each(|_| costs.record_read(Duration::from_secs(1), 1 << 16));
        assert_eq!(costs.read_bytes(), SendCostEstimator::BYTES_MIN);
        (0..200).for_each(|_| costs.record_read(Duration::ZERO, 1 << 16));
        assert!(costs.read_bytes() >= 1 << 20, "nothing is as cheap as that");
    }

    #[test]
    fn short_calls_do_not_count() {
        let costs = SendCostEstimator::default();
        costs.record_sendfile(Duration::from_secs(1), SendCostEstimator::BYTES_MIN - 1);
        assert_eq!(costs.sendfile.0.get(), None);
    }
}
