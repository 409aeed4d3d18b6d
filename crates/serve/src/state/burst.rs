//! Detection of the end of a load burst: the allocator keeps freed memory until it is told to
//! return it to the system.

use std::cell::Cell;

/// The least drop in connections and requests that is worth returning memory for: each connection
/// has some 20 KiB of buffers.
const BURST_MIN: usize = 16;

/// The number of connections and requests under way, and its recent maxima.
#[derive(Debug, Default)]
pub(crate) struct BurstDetector {
    now: Cell<usize>,
    /// The maximum since [`BurstDetector::is_burst_over`] was last called.
    recent: Cell<usize>,
    /// The maximum since memory was last returned.
    peak: Cell<usize>,
}

impl BurstDetector {
    /// Counts a connection or request that begins.
    pub(crate) fn begin(&self) {
        self.now.set(self.now.get() + 1);
        self.recent.set(self.recent.get().max(self.now.get()));
    }

    /// Counts a connection or request that ends.
    pub(crate) fn end(&self) {
        self.now.set(self.now.get().saturating_sub(1));
    }

    /// Returns whether the maximum since the last call is at most half of the maximum before it, so
    /// that the memory of the difference can be returned to the system. Steady traffic never meets
    /// this condition and pays for no return of memory.
    pub(crate) fn is_burst_over(&self) -> bool {
        let recent = self.recent.replace(self.now.get());
        let peak = self.peak.get().max(recent);
        let is_over = recent <= peak / 2 && peak - recent >= BURST_MIN;
        self.peak.set(if is_over { recent } else { peak });
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(burst: &BurstDetector, begin: usize, end: usize) -> bool {
        (0..begin).for_each(|_| burst.begin());
        (0..end).for_each(|_| burst.end());
        burst.is_burst_over()
    }

    #[test]
    fn a_burst_is_over_once_when_it_has_been_quiet() {
        let burst = BurstDetector::default();
        assert!(!run(&burst, 100, 0));
        assert!(!run(&burst, 0, 100), "it was there a moment ago");
        assert!(run(&burst, 0, 0));
        assert!(!run(&burst, 0, 0), "it is given back already");
        assert!(!run(&burst, 15, 15) && !run(&burst, 0, 0), "too little");
    }

    #[test]
    fn steady_traffic_is_no_burst() {
        let burst = BurstDetector::default();
        (0..10).for_each(|_| assert!(!run(&burst, 1000, 1000)));
        assert!(run(&burst, 400, 400));
        assert!(!run(&burst, 400, 400));
    }
}
