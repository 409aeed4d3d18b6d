//! Days by their names: `today`, `yesterday`, `monday`.

use fathom_text::time::Zone;
use fathom_walk::FileTime;

use super::when::ParsedTime;

const DAY_SEC: i64 = 86_400;
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// The letters of an abbreviated day of the week.
const ABBREVIATED: usize = 3;
/// The index of the day of the week of 1970-01-01.
const EPOCH_WEEKDAY: i64 = 3;

/// Parses the name of a day, and returns its first moment in `zone`.
pub(super) fn day(text: &[u8], now: FileTime, zone: &Zone) -> ParsedTime {
    let today = zone.to_local(now.sec).div_euclid(DAY_SEC);
    let days_ago = match text.to_ascii_lowercase().as_slice() {
        b"today" => 0,
        b"yesterday" => 1,
        word => match (weekday(today) - named(word)?).rem_euclid(7) {
            0 => 7,
            days => days,
        },
    };
    let local = (today - days_ago).checked_mul(DAY_SEC);
    Some(local.map(|local| FileTime { sec: zone.to_universal(local), nsec: 0 }))
}

/// Returns the index of a day of the week, given the number of the day since 1970-01-01.
fn weekday(day: i64) -> i64 {
    (day + EPOCH_WEEKDAY).rem_euclid(7)
}

/// Returns the index of the day of the week with this name.
fn named(word: &[u8]) -> Option<i64> {
    let is_it = |name: &&str| name.as_bytes() == word || &name.as_bytes()[..ABBREVIATED] == word;
    WEEKDAYS.iter().position(|name| is_it(name)).and_then(|at| i64::try_from(at).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-26 15:00 UTC, a Thursday.
    const NOW: i64 = 1_795_705_200;

    fn parsed(text: &str, tz: &str) -> Option<i64> {
        let zone = Zone::from_env(|name| (name == "TZ").then(|| tz.as_bytes().to_vec()));
        day(text.as_bytes(), FileTime { sec: NOW, nsec: 5 }, &zone).map(|time| time.unwrap().sec)
    }

    #[test]
    fn days_begin_at_midnight_of_the_zone() {
        let midnight = 1_795_651_200;
        let table = [
            ("today", "UTC0", midnight),
            ("Yesterday", "UTC0", midnight - DAY_SEC),
            ("monday", "UTC0", midnight - 3 * DAY_SEC),
            ("WED", "UTC0", midnight - DAY_SEC),
            ("thursday", "UTC0", midnight - 7 * DAY_SEC),
            ("fri", "UTC0", midnight - 6 * DAY_SEC),
            ("today", "XXX-10", midnight + DAY_SEC - 10 * 3600),
            ("thu", "XXX-10", midnight - 10 * 3600),
        ];
        for (text, tz, sec) in table {
            assert_eq!(parsed(text, tz), Some(sec), "{text} {tz}");
        }
    }

    #[test]
    fn a_clock_change_moves_midnight() {
        // 2026-10-25 has 25 hours in central Europe.
        let zone = Zone::from_env(|name| (name == "TZ").then(|| b"CET-1CEST,M3.5.0,M10.5.0/3".to_vec()));
        let now = FileTime { sec: 1_793_000_000, nsec: 0 };
        let start = |text: &[u8]| day(text, now, &zone).flatten().unwrap().sec;
        assert_eq!(start(b"today") - start(b"yesterday"), 25 * 3600);
    }

    #[test]
    fn other_words_are_no_days() {
        for text in ["", "mo", "mond", "mondays", "tomorrow", "to", "tues", "today "] {
            assert_eq!(parsed(text, "UTC0"), None, "{text}");
        }
    }

    #[test]
    fn the_ends_of_time_are_refused_or_days() {
        for sec in [i64::MIN, -1, 0, i64::MAX] {
            assert!(day(b"monday", FileTime { sec, nsec: 0 }, &Zone::UTC).is_some());
        }
    }
}
