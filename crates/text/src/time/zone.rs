//! The local time zone, selected like the C library does (tzset(3)): by `TZ`, which names a file or
//! is a POSIX rule, else by `/etc/localtime`. Leap seconds in a zone file are ignored.

use super::calendar::ERA_SEC;
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneOffsetInfo};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const DAY_SEC: i64 = 86_400;
/// 1 January 5881581, the first day whose day number overflows in the C library. For it, every time
/// from here on comes after the last transition of its year.
const LATE_YEARS_SEC: i64 = 185_542_602_134_400;
/// 31 December 9998: a time after the last transition of its year.
const LATE_IN_YEAR_SEC: i64 = 253_370_678_400;

/// A time zone.
///
/// ```
/// use fathom_text::time::Zone;
///
/// let rule = b"CET-1CEST,M3.5.0,M10.5.0/3";
/// let zone = Zone::from_env(|name| (name == "TZ").then(|| rule.to_vec()));
/// // 1970-01-01 01:00 local time is the epoch.
/// assert_eq!(zone.to_universal(3600), 0);
/// assert_eq!(Zone::UTC.to_universal(3600), 3600);
/// assert_eq!(zone.to_local(0), 3600);
/// ```
#[derive(Clone, Debug)]
pub struct Zone(ZoneRules);

#[derive(Clone, Debug)]
enum ZoneRules {
    Fixed {
        offset_sec: i32,
        name: Cow<'static, str>,
    },
    /// A POSIX rule in `TZ`: the same transitions every year.
    Yearly(TimeZone),
    /// A zone file (tzfile(5)) with a list of transitions.
    Recorded(TimeZone),
}

/// The local time type (RFC 8536, section 3.2) in effect at one point in time.
#[derive(Clone, Debug)]
pub(super) struct LocalTimeType<'a> {
    /// Local time minus universal time.
    pub(super) offset_sec: i32,
    name: Abbreviation<'a>,
}

#[derive(Clone, Debug)]
enum Abbreviation<'a> {
    Fixed(&'a str),
    /// The source of an abbreviation, which jiff returns by reference only.
    Info(TimeZoneOffsetInfo<'a>),
}

impl LocalTimeType<'_> {
    /// Returns the zone's abbreviation at that time.
    pub(super) fn name(&self) -> &str {
        match &self.name {
            Abbreviation::Fixed(name) => name,
            Abbreviation::Info(info) => info.abbreviation(),
        }
    }
}

impl Zone {
    /// Universal time.
    pub const UTC: Zone = Zone(ZoneRules::Fixed { offset_sec: 0, name: Cow::Borrowed("UTC") });

    /// Returns the zone of `TZ`, with its files in `TZDIR`, else the zone of this machine. An
    /// invalid `TZ` means a zone with offset 0, as in the C library.
    pub fn from_env(get: impl Fn(&str) -> Option<Vec<u8>>) -> Zone {
        let Some(variable) = get("TZ") else {
            return Zone::from_file(Path::new("/etc/localtime")).unwrap_or(Zone::UTC);
        };
        let name = variable.strip_prefix(b":").unwrap_or(&variable);
        if name.is_empty() {
            return Zone::UTC;
        }
        let dir =
            get("TZDIR").filter(|dir| !dir.is_empty()).unwrap_or_else(|| b"/usr/share/zoneinfo".to_vec());
        let path = Path::new(OsStr::from_bytes(&dir)).join(OsStr::from_bytes(name));
        Zone::from_file(&path).unwrap_or_else(|| Zone::from_rule(name))
    }

    fn from_file(path: &Path) -> Option<Zone> {
        // Open regular files only: reading a fifo or a device might never end.
        fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let data = fs::read(path).ok()?;
        TimeZone::tzif(&path.to_string_lossy(), &data).ok().map(|zone| Zone(ZoneRules::Recorded(zone)))
    }

