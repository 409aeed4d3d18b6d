//! The percentile bootstrap of a median, which resamples blocks, and simultaneous confidence bounds
//! for the differences of many arms from the best arm, which use it.
//!
//! Samples of one block share its drift, so whole blocks are drawn, the same ones for every arm
//! (Efron and Tibshirani, An Introduction to the Bootstrap, sections 8 and 13). All draws are made
//! once, in advance.

use super::{Random, median, percentile};
use crate::Interval;

/// Number of draws.
pub const DRAWS: usize = 10_000;

/// The coverage of an interval.
pub const CONFIDENCE: f64 = 0.95;

/// The draws for a number of blocks.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    blocks: usize,
    /// The multiplicity of each block in each draw, draw by draw. The mean is 1, so `u8` suffices.
    counts: Vec<u8>,
}

impl Bootstrap {
    /// Makes [`DRAWS`] draws of `blocks` from `blocks`, with replacement.
    #[must_use]
    pub fn new(blocks: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut counts = vec![0_u8; DRAWS * blocks];
        for draw in counts.chunks_exact_mut(blocks.max(1)) {
            for _ in 0..blocks {
                let drawn = &mut draw[random.below(blocks)];
                *drawn = drawn.saturating_add(1);
            }
        }
        Self { blocks, counts }
    }

    /// Returns the median of `values` in each draw. `values` has one element for each block; a
    /// missing element is `None`. A draw that contains no value has the median of all values. The
    /// result is empty if there is no value.
    #[must_use]
    pub fn medians(&self, values: &[Option<f64>]) -> Vec<f64> {
        let known = values.iter().take(self.blocks).enumerate();
        let mut order: Vec<(f64, usize)> =
            known.filter_map(|(at, value)| value.map(|value| (value, at))).collect();
        order.sort_by(|one, other| one.0.total_cmp(&other.0));
        let Some(all) = median(&order.iter().map(|(value, _)| *value).collect::<Vec<_>>()) else {
            return Vec::new();
        };
        // A draw has as many blocks as there are, so nothing needs to be added up unless some are
        // missing, or more than a multiplicity may count.
        let is_whole = order.len() == self.blocks && self.blocks <= usize::from(u8::MAX);
        let drawn = |counts: &[u8]| order.iter().map(|(_, block)| u32::from(counts[*block])).sum();
        let median = |counts| {
            let total = if is_whole { self.blocks as u32 } else { drawn(counts) };
            median_of_draw(&order, counts, total).unwrap_or(all)
        };
        self.counts.chunks_exact(self.blocks).map(median).collect()
    }

    /// Returns the median of `values` and its interval at [`CONFIDENCE`]; `None` if there is no
    /// value.
    #[must_use]
    pub fn interval(&self, values: &[Option<f64>]) -> Option<Interval> {
        let known: Vec<f64> = values.iter().take(self.blocks).flatten().copied().collect();
        let medians = self.medians(values);
        let tail = (1.0 - CONFIDENCE) / 2.0;
        Some(Interval {
            median: median(&known)?,
            low: percentile(&medians, tail)?,
            high: percentile(&medians, 1.0 - tail)?,
        })
    }
}

/// Returns the median of the values, sorted in ascending order and weighted by the multiplicity of
/// their blocks, which add up to `total`; `None` if no value was drawn.
fn median_of_draw(order: &[(f64, usize)], counts: &[u8], total: u32) -> Option<f64> {
    if total == 0 {
        return None;
    }
    // Indices, because iterators take most of the time in a build without optimisation.
    let (mut at, mut passed) = (0, counts[order[0].1] as u32);
    while 2 * passed < total {
        at += 1;
        passed += counts[order[at].1] as u32;
    }
    let lower = order[at].0;
    if 2 * passed == total {
        at += 1;
        while counts[order[at].1] == 0 {
            at += 1;
        }
    }
    Some(f64::midpoint(lower, order[at].0))
}

