//! How much is under way on a worker, to know when a burst is over: the allocator keeps what it
//! took until it is told to give it back.

use std::cell::Cell;

/// A burst that is worth the time is at least so much more than what goes on after it: each
/// connection has some 20 KiB of buffers.
const LEAST: usize = 16;

/// Connections and requests under way.
#[derive(Debug, Default)]
pub(super) struct Load {
    now: Cell<usize>,
    /// The most since [`Load::is_burst_over`] was last asked.
    recent: Cell<usize>,
    /// The most since memory was last given back.
    peak: Cell<usize>,
}

impl Load {
    /// One more is under way.
    pub(super) fn begin(&self) {
        self.now.set(self.now.get() + 1);
        self.recent.set(self.recent.get().max(self.now.get()));
    }

    /// One is not under way any more.
    pub(super) fn end(&self) {
        self.now.set(self.now.get().saturating_sub(1));
    }

    /// Returns whether, since this was last asked, there was never more than half of what there had
    /// been before: what the others had can go back to the system. Steady traffic never looks like
    /// that, so it pays for nothing.
    pub(super) fn is_burst_over(&self) -> bool {
        let recent = self.recent.replace(self.now.get());
        let peak = self.peak.get().max(recent);
        let is_over = recent <= peak / 2 && peak - recent >= LEAST;
        self.peak.set(if is_over { recent } else { peak });
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(load: &Load, begin: usize, end: usize) -> bool {
        (0..begin).for_each(|_| load.begin());
        (0..end).for_each(|_| load.end());
        load.is_burst_over()
    }

    #[test]
    fn a_burst_is_over_once_when_it_has_been_quiet() {
        let load = Load::default();
        assert!(!run(&load, 100, 0));
        assert!(!run(&load, 0, 100), "it was there a moment ago");
        assert!(run(&load, 0, 0));
        assert!(!run(&load, 0, 0), "it is given back already");
        assert!(!run(&load, 15, 15) && !run(&load, 0, 0), "too little");
    }

    #[test]
    fn what_comes_and_goes_is_no_burst() {
        let load = Load::default();
        (0..10).for_each(|_| assert!(!run(&load, 1000, 1000)));
        assert!(run(&load, 400, 400));
        assert!(!run(&load, 400, 400));
    }
}
