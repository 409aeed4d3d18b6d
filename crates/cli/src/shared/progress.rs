//! The progress line of a long run, on standard error. Shown on terminals only, unless requested.

use std::cell::{Cell, RefCell};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use fathom_text::human::BlockSize;
use fathom_walk::Progress;

use super::value::ShowWhen;
use crate::shared::output::{ERASE, draw};

/// Runs shorter than this show no progress.
const QUIET: Duration = Duration::from_secs(1);
/// The time between two updates.
const PERIOD: Duration = Duration::from_millis(100);

/// A progress line.
#[derive(Debug)]
pub(crate) struct ProgressMeter {
    enabled: bool,
    start: Instant,
    next: Cell<Duration>,
    shown: Cell<bool>,
    /// Entries and time at the last update, for the rate.
    last: RefCell<(u64, Duration)>,
    /// The expected number of entries, if it is known.
    expected: Option<u64>,
}

impl ProgressMeter {
    pub(crate) fn new(when: ShowWhen) -> Self {
        let enabled = match when {
            ShowWhen::Auto => std::io::stderr().is_terminal(),
            ShowWhen::Always => true,
            ShowWhen::Never => false,
        };
        let (next, shown) = (Cell::new(QUIET), Cell::new(false));
        let last = RefCell::new((0, Duration::ZERO));
        Self { enabled, start: Instant::now(), next, shown, last, expected: None }
    }

    /// Sets the expected number of entries. `count` is called only if progress is shown.
    pub(crate) fn with_expected(self, count: impl FnOnce() -> Option<u64>) -> Self {
        let expected = if self.enabled { count() } else { None };
        Self { expected, ..self }
    }

    /// Shows `progress`, if the next update is due.
    pub(crate) fn show(&self, progress: Progress) {
        if !self.enabled || self.start.elapsed() < self.next.get() {
            return;
        }
        let now = self.start.elapsed();
        self.next.set(now + PERIOD);
        let mut size = Vec::new();
        // A listing measures no sizes.
        if progress.measured > 0 {
            BlockSize::HUMAN.write(progress.measured, &mut size);
            size.extend_from_slice(b", ");
        }
        let size = String::from_utf8_lossy(&size);
        let rate = self.rate(progress.entries, now);
        let Progress { entries, busy, .. } = progress;
        let share = self.expected.and_then(|whole| share(entries, whole, now));
        let (share, left) = share.unwrap_or_default();
        self.shown.set(true);
        let line = format!("\r\x1b[K{entries} entries{share}, {size}{rate}/s, {busy} in flight{left}");
        draw(line.as_bytes());
    }

    fn rate(&self, entries: u64, now: Duration) -> u64 {
        let (entries_before, before) = self.last.replace((entries, now));
        let elapsed = (now - before).as_secs_f64().max(1e-3);
        ((entries - entries_before) as f64 / elapsed) as u64
    }

    /// Erases the line, so that other output can replace it.
    pub(crate) fn clear(&self) {
        if self.shown.replace(false) {
            draw(ERASE);
        }
    }
}

/// The time left is not estimated earlier than this, nor with less than this done.
const GUESS_AFTER: Duration = Duration::from_secs(5);
const GUESS_PER_MILLE: u64 = 10;

/// Returns the share of `whole` that `entries` are, and, if enough of the run is over, the
/// estimated time left. `None` if there are more entries than expected, for example where files
/// have several links.
fn share(entries: u64, whole: u64, elapsed: Duration) -> Option<(String, String)> {
    let done = entries.saturating_mul(1000).checked_div(whole).filter(|done| *done <= 1000)?;
    let share = format!(" of about {whole} ({}%)", done / 10);
    if elapsed < GUESS_AFTER || done < GUESS_PER_MILLE {
        return Some((share, String::new()));
    }
    let left = elapsed.as_secs_f64() * (whole - entries) as f64 / entries as f64;
    Some((share, format!(", about {} left", format_seconds(left))))
}

/// Formats a number of seconds in one unit.
pub(crate) fn format_seconds(seconds: f64) -> String {
    match seconds {
        90.0.. if seconds >= 5400.0 => format!("{:.0} h", seconds / 3600.0),
        90.0.. => format!("{:.0} min", seconds / 60.0),
        _ => format!("{seconds:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(entries: u64, whole: u64, seconds: u64) -> Option<String> {
        share(entries, whole, Duration::from_secs(seconds)).map(|(share, left)| share + &left)
    }

    #[test]
    fn a_share_is_shown_and_later_the_time_left() {
        assert_eq!(shown(250, 1000, 2).unwrap(), " of about 1000 (25%)");
        assert_eq!(shown(250, 1000, 10).unwrap(), " of about 1000 (25%), about 30 s left");
        assert_eq!(shown(250, 1000, 100).unwrap(), " of about 1000 (25%), about 5 min left");
        assert_eq!(shown(100, 1000, 3600).unwrap(), " of about 1000 (10%), about 9 h left");
        assert_eq!(shown(1000, 1000, 10).unwrap(), " of about 1000 (100%), about 0 s left");
        assert_eq!(shown(9, 1000, 10).unwrap(), " of about 1000 (0%)", "too early for a guess");
    }

    #[test]
    fn no_share_is_shown_of_more_than_there_should_be() {
        assert_eq!(shown(1002, 1000, 10), None);
        assert_eq!(shown(5, 0, 10), None);
        assert!(shown(u64::MAX, u64::MAX, 1).is_some());
    }
}
