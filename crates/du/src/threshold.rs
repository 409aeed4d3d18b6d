//! The size limit of `--threshold`: admits or omits a line by its value. The caller chooses the
//! value.

use fathom_text::number::{self, NumberError};

/// A lower limit, or, if the argument is negative, an upper limit of its absolute value.
///
/// ```
/// use fathom_du::threshold::{Threshold, ThresholdError};
///
/// let at_least = Threshold::parse(b"10K").unwrap();
/// assert!(at_least.admits(10 * 1024) && !at_least.admits(0));
/// assert!(Threshold::parse(b"-10K").unwrap().admits(0));
/// assert_eq!(Threshold::parse(b"-0"), Err(ThresholdError::NegativeZero));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Admits this value and larger ones.
    AtLeast(u64),
    /// Admits this value and smaller ones.
    AtMost(u64),
}

/// The reason why a threshold is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThresholdError {
    /// The argument is not a number, or out of range.
    Number(NumberError),
    /// The argument is a zero with a minus sign, which would admit empty entries only.
    NegativeZero,
}

impl ThresholdError {
    /// Returns the message without the program name. `option` and `arg` come from
    /// [`NumberError::message`].
    pub fn message(self, option: &str, arg: &[u8]) -> Vec<u8> {
        match self {
            ThresholdError::Number(error) => error.message(option, arg),
            // GNU du always prints the long name and `-0`, in whatever form the user wrote them.
            ThresholdError::NegativeZero => NumberError::Invalid.message("--threshold", b"-0"),
        }
    }
}

impl Threshold {
    /// Parses the option's argument: a number that may be negative and may have a unit.
    pub fn parse(arg: &[u8]) -> Result<Threshold, ThresholdError> {
        let reading = number::read(arg, i64::MIN.into(), i64::MAX.into(), number::SIZE_UNITS);
        if let Some(error) = reading.error {
            return Err(ThresholdError::Number(error));
        }
        if reading.value == 0 && arg.starts_with(b"-") {
            return Err(ThresholdError::NegativeZero);
        }
        let limit = u64::try_from(reading.value.unsigned_abs()).expect("an i64's absolute value fits u64");
        Ok(if reading.value < 0 { Threshold::AtMost(limit) } else { Threshold::AtLeast(limit) })
    }

    /// Returns whether a line with this value is printed.
    pub fn admits(&self, value: u64) -> bool {
        match *self {
            Threshold::AtLeast(limit) => value >= limit,
            Threshold::AtMost(limit) => value <= limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(arg: &str) -> String {
        let error = Threshold::parse(arg.as_bytes()).expect_err("a bad argument");
        String::from_utf8(error.message("-t", arg.as_bytes())).unwrap()
    }

    #[test]
    fn the_sign_chooses_the_side() {
        assert_eq!(Threshold::parse(b"2K"), Ok(Threshold::AtLeast(2048)));
        assert_eq!(Threshold::parse(b"-2KB"), Ok(Threshold::AtMost(2000)));
        assert_eq!(Threshold::parse(b"0"), Ok(Threshold::AtLeast(0)));
        assert_eq!(Threshold::parse(b"0x10MiB"), Ok(Threshold::AtLeast(16 << 20)));
        assert_eq!(Threshold::parse(b"-9223372036854775808"), Ok(Threshold::AtMost(1 << 63)));
    }

    #[test]
    fn both_limits_are_included() {
        let (least, most) = (Threshold::AtLeast(10), Threshold::AtMost(10));
        assert_eq!([9, 10, 11].map(|v| least.admits(v)), [false, true, true]);
        assert_eq!([9, 10, 11].map(|v| most.admits(v)), [true, true, false]);
        assert!(least.admits(u64::MAX) && !most.admits(u64::MAX));
    }

    #[test]
    fn messages_are_gnus() {
        assert_eq!(message("1x"), "invalid suffix in -t argument '1x'");
        assert_eq!(message("1t"), "invalid suffix in -t argument '1t'");
        assert_eq!(message(""), "invalid -t argument ''");
        assert_eq!(message("-K"), "invalid -t argument '-K'");
        assert_eq!(message("5Q"), "-t argument '5Q' too large");
        for zero in ["-0", "-00", "-0K", "-0x0"] {
            assert_eq!(message(zero), "invalid --threshold argument '-0'", "{zero}");
        }
        assert_eq!(Threshold::parse(b" -0"), Ok(Threshold::AtLeast(0)));
    }
}
