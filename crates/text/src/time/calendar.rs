//! The proleptic Gregorian calendar, for every year that C's `struct tm` holds. Does not know time
//! zones.

const DAY_SEC: i64 = 86_400;
/// Days of 400 years, the period of the calendar.
const ERA_DAYS: i64 = 146_097;

/// A broken-down time: date, time of day, and the fields derived from the date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CivilTime {
    /// Years since 1900, which must fit into 32 bits.
    pub(super) years_since_1900: i32,
    /// 1 for January.
    pub(super) month: u8,
    pub(super) day: u8,
    pub(super) hour: u8,
    pub(super) minute: u8,
    pub(super) second: u8,
    /// 0 for Sunday.
    pub(super) weekday: u8,
    /// 0 for 1 January.
    pub(super) yearday: u16,
}

impl CivilTime {
    /// Converts `sec`, local seconds since 1970-01-01 00:00. `None` if the year does not fit.
    pub(super) fn new(sec: i64) -> Option<CivilTime> {
        let days = sec.div_euclid(DAY_SEC);
        let of_day = sec.rem_euclid(DAY_SEC) as u32;
        // Years start in March here, so that the leap day is the last day of its year.
        let since_march_0 = days + 719_468;
        let (era, of_era) = (since_march_0.div_euclid(ERA_DAYS), since_march_0.rem_euclid(ERA_DAYS));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / (ERA_DAYS - 1)) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let months_since_march = (5 * of_year + 2) / 153;
        let month = if months_since_march < 10 { months_since_march + 3 } else { months_since_march - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        // 1 March is day 59, or 60 in a leap year; January and February belong to the next year.
        let yearday = if month <= 2 { of_year - 306 } else { of_year + 59 + i64::from(is_leap(year)) };
        Some(CivilTime {
            years_since_1900: i32::try_from(year - 1900).ok()?,
            month: month as u8,
            day: (of_year - (153 * months_since_march + 2) / 5 + 1) as u8,
            hour: (of_day / 3600) as u8,
            minute: (of_day / 60 % 60) as u8,
            second: (of_day % 60) as u8,
            weekday: (days + 4).rem_euclid(7) as u8,
            yearday: yearday as u16,
        })
    }

    pub(super) fn year(&self) -> i64 {
        i64::from(self.years_since_1900) + 1900
    }

    /// Returns the ISO 8601 year and week number. Weeks start on Monday, and the first week of a
    /// year contains its first Thursday.
    pub(super) fn iso_week(&self) -> (i64, u8) {
        let monday_based = i64::from((self.weekday + 6) % 7);
        let thursday = i64::from(self.yearday) - monday_based + 3;
        let (year, days) = (self.year(), 365 + i64::from(is_leap(self.year())));
        let (year, thursday) = match thursday {
            day if day < 0 => (year - 1, day + 365 + i64::from(is_leap(year - 1))),
            day if day >= days => (year + 1, day - days),
            day => (year, day),
        };
        (year, (thursday / 7 + 1) as u8)
    }

    /// Returns the week number of the year, where weeks start on `weekday` and days before the
    /// first one are in week 0.
    pub(super) fn week_from(&self, weekday: u8) -> u16 {
        (self.yearday + 7 - u16::from((self.weekday + 7 - weekday) % 7)) / 7
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(sec: i64) -> (i64, u8, u8, u8, u16) {
        let civil = CivilTime::new(sec).unwrap();
        (civil.year(), civil.month, civil.day, civil.weekday, civil.yearday)
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
        let (mut before, mut leap_days) = (CivilTime::new(-12 * 86_400).unwrap(), 0);
        for day in -11..150_000 {
            let civil = CivilTime::new(day * DAY_SEC + 5).unwrap();
            assert_eq!((before.weekday + 1) % 7, civil.weekday);
            match (civil.month, civil.day) {
                (1, 1) => assert_eq!((civil.year(), civil.yearday), (before.year() + 1, 0)),
                (_, 1) => assert_eq!((civil.month, civil.yearday), (before.month + 1, before.yearday + 1)),
                _ => assert_eq!((civil.day, civil.yearday), (before.day + 1, before.yearday + 1)),
            }
            leap_days += u32::from((civil.month, civil.day) == (2, 29));
            before = civil;
        }
        assert_eq!((before.year(), leap_days), (2380, 100));
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
