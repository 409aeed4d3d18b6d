//! Error rates of the statistics: differences reported where there are none, and differences
//! missed.

use fathom_bench::Interval;
use fathom_bench::summary::summarise;

use crate::simulated::{arm, noisy};

fn excludes_one(ratio: &Interval) -> bool {
    ratio.low > 1.0 || ratio.high < 1.0
}

/// Compares two copies of the same arm, with noise of 10 % and a shared drift of 30 %, and returns
/// the number of comparisons that report a difference. `blocks` maps a seed to a number of blocks.
fn false_positives(comparisons: u64, blocks: impl Fn(u64) -> u32) -> usize {
    let wrong = |seed: &u64| {
        let rows = noisy(&[("sync", 1.0), ("sync (again)", 1.0)], blocks(*seed), 0.1, 1000 + *seed);
        let noise = summarise(&rows, "null", &arm("sync"), *seed).noise.unwrap();
        assert!(noise.floor > 0.0);
        excludes_one(&noise.ratio)
    };
    (0..comparisons).filter(wrong).count()
}

#[test]
fn of_100_null_comparisons_at_most_8_are_called_different() {
    for blocks in [10, 15, 20, 30] {
        let wrong = false_positives(100, |_| blocks);
        assert!(wrong <= 8, "{wrong} of 100 with {blocks} blocks");
    }
}

/// Measures the false positive rate with more comparisons. It is at most 5 %, below that for few
/// blocks, because the sign test is discrete.
#[test]
fn the_rate_of_false_positives_is_below_5_percent() {
    let wrong = false_positives(1000, |seed| 10 + (seed % 21) as u32);
    assert!((15..=50).contains(&wrong), "{wrong} of 1000");
}

/// The set of best arms must contain each of 20 equal arms in 95 of 100 runs. The noise is far
/// above the margin, so only the statistics keep an arm in the set.
#[test]
fn of_20_arms_alike_nearly_none_is_called_slower() {
    let names: Vec<String> = (0..20).map(|number| format!("arm {number:02}")).collect();
    let arms: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 1.0)).collect();
    let lost = |seed: u64| {
        let cell = summarise(&noisy(&arms, 15, 0.3, seed), "null", &arm("arm 00"), seed);
        cell.arms.iter().filter(|arm| !arm.among_best).count()
    };
    let lost: usize = (0..25).map(lost).sum();
    assert!(lost <= 25, "{lost} of 500");
}

#[test]
fn an_arm_that_is_slower_is_found_among_many() {
    let mut arms = vec![("sync", 1.0), ("slow", 1.3), ("like", 1.02), ("slowest", 3.0)];
    let names: Vec<String> = (0..16).map(|number| format!("arm {number:02}")).collect();
    arms.extend(names.iter().map(|name| (name.as_str(), 2.0)));
    for seed in 0..10 {
        let cell = summarise(&noisy(&arms, 20, 0.05, seed), "cell", &arm("sync"), seed);
        let best: Vec<&str> =
            cell.arms.iter().filter(|arm| arm.among_best).map(|arm| arm.method.as_str()).collect();
        assert!(best.contains(&"sync") && best.contains(&"like") && best.len() == 2, "{seed}: {best:?}");
        let slow = cell.arms.iter().find(|arm| arm.method == "slow").unwrap().ratio.unwrap();
        assert!(slow.low > 1.15 && slow.high < 1.5, "{seed}: {slow:?}");
    }
}
