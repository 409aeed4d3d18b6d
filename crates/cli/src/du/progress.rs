//! The line on standard error that shows how a long run is doing. Only what is on a terminal gets one, unless asked.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use fathom_text::human::BlockSize;
use fathom_walk::Progress;

use super::extra::When;
use crate::output::complain;

/// Nothing is shown of a run shorter than this.
const QUIET: Duration = Duration::from_secs(1);
/// Time between two looks of the line.
const PERIOD: Duration = Duration::from_millis(100);

/// The progress line.
#[derive(Debug)]
pub(crate) struct Meter {
    enabled: bool,
    start: Instant,
    next: Cell<Duration>,
    shown: Cell<bool>,
    /// Entries and time at the last look, for the rate.
    last: RefCell<(u64, Duration)>,
}

impl Meter {
    pub(crate) fn new(when: When) -> Self {
        let enabled = match when {
            When::Auto => std::io::stderr().is_terminal(),
            When::Always => true,
            When::Never => false,
        };
        let (next, shown) = (Cell::new(QUIET), Cell::new(false));
        Self { enabled, start: Instant::now(), next, shown, last: RefCell::new((0, Duration::ZERO)) }
    }

    /// Shows `progress`, if it is time to.
    pub(crate) fn show(&self, progress: Progress) {
        if !self.enabled || self.start.elapsed() < self.next.get() {
            return;
        }
        let now = self.start.elapsed();
        self.next.set(now + PERIOD);
        let mut size = Vec::new();
        // A listing measures nothing.
        if progress.measured > 0 {
            BlockSize::HUMAN.write(progress.measured, &mut size);
            size.extend_from_slice(b", ");
        }
        let size = String::from_utf8_lossy(&size);
        let rate = self.rate(progress.entries, now);
        let Progress { entries, busy, .. } = progress;
        self.shown.set(true);
        complain(format!("\r\x1b[K{entries} entries, {size}{rate}/s, {busy} in flight").as_bytes());
    }

    fn rate(&self, entries: u64, now: Duration) -> u64 {
        let (entries_before, before) = self.last.replace((entries, now));
        let elapsed = (now - before).as_secs_f64().max(1e-3);
        ((entries - entries_before) as f64 / elapsed) as u64
    }

    /// Takes the line away, for something else to be printed in its place.
    pub(crate) fn clear(&self) {
        if self.shown.replace(false) {
            complain(b"\r\x1b[K");
        }
    }
}