    /// Parses a POSIX rule: `CET-1`, `CET-1CEST,M3.5.0,M10.5.0/3`. A rule with a second name but no
    /// transitions gets the dates of the USA, whatever a `posixrules` file says. A rule with
    /// malformed transitions keeps the first name.
    fn from_rule(text: &[u8]) -> Zone {
        let fixed =
            |offset_sec, name: &str| Zone(ZoneRules::Fixed { offset_sec, name: Cow::Owned(name.to_owned()) });
        let Some((name, rest)) = zone_name(text) else {
            return fixed(0, "");
        };
        let Some((offset_sec, rest)) = zone_offset(rest) else {
            return fixed(0, name);
        };
        let text = String::from_utf8_lossy(text);
        let rule = if rest.contains(&b',') { text } else { text + ",M3.2.0,M11.1.0" };
        match TimeZone::posix(&rule) {
            Ok(zone) if !rest.is_empty() => Zone(ZoneRules::Yearly(zone)),
            _ => fixed(offset_sec, name),
        }
    }

    /// Converts local time to seconds since the epoch, where `local_sec` is the local time in
    /// seconds since 1970-01-01 00:00. A local time that a forward transition skips is converted
    /// with the offset before the transition. A local time that occurs twice is converted to its
    /// first occurrence. Results saturate at the ends of the range.
    #[must_use]
    pub fn to_universal(&self, local_sec: i64) -> i64 {
        // Assumption: offsets are less than a day, and transitions are more than two days apart.
        let offset = |sec: i64| i64::from(self.at(sec).offset_sec);
        let before = local_sec.saturating_sub(offset(local_sec.saturating_sub(DAY_SEC)));
        let after = local_sec.saturating_sub(offset(local_sec.saturating_add(DAY_SEC)));
        let shows = |sec: i64| sec.saturating_add(offset(sec)) == local_sec;
        if !shows(before) && shows(after) { after } else { before }
    }

    /// Converts seconds since the epoch to local time, in seconds since 1970-01-01 00:00. Results
    /// saturate at the ends of the range.
    #[must_use]
    pub fn to_local(&self, sec: i64) -> i64 {
        sec.saturating_add(self.at(sec).offset_sec.into())
    }

    /// Returns the offset and the abbreviation `sec` seconds after the epoch.
    pub(super) fn at(&self, sec: i64) -> LocalTimeType<'_> {
        let (zone, sec) = match &self.0 {
            ZoneRules::Fixed { offset_sec, name } => {
                return LocalTimeType { offset_sec: *offset_sec, name: Abbreviation::Fixed(name) };
            }
            // Like the C library, treat earlier years as before the transitions of 1970.
            ZoneRules::Yearly(zone) => (zone, sec.max(0)),
            ZoneRules::Recorded(zone) => (zone, sec),
        };
        let info = zone.to_offset_info(timestamp(sec));
        LocalTimeType { offset_sec: info.offset().seconds(), name: Abbreviation::Info(info) }
    }
}

/// Returns a timestamp within jiff's limits that has the same offset as `sec` seconds after the
/// epoch.
fn timestamp(sec: i64) -> Timestamp {
    let (min, max) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    let near = match sec {
        LATE_YEARS_SEC.. => LATE_IN_YEAR_SEC,
        _ if sec > max => max - ERA_SEC + (sec - max).rem_euclid(ERA_SEC),
        _ => sec.max(min),
    };
    Timestamp::from_second(near).expect("between the library's limits, which are 20000 years apart")
}

/// Parses the abbreviation at the start of `text`: three or more letters, or three or more letters,
/// digits and signs in `<>`.
fn zone_name(text: &[u8]) -> Option<(&str, &[u8])> {
    let letters = text.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let (name, rest) = if letters >= 3 {
        text.split_at(letters)
    } else {
        let quoted = text.strip_prefix(b"<")?;
        let len = quoted.iter().take_while(|b| b.is_ascii_alphanumeric() || b"+-".contains(b)).count();
        (&quoted[..len], quoted[len..].strip_prefix(b">").filter(|_| len >= 3)?)
    };
    Some((std::str::from_utf8(name).ok()?, rest))
}

