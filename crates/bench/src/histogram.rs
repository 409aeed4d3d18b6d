//! Histograms of latencies: counts between powers of two.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Number of buckets: one for each power of two of nanoseconds.
const BUCKETS: usize = 64;

/// Counts of latencies. A bucket has those from a power of two of nanoseconds to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyHistogram([u64; BUCKETS]);

/// A bucket that is not empty, as reports have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// Latencies are below this, and at least half of it.
    pub below_us: f64,
    /// Number of operations.
    pub count: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl LatencyHistogram {
    /// Counts `nanoseconds`.
    #[must_use]
    pub fn of(nanoseconds: &[u64]) -> Self {
        let mut counts = [0; BUCKETS];
        nanoseconds.iter().for_each(|latency| counts[latency.max(&1).ilog2() as usize] += 1);
        Self(counts)
    }

    /// Returns the buckets that are not empty, the shortest latencies first.
    #[must_use]
    pub fn buckets(&self) -> Vec<LatencyBucket> {
        let filled = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        let below_us = |power: usize| f64::exp2(power as f64 + 1.0) / 1e3;
        filled.map(|(power, count)| LatencyBucket { below_us: below_us(power), count: *count }).collect()
    }

    /// Parses the text of [`fmt::Display`]; `None` if it is not that.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut histogram = Self::default();
        for word in text.split(',') {
            let (power, count) = word.split_once(':')?;
            *histogram.0.get_mut(power.parse::<usize>().ok()?)? = count.parse().ok()?;
        }
        (histogram.to_string() == text).then_some(histogram)
    }
}

/// Formats the buckets that are not empty, as in `9:12,10:3`: the power of two, and the count.
impl fmt::Display for LatencyHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filled = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        let words: Vec<String> = filled.map(|(power, count)| format!("{power}:{count}")).collect();
        f.write_str(&words.join(","))
    }
}

/// Adds the buckets of several samples.
pub(crate) fn sum<'a>(samples: impl Iterator<Item = &'a [LatencyBucket]>) -> Vec<LatencyBucket> {
    let mut all: Vec<LatencyBucket> = Vec::new();
    for bucket in samples.flatten() {
        match all.iter_mut().find(|known| known.below_us.total_cmp(&bucket.below_us).is_eq()) {
            Some(known) => known.count = known.count.saturating_add(bucket.count),
            None => all.push(*bucket),
        }
    }
    all.sort_by(|one, other| one.below_us.total_cmp(&other.below_us));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_counted_between_powers_of_two() {
        let histogram = LatencyHistogram::of(&[0, 1, 2, 1023, 1024, 1500, u64::MAX]);
        assert_eq!(histogram.to_string(), "0:2,1:1,9:1,10:2,63:1");
        let buckets = histogram.buckets();
        assert_eq!(buckets[3], LatencyBucket { below_us: 2.048, count: 2 });
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 7);
    }

    #[test]
    fn text_is_parsed_back_and_nothing_else_is() {
        let histogram = LatencyHistogram::of(&[5, 70, 1 << 40]);
        assert_eq!(LatencyHistogram::parse(&histogram.to_string()), Some(histogram));
        for wrong in
            ["", "1", "1:", "64:1", "1:+2", "2:1,1:1", "1:1,1:1", "1:0", "1:1,", "1:18446744073709551616"]
        {
            assert_eq!(LatencyHistogram::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn samples_are_added_by_bucket() {
        let bucket = |below_us, count| LatencyBucket { below_us, count };
        let samples = [vec![bucket(2.0, 1), bucket(8.0, 5)], vec![bucket(1.0, 7), bucket(8.0, u64::MAX)]];
        let all = sum(samples.iter().map(Vec::as_slice));
        assert_eq!(all, [bucket(1.0, 7), bucket(2.0, 1), bucket(8.0, u64::MAX)]);
    }
}
