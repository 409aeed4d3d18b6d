//! Latencies of some operations: timing each would cost more than a hundredth of it, unless it is one that waits for the disk.

use std::time::Instant;

/// One operation in so many is timed, a power of two.
const ONE_IN: u64 = 64;

/// The latencies of one thread's timed operations.
#[derive(Debug)]
pub(super) struct Latencies {
    /// Numbers of operations with none of these bits are timed.
    mask: u64,
    count: u64,
    started: Vec<(u64, Instant)>,
    pub(super) nanoseconds: Vec<u64>,
}

impl Latencies {
    /// Of each operation, or of one in 64.
    pub(super) fn new(each: bool) -> Self {
        let mask = if each { 0 } else { ONE_IN - 1 };
        Self { mask, count: 0, started: Vec::new(), nanoseconds: Vec::new() }
    }

    /// An operation is about to be submitted under `tag`.
    #[inline]
    pub(super) fn start(&mut self, tag: u64) {
        if self.count & self.mask == 0 {
            self.started.push((tag, Instant::now()));
        }
        self.count += 1;
    }

    /// The operation of `tag` has ended.
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
