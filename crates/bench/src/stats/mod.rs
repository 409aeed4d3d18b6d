//! Statistics of repeated samples: medians and percentiles, the bootstrap over blocks, the sign
//! test interval, and simultaneous comparisons of many arms.
//!
//! Owns: numerics. Does not own: rows, arms and text.

mod bootstrap;

pub use bootstrap::{Bootstrap, CONFIDENCE, DRAWS, lower_bounds};
pub use fathom_io::Random;

/// Returns the middle of the sorted `values`, or the mean of the two in the middle; `None` if there
/// are none.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// Returns the smallest of `values` that at least the fraction `share` (0 to 1) of them do not
/// exceed (nearest rank, so the result is one of the values); `None` if there are none.
#[must_use]
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let rank = nearest_rank(values.len(), share)?;
    let mut values = values.to_vec();
    Some(*values.select_nth_unstable_by(rank, f64::total_cmp).1)
}

/// Returns the index, from 0, of that percentile among `count` sorted values.
fn nearest_rank(count: usize, share: f64) -> Option<usize> {
    let last = count.checked_sub(1)?;
    Some(((share * count as f64).ceil() as usize).saturating_sub(1).min(last))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the confidence interval of a median by the sign test, which assumes nothing about the
/// distribution: the narrowest interval that omits equally many of the sorted `values` at each end
/// and covers the population median with at least [`CONFIDENCE`]. With fewer than 6 values no
/// interval reaches that, and the result is their whole range. `None` if there are no values.
///
/// The population median lies below the k-th smallest value if fewer than k values lie below the
/// median; each value does so with probability 1/2 (Thompson, Annals of Mathematical Statistics
/// 1936).
#[must_use]
pub fn sign_interval(values: &[f64]) -> Option<(f64, f64)> {
    let values = sorted(values);
    let last = values.len().checked_sub(1)?;
    let left_out = left_out(values.len());
    Some((values[left_out], values[last - left_out]))
}

/// Returns the number of values that the interval omits at each end.
fn left_out(count: usize) -> usize {
    // In logarithms, because 2^-count underflows for about a thousand values.
    let mut log_term = -(count as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for fewer in 0..count {
        tail += log_term.exp();
        if 2.0 * tail > 1.0 - CONFIDENCE {
            return fewer.saturating_sub(1);
        }
        log_term += ((count - fewer) as f64 / (fewer + 1) as f64).ln();
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[9.0, 1.0, 5.0, 6.0]), Some(5.5));
    }

    /// The example of the nearest-rank method in textbooks.
    #[test]
    fn percentiles_are_values_that_occurred() {
        let values = [50.0, 15.0, 40.0, 20.0, 35.0];
        let of = |share| percentile(&values, share);
        assert_eq!(of(0.05), Some(15.0));
        assert_eq!(of(0.30), Some(20.0));
        assert_eq!(of(0.40), Some(20.0));
        assert_eq!(of(0.50), Some(35.0));
        assert_eq!(of(1.00), Some(50.0));
        assert_eq!(of(0.00), Some(15.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn half_of_the_values_are_on_each_side_of_the_median(values in prop::collection::vec(-1e9..1e9, 1..50)) {
            let middle = median(&values).unwrap();
            let half = values.len() / 2;
            prop_assert!(values.iter().filter(|value| **value < middle).count() <= half);
            prop_assert!(values.iter().filter(|value| **value > middle).count() <= half);
        }

        #[test]
        fn a_percentile_has_its_share_below_it(values in prop::collection::vec(-1e9..1e9, 1..50), share in 0.0..=1.0) {
            let found = percentile(&values, share).unwrap();
            let count = |holds: &dyn Fn(f64) -> bool| values.iter().filter(|value| holds(**value)).count() as f64;
            prop_assert!(count(&|value| value <= found) >= share * values.len() as f64);
            prop_assert!(count(&|value| value < found) <= share * values.len() as f64);
        }
    }

    /// Conover, Practical Nonparametric Statistics, table of the binomial distribution with
    /// probability 1/2.
    #[test]
    fn as_many_values_are_left_out_as_tables_say() {
        let known = [
            (1, 0),
            (5, 0),
            (6, 0),
            (8, 0),
            (9, 1),
            (10, 1),
            (12, 2),
            (15, 3),
            (20, 5),
            (25, 7),
            (30, 9),
            (100, 39),
        ];
        for (count, expected) in known {
            assert_eq!(left_out(count), expected, "{count}");
        }
    }

    #[test]
    fn the_ends_are_values() {
        assert_eq!(sign_interval(&[]), None);
        assert_eq!(sign_interval(&[3.0]), Some((3.0, 3.0)));
        let values = [9.0, 1.0, 5.0, 7.0, 2.0, 3.0, 8.0, 4.0, 6.0];
        assert_eq!(sign_interval(&values), Some((2.0, 8.0)));
    }

    /// The expected value is the normal approximation, which is accurate for this count.
    #[test]
    fn thousands_of_values_do_not_underflow() {
        let expected = 5000.0 - 1.96 * 50.0;
        assert!((left_out(10_000) as f64 - expected).abs() < 3.0, "{}", left_out(10_000));
    }
}
