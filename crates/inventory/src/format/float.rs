//! Floating-point numbers as C's `%g` prints them: with a number of significant digits, in the
//! shorter of two forms.

/// Formats `value`, which is not negative, with `precision` significant digits. Trailing zeros and
/// a trailing point are kept only with `alternate`.
pub(super) fn general(value: f64, precision: usize, alternate: bool) -> String {
    if value.is_infinite() {
        return "inf".to_owned();
    }
    let precision = precision.max(1);
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let decimals = i64::try_from(precision).unwrap_or(i64::MAX) - 1 - exponent;
    if exponent < -4 || decimals < 0 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", settle(mantissa.to_owned(), alternate), exponent.unsigned_abs());
    }
    settle(format!("{value:.*}", usize::try_from(decimals).unwrap_or(0)), alternate)
}

/// Adds a point with `alternate`; otherwise removes trailing zeros and a trailing point.
fn settle(mut digits: String, alternate: bool) -> String {
    match (alternate, digits.contains('.')) {
        (true, false) => digits.push('.'),
        (false, true) => digits.truncate(digits.trim_end_matches('0').trim_end_matches('.').len()),
        _ => {}
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_form_without_zeros() {
        let table = [
            (1.0, 6, "1", "1.00000"),
            (0.0, 6, "0", "0.00000"),
            (2048.0 / 3.0, 6, "682.667", "682.667"),
            (2048.0 / 3.0, 1, "7e+02", "7.e+02"),
            (2048.0 / 3.0, 0, "7e+02", "7.e+02"),
            (2048.0 / 3.0, 20, "682.66666666666662877", "682.66666666666662877"),
            (1e6, 6, "1e+06", "1.00000e+06"),
            (999_999.5, 6, "1e+06", "1.00000e+06"),
            (0.0001, 6, "0.0001", "0.000100000"),
            (0.00001, 6, "1e-05", "1.00000e-05"),
            (1e100, 3, "1e+100", "1.00e+100"),
            (f64::INFINITY, 6, "inf", "inf"),
        ];
        for (value, precision, plain, alternate) in table {
            assert_eq!(general(value, precision, false), plain);
            assert_eq!(general(value, precision, true), alternate);
        }
    }
}
