//! What else the machine does: written-back data of the sample before, and processor time that the hypervisor gave to others.

use std::path::Path;
use std::time::{Duration, Instant};

use super::room::unwritten_pages;

/// Pages not written that are nothing to wait for.
const FEW_PAGES: u64 = 1024;
const PATIENCE: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_millis(5);

/// Writes what is dirty on the filesystem of `dir`, and waits until nearly nothing is any more; whether that was so before long.
///
/// # Errors
/// If the filesystem cannot be synced.
pub(super) fn settle(dir: &Path) -> std::io::Result<bool> {
    rustix::fs::syncfs(std::fs::File::open(dir)?)?;
    let start = Instant::now();
    while unwritten_pages().is_some_and(|pages| pages > FEW_PAGES) {
        if start.elapsed() > PATIENCE {
            return Ok(false);
        }
        std::thread::sleep(NAP);
    }
    Ok(true)
}

/// Processor time of the machine so far, in ticks: all of it, and what was stolen (proc_stat(5)).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    pub(super) fn now() -> Self {
        std::fs::read_to_string("/proc/stat").map_or_else(|_| Self::default(), |text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        // user nice system idle iowait irq softirq steal; guest time is part of user time.
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }

    /// The share stolen since `before`.
    pub(super) fn stolen_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        if all == 0 { 0.0 } else { self.stolen.saturating_sub(before.stolen) as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stolen_share_is_that_of_the_time_between() {
        let before = Ticks::parse("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 1\n");
        let after = Ticks::parse("cpu  30 0 20 140 0 0 0 10 5 0\n");
        assert!((after.stolen_since(before) - 0.1).abs() < 1e-12);
        assert!(before.stolen_since(before).abs() < 1e-12);
        assert!(Ticks::parse("").stolen_since(before).abs() < 1e-12);
    }
}
