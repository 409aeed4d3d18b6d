//! Latencies by the kind of call, in a file of their own: the row of a sample, which programs in
//! other languages write too, has the latencies of whole operations.

use std::fmt;
use std::io;
use std::path::Path;

/// Percentiles of the latencies of calls, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencyPercentiles {
    /// Number of timed calls.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 95th percentile.
    pub p95_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Maximum.
    pub max_us: f64,
}

impl LatencyPercentiles {
    /// Computes the percentiles of `nanoseconds`, which it sorts; zeros if there are none.
    pub(super) fn of(nanoseconds: &mut [u64]) -> Self {
        nanoseconds.sort_unstable();
        let count = nanoseconds.len();
        let rank = |permille: usize| rank_us(nanoseconds, permille);
        let (p50_us, p95_us, p99_us, max_us) = (rank(500), rank(950), rank(990), rank(1000));
        Self { count: count as u64, p50_us, p95_us, p99_us, max_us }
    }
}

/// Returns the smallest of the sorted `nanoseconds` that `permille` of a thousand do not exceed, in
/// microseconds; 0 if there are none.
pub(super) fn rank_us(nanoseconds: &[u64], permille: usize) -> f64 {
    let index = (nanoseconds.len() * permille).div_ceil(1000).max(1) - 1;
    nanoseconds.get(index).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1e3)
}

/// Latencies of the timed calls of a sample by their kind, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct CallTimes {
    pub(super) reads: Vec<u64>,
    pub(super) writes: Vec<u64>,
    pub(super) syncs: Vec<u64>,
}

impl CallTimes {
    pub(super) fn add(&mut self, other: Self) {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self.syncs.extend(other.syncs);
    }

    pub(super) fn percentiles(&mut self) -> CallLatencies {
        let of = |nanoseconds: &mut Vec<u64>| {
            (!nanoseconds.is_empty()).then(|| LatencyPercentiles::of(nanoseconds))
        };
        CallLatencies { read: of(&mut self.reads), write: of(&mut self.writes), sync: of(&mut self.syncs) }
    }
}

/// The latencies of each kind of call; `None` for a kind without a timed call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallLatencies {
    /// Reads.
    pub read: Option<LatencyPercentiles>,
    /// Writes.
    pub write: Option<LatencyPercentiles>,
    /// Calls of fdatasync.
    pub sync: Option<LatencyPercentiles>,
}

impl CallLatencies {
    /// Reads the file that [`SampleSpec::calls`](super::SampleSpec::calls) names.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        Self::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no latencies of calls"))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        for line in text.lines() {
            let mut words = line.split('\t');
            let kind = match words.next()? {
                "read" => &mut found.read,
                "write" => &mut found.write,
                "sync" => &mut found.sync,
                _ => return None,
            };
            let count = words.next()?.parse().ok()?;
            let mut us = || words.next()?.parse().ok().filter(|us: &f64| us.is_finite());
            let (p50_us, p95_us, p99_us, max_us) = (us()?, us()?, us()?, us()?);
            *kind = Some(LatencyPercentiles { count, p50_us, p95_us, p99_us, max_us });
        }
        Some(found)
    }
}

/// One line for each kind of call: kind, number, and percentiles, separated by tabs.
impl fmt::Display for CallLatencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, latencies) in [("read", self.read), ("write", self.write), ("sync", self.sync)] {
            if let Some(LatencyPercentiles { count, p50_us, p95_us, p99_us, max_us }) = latencies {
                writeln!(f, "{kind}\t{count}\t{p50_us:.3}\t{p95_us:.3}\t{p99_us:.3}\t{max_us:.3}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_written_and_read_back() {
        let mut times = CallTimes::default();
        times
            .add(CallTimes { writes: (1..=200).rev().map(|us| us * 1000).collect(), ..CallTimes::default() });
        times.add(CallTimes { syncs: vec![1500], ..CallTimes::default() });
        let found = times.percentiles();
        assert_eq!(
            found.to_string(),
            "write\t200\t100.000\t190.000\t198.000\t200.000\nsync\t1\t1.500\t1.500\t1.500\t1.500\n"
        );
        assert_eq!(CallLatencies::parse(&found.to_string()), Some(found));
        assert_eq!(CallLatencies::parse(""), Some(CallLatencies::default()));
        for malformed in
            ["seek\t1\t1\t1\t1\t1", "read\t1\t1\t1\t1", "read\tx\t1\t1\t1\t1", "sync\t1\t1\tinf\t1\t1"]
        {
            assert_eq!(CallLatencies::parse(malformed), None, "{malformed}");
        }
    }
}
