//! Tests of the size of a file.

use fathom_text::number;
use fathom_text::quote::{Charset, quote};

/// A test of a size in bytes.
///
/// ```
/// use fathom_inventory::filter::SizeTest;
///
/// assert_eq!(SizeTest::parse(b"-10K").unwrap(), SizeTest::LessThan(10 * 1024));
/// assert!(SizeTest::parse(b"10X").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeTest {
    /// The size is above this one (`+N`).
    MoreThan(u64),
    /// The size is below this one (`-N`).
    LessThan(u64),
    /// The size is this one (`N`).
    Exactly(u64),
}

/// The error of an argument that is not a size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeError {
    arg: Vec<u8>,
    too_large: bool,
}

impl SizeError {
    /// Returns the text of the message, without the program's name.
    #[must_use]
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        let (before, after) = if self.too_large { ("size ", " is too large") } else { ("invalid size ", "") };
        [before.as_bytes(), &quote(&self.arg, charset), after.as_bytes()].concat()
    }
}

impl SizeTest {
    /// Parses `[+-]N[UNIT]`: `K`, `M` and so on are powers of 1024, `KB`, `MB` and so on powers of
    /// 1000.
    ///
    /// # Errors
    /// If the argument has another form, or the size does not fit in 64 bits.
    pub fn parse(arg: &[u8]) -> Result<SizeTest, SizeError> {
        let (test, size): (fn(u64) -> SizeTest, &[u8]) = match arg.split_first() {
            Some((b'+', rest)) => (SizeTest::MoreThan, rest),
            Some((b'-', rest)) => (SizeTest::LessThan, rest),
            _ => (SizeTest::Exactly, arg),
        };
        let refuse = |too_large| SizeError { arg: arg.to_vec(), too_large };
        if !size.first().is_some_and(u8::is_ascii_digit) {
            return Err(refuse(false));
        }
        let reading = number::read(size, 0, u64::MAX.into(), number::SIZE_UNITS);
        match (reading.error, u64::try_from(reading.value)) {
            (None, Ok(bytes)) => Ok(test(bytes)),
            (error, _) => Err(refuse(error == Some(number::NumberError::TooLarge))),
        }
    }

    /// Returns whether a size passes. Some pseudo files have a negative size.
    #[must_use]
    pub fn admits(self, size: i64) -> bool {
        let size = i128::from(size);
        match self {
            SizeTest::MoreThan(limit) => size > limit.into(),
            SizeTest::LessThan(limit) => size < limit.into(),
            SizeTest::Exactly(limit) => size == limit.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(arg: &str) -> String {
        let error = SizeTest::parse(arg.as_bytes()).expect_err(arg);
        String::from_utf8(error.message(Charset::Ascii)).unwrap()
    }

    #[test]
    fn the_sign_chooses_and_the_unit_multiplies() {
        let table = [
            ("0", SizeTest::Exactly(0)),
            ("+1K", SizeTest::MoreThan(1024)),
            ("-2KB", SizeTest::LessThan(2000)),
            ("3MiB", SizeTest::Exactly(3 << 20)),
            ("+1m", SizeTest::MoreThan(1 << 20)),
            ("-0x10", SizeTest::LessThan(16)),
            ("+18446744073709551615", SizeTest::MoreThan(u64::MAX)),
        ];
        table.iter().for_each(|(arg, test)| assert_eq!(SizeTest::parse(arg.as_bytes()), Ok(*test), "{arg}"));
    }

    #[test]
    fn bad_sizes_are_refused() {
        for arg in
            ["", "x", "+", "-", "K", "+K", "++1", "+-1", "--1", " 1", "+ 1", "1x", "1Kx", "1t", "1.5K", "1 "]
        {
            assert_eq!(message(arg), format!("invalid size '{arg}'"));
        }
        for arg in ["18446744073709551616", "16E", "-1Y", "+99999999999999999999999999999999999999999"] {
            assert_eq!(message(arg), format!("size '{arg}' is too large"));
        }
    }

    #[test]
    fn limits_are_exclusive_and_negative_sizes_are_small() {
        let sizes = [i64::MIN, 9, 10, 11, i64::MAX];
        assert_eq!(sizes.map(|size| SizeTest::MoreThan(10).admits(size)), [false, false, false, true, true]);
        assert_eq!(sizes.map(|size| SizeTest::LessThan(10).admits(size)), [true, true, false, false, false]);
        assert_eq!(sizes.map(|size| SizeTest::Exactly(10).admits(size)), [false, false, true, false, false]);
        assert!(SizeTest::LessThan(u64::MAX).admits(i64::MAX) && !SizeTest::Exactly(u64::MAX).admits(-1));
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn any_bytes_are_a_size_or_refused(
            arg in prop_oneof![any::<Vec<u8>>(), "[-+0-9xKMYB]{0,30}".prop_map(String::into_bytes)],
        ) {
            if let Err(error) = SizeTest::parse(&arg) {
                prop_assert!(!error.message(Charset::Utf8).is_empty());
            }
        }
    }
}
