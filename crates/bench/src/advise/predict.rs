//! What an arm will take, from what blocking calls take in the same cell and from the constants of the machine.
//!
//! With c the processor time of an operation, h what the arm adds to it, w the wait for the storage and S(k) what k waits under way
//! at once gain: blocking calls take c + w; arms that overlap take the larger of (c + h) on their processors and w / S(k).

use super::constants::{Constants, Cost};
use crate::arms::Arm;
use crate::lab::{Cache, Cell};
use crate::sample::Deed;

/// An arm that is predicted to take up to this many times as long as the best one is measured.
const CONTESTED: f64 = 1.5;

/// No arm is predicted to take less than this part of what blocking calls take where nothing waits.
const LEAST: f64 = 0.1;

/// Microseconds of an operation of `arm` in `cell`, where blocking calls take `base`; `None` where nothing that was measured says.
pub(super) fn predict(constants: &Constants, cell: &Cell, base: &Cost, arm: &Arm) -> Option<f64> {
    let in_flight = u32::try_from(arm.threads * arm.depth).ok()?;
    let waits = if cell.cache == Cache::Cold { base.wait_us() } else { 0.0 };
    match arm.model {
        "blocking" | "sync" => Some(base.wall_us),
        _ if is_unlike(cell, arm) => None,
        _ if waits == 0.0 => warm(constants, cell, base, arm),
        _ => {
            let ring = arm.model.starts_with("uring");
            let busy = warm(constants, cell, &Cost { wall_us: base.cpu_us, ..base.clone() }, arm)?;
            if in_flight == 1 {
                return Some(busy + waits);
            }
            Some(busy.max(waits / constants.overlap(ring, in_flight)?))
        }
    }
}

/// Whether the constants say nothing of it: what the kernel copies by itself, or reads ahead, is not made of single operations, and
/// neither is what adapts; a server has its connections to look after.
fn is_unlike(cell: &Cell, arm: &Arm) -> bool {
    let reads_ahead = cell.cache == Cache::Cold && (cell.deed == Deed::Read || arm.model == "mmap");
    let grows = cell.deed.writes() && matches!(arm.model, "mmap" | "threads");
    // Names come by the directory, not by the call; and how many calls tokio has under way is its own affair.
    let by_directory = cell.deed == Deed::Walk && arm.model != "threads";
    let adapts = matches!(arm.model, "auto" | "async-par");
    reads_ahead || grows || by_directory || adapts || matches!(cell.deed, Deed::Copy | Deed::Serve)
}

/// The same where nothing waits for the storage. What an arm saves on a read of 4 KiB it cannot save on less work than that.
fn warm(constants: &Constants, cell: &Cell, base: &Cost, arm: &Arm) -> Option<f64> {
    let wall = base.wall_us;
    let us = match arm.model {
        "threads" if arm.threads == 1 => Some(wall),
        "threads" => Some(wall * constants.parallel()?),
        "uring" | "uring-registered" if is_handed_over(constants, cell) => {
            let nops = constants.nops?;
            Some(wall + if arm.depth > 1 { nops.handed_over_deep_us } else { nops.handed_over_us })
        }
        // Through tokio every call is one hand-off, whatever it is.
        "async-seq" => Some(wall + constants.overhead_us("tokio_1")?),
        _ => Some(wall + constants.overhead_us(&arm.name).or_else(|| alike(constants, arm))?),
    };
    us.map(|us| us.max(wall * LEAST))
}

/// The overhead of an arm of the same model.
fn alike(constants: &Constants, arm: &Arm) -> Option<f64> {
    let nearest = |cost: &&Cost| u32::try_from(arm.threads * arm.depth).unwrap_or(0).abs_diff(cost.in_flight);
    let of_model = constants.warm_read.iter().filter(|cost| cost.model == arm.model);
    constants.overhead_us(&of_model.min_by_key(nearest)?.method)
}

/// Whether each operation goes to a thread of the kernel's: statx always, and writes where the filesystem cannot do without waiting.
fn is_handed_over(constants: &Constants, cell: &Cell) -> bool {
    cell.deed == Deed::Stat || (cell.deed.writes() && constants.writes_are_handed_over != Some(false))
}

