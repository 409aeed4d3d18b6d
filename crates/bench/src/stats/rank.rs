//! Median and percentiles of a sample.

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
}
