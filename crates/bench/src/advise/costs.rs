//! The measured costs of this machine and filesystem, in microseconds. All predictions derive from
//! them.

use fathom_io::Model;
use serde::{Deserialize, Serialize};

use crate::arms::BASELINE;
use crate::{ArmSummary, Interval};

/// Costs of one no-op through an io_uring ring, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NopCosts {
    /// Completed inline by the submitter, one at a time.
    pub inline_us: f64,
    /// Punted to a kernel worker (io-wq), one at a time.
    pub handed_over_us: f64,
    /// Punted to kernel workers, [`NopCosts::DEPTH`] at a time.
    pub handed_over_deep_us: f64,
}

impl NopCosts {
    /// The number of no-ops in flight for `handed_over_deep_us`.
    pub const DEPTH: usize = 32;
}

/// The cost of one operation of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OpCost {
    /// The name of the arm.
    pub method: String,
    /// The I/O model of the arm.
    pub model: String,
    /// Operations in flight: threads times depth.
    pub in_flight: u32,
    /// Wall time from the start of the first operation to the end of the last, divided by their
    /// number.
    pub wall_us: f64,
    /// CPU time of one operation.
    pub cpu_us: f64,
    /// `wall_us` divided by the `wall_us` of blocking calls, within blocks; `None` for blocking
    /// calls.
    #[serde(default)]
    pub ratio: Option<Interval>,
    /// The interval of `wall_us`.
    #[serde(default)]
    pub wall_interval_us: Option<Interval>,
}

impl OpCost {
    /// Computes the cost from the statistics of an arm; `None` if no sample of it is counted.
    #[must_use]
    pub fn of(summary: &ArmSummary) -> Option<Self> {
        (summary.runs > 0 && summary.ops_per_s > 0.0).then(|| {
            let wall_us = 1e6 / summary.ops_per_s;
            Self {
                method: summary.method.clone(),
                model: summary.model.clone(),
                in_flight: summary.threads * summary.depth,
                wall_us,
                cpu_us: summary.cpu_s_per_million_ops,
                ratio: summary.ratio,
                wall_interval_us: Some(scaled(summary.seconds, wall_us / summary.seconds.median)),
            }
        })
    }

    /// Returns whether the arm has this model.
    pub(super) fn is_of(&self, model: Model) -> bool {
        self.model == model.name()
    }

    /// Returns the time that an operation waits for the storage when no other operation is in
    /// flight.
    #[must_use]
    pub fn wait_us(&self) -> f64 {
        (self.wall_us - self.cpu_us).max(0.0)
    }
}

/// The measurements that precede all predictions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostConstants {
    /// Processors available to this process.
    pub cpus: u32,
    /// Random reads of 4 KiB from the page cache, one entry for each arm.
    pub warm_read: Vec<OpCost>,
    /// Random reads of 4 KiB with `O_DIRECT`, by depth; empty if the filesystem rejects `O_DIRECT`.
    pub direct_read: Vec<OpCost>,
    /// No-ops through a ring; `None` if io_uring is unavailable.
    pub nops: Option<NopCosts>,
    /// Whether io_uring punts every buffered write to a kernel worker; `None` if unknown.
    pub writes_are_handed_over: Option<bool>,
    /// Median latency of an fdatasync after a write of 4 KiB.
    pub sync_p50_us: Option<f64>,
    /// 99th percentile of that latency.
    pub sync_p99_us: Option<f64>,
}

impl CostConstants {
    /// Returns the cost of a warm read with `method`; `None` if it was not measured.
    #[must_use]
    pub fn warm(&self, method: &str) -> Option<&OpCost> {
        self.warm_read.iter().find(|cost| cost.method == method)
    }

    /// Returns the time that `method` adds to a warm read compared to blocking calls; negative if
    /// it is faster.
    #[must_use]
    pub fn overhead_us(&self, method: &str) -> Option<f64> {
        Some(self.warm(method)?.wall_us - self.warm(BASELINE)?.wall_us)
    }

    /// Returns the same with its interval, from the ratios within blocks, which drift does not
    /// widen.
    #[must_use]
    pub fn overhead_interval_us(&self, method: &str) -> Option<Interval> {
        let (ratio, base_us) = (self.warm(method)?.ratio?, self.warm(BASELINE)?.wall_us);
        let overhead_us = |ratio: f64| (ratio - 1.0) * base_us;
        let Interval { median, low, high } = ratio;
        Some(Interval { median: overhead_us(median), low: overhead_us(low), high: overhead_us(high) })
    }

