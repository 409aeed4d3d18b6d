//! The names of dated inventories: the second at which a scan began, in universal time. Their order
//! is the order of the times, and they have no character that a shell or a filesystem treats in a
//! special way.

use std::ffi::OsStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// The end of each name.
const SUFFIX: &str = ".inv";
/// The end of the name of an inventory whose scan has not ended.
const PART: &str = ".part";
/// The times that names can express: the years 1970 to 9999.
const RANGE: std::ops::RangeInclusive<i64> = 0..=253_402_300_799;

/// Returns the name for a time in seconds since 1970. Times out of range become the nearest one in
/// it.
pub(super) fn of_time(sec: i64) -> String {
    let sec = sec.clamp(*RANGE.start(), *RANGE.end());
    let time = Timestamp::from_second(sec).expect("the range is within that of timestamps");
    let time = Offset::UTC.to_datetime(time);
    let (date, clock) = (time.date(), time.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}-{:02}-{:02}Z{SUFFIX}",
        date.year(),
        date.month(),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
    )
}

/// Returns the time of a name, and whether the scan is unfinished.
pub(super) fn time_of(name: &OsStr) -> Option<(i64, bool)> {
    let name = name.to_str()?;
    let (whole, is_part) = name.strip_suffix(PART).map_or((name, false), |whole| (whole, true));
    let number = |at: std::ops::Range<usize>| whole.get(at)?.parse::<i16>().ok();
    let small = |at: std::ops::Range<usize>| i8::try_from(number(at)?).ok();
    let time = DateTime::new(
        number(0..4)?,
        small(5..7)?,
        small(8..10)?,
        small(11..13)?,
        small(14..16)?,
        small(17..19)?,
        0,
    );
    let sec = Offset::UTC.to_timestamp(time.ok()?).ok()?.as_second();
    // Any other spelling of the time has another name.
    (of_time(sec) == whole).then_some((sec, is_part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_times_and_nothing_else_is() {
        assert_eq!(of_time(1_795_705_200), "2026-11-26T15-00-00Z.inv");
        assert_eq!(time_of("2026-11-26T15-00-00Z.inv".as_ref()), Some((1_795_705_200, false)));
        assert_eq!(time_of("2026-11-26T15-00-00Z.inv.part".as_ref()), Some((1_795_705_200, true)));
        for name in [
            "",
            ".inv",
            "home.inv",
            "2026-11-26T15-00-00Z",
            "2026-11-26T15-00-00.inv",
            "2026-11-26T15:00:00Z.inv",
            "2026-02-30T00-00-00Z.inv",
            "2026-11-26T15-00-60Z.inv",
            "2026-11-26T24-00-00Z.inv",
            "2026-11-26T15-00-0Z.inv",
            "+026-11-26T15-00-00Z.inv",
            "2026-11-26T15-00-00Z.inv.part.part",
            ".2026-11-26T15-00-00Z.inv",
            "2026-11-26T15-00-00Z.inv.old",
            "2026/11-26T15-00-00Z.inv",
            "1969-12-31T23-59-59Z.inv",
        ] {
            assert_eq!(time_of(name.as_ref()), None, "{name}");
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn names_sort_as_times_do(one in RANGE, two in RANGE) {
            prop_assert_eq!(time_of(of_time(one).as_ref()), Some((one, false)));
            prop_assert_eq!(one.cmp(&two), of_time(one).cmp(&of_time(two)));
        }

        #[test]
        fn any_name_is_read_or_refused(name in ".*") {
            let _ = time_of(name.as_ref());
        }
    }
}
