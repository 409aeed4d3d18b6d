//! Simultaneous confidence bounds for the differences of many arms from the best arm.

use super::{Bootstrap, CONFIDENCE, median, percentile};

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
    use super::*;

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
