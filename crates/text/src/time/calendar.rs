//! The proleptic Gregorian calendar, for every year that C's `struct tm` holds. Does not know time
//! zones.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// Seconds of 400 years, the period of the calendar.
pub(super) const ERA_SEC: i64 = 146_097 * 86_400;

/// A broken-down time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CivilTime {
    /// Years since 1900, which must fit into 32 bits.
    pub(super) years_since_1900: i32,
    /// The time at the same place of the 400 years from 1970 on, because jiff's years end at 9999.
    pub(super) in_era: DateTime,
}

impl CivilTime {
    /// Converts `sec`, local seconds since 1970-01-01 00:00. `None` if the year does not fit.
    pub(super) fn new(sec: i64) -> Option<CivilTime> {
        let in_era = Offset::UTC.to_datetime(Timestamp::from_second(sec.rem_euclid(ERA_SEC)).ok()?);
        let year = sec.div_euclid(ERA_SEC) * 400 + i64::from(in_era.year());
        Some(CivilTime { years_since_1900: i32::try_from(year - 1900).ok()?, in_era })
    }

    pub(super) fn year(&self) -> i64 {
        i64::from(self.years_since_1900) + 1900
    }

    /// Returns the weekday, 0 for Sunday.
    pub(super) fn weekday(&self) -> u8 {
        self.in_era.weekday().to_sunday_zero_offset().unsigned_abs()
    }

    /// Returns the day of the year, 0 for 1 January.
    pub(super) fn yearday(&self) -> u16 {
        self.in_era.day_of_year().unsigned_abs() - 1
    }

    /// Returns the ISO 8601 year and week number.
    pub(super) fn iso_week(&self) -> (i64, u8) {
        let week = self.in_era.date().iso_week_date();
        let years = i64::from(week.year()) - i64::from(self.in_era.year());
        (self.year() + years, week.week().unsigned_abs())
    }

    /// Returns the week number of the year, where weeks start on `weekday` and days before the
    /// first one are in week 0.
    pub(super) fn week_from(&self, weekday: u8) -> u16 {
        (self.yearday() + 7 - u16::from((self.weekday() + 7 - weekday) % 7)) / 7
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_SEC: i64 = 86_400;

    fn date(sec: i64) -> (i64, i8, i8, u8, u16) {
        let civil = CivilTime::new(sec).unwrap();
        (civil.year(), civil.in_era.month(), civil.in_era.day(), civil.weekday(), civil.yearday())
    }

    #[test]
    fn known_days() {
        assert_eq!(date(0), (1970, 1, 1, 4, 0));
        assert_eq!(date(951_782_400), (2000, 2, 29, 2, 59));
        assert_eq!(date(4_107_542_400), (2100, 3, 1, 1, 59));
        assert_eq!(date(-1), (1969, 12, 31, 3, 364));
        assert_eq!(date(-62_167_219_200), (0, 1, 1, 6, 0));
        assert_eq!(date(-62_167_219_201), (-1, 12, 31, 5, 364));
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let (mut before, mut leap_days) = (date(-12 * DAY_SEC), 0);
        for day in -11..150_000 {
            let now = date(day * DAY_SEC + 5);
            let (year, month, day, weekday, yearday) = now;
            let (last_year, last_month, last_day, last_weekday, last_yearday) = before;
            assert_eq!((last_weekday + 1) % 7, weekday);
            match (month, day) {
                (1, 1) => assert_eq!((year, yearday), (last_year + 1, 0)),
                (_, 1) => assert_eq!((month, yearday), (last_month + 1, last_yearday + 1)),
                _ => assert_eq!((day, yearday), (last_day + 1, last_yearday + 1)),
            }
            leap_days += u32::from((month, day) == (2, 29));
            before = now;
        }
        assert_eq!((before.0, leap_days), (2380, 100));
    }

    #[test]
    fn the_year_fits_32_bits_or_there_is_none() {
        assert_eq!(CivilTime::new(67_768_036_191_676_799).unwrap().years_since_1900, i32::MAX);
        assert_eq!(CivilTime::new(67_768_036_191_676_800), None);
        assert_eq!(CivilTime::new(-67_768_040_609_740_800).unwrap().years_since_1900, i32::MIN);
        assert_eq!(CivilTime::new(-67_768_040_609_740_801), None);
        assert_eq!([CivilTime::new(i64::MIN), CivilTime::new(i64::MAX)], [None, None]);
    }

    #[test]
    fn weeks_at_the_turn_of_the_year() {
        let week = |days: i64| CivilTime::new(days * DAY_SEC).unwrap().iso_week();
        assert_eq!(week(0), (1970, 1));
        assert_eq!(week(365 * 7 + 2), (1976, 53), "1 January 1977 was a Saturday");
        assert_eq!(week(18_262), (2020, 1), "1 January 2020 was a Wednesday");
        assert_eq!(week(18_260), (2020, 1), "30 December 2019");
        assert_eq!(week(18_628), (2020, 53), "1 January 2021");
    }
}