/// Parses the offset at the start of `text`: hours, and optionally minutes and seconds, that are
/// added to local time to get universal time. Returns the negated offset in seconds, which is added
/// to universal time.
fn zone_offset(text: &[u8]) -> Option<(i32, &[u8])> {
    let (sign, mut rest) = match text.first()? {
        b'-' => (1, &text[1..]),
        b'+' => (-1, &text[1..]),
        _ => (-1, text),
    };
    let mut seconds = 0;
    for (place, (unit_sec, limit)) in [(3600, 24), (60, 59), (1, 59)].into_iter().enumerate() {
        let digits = if place == 0 { rest } else { rest.strip_prefix(b":").unwrap_or_default() };
        let len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        if len == 0 {
            return if place == 0 { None } else { Some((sign * seconds, rest)) };
        }
        let number =
            digits[..len].iter().fold(0i32, |n, b| n.saturating_mul(10).saturating_add((b - b'0').into()));
        seconds += number.min(limit) * unit_sec;
        rest = &digits[len..];
    }
    Some((sign * seconds, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tz: &str, sec: i64) -> (i32, String) {
        let zone = Zone::from_env(|name| (name == "TZ").then(|| tz.as_bytes().to_vec()));
        let local = zone.at(sec);
        (local.offset_sec, local.name().to_owned())
    }

    const SUMMER: i64 = 1_720_000_000;
    const WINTER: i64 = 1_700_000_000;

    #[test]
    fn rules_are_read_as_the_c_library_reads_them() {
        let table = [
            ("", 0, "UTC", 0, "UTC"),
            (":", 0, "UTC", 0, "UTC"),
            ("UTC0", 0, "UTC", 0, "UTC"),
            ("foo", 0, "foo", 0, "foo"),
            ("Foo/Bar", 0, "Foo", 0, "Foo"),
            ("XX", 0, "", 0, ""),
            ("A1B2", 0, "", 0, ""),
            ("<AB>5", 0, "", 0, ""),
            ("<+03>-3", 10_800, "+03", 10_800, "+03"),
            ("foo-3:30:15", 12_615, "foo", 12_615, "foo"),
            ("ABC25", -86_400, "ABC", -86_400, "ABC"),
            ("ABC24:59:99", -89_999, "ABC", -89_999, "ABC"),
            ("foo3bar", -7_200, "bar", -10_800, "foo"),
            ("EST+5EDT+4", -14_400, "EDT", -18_000, "EST"),
            ("EST5EDT4,M3.2.0,M11.1.0", -14_400, "EDT", -18_000, "EST"),
            ("EST5EDT,J60,J300", -14_400, "EDT", -18_000, "EST"),
            ("/etc/passwd", 0, "", 0, ""),
        ];
        for (tz, summer_sec, summer, winter_sec, winter) in table {
            assert_eq!(at(tz, SUMMER), (summer_sec, summer.to_owned()), "{tz}");
            assert_eq!(at(tz, WINTER), (winter_sec, winter.to_owned()), "{tz}");
        }
    }

    #[test]
    fn local_times_that_are_skipped_come_later_and_those_that_come_twice_first() {
        let zone = |tz: &str| Zone::from_env(|name| (name == "TZ").then(|| tz.as_bytes().to_vec()));
        let (eastern, forward, back) = (zone("EST5EDT,M3.2.0,M11.1.0"), 1_710_054_000, 1_730_613_600);
        let (est, edt) = (-5 * 3600, -4 * 3600);
        let table = [
            (forward - 1 + est, forward - 1),
            (forward + est, forward),
            (forward + est + 1800, forward + 1800),
            (forward + edt, forward),
            (back + est - 1, back - 3601),
            (back + est, back - 3600),
            (back + edt, back + 3600),
            (0, 18_000),
        ];
        for (local, universal) in table {
            assert_eq!(eastern.to_universal(local), universal, "{local}");
        }
        for sec in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(Zone::UTC.to_universal(sec), sec);
        }
        assert_eq!(zone("XXX-1").to_universal(i64::MIN), i64::MIN);
    }

    #[test]
    fn rules_hold_from_1970_until_the_c_library_loses_count() {
        let (north, south) = ("EST5EDT,M3.2.0,M11.1.0", "NZST-12NZDT,M9.5.0,M4.1.0/3");
        for eras in [0, 20, 30, 10_000] {
            assert_eq!(at(north, SUMMER + eras * ERA_SEC).1, "EDT", "{eras}");
            assert_eq!(at(north, WINTER + eras * ERA_SEC).1, "EST", "{eras}");
            assert_eq!(at(south, SUMMER + eras * ERA_SEC).1, "NZST", "{eras}");
        }
        for sec in [LATE_YEARS_SEC, i64::MAX, -1, i64::MIN] {
            assert_eq!(at(north, sec).1, "EST", "{sec}");
            assert_eq!(at(south, sec).1, "NZDT", "{sec}");
        }
    }
}
