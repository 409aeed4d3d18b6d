//! The times of a format: C's ctime, and single directives of strftime, to which find adds a
//! fraction where they have seconds. The fraction has ten digits, the last of which is always 0.

use fathom_text::number::{DecimalBuffer, write_decimal};
use fathom_text::time::{TimeStyle, Zone};
use fathom_walk::{FileTime, Meta};

/// The timestamps of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeKind {
    Mtime,
    Atime,
    Ctime,
    Btime,
}

impl TimeKind {
    /// Returns the timestamp, if the metadata has it.
    pub(super) fn of(self, meta: Option<&Meta>) -> Option<FileTime> {
        match self {
            TimeKind::Mtime => meta.map(|meta| meta.mtime),
            TimeKind::Atime => meta.map(|meta| meta.atime),
            TimeKind::Ctime => meta.map(|meta| meta.ctime),
            TimeKind::Btime => meta?.btime,
        }
    }
}

/// The format of one time.
#[derive(Clone, Debug)]
pub(super) struct TimeFormat {
    /// The part before the fraction; `None` for seconds since the epoch.
    before: Option<TimeStyle>,
    fraction: bool,
    after: Option<TimeStyle>,
}

impl TimeFormat {
    /// Returns the format of ctime, with a fraction.
    pub(super) fn ctime(zone: &Zone) -> TimeFormat {
        let (before, after) = (style(b"%a %b %e %H:%M:%S", zone), style(b" %Y", zone));
        TimeFormat { before, fraction: true, after }
    }

    /// Returns the format for the letter after `A`, `B`, `C` or `T`. `@` is seconds since the
    /// epoch.
    pub(super) fn of_letter(letter: u8, zone: &Zone) -> TimeFormat {
        let fraction = matches!(letter, b'@' | b'+' | b'S' | b'T' | b'X');
        let before = if letter == b'@' { None } else { style(&strftime(letter), zone) };
        TimeFormat { before, fraction, after: None }
    }

    /// Appends the time. A time beyond the calendar of 32-bit years is printed as seconds since the
    /// epoch, with a fraction only where its letter has one.
    pub(super) fn write(&self, stamp: FileTime, out: &mut Vec<u8>) {
        let FileTime { sec, nsec } = stamp;
        let before = self.before.as_ref().map(|style| style.write(sec, nsec, out));
        if before.is_none() {
            write_decimal(sec, out);
        }
        if self.fraction {
            write_fraction(nsec, out);
        }
        if let (Some(Ok(())), Some(after)) = (before, &self.after) {
            // The first part was printed, so the time is within the calendar and this part can be
            // printed too.
            let _ = after.write(sec, nsec, out);
        }
    }
}

fn write_fraction(nsec: u32, out: &mut Vec<u8>) {
    // The leading 1 keeps the zeros of the nine digits after it.
    let mut buffer = DecimalBuffer::new();
    let digits = buffer.format(1_000_000_000 + nsec);
    out.push(b'.');
    out.extend_from_slice(&digits.as_bytes()[1..]);
    out.push(b'0');
}

fn style(format: &[u8], zone: &Zone) -> Option<TimeStyle> {
    TimeStyle::parse(&[b"+", format].concat(), zone.clone()).ok()
}

/// Returns the directive that prints what the C library prints for `%` and `letter`. Years have no
/// leading zeros, and an unknown letter is printed as it is.
fn strftime(letter: u8) -> Vec<u8> {
    match letter {
        b'+' => b"%EY-%m-%d+%H:%M:%S".to_vec(),
        b'F' => b"%EY-%m-%d".to_vec(),
        b'D' => b"%m/%d/%Ey".to_vec(),
        b'C' | b'y' | b'Y' => vec![b'%', b'E', letter],
        b'a' | b'A' | b'b' | b'B' | b'c' | b'd' | b'e' | b'g' | b'h' | b'H' | b'I' | b'j' | b'k' | b'l'
        | b'm' | b'M' | b'n' | b'p' | b'P' | b'r' | b'R' | b's' | b'S' | b't' | b'T' | b'u' | b'U' | b'V'
        | b'w' | b'W' | b'x' | b'X' | b'z' | b'Z' | b'%' => vec![b'%', letter],
        b'G' => b"%-G".to_vec(),
        // A digit is a width: it pads the text of the unknown directive.
        b'2'..=b'9' => {
            let blanks = usize::from(letter - b'2');
            [vec![b' '; blanks], vec![b'%', b'%', letter]].concat()
        }
        _ => vec![b'%', b'%', letter],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(letter: u8, sec: i64, nsec: u32) -> String {
        let mut out = Vec::new();
        TimeFormat::of_letter(letter, &Zone::UTC).write(FileTime { sec, nsec }, &mut out);
        out.escape_ascii().to_string()
    }

    #[test]
    fn seconds_have_a_fraction_of_ten_digits() {
        let table = [
            (b'@', "-2.7500000000"),
            (b'+', "1969-12-31+23:59:58.7500000000"),
            (b'S', "58.7500000000"),
            (b'T', "23:59:58.7500000000"),
            (b'X', "23:59:58.7500000000"),
            (b's', "-2"),
            (b'r', "11:59:58 PM"),
            (b'c', "Wed Dec 31 23:59:58 1969"),
            (b'q', "%q"),
            (b'4', "  %4"),
            (b'%', "%"),
            (b'\\', "%\\\\"),
        ];
        table.iter().for_each(|(letter, text)| assert_eq!(show(*letter, -2, 750_000_000), *text));
    }

    #[test]
    fn years_are_the_c_librarys() {
        let early = -62_135_596_801;
        let table = [
            (b'Y', "0"),
            (b'C', "0"),
            (b'y', "00"),
            (b'F', "0-12-31"),
            (b'D', "12/31/00"),
            (b'x', "12/31/00"),
        ];
        table.iter().for_each(|(letter, text)| assert_eq!(show(*letter, early, 0), *text));
        assert_eq!(show(b'F', 253_402_300_800, 0), "10000-01-01");
    }

    #[test]
    fn a_time_beyond_the_calendar_is_seconds() {
        assert_eq!(show(b'H', i64::MAX, 5), "9223372036854775807");
        assert_eq!(show(b'q', i64::MIN, 5), "-9223372036854775808");
        assert_eq!(show(b'S', i64::MIN, 5), "-9223372036854775808.0000000050");
        let mut out = Vec::new();
        TimeFormat::ctime(&Zone::UTC).write(FileTime { sec: i64::MAX, nsec: 5 }, &mut out);
        assert_eq!(out, b"9223372036854775807.0000000050");
    }
}
