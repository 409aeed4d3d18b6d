//! One directive of a format with resolved flags: the printed value and its width.

use super::{Format, LengthCounter, Moment, TimeSink};
use crate::number::DecimalBuffer;

/// A directive: its value, padding and case.
#[derive(Clone, Debug)]
pub(super) struct Directive {
    pub(super) field: Field,
    pub(super) pad: Pad,
    /// Whether years wider than their usual digits get a sign.
    pub(super) plus: bool,
    /// The width in the format. Without one, each field has a default.
    pub(super) width: Option<usize>,
    pub(super) case: Case,
}

/// The flags that the directives of a layout inherit from the directive that abbreviates it.
#[derive(Clone, Copy, Default)]
pub(super) struct Inherited {
    /// Applies to years without a flag of their own.
    pub(super) pad: Option<u8>,
    /// Applies to the first directive only.
    pub(super) width: Option<usize>,
    pub(super) upper: bool,
}

/// The padding of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pad {
    None,
    Space,
    Zero,
}

/// The case conversion of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Unchanged,
    Lower,
    Upper,
}

/// The value of a directive.
#[derive(Clone, Debug)]
pub(super) enum Field {
    Text(Vec<u8>),
    Name(NameField),
    Number {
        quantity: Quantity,
        digits: usize,
    },
    Year(YearPart),
    /// A year as the C library prints it, in `%c` and `%x` and with the modifier `E`.
    LibcYear(YearPart),
    EpochSeconds,
    Nanoseconds,
    Offset {
        colons: usize,
    },
    Layout(Format),
}

/// Values that are words.
#[derive(Clone, Copy, Debug)]
pub(super) enum NameField {
    Weekday,
    WeekdayShort,
    Month,
    MonthShort,
    HalfDay,
    Zone,
}

/// Values that are small numbers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Quantity {
    Day,
    Hour,
    Hour12,
    IsoWeek,
    Minute,
    Month,
    Quarter,
    Second,
    WeekFromMonday,
    WeekFromSunday,
    Weekday,
    WeekdayFromMonday,
    Yearday,
}

/// A year, or the upper or lower two digits of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum YearPart {
    Century,
    OfCentury,
    Whole,
    Iso,
    IsoOfCentury,
}

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Directive {
    pub(super) fn write(&self, moment: &Moment<'_>, out: &mut impl TimeSink) {
        match &self.field {
            Field::Text(text) => self.write_text(text, out),
            Field::Name(name) => self.write_text(name.of(moment).as_bytes(), out),
            // Fast path: a line has about five of these, and the general path costs as much as the
            // lookup of the zone's offset.
            Field::Number { quantity, digits: 2 } if self.pad == Pad::Zero && self.width.is_none() => {
                let value = quantity.of(moment) as u8;
                out.text(&[b'0' + value / 10, b'0' + value % 10]);
            }
            Field::Number { quantity, digits } => self.write_number(None, quantity.of(moment), *digits, out),
            Field::Year(part) => self.write_year(*part, moment, out),
            Field::LibcYear(part) => self.write_text(part.in_libc(moment).as_bytes(), out),
            Field::EpochSeconds => {
                let sign = (moment.sec < 0).then_some(b'-');
                self.write_number(sign, moment.sec.unsigned_abs(), 1, out);
            }
            Field::Nanoseconds => self.write_nanoseconds(moment.nsec, out),
            Field::Offset { colons } => self.write_offset(*colons, moment, out),
            Field::Layout(format) => {
                let mut len = LengthCounter(0);
                if self.width.is_some() {
                    format.write(moment, &mut len);
                }
                self.write_text_padding(len.0, out);
                format.write(moment, out);
            }
        }
    }

    fn write_text_padding(&self, len: usize, out: &mut impl TimeSink) {
        let width = if self.pad == Pad::None { 0 } else { self.width.unwrap_or(0) };
        out.fill(if self.pad == Pad::Zero { b'0' } else { b' ' }, width.saturating_sub(len));
    }

    fn write_text(&self, text: &[u8], out: &mut impl TimeSink) {
        self.write_text_padding(text.len(), out);
        match self.case {
            Case::Unchanged => out.text(text),
            Case::Lower => out.text(&text.to_ascii_lowercase()),
            Case::Upper => out.text(&text.to_ascii_uppercase()),
        }
    }

    fn write_number(&self, sign: Option<u8>, magnitude: u64, digits: usize, out: &mut impl TimeSink) {
        let mut text = DecimalBuffer::new();
        self.write_digits(sign, text.format(magnitude).as_bytes(), digits, out);
    }

    fn write_digits(&self, sign: Option<u8>, digits: &[u8], width: usize, out: &mut impl TimeSink) {
        let width = self.width.unwrap_or(width);
        let padding = width.saturating_sub(digits.len() + usize::from(sign.is_some()));
        if self.pad == Pad::Space {
            out.fill(b' ', padding);
        }
        out.text(sign.as_slice());
        if self.pad == Pad::Zero {
            out.fill(b'0', padding);
        }
        out.text(digits);
    }

    fn write_year(&self, part: YearPart, moment: &Moment<'_>, out: &mut impl TimeSink) {
        let (negative, magnitude) = part.of(moment);
        let (digits, largest) = match part {
            YearPart::Whole | YearPart::Iso => (4, 9999),
            YearPart::Century | YearPart::OfCentury | YearPart::IsoOfCentury => (2, 99),
        };
        let outgrown = magnitude > largest || self.width.is_some_and(|width| width > digits);
        let sign = match negative {
            true => Some(b'-'),
            false => (self.plus && outgrown).then_some(b'+'),
        };
        self.write_number(sign, magnitude, digits, out);
    }

    /// Appends the fraction of a second. A width is the number of decimal places; padding replaces
    /// the trailing zeros.
    fn write_nanoseconds(&self, nsec: u32, out: &mut impl TimeSink) {
        let width = self.width.filter(|&width| width > 0).unwrap_or(9);
        let places: [u8; 9] =
            std::array::from_fn(|place| b'0' + (nsec / 10u32.pow(8 - place as u32) % 10) as u8);
        let shown = &places[..width.min(9)];
        let significant = shown.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
        out.text(&shown[..significant]);
        let rest = width - significant;
        match self.pad {
            Pad::None => {}
            Pad::Space => out.fill(b' ', rest),
            Pad::Zero => out.fill(b'0', rest),
        }
    }

    fn write_offset(&self, colons: usize, moment: &Moment<'_>, out: &mut impl TimeSink) {
        let offset_sec = moment.local.offset_sec;
        // A zone abbreviation of `-00` means that local time is unknown.
        let negative = offset_sec < 0 || offset_sec == 0 && moment.local.name().starts_with('-');
        let offset_sec = offset_sec.unsigned_abs();
        let (hours, minutes, seconds) = (offset_sec / 3600, offset_sec / 60 % 60, offset_sec % 60);
        let (digits, width) = match colons {
            0 => ((hours * 100 + minutes).to_string(), 5),
            3 if minutes == 0 && seconds == 0 => (hours.to_string(), 3),
            1 | 3 if colons == 1 || seconds == 0 => (format!("{hours}:{minutes:02}"), 6),
            _ => (format!("{hours}:{minutes:02}:{seconds:02}"), 9),
        };
        self.write_digits(Some(if negative { b'-' } else { b'+' }), digits.as_bytes(), width, out);
    }
}

