//! Points in time as users type them: an age, a date, seconds since the epoch. Text of another form
//! may be the name of a file, whose time the caller looks up.

use fathom_text::duration::{self, DurationError};
use fathom_text::quote::{Charset, quote};
use fathom_text::time::Zone;
use fathom_walk::FileTime;

use super::date::date;
use super::day::day;

const NSEC_DIGITS: usize = 9;
const NSEC_PER_SEC: u32 = 1_000_000_000;

/// The description of the valid forms in an error message.
pub const FORMS: &str = "a time is like 90s, 1h30m (ago), 2026-01-31, '2026-01-31 12:00' or @1769850000";

/// The description of the valid forms where days may have names.
pub const FORMS_WITH_DAYS: &str =
    "a time is like today, yesterday, monday, 90s, 7d (ago), 2026-01-31, '2026-01-31 12:00' or @1769850000";

/// A point in time.
///
/// ```
/// use fathom_inventory::filter::PointInTime;
/// use fathom_text::time::Zone;
/// use fathom_walk::FileTime;
///
/// let now = FileTime { sec: 100_000, nsec: 0 };
/// let parse = |text: &[u8]| PointInTime::parse(text, now, &Zone::UTC);
/// let parsed = |text: &[u8]| parse(text).map(|time| time.stamp().sec);
/// assert_eq!(parsed(b"1h"), Ok(96_400));
/// assert_eq!(parsed(b"1970-01-02"), Ok(86_400));
/// assert!(parsed(b"2026-02-30").is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PointInTime(FileTime);

/// The error of a text that is not a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeError {
    /// The text has none of the forms. It may be the name of a file.
    NotATime(Vec<u8>),
    /// The text has a valid form, but a day or hour that does not exist, or a time out of range.
    Impossible(Vec<u8>),
}

impl TimeError {
    /// Returns the text of the message, without the program's name.
    #[must_use]
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        match self {
            TimeError::NotATime(text) => [b"invalid time ", &quote(text, charset)[..]].concat(),
            TimeError::Impossible(text) => [b"no such time: ", &quote(text, charset)[..]].concat(),
        }
    }
}

/// The result of one grammar: `None` if the text does not have its form, `Some(None)` if the text
/// has the form and there is no such time.
pub(super) type ParsedTime = Option<Option<FileTime>>;

impl PointInTime {
    /// Returns the point in time of a timestamp.
    #[must_use]
    pub fn at(stamp: FileTime) -> PointInTime {
        PointInTime(stamp)
    }

    /// Returns the point in time as seconds and nanoseconds since the epoch.
    #[must_use]
    pub fn stamp(self) -> FileTime {
        self.0
    }

    /// Parses an age before `now` (`90s`, `1h30m`, `1.5d`, `2w`, `1y`), a date, or
    /// `@SECONDS[.FRACTION]`.
    /// A date is `2026-01-31`, optionally with ` 12:00` or `T12:00`, then with `:30` and a
    /// fraction, then with `Z` or `+02:00`; without one of these it is in `zone`.
    ///
    /// A local time that a clock change skips is moved forward by as much as the clock was; of a
    /// local time that occurs twice, the first is taken.
    ///
    /// # Errors
    /// [`TimeError::NotATime`] for text that may be the name of a file, [`TimeError::Impossible`]
    /// for a time that does not exist, such as a 30th of February.
    pub fn parse(text: &[u8], now: FileTime, zone: &Zone) -> Result<PointInTime, TimeError> {
        let reading = epoch(text).or_else(|| age(text, now)).or_else(|| date(text, zone));
        Self::of_reading(reading, text)
    }

    /// Parses the name of a day, which stands for its first moment in `zone`, or a text that
    /// [`PointInTime::parse`] accepts. The names are `today`, `yesterday` and the days of the week,
    /// whole or cut to three letters, in any case. A day of the week is the last one before today.
    ///
    /// # Errors
    /// The same as for [`PointInTime::parse`].
    ///
    /// ```
    /// use fathom_inventory::filter::PointInTime;
    /// use fathom_text::time::Zone;
    /// use fathom_walk::FileTime;
    ///
    /// // The second day of 1970, a Friday.
    /// let now = FileTime { sec: 100_000, nsec: 0 };
    /// let parsed = |text: &[u8]| PointInTime::parse_with_days(text, now, &Zone::UTC);
    /// assert_eq!(parsed(b"Thursday").map(|time| time.stamp().sec), Ok(0));
    /// assert_eq!(parsed(b"fri").map(|time| time.stamp().sec), Ok(-6 * 86_400));
    /// assert_eq!(parsed(b"1970-01-02"), parsed(b"today"));
    /// ```
    pub fn parse_with_days(text: &[u8], now: FileTime, zone: &Zone) -> Result<PointInTime, TimeError> {
        match day(text, now, zone) {
            None => Self::parse(text, now, zone),
            reading => Self::of_reading(reading, text),
        }
    }

