//! Integers as the C library parses them on a command line (strtol(3) with base 0), followed by an
//! optional unit such as `K`, `kB` or `MiB`. Owns the error messages for invalid texts; the caller
//! gives the number its meaning. Also writes numbers in decimal and bytes in
//! hexadecimal, without an allocation.

pub use itoa::Buffer as DecimalBuffer;

/// The units of every size that fathom parses: K and k are the same, and so are M and m.
pub const SIZE_UNITS: &[u8] = b"kKmMGTPEZYRQ";

/// The reason why a text is not a number that the option accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberError {
    /// The text contains no number, or a number that the option does not accept.
    Invalid,
    /// The number is followed by text that is not one of the option's units.
    BadSuffix,
    /// The number is outside the option's range.
    TooLarge,
}

impl NumberError {
    /// Returns the message without the program name. `option` is the long name with its hyphens if
    /// the user wrote the long option (`--block-size`), else the short one (`-B`). The argument is
    /// repeated byte for byte.
    pub fn message(self, option: &str, arg: &[u8]) -> Vec<u8> {
        let (before, after) = match self {
            NumberError::Invalid => ("invalid ", ""),
            NumberError::BadSuffix => ("invalid suffix in ", ""),
            NumberError::TooLarge => ("", " too large"),
        };
        [before.as_bytes(), option.as_bytes(), b" argument '", arg, b"'", after.as_bytes()].concat()
    }
}

/// The result of parsing a number, as far as the text is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedNumber {
    /// The value, clamped to the range. If the suffix is bad, the value of the number before it.
    pub value: i128,
    /// Bytes of the text in front of the unit.
    pub number_len: usize,
    /// The error. With `Invalid` the other fields are meaningless.
    pub error: Option<NumberError>,
}

impl ParsedNumber {
    const INVALID: ParsedNumber = ParsedNumber { value: 0, number_len: 0, error: Some(NumberError::Invalid) };
}

/// Parses `text` as a number from `min` to `max` with one of the units in `suffixes`. `iB` may
/// follow the unit (powers of 1024, the default), or `B` or `D` (powers of 1000). A unit without a
/// number counts as 1.
///
/// ```
/// use fathom_text::number::{NumberError, SIZE_UNITS, read};
///
/// let size = read(b"0x10K", 0, i128::from(u64::MAX), SIZE_UNITS);
/// assert_eq!((size.value, size.error), (16 * 1024, None));
/// let kilo = read(b"2kB", 0, i128::from(u64::MAX), SIZE_UNITS);
/// assert_eq!(kilo.value, 2000);
/// assert_eq!(read(b"5x", 0, 10, SIZE_UNITS).error, Some(NumberError::BadSuffix));
/// assert_eq!(NumberError::TooLarge.message("-d", b"9"), b"-d argument '9' too large");
/// ```
pub fn read(text: &[u8], min: i128, max: i128, suffixes: &[u8]) -> ParsedNumber {
    let start = text.iter().take_while(|&&b| is_space(b)).count();
    let negative = text.get(start) == Some(&b'-');
    if negative && min == 0 {
        return ParsedNumber::INVALID;
    }
    let signed = negative || text.get(start) == Some(&b'+');
    let digits = start + usize::from(signed);
    let (magnitude, len) = magnitude(&text[digits..]);
    let (value, number_len) = match len {
        0 if text.first().is_some_and(|b| suffixes.contains(b)) => (1, 0),
        0 => return ParsedNumber::INVALID,
        _ => (if negative { -magnitude } else { magnitude }, digits + len),
    };
    scale(value, &text[number_len..], min, max, suffixes, number_len)
}

/// Parses a number without units in `i64`'s range, as `--max-depth` takes it.
///
/// ```
/// use fathom_text::number::{NumberError, read_plain};
///
/// assert_eq!(read_plain(b"-7"), Ok(-7));
/// assert_eq!(read_plain(b"7K"), Err(NumberError::BadSuffix));
/// ```
pub fn read_plain(text: &[u8]) -> Result<i64, NumberError> {
    let reading = read(text, i64::MIN.into(), i64::MAX.into(), b"");
    match reading.error {
        Some(error) => Err(error),
        None => Ok(i64::try_from(reading.value).expect("read keeps the value between i64::MIN and i64::MAX")),
    }
}

fn scale(value: i128, unit: &[u8], min: i128, max: i128, suffixes: &[u8], number_len: usize) -> ParsedNumber {
    let mut overflow = !(min..=max).contains(&value);
    let mut value = value.clamp(min, max);
    let mut bad_suffix = false;
    match unit.first() {
        None => {}
        Some(letter) if suffixes.contains(letter) && power(*letter).is_some() => {
            let (base, len) = match (unit.get(1), unit.get(2)) {
                (Some(b'i'), Some(b'B')) => (1024, 3),
                (Some(b'B' | b'D'), _) => (1000, 2),
                _ => (1024, 1),
            };
            for _ in 0..power(*letter).unwrap_or(0) {
                value *= base;
                overflow |= !(min..=max).contains(&value);
                value = value.clamp(min, max);
            }
            bad_suffix = unit.len() > len;
        }
        Some(_) => bad_suffix = true,
    }
    let error = match (bad_suffix, overflow) {
        (true, _) => Some(NumberError::BadSuffix),
        (false, true) => Some(NumberError::TooLarge),
        (false, false) => None,
    };
    ParsedNumber { value, number_len, error }
}

