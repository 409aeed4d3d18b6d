//! Prediction of the time of an arm from the time of blocking calls in the same cell and the
//! machine's cost constants.
//!
//! Let c be the CPU time of an operation, h the overhead of the arm, w the wait for the storage,
//! and S(k) the speed-up of k concurrent waits. Blocking calls take c + w. Arms with concurrent
//! operations take the larger of c + h (spread over their processors) and w / S(k). Part of c is
//! the cost of falling asleep and waking up, which concurrent operations share: for them c is
//! smaller by the same factor as for reads past the page cache.

use fathom_io::Model;

use super::costs::{CostConstants, OpCost};
use crate::Workload;
use crate::arms::Arm;
use crate::fixture::{CacheState, Cell};

/// An arm is measured if its prediction is at most this multiple of the best prediction.
const CONTESTED_RATIO: f64 = 2.0;

/// The lower bound of a prediction on a warm cache, as a fraction of the time of blocking calls.
const WARM_FRACTION_MIN: f64 = 0.1;

/// Predicts the microseconds of one operation of `arm` in `cell`, where blocking calls take `base`;
/// `None` if no measurement applies.
pub(super) fn predict(constants: &CostConstants, cell: &Cell, base: &OpCost, arm: &Arm) -> Option<f64> {
    let in_flight = u32::try_from(arm.threads * arm.depth).ok()?;
    let waits = if cell.cache == CacheState::Cold { base.wait_us() } else { 0.0 };
    match arm.model {
        Some(Model::Sync) => Some(base.wall_us),
        _ if is_outside_model(cell, arm) => None,
        _ if waits == 0.0 => warm(constants, cell, base, arm),
        _ => {
            let ring = arm.is_ring();
            let busy = |cpu_us| warm(constants, cell, &OpCost { wall_us: cpu_us, ..base.clone() }, arm);
            if in_flight == 1 {
                return Some(busy(base.cpu_us)? + waits);
            }
            let busy = busy(base.cpu_us * constants.busy_share(ring, in_flight)?)?;
            Some(busy.max(waits / constants.overlap(ring, in_flight)?))
        }
    }
}

/// Returns whether the cost model does not apply. In-kernel copies and readahead are not sums of
/// single operations; adaptive arms change their own concurrency; a server also handles its
/// connections.
fn is_outside_model(cell: &Cell, arm: &Arm) -> bool {
    let reads_ahead =
        cell.cache == CacheState::Cold && (cell.workload == Workload::Read || arm.model == Some(Model::Mmap));
    let grows = cell.workload.writes() && matches!(arm.model, Some(Model::Mmap | Model::Threads(_)));
    // `getdents64` returns many names for each call, and tokio chooses its own concurrency.
    let by_directory = cell.workload == Workload::Walk && arm.model != Some(Model::Threads(None));
    let adapts = matches!(arm.model, Some(Model::Auto | Model::AsyncPar));
    reads_ahead
        || grows
        || by_directory
        || adapts
        || matches!(cell.workload, Workload::Copy | Workload::Serve)
}

/// Predicts the time where no operation waits for the storage. The lower bound keeps a saving that
/// was measured on 4 KiB reads from exceeding the cost of a smaller operation.
fn warm(constants: &CostConstants, cell: &Cell, base: &OpCost, arm: &Arm) -> Option<f64> {
    let wall = base.wall_us;
    let us = match arm.model {
        Some(Model::Threads(_)) if arm.threads == 1 => Some(wall),
        Some(Model::Threads(_)) => Some(wall * constants.parallel()?),
        Some(Model::Uring(_) | Model::UringRegistered) if is_punted(constants, cell) => {
            let nops = constants.nops?;
            Some(wall + if arm.depth > 1 { nops.handed_over_deep_us } else { nops.handed_over_us })
        }
        // Every call through tokio is one hand-off, whatever the call is.
        Some(Model::AsyncSeq) => Some(wall + constants.overhead_us("tokio=1")?),
        _ => Some(wall + constants.overhead_us(&arm.name).or_else(|| nearest_overhead(constants, arm))?),
    };
    us.map(|us| us.max(wall * WARM_FRACTION_MIN))
}

/// Returns the overhead of the arm of the same model with the nearest number of operations in
/// flight.
fn nearest_overhead(constants: &CostConstants, arm: &Arm) -> Option<f64> {
    let nearest =
        |cost: &&OpCost| u32::try_from(arm.threads * arm.depth).unwrap_or(0).abs_diff(cost.in_flight);
    let of_model = constants.warm_read.iter().filter(|cost| cost.model == arm.model_name());
    constants.overhead_us(&of_model.min_by_key(nearest)?.method)
}

