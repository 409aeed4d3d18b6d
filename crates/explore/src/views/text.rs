//! Values as text for cells: names, sizes, counts, times.

use fathom_text::human::BlockSize;
use fathom_text::quote::{Charset, escape_controls, shell_escape};
use fathom_text::time::TimeStyle;
use unicode_width::UnicodeWidthChar;

/// Returns a name in the form of ls(1) on a terminal, which has only printable characters.
pub(super) fn name(name: &[u8], charset: Charset) -> String {
    String::from_utf8_lossy(&shell_escape(name, charset)).into_owned()
}

/// Returns a message in one line, without control characters.
pub(super) fn message(text: &[u8]) -> String {
    let text = escape_controls(text);
    String::from_utf8_lossy(&text).replace(['\n', '\t', '\0'], " ")
}

pub(super) fn size(bytes: u64, units: BlockSize) -> String {
    units.text(bytes)
}

/// Returns a size with its sign.
pub(super) fn growth(bytes: i64, units: BlockSize) -> String {
    let sign = match bytes {
        ..0 => "-",
        0 => "",
        _ => "+",
    };
    format!("{sign}{}", size(bytes.unsigned_abs(), units))
}

/// Returns a number in at most six characters: from a million on the digits that there is room for.
pub(super) fn count(number: u64) -> String {
    const UNITS: [(u64, char); 5] = [
        (1_000_000_000_000_000_000, 'E'),
        (1_000_000_000_000_000, 'P'),
        (1_000_000_000_000, 'T'),
        (1_000_000_000, 'G'),
        (1_000_000, 'M'),
    ];
    match UNITS.into_iter().find(|(unit, _)| number >= *unit) {
        None => number.to_string(),
        Some((unit, letter)) => {
            let (whole, hundredths) = (number / unit, number / (unit / 100) % 100);
            match whole {
                0..10 => format!("{whole}.{hundredths:02}{letter}"),
                10..100 => format!("{whole}.{}{letter}", hundredths / 10),
                _ => format!("{whole}{letter}"),
            }
        }
    }
}

pub(super) fn time(seconds: i64, style: &TimeStyle) -> String {
    let mut out = Vec::new();
    // A time outside of the calendar is written as a number.
    let _ = style.write(seconds, 0, &mut out);
    message(&out)
}

/// Returns the number of cells of a text.
pub(super) fn cells(text: &str) -> usize {
    text.chars().map(width).sum()
}

fn width(letter: char) -> usize {
    letter.width().unwrap_or(0)
}

/// Returns a text, cut to a number of cells with a mark at the end.
pub(super) fn fit(text: &str, room: usize, charset: Charset) -> String {
    cut(text.chars(), text, room, charset, |kept, mark| kept + mark)
}

/// Returns a text, cut to a number of cells with a mark at the beginning: the end of a path says
/// more than its beginning.
pub(super) fn fit_end(text: &str, room: usize, charset: Charset) -> String {
    cut(text.chars().rev(), text, room, charset, |kept, mark| {
        mark.to_owned() + &kept.chars().rev().collect::<String>()
    })
}

fn cut(
    letters: impl Iterator<Item = char>,
    text: &str,
    room: usize,
    charset: Charset,
    join: impl FnOnce(String, &str) -> String,
) -> String {
    if cells(text) <= room {
        return text.to_owned();
    }
    let mark = match charset {
        Charset::Utf8 => "\u{2026}",
        Charset::Ascii => "..",
    };
    let Some(room) = room.checked_sub(mark.chars().count()) else { return String::new() };
    let mut used = 0;
    let kept = letters.take_while(|letter| {
        used += width(*letter);
        used <= room
    });
    join(kept.collect(), mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_cells_at_either_end() {
        let utf8 = |text, room| (fit(text, room, Charset::Utf8), fit_end(text, room, Charset::Utf8));
        assert_eq!(utf8("abc", 3), ("abc".into(), "abc".into()));
        assert_eq!(utf8("abcd", 3), ("ab\u{2026}".into(), "\u{2026}cd".into()));
        assert_eq!(utf8("日本語", 4), ("日\u{2026}".into(), "\u{2026}語".into()));
        assert_eq!(utf8("abc", 0), (String::new(), String::new()));
        assert_eq!(fit("abcd", 3, Charset::Ascii), "a..");
        assert_eq!(fit("abcd", 1, Charset::Ascii), "");
    }

    #[test]
    fn numbers_are_short() {
        let human = |bytes| size(bytes, BlockSize::HUMAN);
        assert_eq!([0, 1, 1023, 1 << 20, u64::MAX - 1].map(human), ["0", "1", "1023", "1.0M", "16E"]);
        assert_eq!([1000, 2_500_000].map(|bytes| size(bytes, BlockSize::SI)), ["1.0k", "2.5M"]);
        let grown = |bytes| growth(bytes, BlockSize::HUMAN);
        assert_eq!([0, 2048, -2048, i64::MIN].map(grown), ["0", "+2.0K", "-2.0K", "-8.0E"]);
        assert_eq!([0, 999_999, 1_000_000, 1_999_999].map(count), ["0", "999999", "1.00M", "1.99M"]);
        assert_eq!([12_345_678, 123_456_789, u64::MAX].map(count), ["12.3M", "123M", "18.4E"]);
    }

    #[test]
    fn no_control_character_is_left() {
        let hostile = b"a\x1b[2J\nb\t\0\x07\xff\xc2\x9b".as_slice();
        for text in [name(hostile, Charset::Utf8), name(hostile, Charset::Ascii), message(hostile)] {
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }
}
