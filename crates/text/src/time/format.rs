//! The formats of date(1): `%` directives. A format is parsed once and then applied to any number
//! of times. Names and layouts (`%c`, `%x`, `%r`) follow the C locale.
//!
//! jiff's strtime (0.2) cannot replace this module. Of 56 conversions with 7 flags and 4 widths, it
//! prints half as date(1) does. It refuses the flag `+` and the modifiers `E` and `O`, does not pad
//! texts, offsets and layouts, ends at the year 9999, and parses a format for each time.

mod directive;

use self::directive::{Case, Directive, Field, Inherited, NameField, Pad, Quantity, YearPart};
use super::calendar::CivilTime;
use super::zone::LocalTimeType;

/// A point in time with all its derived values that a directive can print.
#[derive(Clone, Debug)]
pub(super) struct Moment<'a> {
    pub(super) civil: CivilTime,
    pub(super) sec: i64,
    pub(super) nsec: u32,
    pub(super) local: LocalTimeType<'a>,
}

/// A destination of formatted time. A field width may be up to 2^31 - 1, so a padded text may be
/// too large for memory.
pub trait TimeSink {
    /// Appends `text`.
    fn text(&mut self, text: &[u8]);
    /// Appends `byte` `count` times.
    fn fill(&mut self, byte: u8, count: usize);
}

impl TimeSink for Vec<u8> {
    fn text(&mut self, text: &[u8]) {
        self.extend_from_slice(text);
    }

    fn fill(&mut self, byte: u8, count: usize) {
        self.resize(self.len() + count, byte);
    }
}

/// A sink that counts the bytes.
struct LengthCounter(usize);

impl TimeSink for LengthCounter {
    fn text(&mut self, text: &[u8]) {
        self.0 = self.0.saturating_add(text.len());
    }

    fn fill(&mut self, _byte: u8, count: usize) {
        self.0 = self.0.saturating_add(count);
    }
}

/// A parsed format.
#[derive(Clone, Debug)]
pub(super) struct Format(Vec<FormatPart>);

#[derive(Clone, Debug)]
enum FormatPart {
    Literal(Vec<u8>),
    Directive(Directive),
}

impl Format {
    /// Parses a format. There are no errors: text that is not a valid directive is printed
    /// verbatim.
    pub(super) fn parse(text: &[u8]) -> Format {
        Format::parse_within(text, Inherited::default())
    }

    fn parse_within(text: &[u8], mut inherited: Inherited) -> Format {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let literal = rest.iter().position(|&b| b == b'%').unwrap_or(rest.len());
            if literal > 0 {
                pieces.push(FormatPart::Literal(rest[..literal].to_vec()));
                rest = &rest[literal..];
                continue;
            }
            let (directive, len) = parse_directive(rest, inherited);
            pieces.push(FormatPart::Directive(directive));
            inherited.width = None;
            rest = &rest[len..];
        }
        Format(pieces)
    }

    /// Appends `moment` in this format.
    pub(super) fn write(&self, moment: &Moment<'_>, out: &mut impl TimeSink) {
        for piece in &self.0 {
            match piece {
                FormatPart::Literal(text) => out.text(text),
                FormatPart::Directive(directive) => directive.write(moment, out),
            }
        }
    }
}

/// The flags, the width and the modifier between `%` and the conversion letter.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// The last of `_`, `-`, `+` and `0`.
    pad: Option<u8>,
    upper: bool,
    change_case: bool,
    width: Option<usize>,
    /// `E` or `O`.
    modifier: Option<u8>,
}

/// Parses the directive at the start of `text`. Returns it and its length.
fn parse_directive(text: &[u8], inherited: Inherited) -> (Directive, usize) {
    let (mut flags, at) = parse_flags(text);
    flags.upper |= inherited.upper;
    flags.width = flags.width.or(inherited.width);
    let conversion = text.get(at).copied();
    let colons = text[at..].iter().take_while(|&&b| b == b':').count();
    let field = match conversion {
        Some(b'%') if at == 1 => Some((Field::Text(b"%".to_vec()), 2)),
        // `%` behind flags is not part of this directive; it starts another one.
        Some(b'%') | None => Some((Field::Text(text[..at].to_vec()), at)),
        Some(b':') if text.get(at + colons) == Some(&b'z') => {
            (colons <= 3).then_some((Field::Offset { colons }, at + colons + 1))
        }
        Some(b':') => Some((Field::Text(text[..=at].to_vec()), at + 1)),
        Some(letter) => parse_letter(letter, &flags).map(|field| (field, at + 1)),
    };
    let verbatim = || {
        let len = if conversion == Some(b':') { at + colons + 1 } else { at + 1 };
        (Field::Text(text[..len].to_vec()), len)
    };
    let (field, len) = field.unwrap_or_else(verbatim);
    (resolve(field, conversion, flags, inherited), len)
}

fn parse_flags(text: &[u8]) -> (Flags, usize) {
    let (mut flags, mut at) = (Flags::default(), 1);
    while let Some(&flag) = text.get(at) {
        match flag {
            b'_' | b'-' | b'+' | b'0' => flags.pad = Some(flag),
            b'^' => flags.upper = true,
            b'#' => flags.change_case = true,
            _ => break,
        }
        at += 1;
    }
    while let Some(digit) = text.get(at).filter(|b| b.is_ascii_digit()) {
        let width = flags.width.unwrap_or(0).saturating_mul(10).saturating_add(usize::from(digit - b'0'));
        flags.width = Some(width.min(i32::MAX as usize));
        at += 1;
    }
    if let Some(modifier @ (b'E' | b'O')) = text.get(at) {
        flags.modifier = Some(*modifier);
        at += 1;
    }
    (flags, at)
}