/// Returns for each arm a lower bound of the median of its log-ratios to the best arm, at
/// [`CONFIDENCE`] simultaneously for all arms; `None` for an arm without values. The log-ratios are
/// by block, as for [`Bootstrap::medians`].
///
/// The bound uses the bootstrapped maximum of deviations in units of each arm's standard error
/// (max-t: Romano and Wolf, Econometrica 2005). It is two-sided: the best arm was selected because
/// it looked best, so its luck biases all comparisons with it in the same direction.
#[must_use]
pub fn lower_bounds(bootstrap: &Bootstrap, arms: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let estimates: Vec<Option<Estimate>> =
        arms.iter().map(|values| Estimate::new(bootstrap, values)).collect();
    let mut largest: Vec<f64> = Vec::new();
    for estimate in estimates.iter().flatten() {
        largest.resize(estimate.deviations.len(), 0.0);
        for (largest, deviation) in largest.iter_mut().zip(&estimate.deviations) {
            *largest = largest.max(deviation.abs());
        }
    }
    let critical = percentile(&largest, CONFIDENCE).unwrap_or_default();
    let bound = |estimate: &Estimate| estimate.median - critical * estimate.error;
    estimates.iter().map(|estimate| estimate.as_ref().map(bound)).collect()
}

struct Estimate {
    median: f64,
    /// The standard error.
    error: f64,
    /// The deviation of each draw from the median, in standard errors.
    deviations: Vec<f64>,
}