/// Which of `predictions` are to be measured: the first, which is the baseline, all that may be the best, and those that nothing is
/// known of.
pub(super) fn contested(predictions: &[Option<f64>]) -> Vec<bool> {
    let best = predictions.iter().flatten().copied().min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
    let is = |(at, us): (usize, &Option<f64>)| at == 0 || us.is_none_or(|us| us <= best * CONTESTED);
    predictions.iter().enumerate().map(is).collect()
}

#[cfg(test)]
mod tests {
    use super::super::constants::tests::cost;
    use super::super::question::{candidates, questions};
    use super::*;

    fn constants() -> Constants {
        Constants {
            cpus: 2,
            warm_read: vec![
                cost("blocking", "blocking", 1, 1.0, 1.0),
                cost("8_threads_pread", "threads", 8, 0.6, 1.1),
                cost("pool_32", "pool", 32, 3.0, 4.0),
                cost("mmap", "mmap", 1, 0.4, 0.4),
                cost("iouring_32", "uring", 32, 1.2, 1.2),
                cost("tokio_1", "tokio", 1, 16.0, 18.0),
            ],
            direct_read: vec![
                cost("blocking", "blocking", 1, 100.0, 5.0),
                cost("32_threads_pread", "threads", 32, 10.0, 5.0),
                cost("iouring_32", "uring", 32, 8.0, 4.0),
            ],
            nops: Some(super::super::constants::Nops {
                inline_us: 0.4,
                handed_over_us: 9.0,
                handed_over_deep_us: 2.0,
            }),
            ..Constants::default()
        }
    }

    fn of(deed: Deed, cache: Cache, base: &Cost, name: &str) -> Option<f64> {
        let cell =
            questions(1, 1.0).into_iter().find(|cell| cell.deed == deed && cell.cache == cache).unwrap();
        let arm = candidates(&cell, 4).into_iter().find(|arm| arm.name == name).unwrap();
        predict(&constants(), &cell, base, &arm)
    }

    #[test]
    fn warm_work_pays_for_hand_offs_and_gains_by_processors() {
        let base = cost("blocking", "blocking", 1, 2.0, 2.0);
        assert_eq!(of(Deed::RandomRead, Cache::Warm, &base, "blocking"), Some(2.0));
        assert_eq!(of(Deed::RandomRead, Cache::Warm, &base, "pool_32"), Some(4.0));
        assert_eq!(of(Deed::RandomRead, Cache::Warm, &base, "32_threads_pread"), Some(1.2));
        assert_eq!(of(Deed::Stat, Cache::Warm, &base, "async_seq"), Some(17.0));
        assert_eq!(of(Deed::Stat, Cache::Warm, &base, "iouring_32"), Some(4.0), "statx is handed over");
        assert_eq!(of(Deed::Copy, Cache::Warm, &base, "splice"), None);
        assert_eq!(of(Deed::Walk, Cache::Warm, &base, "async_seq"), None, "a call is a directory");
        let tiny = cost("blocking", "blocking", 1, 0.1, 0.1);
        let found = of(Deed::RandomRead, Cache::Warm, &tiny, "mmap").unwrap();
        assert!((found - 0.01).abs() < 1e-9, "never less than nothing: {found}");
    }

    #[test]
    fn cold_work_gains_by_depth_until_the_processors_are_busy() {
        let base = cost("blocking", "blocking", 1, 105.0, 5.0);
        assert_eq!(of(Deed::RandomRead, Cache::Cold, &base, "blocking"), Some(105.0));
        assert_eq!(of(Deed::RandomRead, Cache::Cold, &base, "32_threads_pread"), Some(10.0));
        assert_eq!(of(Deed::RandomRead, Cache::Cold, &base, "iouring_32"), Some(8.0));
        assert_eq!(of(Deed::RandomRead, Cache::Cold, &base, "pool_32"), Some(10.0));
        assert_eq!(of(Deed::RandomRead, Cache::Cold, &base, "mmap"), None, "the kernel reads around");
        let busy = cost("blocking", "blocking", 1, 60.0, 40.0);
        assert_eq!(of(Deed::Stat, Cache::Cold, &busy, "32_threads"), Some(24.0));
    }

    #[test]
    fn what_may_be_best_or_is_not_known_is_contested() {
        let found = contested(&[Some(10.0), Some(1.0), Some(1.4), Some(1.6), None]);
        assert_eq!(found, [true, true, true, false, true]);
    }
}
