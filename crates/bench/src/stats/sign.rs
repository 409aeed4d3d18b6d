//! The confidence interval of a median by the sign test, which assumes nothing about the
//! distribution.

use super::CONFIDENCE;

/// Returns the narrowest interval that omits equally many of the sorted `values` at each end and
/// covers the population median with at least [`CONFIDENCE`]. With fewer than 6 values no interval
/// reaches that, and the result is their whole range. `None` if there are no values.
///
/// The population median lies below the k-th smallest value if fewer than k values lie below the
/// median; each value does so with probability 1/2 (Thompson, Annals of Mathematical Statistics
/// 1936).
#[must_use]
pub fn sign_interval(values: &[f64]) -> Option<(f64, f64)> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
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
    use super::*;

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
