//! The range of an estimate, computed from its variance, and the confidence of that range.

/// The confidence of an estimate. A new one is a breaking change, because each needs words of its
/// own where an estimate is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Everything was read: the number is exact.
    Count,
    /// The range holds the number in 95 of 100 runs.
    Confident,
    /// The range covers the sampling error alone. Large subtrees or files may have been missed, so
    /// it has no confidence.
    Spread,
    /// Nothing was drawn: the number counted is a lower bound.
    AtLeast,
}

/// An estimated number with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimateRange {
    /// The estimate.
    pub estimate: f64,
    /// The part that was counted, which is a lower bound of the number.
    pub counted: f64,
    /// The range's lower end.
    pub low: f64,
    /// The range's upper end; infinite where nothing was drawn.
    pub high: f64,
    /// The confidence of the range.
    pub basis: Basis,
}

impl EstimateRange {
    /// Returns the range of a number that is known.
    #[must_use]
    pub fn exact(number: f64) -> Self {
        Self { estimate: number, counted: number, low: number, high: number, basis: Basis::Count }
    }

    /// Returns the range of a number of which this much has been counted and nothing else is known.
    pub(super) fn at_least(counted: f64) -> Self {
        Self { estimate: counted, counted, low: counted, high: f64::INFINITY, basis: Basis::AtLeast }
    }

    /// Returns the range of a number of which `known` was counted and `rest` is estimated.
    /// `variance` is the variance of `rest`, `freedom` are the degrees of freedom of `variance`.
    ///
    /// The range is computed on a logarithmic scale: the rest cannot be negative, and where few
    /// directories hold most of it, the truth lies further above a low estimate than below a high
    /// one.
    pub(super) fn new(known: f64, rest: f64, variance: f64, freedom: f64, basis: Basis) -> Self {
        let estimate = known + rest;
        let factor = if rest <= 0.0 || variance <= 0.0 {
            1.0
        } else {
            (quantile(freedom) * (1.0 + variance / (rest * rest)).ln().sqrt()).exp()
        };
        Self { estimate, counted: known, low: known + rest / factor, high: known + rest * factor, basis }
    }

    /// Raises the range to at least the amount that has been counted by now.
    pub(super) fn raise(&mut self, counted: f64) {
        self.counted = self.counted.max(counted);
        self.low = self.low.max(counted);
        self.estimate = self.estimate.max(self.low);
        self.high = self.high.max(self.estimate);
    }
}

/// Returns the 97.5th percentile of Student's t distribution by the expansion of Cornish and Fisher
/// (Abramowitz and Stegun 26.7.5), which is right to 3 % from 2 degrees of freedom on.
fn quantile(freedom: f64) -> f64 {
    const Z: f64 = 1.959_963_985;
    let freedom = freedom.max(2.0);
    let (z3, z5, z7) = (Z.powi(3), Z.powi(5), Z.powi(7));
    let first = (z3 + Z) / 4.0;
    let second = (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / 96.0;
    let third = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / 384.0;
    Z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [(2.0, 4.303), (3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (1e9, 1.960)] {
            let relative: f64 = quantile(freedom) / expected - 1.0;
            assert!(relative.abs() < 0.035, "{freedom}: {relative}");
        }
        assert!(quantile(f64::NAN).is_finite() && quantile(0.0).is_finite());
    }

    #[test]
    fn a_range_never_goes_below_what_was_counted() {
        let range = EstimateRange::new(100.0, 10.0, 1e6, 5.0, Basis::Spread);
        assert!(range.low >= 100.0 && range.high > 1000.0 && range.estimate == 110.0, "{range:?}");
        assert_eq!(EstimateRange::new(7.0, 0.0, 0.0, f64::NAN, Basis::Count), EstimateRange::exact(7.0));
        let narrow = EstimateRange::new(0.0, 1000.0, 100.0, 1e6, Basis::Confident);
        assert!((narrow.high - 1000.0 * 1.0198).abs() < 0.1, "{narrow:?}");
    }
}
