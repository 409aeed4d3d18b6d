//! The range of an estimate, computed from its variance, and the confidence of that range.

/// The confidence of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Everything was read: the number is known.
    Count,
    /// The number is in the range in 95 of 100 runs.
    Confident,
    /// The range is the sampling error alone. Large subtrees or files may have been missed: no
    /// confidence can be given.
    Spread,
    /// Nothing was drawn: there is only what was counted.
    AtLeast,
}

/// An estimated number with its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
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

impl Range {
    /// A number that is known.
    #[must_use]
    pub fn exact(number: f64) -> Self {
        Self { estimate: number, counted: number, low: number, high: number, basis: Basis::Count }
    }

    /// A number of which this much has been counted, and nothing else is known.
    pub(super) fn at_least(counted: f64) -> Self {
        Self { estimate: counted, counted, low: counted, high: f64::INFINITY, basis: Basis::AtLeast }
    }

    /// `known` for certain, and an estimate of the rest with its variance and the degrees of
    /// freedom that has.
    ///
    /// On a logarithmic scale: the rest cannot be negative, and where few things hold most of it,
    /// what a sample misses is more than what it finds twice.
    pub(super) fn new(known: f64, rest: f64, variance: f64, freedom: f64, basis: Basis) -> Self {
        let estimate = known + rest;
        let factor = if rest <= 0.0 || variance <= 0.0 {
            1.0
        } else {
            (quantile(freedom) * (1.0 + variance / (rest * rest)).ln().sqrt()).exp()
        };
        Self { estimate, counted: known, low: known + rest / factor, high: known + rest * factor, basis }
    }

    /// Nothing is below what has been counted by now.
    pub(super) fn raise(&mut self, counted: f64) {
        self.counted = self.counted.max(counted);
        self.low = self.low.max(counted);
        self.estimate = self.estimate.max(self.low);
        self.high = self.high.max(self.estimate);
    }
}

/// The 97.5th percentile of Student's t: Cornish and Fisher's expansion (Abramowitz and Stegun 26.7.5), which from 2 degrees of
/// freedom on is right to 3 %.
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
        let range = Range::new(100.0, 10.0, 1e6, 5.0, Basis::Spread);
        assert!(range.low >= 100.0 && range.high > 1000.0 && range.estimate == 110.0, "{range:?}");
        assert_eq!(Range::new(7.0, 0.0, 0.0, f64::NAN, Basis::Count), Range::exact(7.0));
        let narrow = Range::new(0.0, 1000.0, 100.0, 1e6, Basis::Confident);
        assert!((narrow.high - 1000.0 * 1.0198).abs() < 0.1, "{narrow:?}");
    }
}
