//! Whole numbers as the command line writes them: any C base, then an optional unit such as `K`, `kB` or `MiB`.
//! Knows which of those texts are wrong and in what words to say so; what a number means is the caller's.
//! Also the way back to decimal digits, without an allocation.

/// Why a text is not a number the option accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberError {
    /// No number at all, or one the option has no use for.
    Invalid,
    /// A number, followed by something that is no unit of the option's.
    BadSuffix,
    /// A number beyond the option's range.
    TooLarge,
}

impl NumberError {
    /// The message's text without the program's name. `option` is the long name with its hyphens where the user
    /// wrote a long option (`--block-size`), else the short one (`-B`). The argument is repeated byte for byte.
    pub fn message(self, option: &str, arg: &[u8]) -> Vec<u8> {
        let (before, after) = match self {
            NumberError::Invalid => ("invalid ", ""),
            NumberError::BadSuffix => ("invalid suffix in ", ""),
            NumberError::TooLarge => ("", " too large"),
        };
        [before.as_bytes(), option.as_bytes(), b" argument '", arg, b"'", after.as_bytes()].concat()
    }
}

/// A number as far as it could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The value: kept inside the range when it is too large, and read up to a bad suffix.
    pub value: i128,
    /// Bytes of the text in front of the unit.
    pub number_len: usize,
    /// What is wrong with the text; with `Invalid` the other fields say nothing.
    pub error: Option<NumberError>,
}

impl Reading {
    const INVALID: Reading = Reading { value: 0, number_len: 0, error: Some(NumberError::Invalid) };
}

/// Reads `text` as a number from `min` to `max` with one of the units in `suffixes`, each of which may be followed by
/// `iB` (powers of 1024, as without) or `B` or `D` (powers of 1000). A unit alone counts as one of it.
pub fn read(text: &[u8], min: i128, max: i128, suffixes: &[u8]) -> Reading {
    let start = text.iter().take_while(|&&b| is_space(b)).count();
    let negative = text.get(start) == Some(&b'-');
    if negative && min == 0 {
        return Reading::INVALID;
    }
    let signed = negative || text.get(start) == Some(&b'+');
    let digits = start + usize::from(signed);
    let (magnitude, len) = magnitude(&text[digits..]);
    let (value, number_len) = match len {
        0 if text.first().is_some_and(|b| suffixes.contains(b)) => (1, 0),
        0 => return Reading::INVALID,
        _ => (if negative { -magnitude } else { magnitude }, digits + len),
    };
    scale(value, &text[number_len..], min, max, suffixes, number_len)
}

/// Reads a number without units from `i64`'s range, as `--max-depth` takes it.
pub fn read_plain(text: &[u8]) -> Result<i64, NumberError> {
    let reading = read(text, i64::MIN.into(), i64::MAX.into(), b"");
    match reading.error {
        Some(error) => Err(error),
        None => Ok(i64::try_from(reading.value).expect("read keeps the value between i64::MIN and i64::MAX")),
    }
}

fn scale(value: i128, unit: &[u8], min: i128, max: i128, suffixes: &[u8], number_len: usize) -> Reading {
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
    Reading { value, number_len, error }
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

/// The number at the start of `text` and its length: `0x` hexadecimal, `0b` binary, `0` octal, else decimal.
fn magnitude(text: &[u8]) -> (i128, usize) {
    let (base, prefix) = match (text.first(), text.get(1), text.get(2)) {
        (Some(b'0'), Some(b'x' | b'X'), Some(d)) if d.is_ascii_hexdigit() => (16, 2),
        (Some(b'0'), Some(b'b' | b'B'), Some(b'0' | b'1')) => (2, 2),
        (Some(b'0'), _, _) => (8, 0),
        _ => (10, 0),
    };
    let digits = text[prefix..].iter().map_while(|&b| char::from(b).to_digit(base));
    let (value, len) = digits.fold((0i128, prefix), |(value, len), d| {
        ((value * i128::from(base) + i128::from(d)).min(TOP), len + 1)
    });
    (value, len)
}

/// Beyond every range, and small enough to be multiplied by a base or a unit.
const TOP: i128 = 1 << 100;

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The digits of `value` at the end of a buffer, and where they start.
pub fn decimal(mut value: u64) -> ([u8; 20], usize) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return (digits, start);
        }
    }
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
            let (digits, start) = decimal(value);
            assert_eq!(digits[start..], *value.to_string().as_bytes());
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
