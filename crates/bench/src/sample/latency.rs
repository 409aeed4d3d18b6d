//! Latency measurement. Only some operations are timed: reading the clock twice would add more than
//! 1 % to a short operation. Operations that wait for the disk are all timed.

use std::time::Instant;

/// One operation in this many is timed; a power of two.
const ONE_IN: u64 = 64;

/// Latencies of the timed operations of one thread.
#[derive(Debug)]
pub(super) struct LatencySampler {
    /// An operation is timed if its number has none of these bits.
    mask: u64,
    count: u64,
    started: Vec<(u64, Instant)>,
    pub(super) nanoseconds: Vec<u64>,
}

impl LatencySampler {
    /// Times every operation, or one in [`ONE_IN`].
    pub(super) fn new(each: bool) -> Self {
        let mask = if each { 0 } else { ONE_IN - 1 };
        Self { mask, count: 0, started: Vec::new(), nanoseconds: Vec::new() }
    }

    /// Records the submission of the operation `tag`.
    #[inline]
    pub(super) fn start(&mut self, tag: u64) {
        if self.count & self.mask == 0 {
            self.started.push((tag, Instant::now()));
        }
        self.count += 1;
    }

    /// Records the completion of the operation `tag`.
    #[inline]
    pub(super) fn end(&mut self, tag: u64) {
        if self.started.is_empty() {
            return;
        }
        if let Some(index) = self.started.iter().position(|(started, _)| *started == tag) {
            let (_, start) = self.started.swap_remove(index);
            self.nanoseconds.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }
}