    /// Returns the time of a warm read on several threads divided by the time on one thread: the
    /// gain from more processors for operations that do not wait.
    #[must_use]
    pub fn parallel(&self) -> Option<f64> {
        let threads =
            self.warm_read.iter().filter(|cost| cost.is_of(Model::Threads(None)) && cost.in_flight > 1);
        let best = threads.map(|cost| cost.wall_us).min_by(f64::total_cmp)?;
        Some(best / self.warm(BASELINE)?.wall_us)
    }

    /// Returns the speed-up of `in_flight` concurrent waits over one wait at a time, for threads or
    /// for a ring. Between measured depths it interpolates linearly over the logarithm of the
    /// depth.
    #[must_use]
    pub fn overlap(&self, ring: bool, in_flight: u32) -> Option<f64> {
        Some(self.by_depth(ring, in_flight, |cost, alone| alone.wall_us / cost.wall_us)?.max(1.0))
    }

    /// Returns the processor time of an operation among `in_flight` concurrent waits divided by the
    /// time of an operation that waits alone. Interpolates as [`overlap`](Self::overlap).
    #[must_use]
    pub fn busy_share(&self, ring: bool, in_flight: u32) -> Option<f64> {
        let share = |cost: &OpCost, alone: &OpCost| cost.cpu_us / alone.cpu_us;
        Some(self.by_depth(ring, in_flight, share)?.min(1.0))
    }

    /// Interpolates `value` of the reads past the page cache, with one at a time as the reference.
    fn by_depth(&self, ring: bool, in_flight: u32, value: fn(&OpCost, &OpCost) -> f64) -> Option<f64> {
        let alone = self.direct_read.iter().find(|cost| cost.method == BASELINE)?;
        let of_kind = self.direct_read.iter().filter(|cost| cost.is_of(Model::Uring(None)) == ring);
        let mut points: Vec<(f64, f64)> =
            of_kind.map(|cost| (f64::from(cost.in_flight).ln(), value(cost, alone))).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        between(&points, f64::from(in_flight).ln())
    }
}

fn scaled(interval: Interval, factor: f64) -> Interval {
    let Interval { median, low, high } = interval;
    Interval { median: median * factor, low: low * factor, high: high * factor }
}

/// Interpolates linearly between `points`, sorted by the first coordinate. Outside their range it
/// returns the value of the nearest point.
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

    /// Builds a cost from its fields.
    pub(in super::super) fn cost(
        method: &str,
        model: &str,
        in_flight: u32,
        wall_us: f64,
        cpu_us: f64,
    ) -> OpCost {
        let (method, model) = (method.to_owned(), model.to_owned());
        OpCost { method, model, in_flight, wall_us, cpu_us, ratio: None, wall_interval_us: None }
    }

    #[test]
    fn overlap_is_interpolated_between_depths() {
        let direct_read = vec![
            cost("sync", "sync", 1, 100.0, 5.0),
            cost("threads=8", "threads", 8, 20.0, 5.0),
            cost("threads=32", "threads", 32, 10.0, 5.0),
            cost("uring=32", "uring", 32, 8.0, 4.0),
        ];
        let constants = CostConstants { direct_read, ..CostConstants::default() };
        let of = |ring, depth| constants.overlap(ring, depth).unwrap();
        assert!((of(false, 8) - 5.0).abs() < 1e-9);
        assert!((of(false, 16) - 7.5).abs() < 1e-9, "half way between 8 and 32");
        assert!((of(false, 1000) - 10.0).abs() < 1e-9);
        assert!((of(true, 1) - 12.5).abs() < 1e-9);
        assert_eq!(CostConstants::default().overlap(false, 8), None);
        assert_eq!((constants.busy_share(false, 8), constants.busy_share(true, 8)), (Some(1.0), Some(0.8)));
    }

    #[test]
    fn overheads_are_differences_to_blocking_calls() {
        let warm_read = vec![
            cost("sync", "sync", 1, 1.0, 1.0),
            cost("threads=8", "threads", 8, 0.6, 1.1),
            cost("pool=1", "pool", 1, 5.0, 6.0),
        ];
        let constants = CostConstants { warm_read, ..CostConstants::default() };
        assert!((constants.overhead_us("pool=1").unwrap() - 4.0).abs() < 1e-9);
        assert!((constants.parallel().unwrap() - 0.6).abs() < 1e-9);
        assert_eq!(constants.overhead_us("zfs"), None);
    }
}