/// Returns the field of a conversion letter. `None` for an unknown letter or one that does not take
/// the modifier.
fn parse_letter(letter: u8, flags: &Flags) -> Option<Field> {
    let refused: &[u8] = match flags.modifier {
        Some(b'E') => b"aAbhBDdeFHIjklMmNSUVgGWw",
        Some(_) => b"aAcDFxX",
        None => b"",
    };
    if refused.contains(&letter) {
        return None;
    }
    let number = |quantity, digits| Some(Field::Number { quantity, digits });
    match letter {
        b'a' => Some(Field::Name(NameField::WeekdayShort)),
        b'A' => Some(Field::Name(NameField::Weekday)),
        b'b' | b'h' => Some(Field::Name(NameField::MonthShort)),
        b'B' => Some(Field::Name(NameField::Month)),
        b'p' | b'P' => Some(Field::Name(NameField::HalfDay)),
        b'Z' => Some(Field::Name(NameField::Zone)),
        b'C' | b'y' | b'Y' | b'g' | b'G' => Some(parse_year(letter, flags)),
        b'd' | b'e' => number(Quantity::Day, 2),
        b'H' | b'k' => number(Quantity::Hour, 2),
        b'I' | b'l' => number(Quantity::Hour12, 2),
        b'j' => number(Quantity::Yearday, 3),
        b'M' => number(Quantity::Minute, 2),
        b'm' => number(Quantity::Month, 2),
        b'q' => number(Quantity::Quarter, 1),
        b'S' => number(Quantity::Second, 2),
        b'u' => number(Quantity::WeekdayFromMonday, 1),
        b'w' => number(Quantity::Weekday, 1),
        b'U' => number(Quantity::WeekFromSunday, 2),
        b'W' => number(Quantity::WeekFromMonday, 2),
        b'V' => number(Quantity::IsoWeek, 2),
        b's' => Some(Field::EpochSeconds),
        b'N' => Some(Field::Nanoseconds),
        b'z' => Some(Field::Offset { colons: 0 }),
        b'n' => Some(Field::Text(b"\n".to_vec())),
        b't' => Some(Field::Text(b"\t".to_vec())),
        _ => parse_layout(letter, flags),
    }
}

fn parse_year(letter: u8, flags: &Flags) -> Field {
    let part = match letter {
        b'C' => YearPart::Century,
        b'y' => YearPart::OfCentury,
        b'Y' => YearPart::Whole,
        b'g' => YearPart::IsoOfCentury,
        _ => YearPart::Iso,
    };
    if flags.modifier == Some(b'E') { Field::LibcYear(part) } else { Field::Year(part) }
}

/// Parses letters that abbreviate a sequence of directives.
fn parse_layout(letter: u8, flags: &Flags) -> Option<Field> {
    let upper = flags.upper;
    let plain = Inherited { upper, ..Inherited::default() };
    let (layout, inherited) = match letter {
        // The first three follow the layouts of the C library, which formats years differently.
        b'c' => ("%a %b %e %H:%M:%S %EY", plain),
        b'x' => ("%m/%d/%Ey", plain),
        b'r' => ("%I:%M:%S %p", plain),
        b'T' | b'X' => ("%H:%M:%S", plain),
        b'R' => ("%H:%M", plain),
        b'D' => ("%m/%d/%y", Inherited { pad: flags.pad, ..plain }),
        b'F' if flags.pad.is_none() && flags.width.is_none() => {
            ("%Y-%m-%d", Inherited { pad: Some(b'+'), width: Some(4), upper })
        }
        b'F' => {
            let width = flags.width.unwrap_or(0).saturating_sub("-mm-dd".len());
            ("%Y-%m-%d", Inherited { pad: flags.pad, width: Some(width), upper })
        }
        _ => return None,
    };
    Some(Field::Layout(Format::parse_within(layout.as_bytes(), inherited)))
}

/// Combines the field with its flags.
fn resolve(field: Field, conversion: Option<u8>, flags: Flags, inherited: Inherited) -> Directive {
    let is_year = matches!(field, Field::Year(_));
    let pad = flags.pad.or(inherited.pad.filter(|_| is_year));
    let is_number = matches!(field, Field::Number { .. } | Field::Offset { .. } | Field::EpochSeconds);
    let unset = match conversion {
        Some(b'e' | b'k' | b'l') => Pad::Space,
        _ if is_number || is_year || matches!(field, Field::Nanoseconds) => Pad::Zero,
        _ => Pad::Space,
    };
    let case = match (&field, conversion) {
        (_, Some(b'P')) => Case::Lower,
        (Field::Name(NameField::HalfDay | NameField::Zone), _) if flags.change_case => Case::Lower,
        // `%#Eb` is not a valid directive, but date(1) upper-cases its text.
        (Field::Name(_), _) | (_, Some(b'b' | b'h')) if flags.change_case => Case::Upper,
        _ if flags.upper => Case::Upper,
        _ => Case::Unchanged,
    };
    let pad_style = match pad {
        None => unset,
        Some(b'-') => Pad::None,
        Some(b'_') => Pad::Space,
        Some(_) => Pad::Zero,
    };
    Directive { field, pad: pad_style, plus: pad == Some(b'+'), width: flags.width, case }
}
