//! What this machine and this filesystem cost, in microseconds: all that predictions are made of.

use serde::{Deserialize, Serialize};

use crate::Summary;

/// Operations that do nothing, through a ring: microseconds each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Nops {
    /// Done in place, one at a time.
    pub inline_us: f64,
    /// Handed to a thread of the kernel's, one at a time.
    pub handed_over_us: f64,
    /// The same, [`Nops::DEPTH`] at a time.
    pub handed_over_deep_us: f64,
}

impl Nops {
    /// How many are submitted at once where it is more than one.
    pub const DEPTH: usize = 32;
}

/// What an operation of an arm takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The arm.
    pub method: String,
    /// Its I/O model.
    pub model: String,
    /// Operations it has under way.
    pub in_flight: u32,
    /// From the start of the first to the end of the last, divided by their number.
    pub wall_us: f64,
    /// Processor time of each.
    pub cpu_us: f64,
}

impl Cost {
    /// That of the arm that `summary` is of; `None` if no sample of it counts.
    #[must_use]
    pub fn of(summary: &Summary) -> Option<Self> {
        (summary.runs > 0 && summary.ops_per_s > 0.0).then(|| Self {
            method: summary.method.clone(),
            model: summary.model.clone(),
            in_flight: summary.threads * summary.depth,
            wall_us: 1e6 / summary.ops_per_s,
            cpu_us: summary.cpu_s_per_million_ops,
        })
    }

    /// How long each waits for the storage if nothing else is under way.
    #[must_use]
    pub fn wait_us(&self) -> f64 {
        (self.wall_us - self.cpu_us).max(0.0)
    }
}

/// What was measured before anything is predicted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Constants {
    /// Processors this process may use.
    pub cpus: u32,
    /// Random reads of 4 KiB from the page cache, by every arm.
    pub warm_read: Vec<Cost>,
    /// The same past the page cache, by depth; empty where that is refused.
    pub direct_read: Vec<Cost>,
    /// A ring by itself; `None` where there is none.
    pub nops: Option<Nops>,
    /// Whether a ring's buffered writes all go to a thread of the kernel's; `None` if some may.
    pub writes_are_handed_over: Option<bool>,
    /// An fdatasync after 4 KiB: the median.
    pub sync_p50_us: Option<f64>,
    /// The 99th percentile.
    pub sync_p99_us: Option<f64>,
}

impl Constants {
    /// What `method` takes for a warm read; `None` if it has none.
    #[must_use]
    pub fn warm(&self, method: &str) -> Option<&Cost> {
        self.warm_read.iter().find(|cost| cost.method == method)
    }

    /// How much longer a warm read takes with `method` than with blocking calls; less than zero if it is faster.
    #[must_use]
    pub fn overhead_us(&self, method: &str) -> Option<f64> {
        Some(self.warm(method)?.wall_us - self.warm("blocking")?.wall_us)
    }

    /// What two and more processors make of work that waits for nothing: the time of threads divided by that of one.
    #[must_use]
    pub fn parallel(&self) -> Option<f64> {
        let threads = self.warm_read.iter().filter(|cost| cost.model == "threads" && cost.in_flight > 1);
        let best = threads.map(|cost| cost.wall_us).min_by(f64::total_cmp)?;
        Some(best / self.warm("blocking")?.wall_us)
    }

    /// How many times as fast `in_flight` waits are as one at a time, by calls of threads or through a ring: between what was
    /// measured, on a straight line over the logarithm of the depth.
    #[must_use]
    pub fn overlap(&self, ring: bool, in_flight: u32) -> Option<f64> {
        let alone = self.direct_read.iter().find(|cost| cost.method == "blocking")?.wall_us;
        let of_kind = self.direct_read.iter().filter(|cost| (cost.model == "uring") == ring);
        let mut points: Vec<(f64, f64)> =
            of_kind.map(|cost| (f64::from(cost.in_flight).ln(), alone / cost.wall_us)).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Some(between(&points, f64::from(in_flight).ln())?.max(1.0))
    }
}

/// The value at `at` of the line through `points`; that of the nearest one outside of them.
fn between(points: &[(f64, f64)], at: f64) -> Option<f64> {
    let after = points.iter().position(|(x, _)| *x >= at);
    Some(match after {
        None => points.last()?.1,
        Some(0) => points[0].1,
        Some(after) => {
            let ((x0, y0), (x1, y1)) = (points[after - 1], points[after]);
            y0 + (y1 - y0) * (at - x0) / (x1 - x0)
        }
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What an operation of an arm takes.
    pub(in super::super) fn cost(
        method: &str,
        model: &str,
        in_flight: u32,
        wall_us: f64,
        cpu_us: f64,
    ) -> Cost {
        Cost { method: method.to_owned(), model: model.to_owned(), in_flight, wall_us, cpu_us }
    }

    #[test]
    fn overlap_is_read_off_the_line_between_depths() {
        let direct_read = vec![
            cost("blocking", "blocking", 1, 100.0, 5.0),
            cost("8_threads_pread", "threads", 8, 20.0, 5.0),
            cost("32_threads_pread", "threads", 32, 10.0, 5.0),
            cost("iouring_32", "uring", 32, 8.0, 4.0),
        ];
        let constants = Constants { direct_read, ..Constants::default() };
        let of = |ring, depth| constants.overlap(ring, depth).unwrap();
        assert!((of(false, 8) - 5.0).abs() < 1e-9);
        assert!((of(false, 16) - 7.5).abs() < 1e-9, "half way between 8 and 32");
        assert!((of(false, 1000) - 10.0).abs() < 1e-9);
        assert!((of(true, 1) - 12.5).abs() < 1e-9);
        assert_eq!(Constants::default().overlap(false, 8), None);
    }

    #[test]
    fn overheads_are_differences_to_blocking_calls() {
        let warm_read = vec![
            cost("blocking", "blocking", 1, 1.0, 1.0),
            cost("8_threads_pread", "threads", 8, 0.6, 1.1),
            cost("pool_1", "pool", 1, 5.0, 6.0),
        ];
        let constants = Constants { warm_read, ..Constants::default() };
        assert!((constants.overhead_us("pool_1").unwrap() - 4.0).abs() < 1e-9);
        assert!((constants.parallel().unwrap() - 0.6).abs() < 1e-9);
        assert_eq!(constants.overhead_us("zfs"), None);
    }
}
