//! Parses durations as users type them: `500ms`, `90s`, `1.5h`, `1h30m`, `1y`. All duration options
//! and all ages in filters use this parser.

use std::time::Duration;

/// The description of the valid forms in an error message.
pub const FORMS: &str = "expected a time like 500ms, 10s, 1.5h, 1h30m, 2d, 1w or 1y";

/// Units and their lengths in nanoseconds, in descending order of length. A year has
/// 365 days.
const UNITS: [(&[u8], u128); 9] = [
    (b"y", 31_536_000_000_000_000),
    (b"w", 604_800_000_000_000),
    (b"d", 86_400_000_000_000),
    (b"h", 3_600_000_000_000),
    (b"min", 60_000_000_000),
    (b"m", 60_000_000_000),
    (b"s", 1_000_000_000),
    (b"ms", 1_000_000),
    (b"us", 1_000),
];
const SECOND_NS: u128 = 1_000_000_000;
/// Digits of a fraction that are parsed. Further digits are below one nanosecond in every unit.
const FRACTION_DIGITS: usize = 15;

/// The reason why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DurationError {
    /// The text does not have the form `NUMBER UNIT [NUMBER UNIT ...]`.
    Form,
    /// The number of seconds does not fit into 64 bits.
    TooLong,
}

/// Parses one or more numbers with units, in descending order of unit and each unit at most once:
/// `1h30m`, `1.5h`, `500ms`.
///
/// # Errors
/// [`DurationError::Form`] for any other text, including a number without a unit.
/// [`DurationError::TooLong`] if the seconds do not fit into 64 bits.
///
/// ```
/// use std::time::Duration;
/// use fathom_text::duration::{DurationError, parse, parse_or_seconds};
///
/// assert_eq!(parse(b"1h30m"), Ok(Duration::from_secs(5400)));
/// assert_eq!(parse(b"90"), Err(DurationError::Form));
/// assert_eq!(parse_or_seconds(b"90"), Ok(Duration::from_secs(90)));
/// ```
pub fn parse(text: &[u8]) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Form);
    }
    let (mut rest, mut shorter_than, mut sum) = (text, u128::MAX, Some(0_u128));
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.split_first() {
            Some((b'.', after)) => digits(after),
            _ => (&b"0"[..], after),
        };
        let len = after.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let (unit, after) = after.split_at(len);
        let unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, length)| *length);
        let unit = unit.filter(|unit| *unit < shorter_than).ok_or(DurationError::Form)?;
        if whole.is_empty() || fraction.is_empty() {
            return Err(DurationError::Form);
        }
        let part =
            number(whole).and_then(|whole| whole.checked_mul(unit)?.checked_add(fraction_ns(fraction, unit)));
        sum = sum.zip(part).and_then(|(sum, part)| sum.checked_add(part));
        (rest, shorter_than) = (after, unit);
    }
    let sum = sum.ok_or(DurationError::TooLong)?;
    let seconds = u64::try_from(sum / SECOND_NS).map_err(|_| DurationError::TooLong)?;
    Ok(Duration::new(seconds, (sum % SECOND_NS) as u32))
}

/// Parses a duration like [`parse`], or a number of seconds without a unit.
///
/// # Errors
/// The same as for [`parse`].
pub fn parse_or_seconds(text: &[u8]) -> Result<Duration, DurationError> {
    let has_unit = text.last().is_none_or(|byte| !byte.is_ascii_digit());
    if has_unit { parse(text) } else { parse(&[text, b"s"].concat()) }
}

/// Splits `text` behind its leading decimal digits, of which there may be none.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// Parses decimal digits; `None` on overflow.
fn number(digits: &[u8]) -> Option<u128> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the nanoseconds of a fraction of `unit`, given the digits behind the decimal point.
fn fraction_ns(fraction: &[u8], unit: u128) -> u128 {
    let kept = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let scale = 10_u128.pow(kept.len() as u32);
    number(kept).unwrap_or(0) * unit / scale
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_with_units_add_up() {
        for (text, ms) in [
            ("0s", 0),
            ("500ms", 500),
            ("90s", 90_000),
            ("1.5h", 5_400_000),
            ("1h30m", 5_400_000),
            ("30min", 1_800_000),
            ("1w2d3h4m5s6ms", 788_645_006),
            ("1y1w", 32_140_800_000),
            ("0.25s", 250),
            ("1h0.5s", 3_600_500),
            ("007s", 7_000),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse(b"1.0000000019s"), Ok(Duration::new(1, 1)));
        assert_eq!(parse(b"3us"), Ok(Duration::from_micros(3)));
    }

    #[test]
    fn a_number_alone_is_seconds_where_the_option_takes_it() {
        assert_eq!(parse_or_seconds(b"7"), Ok(Duration::from_secs(7)));
        assert_eq!(parse_or_seconds(b"1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_or_seconds(b"2m"), Ok(Duration::from_secs(120)));
        assert_eq!([parse(b"7"), parse_or_seconds(b"")], [Err(DurationError::Form); 2]);
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "", "s", "h1", "1", "1.h", ".5h", "1..5h", "-1s", "+1s", "1 s", " 1s", "1s ", "1S", "1mon", "1Y",
            "1h1h", "30m1h", "1m1min", "1e3s", "1,5h", "1h30",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(DurationError::Form), "{text}");
        }
    }

    #[test]
    fn durations_beyond_the_type_are_told_apart_from_other_forms() {
        assert_eq!(parse(b"18446744073709551615s").map(|time| time.as_secs()), Ok(u64::MAX));
        for text in
            ["18446744073709551616s", "9223372036854775807w", "1h99999999999999999999999999999999999999999s"]
        {
            assert_eq!(parse(text.as_bytes()), Err(DurationError::TooLong), "{text}");
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn any_bytes_are_read_or_refused(text in prop_oneof![
            any::<Vec<u8>>(),
            "([0-9]{0,45}[.]?[0-9]{0,45}[wdhmisnu]{0,3}){0,4}".prop_map(String::into_bytes),
        ]) {
            let _ = (parse(&text), parse_or_seconds(&text));
        }
    }
}