    fn of_reading(reading: ParsedTime, text: &[u8]) -> Result<PointInTime, TimeError> {
        match reading {
            None => Err(TimeError::NotATime(text.to_vec())),
            Some(None) => Err(TimeError::Impossible(text.to_vec())),
            Some(Some(stamp)) => Ok(PointInTime(stamp)),
        }
    }
}

/// Parses `@SECONDS[.FRACTION]`. A minus sign applies to the fraction as well.
fn epoch(text: &[u8]) -> ParsedTime {
    let rest = text.strip_prefix(b"@")?;
    let (negative, rest) = rest.strip_prefix(b"-").map_or((false, rest), |rest| (true, rest));
    let (digits, rest) = digits(rest)?;
    let nsec = match rest.split_first() {
        None => 0,
        Some((b'.', fraction)) => nanoseconds(fraction).filter(|(_, rest)| rest.is_empty())?.0,
        Some(_) => return None,
    };
    Some(number(digits).and_then(|sec| {
        if negative { before(FileTime::default(), sec, nsec) } else { Some(FileTime { sec, nsec }) }
    }))
}

/// Parses an age: a duration before `now`.
fn age(text: &[u8], now: FileTime) -> ParsedTime {
    match duration::parse(text) {
        Err(DurationError::Form) => None,
        // Every other error is about a duration that has the form.
        Err(_) => Some(None),
        Ok(age) => {
            Some(i64::try_from(age.as_secs()).ok().and_then(|sec| before(now, sec, age.subsec_nanos())))
        }
    }
}

/// Splits `text` after the digits at its start; `None` if there are none.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (len > 0).then(|| text.split_at(len))
}

/// Parses decimal digits; `None` if the number does not fit.
fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Parses the fraction of a second at the start of `text`, cut off after nanoseconds. Returns the
/// rest as well.
pub(super) fn nanoseconds(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = digits(text)?;
    let places = digits.iter().chain(std::iter::repeat(&b'0')).take(NSEC_DIGITS);
    Some((places.fold(0, |nsec, digit| nsec * 10 + u32::from(digit - b'0')), rest))
}

