//! An estimator of which way to send bytes in memory is cheaper on this machine: sendfile(2), or
//! read(2) into a buffer and write(2).
//!
//! sendfile(2) shares pages that write(2) copies. The gain depends on the machine, the network and
//! the size. So both ways are timed in use and the way with the lower cost a byte is taken; the
//! other way is tried at intervals. The cost of reading is measured by the file I/O ([`ByteCost`]).

use std::cell::Cell;
use std::time::Duration;

use fathom_files::ByteCost;

/// One of this many decisions takes the dearer way, to keep its measurement current.
const TRIAL_INTERVAL: u32 = 64;

/// The measured costs of sending of a worker.
#[derive(Debug, Default)]
pub(crate) struct SendCostEstimator {
    /// Whether sendfile(2) is used whatever it costs.
    always_sendfile: bool,
    /// sendfile(2) of files.
    sendfile: ByteCost,
    sendfile_cached: ByteCost,
    written: ByteCost,
    /// Time spent writing response heads on their own since the last sendfile(2). It is part of the
    /// cost of the next one.
    head_time: Cell<Duration>,
    decisions: Cell<u32>,
}

impl SendCostEstimator {
    /// Creates an estimator without measurements. `always_sendfile`: sendfile(2) is always
    /// preferred.
    pub(crate) fn new(always_sendfile: bool) -> Self {
        Self { always_sendfile, ..Self::default() }
    }

    /// Longer cached bodies always go by sendfile(2): the socket takes them in several calls, and
    /// copying was never cheaper in measurements.
    pub(crate) const CACHED_BYTES_MAX: usize = 64 << 10;

    /// Records that sendfile(2) of `bytes` of a file took `time`.
    pub(crate) fn record_sendfile(&self, time: Duration, bytes: usize) {
        self.sendfile.record(self.head_time.take() + time, bytes);
    }

    /// Records that sendfile(2) of `bytes` of a cached body took `time`.
    pub(crate) fn record_sendfile_cached(&self, time: Duration, bytes: usize) {
        let time = self.head_time.take() + time;
        // Longer bodies always go by sendfile(2), and their lower cost a byte would distort the
        // average.
        if bytes <= Self::CACHED_BYTES_MAX {
            self.sendfile_cached.record(time, bytes);
        }
    }

    /// Records that writing the head before a sendfile(2) took `time`. A buffered body goes in the
    /// same call as the head.
    pub(crate) fn record_head_write(&self, time: Duration, _: usize) {
        self.head_time.set(self.head_time.get() + time);
    }

    /// Returns the bytes to write in one call ([`ByteCost::call_bytes`]).
    pub(crate) fn write_bytes(&self) -> usize {
        self.written.call_bytes()
    }

    /// Records that writing `bytes` of buffers took `time`.
    pub(crate) fn record_write(&self, time: Duration, bytes: usize) {
        self.written.record(time, bytes);
    }

    /// Returns whether the next bytes of a file, which cost `read` to read, are to go by
    /// sendfile(2).
    pub(crate) fn prefers_sendfile(&self, read: &ByteCost) -> bool {
        let costs = read.nanoseconds().zip(self.written.nanoseconds());
        let buffered = costs.map(|(read, written)| read + written);
        self.choose_sendfile(&self.sendfile, buffered)
    }

    /// Returns whether `bytes` of a cached body are to go by sendfile(2).
    pub(crate) fn prefers_sendfile_cached(&self, bytes: usize) -> bool {
        bytes > Self::CACHED_BYTES_MAX
            || self.choose_sendfile(&self.sendfile_cached, self.written.nanoseconds())
    }

    fn choose_sendfile(&self, sent: &ByteCost, buffered: Option<f64>) -> bool {
        if self.always_sendfile {
            return true;
        }
        let cheaper = match (sent.nanoseconds(), buffered) {
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

    fn most(costs: &SendCostEstimator, read: &ByteCost) -> bool {
        (0..TRIAL_INTERVAL).filter(|_| costs.prefers_sendfile(read)).count() as u32 > TRIAL_INTERVAL / 2
    }

    #[test]
    fn both_are_tried_and_the_cheaper_one_is_taken() {
        let (costs, read, bytes) = (SendCostEstimator::default(), ByteCost::default(), 1 << 16);
        assert!(costs.prefers_sendfile(&read), "nothing is known");
        costs.record_sendfile(Duration::from_micros(10), bytes);
        assert!(!costs.prefers_sendfile(&read), "the other one is not known");
        read.record(Duration::from_micros(5), bytes);
        costs.record_write(Duration::from_micros(8), bytes);
        assert!(most(&costs, &read));
        (0..100).for_each(|_| costs.record_write(Duration::from_micros(3), bytes));
        assert!(!most(&costs, &read));
        assert_eq!((0..TRIAL_INTERVAL).filter(|_| costs.prefers_sendfile(&read)).count(), 1, "one trial");
    }

    #[test]
    fn always_sendfile_ignores_costs() {
        let (costs, read, bytes) = (SendCostEstimator::new(true), ByteCost::default(), 1 << 16);
        costs.record_sendfile(Duration::from_secs(1), bytes);
        read.record(Duration::from_micros(1), bytes);
        costs.record_write(Duration::from_micros(1), bytes);
        assert!((0..TRIAL_INTERVAL * 2).all(|_| costs.prefers_sendfile(&read)));
    }

    #[test]
    fn cached_bodies_are_decided_separately() {
        let (costs, read, bytes) = (SendCostEstimator::default(), ByteCost::default(), 1 << 16);
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
        assert!(most(&costs, &read), "nothing is known of files");
        (0..100).for_each(|_| costs.record_write(Duration::from_micros(30), bytes));
        assert!(sends(), "copying has become dear");
        assert!(
            (0..TRIAL_INTERVAL * 2).all(|_| costs.prefers_sendfile_cached(bytes + 1)),
            "long ones are not copied"
        );
    }
}
