//! HTTP dates (RFC 9110, section 5.6.7) to and from seconds since the epoch.
//!
//! Does not own: the clock, except for the header `Date`.

use std::cell::RefCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use httpdate::HttpDate;

/// The first second that a date with a four-digit year cannot express: 10000-01-01.
const YEAR_10000_S: u64 = 253_402_300_800;

/// Parses a date in any of the three formats. Returns `None` for a malformed date and for years
/// before 1970.
///
/// ```
/// use fathom_serve::date::{last_modified, parse, value};
///
/// assert_eq!(parse(b"Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
/// assert_eq!(value(784_111_777).unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
/// // A time in the future is not sent.
/// assert_eq!((last_modified(7, 8), last_modified(9, 8)), (Some(7), None));
/// ```
#[must_use]
pub fn parse(value: &[u8]) -> Option<u64> {
    let date: HttpDate = std::str::from_utf8(value).ok()?.parse().ok()?;
    SystemTime::from(date).duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// Formats a header value. Returns `None` after the year 9999, for which `httpdate` would panic.
#[must_use]
pub fn value(seconds: u64) -> Option<HeaderValue> {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).filter(|_| seconds < YEAR_10000_S)?;
    HeaderValue::try_from(httpdate::fmt_http_date(time)).ok()
}

/// Returns a file's modification time as `Last-Modified`, or `None` if it cannot be one. A time
/// after `now_s` must not be sent (RFC 9110, section 8.8.2.1), and the present in its place would
/// be a different date each time.
#[must_use]
pub fn last_modified(mtime_s: i64, now_s: u64) -> Option<u64> {
    u64::try_from(mtime_s).ok().filter(|mtime_s| *mtime_s <= now_s && *mtime_s < YEAR_10000_S)
}

/// The value of the header `Date`, formatted once a second.
#[derive(Debug, Default)]
pub(crate) struct DateCache(RefCell<Option<(u64, HeaderValue)>>);

impl DateCache {
    /// Returns the current value; `None` after the year 9999.
    pub(crate) fn now(&self) -> Option<HeaderValue> {
        let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut known = self.0.borrow_mut();
        if known.as_ref().is_none_or(|(known, _)| *known != second) {
            *known = value(second).map(|value| (second, value));
        }
        known.as_ref().map(|(_, value)| value.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_three_formats_are_read() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(text.as_bytes()), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn malformed_dates_are_none() {
        let texts = [
            "",
            "0",
            "Sun, 06 Nov 1994 08:49:37",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Thu, 31 Feb 2000 00:00:00 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sun, 06 Nov 1994 08:49:37 +0100",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "\u{661}",
        ];
        for text in texts {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"\xff"), None);
    }

    #[test]
    fn a_date_beyond_the_calendar_has_no_value() {
        assert_eq!(value(YEAR_10000_S - 1).unwrap(), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!([YEAR_10000_S, u64::MAX].map(value), [None, None]);
        assert_eq!(last_modified(i64::MAX, u64::MAX), None);
    }

    #[test]
    fn a_file_from_the_future_has_no_last_modified() {
        assert_eq!(last_modified(100, 100), Some(100));
        assert_eq!(last_modified(101, 100), None);
        assert_eq!(last_modified(-1, 100), None);
    }

    proptest! {
        #![proptest_config(fathom_cases::property(2000))]

        #[test]
        fn formatted_dates_parse_again(seconds in 0..YEAR_10000_S) {
            prop_assert_eq!(value(seconds).and_then(|value| parse(value.as_bytes())), Some(seconds));
        }

        #[test]
        fn any_bytes_are_a_date_or_none(
            text in prop_oneof![
                any::<Vec<u8>>(),
                "(Sun|Monday|Tue),? [0-9 ]{2}[ -](Feb|Nov)[ -][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT".prop_map(String::into_bytes),
                "(Sun|Mon) (Feb|Nov) [0-9 ]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}".prop_map(String::into_bytes),
            ]
        ) {
            if let Some(seconds) = parse(&text) {
                prop_assert_eq!(value(seconds).and_then(|value| parse(value.as_bytes())), Some(seconds));
            }
        }
    }
}