impl Estimate {
    fn new(bootstrap: &Bootstrap, values: &[Option<f64>]) -> Option<Self> {
        let median = median(&values.iter().flatten().copied().collect::<Vec<_>>())?;
        let mut deviations: Vec<f64> = bootstrap.medians(values).iter().map(|drawn| drawn - median).collect();
        let squares: f64 = deviations.iter().map(|deviation| deviation * deviation).sum();
        let error = (squares / deviations.len() as f64).sqrt();
        // With a standard error of zero all draws agree, and every deviation is zero.
        if error > 0.0 {
            deviations.iter_mut().for_each(|deviation| *deviation /= error);
        }
        Some(Self { median, error, deviations })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn a_draws_median_counts_each_value_as_often_as_it_was_drawn() {
        let order = [(1.0, 2), (2.0, 0), (9.0, 1)];
        assert_eq!(median_of_draw(&order, &[1, 1, 1], 3), Some(2.0));
        assert_eq!(median_of_draw(&order, &[0, 3, 0], 3), Some(9.0));
        assert_eq!(median_of_draw(&order, &[1, 2, 1], 4), Some(5.5));
        assert_eq!(median_of_draw(&order, &[2, 0, 2], 4), Some(1.5));
        assert_eq!(median_of_draw(&order, &[0, 0, 0], 0), None);
    }

    #[test]
    fn a_missing_value_changes_nothing_but_the_draws_that_have_its_block() {
        let bootstrap = Bootstrap::new(5, 2);
        let whole = bootstrap.medians(&known(&[1.0, 2.0, 3.0, 4.0, 5.0]));
        let part = bootstrap.medians(&[Some(1.0), Some(2.0), Some(3.0), Some(4.0), None]);
        let draws = bootstrap.counts.chunks_exact(5).zip(whole.iter().zip(&part));
        let without: Vec<_> = draws.filter(|(counts, _)| counts[4] == 0).collect();
        assert!(without.len() > DRAWS / 4 && without.iter().all(|(_, (whole, part))| whole == part));
    }

    /// With an odd number of blocks the median of a draw is one of the values. It is at most the
    /// k-th smallest if more than half of the draw are, which is a binomial tail probability. For
    /// 11 blocks the 2.5th and 97.5th percentiles are the 3rd and the 9th value.
    #[test]
    fn the_interval_of_11_values_is_from_the_3rd_to_the_9th() {
        let values: Vec<f64> = (1..=11).map(f64::from).collect();
        for seed in 0..5 {
            let interval = Bootstrap::new(11, seed).interval(&known(&values));
            assert_eq!(interval, Some(Interval { median: 6.0, low: 3.0, high: 9.0 }), "{seed}");
        }
    }

    #[test]
    fn missing_values_are_ignored() {
        let bootstrap = Bootstrap::new(4, 1);
        assert_eq!(bootstrap.interval(&[None, None, None, None]), None);
        let one = bootstrap.interval(&[None, Some(3.0), None, None]);
        assert_eq!(one, Some(Interval { median: 3.0, low: 3.0, high: 3.0 }));
        assert_eq!(Bootstrap::new(0, 1).interval(&[]), None);
    }

    proptest! {
        #![proptest_config(fathom_cases::property(32))]

        #[test]
        fn an_interval_is_around_its_median_and_within_the_values(
            values in prop::collection::vec(prop::option::of(-1e6..1e6), 1..40), seed in 0_u64..9
        ) {
            let Some(interval) = Bootstrap::new(values.len(), seed).interval(&values) else {
                prop_assert!(values.iter().all(Option::is_none));
                return Ok(());
            };
            let least = values.iter().flatten().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!(least <= interval.low && interval.low <= interval.median);
            prop_assert!(interval.median <= interval.high && interval.high <= most);
        }

        /// Multiplication by a power of two is exact, so the interval scales exactly with the
        /// values.
        #[test]
        fn an_interval_scales_with_its_values(values in prop::collection::vec(0.1..1e6, 1..40)) {
            let bootstrap = Bootstrap::new(values.len(), 3);
            let scaled: Vec<f64> = values.iter().map(|value| value * 8.0).collect();
            let (one, eight) = (bootstrap.interval(&known(&values)).unwrap(), bootstrap.interval(&known(&scaled)).unwrap());
            prop_assert_eq!([one.median * 8.0, one.low * 8.0, one.high * 8.0], [eight.median, eight.low, eight.high]);
        }
    }

    fn noisy(center: f64, phase: usize) -> Vec<Option<f64>> {
        // Deviations of -0.05 to 0.05, in a different order for each arm.
        (0..21).map(|block| Some(center + ((block * 8 + phase) % 21) as f64 / 200.0 - 0.05)).collect()
    }

    #[test]
    fn without_noise_the_bound_is_the_difference() {
        let bootstrap = Bootstrap::new(3, 1);
        let bounds = lower_bounds(&bootstrap, &[vec![Some(0.5); 3], vec![None; 3], vec![Some(0.0); 3]]);
        assert_eq!(bounds, [Some(0.5), None, Some(0.0)]);
        assert_eq!(lower_bounds(&bootstrap, &[]), []);
    }

    #[test]
    fn more_arms_make_each_bound_more_careful() {
        let bootstrap = Bootstrap::new(21, 1);
        let alone = lower_bounds(&bootstrap, &[noisy(1.0, 0)])[0].unwrap();
        let crowd: Vec<_> = (0..20).map(|phase| noisy(1.0, phase)).collect();
        let crowded = lower_bounds(&bootstrap, &crowd)[0].unwrap();
        assert!(crowded < alone && alone < 1.0, "{crowded} {alone}");
        // The correction is of a few standard errors, not of a multiple of the noise.
        assert!(crowded > 0.9, "{crowded}");
    }

    #[test]
    fn an_arm_that_is_all_noise_does_not_hide_the_others() {
        let bootstrap = Bootstrap::new(21, 1);
        let wild = noisy(0.0, 5).iter().map(|value| value.map(|value| value * 1000.0)).collect();
        let bounds = lower_bounds(&bootstrap, &[noisy(0.3, 0), wild]);
        assert!(bounds[0].unwrap() > 0.2 && bounds[1].unwrap() < 0.0, "{bounds:?}");
    }
}