fn power(letter: u8) -> Option<u32> {
    Some(match letter {
        b'k' | b'K' => 1,
        b'm' | b'M' => 2,
        b'g' | b'G' => 3,
        b't' | b'T' => 4,
        b'P' => 5,
        b'E' => 6,
        b'Z' => 7,
        b'Y' => 8,
        b'R' => 9,
        b'Q' => 10,
        _ => return None,
    })
}

/// Parses the digits at the start of `text` and returns their value and length. The prefix `0x`
/// means hexadecimal, `0b` binary, `0` octal; other digits are decimal.
fn magnitude(text: &[u8]) -> (i128, usize) {
    let (base, prefix) = match (text.first(), text.get(1), text.get(2)) {
        (Some(b'0'), Some(b'x' | b'X'), Some(d)) if d.is_ascii_hexdigit() => (16, 2),
        (Some(b'0'), Some(b'b' | b'B'), Some(b'0' | b'1')) => (2, 2),
        (Some(b'0'), _, _) => (8, 0),
        _ => (10, 0),
    };
    let digits = text[prefix..].iter().map_while(|&b| char::from(b).to_digit(base));
    let (value, len) = digits.fold((0i128, prefix), |(value, len), d| {
        ((value * i128::from(base) + i128::from(d)).min(MAGNITUDE_MAX), len + 1)
    });
    (value, len)
}

/// A bound for magnitudes: above every range, and small enough to be multiplied by a base or a
/// unit.
const MAGNITUDE_MAX: i128 = 1 << 100;

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Appends `value` in decimal.
///
/// ```
/// use fathom_text::number::{write_decimal, write_hex};
///
/// let mut out = Vec::new();
/// write_decimal(-7, &mut out);
/// write_hex(b"\xff\n", &mut out);
/// assert_eq!(out, b"-7ff0a");
/// ```
pub fn write_decimal(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(DecimalBuffer::new().format(value).as_bytes());
}

/// Appends bytes in hexadecimal, two lower-case digits each.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    out.extend(digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Result<i64, NumberError> {
        read_plain(text.as_bytes())
    }

    #[test]
    fn bases_follow_the_prefix() {
        assert_eq!(plain("10"), Ok(10));
        assert_eq!(plain("010"), Ok(8));
        assert_eq!(plain("0x1F"), Ok(31));
        assert_eq!(plain("0b11"), Ok(3));
        assert_eq!(plain(" \t+7"), Ok(7));
        assert_eq!(plain("-0x10"), Ok(-16));
        assert_eq!(plain("0x"), Err(NumberError::BadSuffix));
        assert_eq!(plain("0b2"), Err(NumberError::BadSuffix));
        assert_eq!(plain("08"), Err(NumberError::BadSuffix));
    }

    #[test]
    fn texts_without_a_number_are_invalid() {
        for text in ["", " ", "x", "-", "+", "- 1", "+K", "--1"] {
            assert_eq!(plain(text), Err(NumberError::Invalid), "{text:?}");
        }
    }

    #[test]
    fn the_range_is_kept_on_both_sides() {
        assert_eq!(plain("9223372036854775807"), Ok(i64::MAX));
        assert_eq!(plain("9223372036854775808"), Err(NumberError::TooLarge));
        assert_eq!(plain("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(plain("-9223372036854775809"), Err(NumberError::TooLarge));
        assert_eq!(plain(&"9".repeat(4000)), Err(NumberError::TooLarge));
        assert_eq!(plain("99999999999999999999x"), Err(NumberError::BadSuffix));
    }

    #[test]
    fn units_scale_and_saturate() {
        let value = |text: &str| {
            let reading = read(text.as_bytes(), 0, u64::MAX.into(), b"kKMGTPEZYRQ0");
            (reading.value, reading.error)
        };
        assert_eq!(value("3k"), (3072, None));
        assert_eq!(value("3KiB"), (3072, None));
        assert_eq!(value("3kB"), (3000, None));
        assert_eq!(value("3MD"), (3_000_000, None));
        assert_eq!(value("E"), (1 << 60, None));
        assert_eq!(value("0Q"), (0, None));
        assert_eq!(value("16E"), (u64::MAX.into(), Some(NumberError::TooLarge)));
        assert_eq!(value("9Q"), (u64::MAX.into(), Some(NumberError::TooLarge)));
        assert_eq!(value("3Ki"), (3072, Some(NumberError::BadSuffix)));
        assert_eq!(value("3x"), (3, Some(NumberError::BadSuffix)));
    }

    #[test]
    fn digits_of_the_smallest_and_the_largest() {
        for value in [0, 9, 10, u64::MAX] {
            let mut out = Vec::new();
            write_decimal(value, &mut out);
            assert_eq!(out, value.to_string().as_bytes());
        }
    }

    #[test]
    fn messages_repeat_the_argument_byte_for_byte() {
        let text = |error: NumberError| error.message("--block-size", b"a\xff'\n");
        assert_eq!(text(NumberError::Invalid), b"invalid --block-size argument 'a\xff'\n'");
        assert_eq!(text(NumberError::BadSuffix), b"invalid suffix in --block-size argument 'a\xff'\n'");
        assert_eq!(text(NumberError::TooLarge), b"--block-size argument 'a\xff'\n' too large");
    }
}
