//! Dates as users type them, with or without a time of day and its UTC offset.

use fathom_text::time::Zone;
use fathom_walk::FileTime;
use jiff::civil::Date;

use super::when::{ParsedTime, nanoseconds};

/// Parses `YYYY-MM-DD`, alone or with a time of day, which may have a UTC offset.
pub(super) fn date(text: &[u8], zone: &Zone) -> ParsedTime {
    let (day, rest) = text.split_at_checked(10)?;
    let year = two_digits(&day[..2])? * 100 + two_digits(&day[2..4])?;
    let (month, day) =
        (two_digits(day[4..7].strip_prefix(b"-")?)?, two_digits(day[7..].strip_prefix(b"-")?)?);
    let time = match rest.split_first() {
        None => TimeOfDay::default(),
        Some((b' ' | b'T' | b't', time)) => time_of_day(time)?,
        Some(_) => return None,
    };
    let civil = Date::new(year, small(month), small(day)).ok().filter(|_| time.is_possible());
    Some(civil.map(|civil| {
        let midnight = civil.duration_since(Date::constant(1970, 1, 1)).as_secs();
        let local =
            midnight + i64::from(time.hour) * 3_600 + i64::from(time.minute) * 60 + i64::from(time.second);
        let sec = time.offset_sec.map_or_else(|| zone.to_universal(local), |offset| local - offset);
        FileTime { sec, nsec: time.nsec }
    }))
}

#[derive(Clone, Copy, Default)]
struct TimeOfDay {
    hour: i16,
    minute: i16,
    second: i16,
    nsec: u32,
    /// Local time minus UTC, in seconds. A value out of range is kept, so that the error says that
    /// there is no such time.
    offset_sec: Option<i64>,
}

impl TimeOfDay {
    fn is_possible(&self) -> bool {
        let offset = self.offset_sec.is_none_or(|offset| offset.abs() < 86_400);
        self.hour < 24 && self.minute < 60 && self.second < 60 && offset
    }
}

/// Parses `HH:MM`, then optionally `:SS` with a fraction, then optionally a UTC offset.
fn time_of_day(text: &[u8]) -> Option<TimeOfDay> {
    let (hour_minute, mut rest) = text.split_at_checked(5)?;
    let (hour, minute) = hours_and_minutes(hour_minute)?;
    let (mut second, mut nsec) = (0, 0);
    if let Some(after) = rest.strip_prefix(b":") {
        let (digits, after) = after.split_at_checked(2)?;
        (second, rest) = (two_digits(digits)?, after);
        if let Some(fraction) = rest.strip_prefix(b".") {
            (nsec, rest) = nanoseconds(fraction)?;
        }
    }
    Some(TimeOfDay { hour, minute, second, nsec, offset_sec: offset(rest)? })
}

/// Parses a UTC offset, in seconds; `Some(None)` if the text is empty.
fn offset(text: &[u8]) -> Option<Option<i64>> {
    let (sign, rest) = match text.split_first() {
        None => return Some(None),
        Some((b'Z' | b'z', b"")) => return Some(Some(0)),
        Some((b'+', rest)) => (1, rest),
        Some((b'-', rest)) => (-1, rest),
        Some(_) => return None,
    };
    let (hours, minutes) = hours_and_minutes(rest)?;
    Some(Some(sign * (i64::from(hours) * 3_600 + i64::from(minutes) * 60)))
}

fn hours_and_minutes(text: &[u8]) -> Option<(i16, i16)> {
    let (hours, minutes) = text.split_at_checked(2)?;
    Some((two_digits(hours)?, two_digits(minutes.strip_prefix(b":")?)?))
}

fn two_digits(text: &[u8]) -> Option<i16> {
    match text {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(i16::from(tens - b'0') * 10 + i16::from(ones - b'0'))
        }
        _ => None,
    }
}

/// Converts a number of two digits, which always fits.
fn small(number: i16) -> i8 {
    i8::try_from(number).unwrap_or(i8::MAX)
}