impl NameField {
    fn of<'a>(self, moment: &'a Moment<'_>) -> &'a str {
        let in_era = &moment.civil.in_era;
        match self {
            NameField::Weekday => WEEKDAYS[usize::from(moment.civil.weekday())],
            NameField::WeekdayShort => &WEEKDAYS[usize::from(moment.civil.weekday())][..3],
            NameField::Month => MONTHS[usize::from(in_era.month().unsigned_abs()) - 1],
            NameField::MonthShort => &MONTHS[usize::from(in_era.month().unsigned_abs()) - 1][..3],
            NameField::HalfDay if in_era.hour() < 12 => "AM",
            NameField::HalfDay => "PM",
            NameField::Zone => moment.local.name(),
        }
    }
}

impl Quantity {
    fn of(self, moment: &Moment<'_>) -> u64 {
        let civil = &moment.civil;
        let value = match self {
            Quantity::Day => civil.in_era.day(),
            Quantity::Hour => civil.in_era.hour(),
            Quantity::Hour12 => (civil.in_era.hour() + 11) % 12 + 1,
            Quantity::Minute => civil.in_era.minute(),
            Quantity::Month => civil.in_era.month(),
            Quantity::Quarter => (civil.in_era.month() - 1) / 3 + 1,
            Quantity::Second => civil.in_era.second(),
            Quantity::IsoWeek => return civil.iso_week().1.into(),
            Quantity::WeekFromMonday => return civil.week_from(1).into(),
            Quantity::WeekFromSunday => return civil.week_from(0).into(),
            Quantity::Weekday => return civil.weekday().into(),
            Quantity::WeekdayFromMonday => return u64::from((civil.weekday() + 6) % 7 + 1),
            Quantity::Yearday => return u64::from(civil.yearday() + 1),
        };
        value.unsigned_abs().into()
    }
}

impl YearPart {
    /// Returns whether the year is negative, and the digits. A minus sign appears even in front of
    /// century 0.
    fn of(self, moment: &Moment<'_>) -> (bool, u64) {
        let civil = &moment.civil;
        let year = match self {
            YearPart::Century | YearPart::OfCentury | YearPart::Whole => civil.year(),
            YearPart::Iso | YearPart::IsoOfCentury => civil.iso_week().0,
        };
        match self {
            YearPart::Whole | YearPart::Iso => (year < 0, year.unsigned_abs()),
            YearPart::Century => (year < 0, year.unsigned_abs() / 100),
            YearPart::OfCentury | YearPart::IsoOfCentury => (false, year.unsigned_abs() % 100),
        }
    }

    /// Formats the year like the C library, which computes in 32 bits, rounds down and pads only
    /// years of a century.
    fn in_libc(self, moment: &Moment<'_>) -> String {
        let year = moment.civil.years_since_1900.wrapping_add(1900);
        match self {
            YearPart::Century => (year / 100 - i32::from(year % 100 < 0)).to_string(),
            YearPart::OfCentury => format!("{:02}", moment.civil.years_since_1900.rem_euclid(100)),
            YearPart::Whole | YearPart::Iso | YearPart::IsoOfCentury => year.to_string(),
        }
    }
}