/// Returns the time `sec` seconds and `nsec` nanoseconds before `stamp`; `None` if it is out of
/// range.
fn before(stamp: FileTime, sec: i64, nsec: u32) -> Option<FileTime> {
    let (borrow, kept) = if stamp.nsec < nsec { (1, stamp.nsec + NSEC_PER_SEC) } else { (0, stamp.nsec) };
    let sec = stamp.sec.checked_sub(sec)?.checked_sub(borrow)?;
    Some(FileTime { sec, nsec: kept - nsec })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: FileTime = FileTime { sec: 2_000_000_000, nsec: 7 };

    fn zone(tz: &str) -> Zone {
        Zone::from_env(|name| (name == "TZ").then(|| tz.as_bytes().to_vec()))
    }

    fn parse(text: &str, tz: &str) -> Result<(i64, u32), TimeError> {
        PointInTime::parse(text.as_bytes(), NOW, &zone(tz)).map(|when| (when.stamp().sec, when.stamp().nsec))
    }

    #[test]
    fn ages_are_before_now() {
        let table = [
            ("0s", 0),
            ("90s", 90),
            ("15min", 900),
            ("2h", 7_200),
            ("3d", 259_200),
            ("2w", 1_209_600),
            ("1h30m", 5_400),
            ("1.5h", 5_400),
        ];
        table
            .iter()
            .for_each(|(text, age)| assert_eq!(parse(text, "UTC0"), Ok((NOW.sec - age, 7)), "{text}"));
    }

    #[test]
    fn seconds_since_the_epoch_may_be_negative_and_have_a_fraction() {
        let table = [
            ("@0", 0, 0),
            ("@1700000000.5", 1_700_000_000, 500_000_000),
            ("@-1.25", -2, 750_000_000),
            ("@-0.000000001", -1, 999_999_999),
            ("@-0", 0, 0),
            ("@1.0000000019", 1, 1),
            ("@9223372036854775807", i64::MAX, 0),
        ];
        table
            .iter()
            .for_each(|(text, sec, nsec)| assert_eq!(parse(text, "UTC0"), Ok((*sec, *nsec)), "{text}"));
    }

    #[test]
    fn dates_are_local_unless_they_name_a_zone() {
        let table = [
            ("2026-01-31", "UTC0", 1_769_817_600, 0),
            ("2026-01-31", "CET-1", 1_769_814_000, 0),
            ("2026-01-31 12:00", "UTC0", 1_769_860_800, 0),
            ("2026-01-31 12:00:30", "UTC0", 1_769_860_830, 0),
            ("2026-01-31T12:00:30.25Z", "CET-1", 1_769_860_830, 250_000_000),
            ("2026-01-31t12:00:30z", "CET-1", 1_769_860_830, 0),
            ("2026-01-31T12:00:00+02:00", "CET-1", 1_769_853_600, 0),
            ("2026-01-31 12:00-00:30", "CET-1", 1_769_862_600, 0),
            ("1969-12-31 23:59:59", "UTC0", -1, 0),
            ("0000-01-01", "UTC0", -62_167_219_200, 0),
            ("9999-12-31 23:59:59", "UTC0", 253_402_300_799, 0),
            ("2024-02-29", "UTC0", 1_709_164_800, 0),
        ];
        for (text, tz, sec, nsec) in table {
            assert_eq!(parse(text, tz), Ok((sec, nsec)), "{text} {tz}");
        }
    }

    #[test]
    fn text_of_another_form_may_be_a_file() {
        let texts = [
            "",
            "a",
            "1",
            "s",
            "1S",
            "1mon",
            "-1d",
            "30m1h",
            " 1d",
            "1d ",
            "@",
            "@x",
            "@1.",
            "@1.x",
            "@1,5",
            "@+1",
            "2026",
            "2026-1-1",
            "2026-01-31x",
            "2026-01-31 ",
            "2026-01-31 12",
            "2026-01-31 1:00",
            "20260131",
            "2026-01-31 12:00:3",
            "2026-01-31 12:00:30.",
            "2026-01-31 12:00+1",
            "2026-01-31Z",
            "+026-01-31",
            "@1 ",
            "2026-01-31 12:00Zx",
            "2026-01-31 12:00 Z",
        ];
        for text in texts {
            assert_eq!(parse(text, "UTC0"), Err(TimeError::NotATime(text.as_bytes().to_vec())), "{text}");
        }
        assert_eq!(parse("x", "UTC0").unwrap_err().message(Charset::Ascii), b"invalid time 'x'");
    }

    #[test]
    fn days_and_hours_that_do_not_exist_are_refused() {
        let texts = [
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "2026-01-31 24:00",
            "2026-01-31 12:60",
            "2026-01-31 12:00:60",
            "2026-01-31 12:00+24:00",
            "99999999999999999999s",
            "9223372036854775807w",
            "@9223372036854775808",
            "@99999999999999999999",
        ];
        for text in texts {
            assert_eq!(parse(text, "UTC0"), Err(TimeError::Impossible(text.as_bytes().to_vec())), "{text}");
        }
        let message = parse("2026-02-29", "UTC0").unwrap_err().message(Charset::Ascii);
        assert_eq!(message, b"no such time: '2026-02-29'");
    }

    proptest! {
        #![proptest_config(fathom_cases::property(2000))]

        #[test]
        fn any_bytes_are_a_time_or_refused(
            text in prop_oneof![
                any::<Vec<u8>>(),
                "[@0-9.]{0,30}[smhdwin]{0,3}".prop_map(String::into_bytes),
                "[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,12})?)?(Z|[-+][0-9]{2}:[0-9]{2})?)?"
                    .prop_map(String::into_bytes),
            ],
            sec in any::<i64>(),
        ) {
            let now = FileTime { sec, nsec: 0 };
            match PointInTime::parse(&text, now, &zone("CET-1CEST,M3.5.0,M10.5.0/3")) {
                Ok(when) => prop_assert!(when.stamp().nsec < NSEC_PER_SEC),
                Err(error) => prop_assert!(!error.message(Charset::Utf8).is_empty()),
            }
        }
    }
}
