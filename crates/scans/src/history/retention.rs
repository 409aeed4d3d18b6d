//! How many dated inventories are kept: the last ones, and the newest of each of the last days,
//! weeks and months that have one, as `restic forget` and `borg prune` decide it.

use fathom_text::time::Zone;
use jiff::civil::Date;

const DAY_SEC: i64 = 86_400;
/// 1970-01-01 was a Thursday, and weeks begin on Mondays.
const EPOCH_WEEKDAY: i64 = 3;

/// The numbers of inventories that are kept. Zero of a kind keeps none for its sake.
///
/// ```
/// use fathom_scans::history::Retention;
/// use fathom_text::time::Zone;
///
/// let retention = Retention { daily: 2, ..Retention::default() };
/// let (noon, evening) = (12 * 3600, 20 * 3600);
/// let times = [noon, evening, 86_400 + noon, 3 * 86_400 + noon];
/// assert_eq!(retention.keep(&times, &Zone::UTC), [false, false, true, true]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Keep the last ones, whatever their times.
    pub last: u64,
    /// Keep the newest one of each of the last days that have any.
    pub daily: u64,
    /// Keep the newest one of each of the last weeks that have any. Weeks begin on Mondays.
    pub weekly: u64,
    /// Keep the newest one of each of the last months that have any.
    pub monthly: u64,
}

impl Retention {
    /// Returns whether it keeps none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns for each of `times`, which ascend and are in seconds since 1970, whether it is kept.
    /// Days, weeks and months follow `zone`.
    #[must_use]
    pub fn keep(&self, times: &[i64], zone: &Zone) -> Vec<bool> {
        let mut kept = vec![false; times.len()];
        let first_kept = times.len().saturating_sub(usize::try_from(self.last).unwrap_or(usize::MAX));
        kept[first_kept..].fill(true);
        let days: Vec<i64> = times.iter().map(|sec| zone.to_local(*sec).div_euclid(DAY_SEC)).collect();
        let rules: [PeriodRule; 3] = [(self.daily, |day| day), (self.weekly, week), (self.monthly, month)];
        for (count, period) in rules {
            keep_newest(&days, count, period, &mut kept);
        }
        kept
    }
}

/// The number of periods, and the function from a day to its period.
type PeriodRule = (u64, fn(i64) -> i64);

/// Keeps the newest day of each of the last `count` periods.
fn keep_newest(days: &[i64], mut count: u64, period: fn(i64) -> i64, kept: &mut [bool]) {
    let mut last = None;
    for (at, day) in days.iter().enumerate().rev() {
        if count > 0 && last != Some(period(*day)) {
            last = Some(period(*day));
            kept[at] = true;
            count -= 1;
        }
    }
}

/// Returns the number of the week of a day, which is counted from 1970-01-01 on.
fn week(day: i64) -> i64 {
    day.saturating_add(EPOCH_WEEKDAY).div_euclid(7)
}

