//! Rounding of numbers for people.

use crate::Interval;

/// Formats `value` with `digits` significant digits; very large and very small values with an
/// exponent.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    let before = digits.saturating_sub(1);
    let scientific = format!("{value:.before$e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    match (exponent, before as i32) {
        _ if value == 0.0 => "0".to_owned(),
        (Some(exponent @ -6..15), before) if exponent < before => {
            format!("{value:.0$}", (before - exponent) as usize)
        }
        // Round-trip through the rounded text: digits before the decimal point that are not
        // significant become zeros.
        (Some(-6..15), _) => format!("{:.0}", scientific.parse().unwrap_or(value)),
        _ => scientific,
    }
}

/// Formats an estimate and its interval, as in `1.23 [1.20, 1.27]`; without the interval if it is
/// unknown.
pub(crate) fn interval(interval: &Interval) -> String {
    let [median, low, high] =
        [interval.median, interval.low, interval.high].map(|value| significant(value, 3));
    if interval.low.is_nan() { median } else { format!("{median} [{low}, {high}]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_they_are_worth() {
        let of = |value| significant(value, 3);
        assert_eq!(
            [of(0.0), of(1.0), of(1.234_5), of(9.999), of(12.34)],
            ["0", "1.00", "1.23", "10.0", "12.3"]
        );
        assert_eq!([of(123.4), of(999.9), of(123_456.0)], ["123", "1000", "123000"]);
        assert_eq!(
            [of(0.001_234), of(-0.5), of(1e-9), of(1e300)],
            ["0.00123", "-0.500", "1.00e-9", "1.00e300"]
        );
        assert_eq!([of(f64::NAN), of(f64::INFINITY)], ["NaN", "inf"]);
        assert_eq!(significant(4.56, 1), "5");
    }

    #[test]
    fn an_interval_is_in_brackets() {
        assert_eq!(interval(&Interval { median: 1.5, low: 0.75, high: 12.0 }), "1.50 [0.750, 12.0]");
    }
}