/// Returns whether io_uring punts each operation to a kernel worker: always for statx, and for
/// buffered writes on filesystems that cannot write without blocking.
fn is_punted(constants: &CostConstants, cell: &Cell) -> bool {
    cell.workload == Workload::Stat
        || (cell.workload.writes() && constants.writes_are_handed_over != Some(false))
}

/// Returns for each prediction whether its arm is to be measured: the first, which is the baseline,
/// every arm that may be the best, and every arm without a prediction.
pub(super) fn contested(predictions: &[Option<f64>]) -> Vec<bool> {
    let best = predictions.iter().flatten().copied().min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
    let is = |(at, us): (usize, &Option<f64>)| at == 0 || us.is_none_or(|us| us <= best * CONTESTED_RATIO);
    predictions.iter().enumerate().map(is).collect()
}

#[cfg(test)]
mod tests {
    use super::super::cells::{advice_cells, candidates};
    use super::super::costs::tests::cost;
    use super::*;

    fn constants() -> CostConstants {
        CostConstants {
            cpus: 2,
            warm_read: vec![
                cost("sync", "sync", 1, 1.0, 1.0),
                cost("threads=8", "threads", 8, 0.6, 1.1),
                cost("pool=32", "pool", 32, 3.0, 4.0),
                cost("mmap", "mmap", 1, 0.4, 0.4),
                cost("uring=32", "uring", 32, 1.2, 1.2),
                cost("tokio=1", "tokio", 1, 16.0, 18.0),
            ],
            direct_read: vec![
                cost("sync", "sync", 1, 100.0, 5.0),
                cost("threads=32", "threads", 32, 10.0, 5.0),
                cost("uring=32", "uring", 32, 8.0, 4.0),
            ],
            nops: Some(super::super::costs::NopCosts {
                inline_us: 0.4,
                handed_over_us: 9.0,
                handed_over_deep_us: 2.0,
            }),
            ..CostConstants::default()
        }
    }

    fn of(workload: Workload, cache: CacheState, base: &OpCost, name: &str) -> Option<f64> {
        let cell = advice_cells(1, 1.0)
            .into_iter()
            .find(|cell| cell.workload == workload && cell.cache == cache)
            .unwrap();
        let arm = candidates(&cell, 4).into_iter().find(|arm| arm.name == name).unwrap();
        predict(&constants(), &cell, base, &arm)
    }

    #[test]
    fn warm_work_pays_for_hand_offs_and_gains_by_processors() {
        let base = cost("sync", "sync", 1, 2.0, 2.0);
        assert_eq!(of(Workload::RandomRead, CacheState::Warm, &base, "sync"), Some(2.0));
        assert_eq!(of(Workload::RandomRead, CacheState::Warm, &base, "pool=32"), Some(4.0));
        assert_eq!(of(Workload::RandomRead, CacheState::Warm, &base, "threads=32"), Some(1.2));
        assert_eq!(of(Workload::Stat, CacheState::Warm, &base, "async-seq"), Some(17.0));
        assert_eq!(
            of(Workload::Stat, CacheState::Warm, &base, "uring=32"),
            Some(4.0),
            "statx is handed over"
        );
        assert_eq!(of(Workload::Copy, CacheState::Warm, &base, "splice"), None);
        assert_eq!(of(Workload::Walk, CacheState::Warm, &base, "async-seq"), None, "a call is a directory");
        let tiny = cost("sync", "sync", 1, 0.1, 0.1);
        let found = of(Workload::RandomRead, CacheState::Warm, &tiny, "mmap").unwrap();
        assert!((found - 0.01).abs() < 1e-9, "never less than nothing: {found}");
    }

    #[test]
    fn cold_work_gains_by_depth_until_the_processors_are_busy() {
        let base = cost("sync", "sync", 1, 105.0, 5.0);
        assert_eq!(of(Workload::RandomRead, CacheState::Cold, &base, "sync"), Some(105.0));
        assert_eq!(of(Workload::RandomRead, CacheState::Cold, &base, "threads=32"), Some(10.0));
        assert_eq!(of(Workload::RandomRead, CacheState::Cold, &base, "uring=32"), Some(8.0));
        assert_eq!(of(Workload::RandomRead, CacheState::Cold, &base, "pool=32"), Some(10.0));
        assert_eq!(
            of(Workload::RandomRead, CacheState::Cold, &base, "mmap"),
            None,
            "the kernel reads around"
        );
        let busy = cost("sync", "sync", 1, 60.0, 40.0);
        assert_eq!(of(Workload::Stat, CacheState::Cold, &busy, "threads=32"), Some(24.0));
    }

    #[test]
    fn arms_that_may_be_best_or_have_no_prediction_are_contested() {
        let found = contested(&[Some(10.0), Some(1.0), Some(1.9), Some(2.1), None]);
        assert_eq!(found, [true, true, true, false, true]);
    }
}