/// Returns the number of the month of a day. Days that no calendar has are months of their own.
fn month(day: i64) -> i64 {
    let date = i32::try_from(day).ok().and_then(|day| {
        let span = jiff::Span::new().try_days(day).ok()?;
        Date::constant(1970, 1, 1).checked_add(span).ok()
    });
    date.map_or(day, |date| i64::from(date.year()) * 12 + i64::from(date.month()) - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn zone(tz: &str) -> Zone {
        Zone::from_env(|name| (name == "TZ").then(|| tz.as_bytes().to_vec()))
    }

    /// Returns the day number of a date.
    fn day(year: i16, month: i8, day: i8) -> i64 {
        Date::constant(year, month, day).duration_since(Date::constant(1970, 1, 1)).as_secs() / DAY_SEC
    }

    #[test]
    fn weeks_begin_on_mondays_and_months_on_their_first_day() {
        let monday = day(2026, 11, 23);
        assert_eq!((week(monday), week(monday + 6)), (week(monday - 1) + 1, week(monday)));
        assert_eq!(week(monday + 7), week(monday) + 1);
        assert_eq!(month(day(2026, 11, 30)) + 1, month(day(2026, 12, 1)));
        assert_eq!(month(day(2026, 12, 31)) + 1, month(day(2027, 1, 1)));
        assert_eq!(month(i64::MAX), i64::MAX);
    }

    #[test]
    fn each_rule_keeps_the_newest_of_its_periods() {
        let noon = |day: i64| day * DAY_SEC + 43_200;
        let first = day(2026, 8, 1);
        let times: Vec<i64> = (0..120).map(|day| noon(first + day)).collect();
        let kept = |retention: Retention| -> Vec<i64> {
            let kept = retention.keep(&times, &Zone::UTC);
            kept.iter().zip(0..).filter(|(kept, _)| **kept).map(|(_, day)| day).collect()
        };
        assert_eq!(kept(Retention { daily: 3, ..Retention::default() }), [117, 118, 119]);
        assert_eq!(kept(Retention { last: 2, ..Retention::default() }), [118, 119]);
        // 2026-11-28 is a Saturday; the Sundays before it are the 22nd and the 15th.
        assert_eq!(kept(Retention { weekly: 3, ..Retention::default() }), [106, 113, 119]);
        // The last days of August, September and October.
        assert_eq!(kept(Retention { monthly: 9, ..Retention::default() }), [30, 60, 91, 119]);
        assert!(kept(Retention::default()).is_empty() && Retention::default().is_empty());
    }

    #[test]
    fn days_are_those_of_the_zone() {
        let retention = Retention { daily: 9, ..Retention::default() };
        let times = [20 * 3600, 26 * 3600];
        assert_eq!(retention.keep(&times, &zone("UTC0")), [true, true]);
        assert_eq!(retention.keep(&times, &zone("XXX-6")), [false, true]);
    }

    /// Returns the periods of the newest `count` periods that have a time.
    fn newest_periods(days: &[i64], count: u64, period: fn(i64) -> i64) -> BTreeSet<i64> {
        let periods: BTreeSet<i64> = days.iter().map(|day| period(*day)).collect();
        periods.into_iter().rev().take(usize::try_from(count).unwrap()).collect()
    }

    proptest! {
        #![proptest_config(fathom_cases::property(500))]

        #[test]
        fn the_kept_ones_cover_each_period_and_are_no_more(
            times in proptest::collection::btree_set(0i64..200_000_000, 0..120),
            (last, daily, weekly, monthly) in (0u64..6, 0u64..20, 0u64..10, 0u64..14),
            tz in proptest::sample::select(vec!["UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "XXX11", "<+1345>-13:45"]),
        ) {
            let (retention, zone) = (Retention { last, daily, weekly, monthly }, zone(tz));
            let times: Vec<i64> = times.into_iter().collect();
            let flags = retention.keep(&times, &zone);
            let kept: Vec<i64> = times.iter().zip(&flags).filter(|(_, kept)| **kept).map(|(time, _)| *time).collect();
            let days = |times: &[i64]| -> Vec<i64> {
                times.iter().map(|time| zone.to_local(*time).div_euclid(DAY_SEC)).collect()
            };
            let (all_days, kept_days) = (days(&times), days(&kept));
            prop_assert!(kept.len() as u64 <= last + daily + weekly + monthly);
            prop_assert!(kept.len() as u64 >= last.max(u64::from(!retention.is_empty())).min(times.len() as u64));
            let rules: [PeriodRule; 3] = [(daily, |day| day), (weekly, week), (monthly, month)];
            for (count, period) in rules {
                let covered: BTreeSet<i64> = kept_days.iter().map(|day| period(*day)).collect();
                for wanted in newest_periods(&all_days, count, period) {
                    prop_assert!(covered.contains(&wanted));
                    // The newest time of the period is among the kept ones.
                    let newest = times.iter().zip(&all_days).rfind(|(_, day)| period(**day) == wanted).unwrap().0;
                    prop_assert!(kept.contains(newest));
                }
            }
            // A second run keeps all that the first one kept.
            prop_assert!(retention.keep(&kept, &zone).into_iter().all(|kept| kept));
        }
    }
}
