//! How a report looks, as text and as JSON.

use std::borrow::Cow;

use fathom_du::by::TYPES;
use fathom_inventory::top::{By, Key, Report, Row, Sum};
use fathom_inventory::type_letter;
use fathom_text::human::BlockSize;

use crate::du::view::figures::type_word;
use crate::du::view::json::Object;
use crate::du::view::screen::Screen;
use crate::output::Output;

/// Of the classes of [`fathom_inventory::top::AGES`], and of what is still to come.
const AGES: [&str; 7] = [
    "under 1 day",
    "under 7 days",
    "under 30 days",
    "under 1 year",
    "under 3 years",
    "older",
    "in the future",
];
/// Of the classes of [`fathom_inventory::top::SIZES`].
const SIZES: [&str; 10] = [
    "empty",
    "under 4 KiB",
    "under 64 KiB",
    "under 1 MiB",
    "under 16 MiB",
    "under 256 MiB",
    "under 1 GiB",
    "under 16 GiB",
    "under 1 TiB",
    "larger",
];

/// Writes lines of text.
pub(crate) fn text(report: &Report, screen: &Screen, out: &mut Output) {
    for row in &report.rows {
        let share = per_mille(&row.sum, &report.total);
        let buffer = out.buffer();
        for bytes in [row.sum.allocated, row.sum.apparent] {
            BlockSize::HUMAN.write(bytes, buffer);
            buffer.push(b'\t');
        }
        buffer.extend_from_slice(format!("{}\t{}.{}%\t", row.sum.entries, share / 10, share % 10).as_bytes());
        buffer.extend_from_slice(&label(row, screen));
        buffer.push(b'\n');
        out.relieve();
    }
}

/// Writes JSON objects.
pub(crate) fn json(report: &Report, by: By, complete: bool, out: &mut Output) {
    for row in &report.rows {
        let mut object = Object::new(out.buffer());
        write_key(row, by, &mut object);
        write_sum(&row.sum, &mut object);
        object.per_mille("share", per_mille(&row.sum, &report.total));
        object.end();
        out.relieve();
    }
    let mut object = Object::new(out.buffer());
    object.nested("total", |total| write_sum(&report.total, total));
    object.flag("complete", complete);
    object.end();
}

fn write_sum(sum: &Sum, object: &mut Object<'_>) {
    object.number("bytes", sum.allocated);
    object.number("apparent", sum.apparent);
    object.number("entries", sum.entries);
}

/// Thousandths that `part` is of `whole`, rounded.
fn per_mille(part: &Sum, whole: &Sum) -> u64 {
    let (part, whole) = (u128::from(part.allocated), u128::from(whole.allocated));
    let share = (part * 1000 + whole / 2).checked_div(whole).unwrap_or(0);
    u64::try_from(share.min(1000)).expect("not above 1000")
}

fn label<'r>(row: &'r Row, screen: &Screen) -> Cow<'r, [u8]> {
    match row.key {
        Key::Path | Key::Extension => screen.name(&row.text).into(),
        Key::Id(id) if row.text.is_empty() => id.to_string().into_bytes().into(),
        Key::Id(_) => screen.name(&row.text).into(),
        Key::NoExtension => b"(none)"[..].into(),
        Key::Directory => b"(directory)"[..].into(),
        Key::Other => b"(other)"[..].into(),
        Key::Unknown => b"(unknown)"[..].into(),
        Key::Age(place) => class(&AGES, place).as_bytes().into(),
        Key::Size(place) => class(&SIZES, place).as_bytes().into(),
        Key::Type(letter) => word(letter).as_bytes().into(),
        Key::Depth(depth) => depth.to_string().into_bytes().into(),
    }
}

/// Writes what tells a row from the others.
fn write_key(row: &Row, by: By, object: &mut Object<'_>) {
    if row.key == Key::Path {
        return object.text("path", &row.text);
    }
    object.text("by", by_word(by).as_bytes());
    match row.key {
        Key::Path | Key::Extension => object.text("key", &row.text),
        Key::Id(id) => {
            if row.text.is_empty() {
                object.null("key")
            } else {
                object.text("key", &row.text)
            }
            object.number("id", id.into());
        }
        Key::NoExtension => object.null("key"),
        Key::Directory => {
            object.null("key");
            object.text("type", b"directory");
        }
        Key::Other | Key::Unknown => {
            object.null("key");
            object.flag(if row.key == Key::Other { "other" } else { "unknown" }, true);
        }
        Key::Age(place) => object.text("key", class(&AGES, place).as_bytes()),
        Key::Size(place) => object.text("key", class(&SIZES, place).as_bytes()),
        Key::Type(letter) => object.text("key", word(letter).as_bytes()),
        Key::Depth(depth) => object.number("key", u64::try_from(depth).unwrap_or(0)),
    }
}

fn class(words: &[&'static str], place: usize) -> &'static str {
    words.get(place).copied().unwrap_or("unknown")
}

fn word(letter: u8) -> &'static str {
    TYPES.into_iter().find(|kind| type_letter(*kind) == letter).map_or("unknown", type_word)
}

fn by_word(by: By) -> &'static str {
    match by {
        By::Dir => "dir",
        By::File => "file",
        By::User => "user",
        By::Group => "group",
        By::Ext => "ext",
        By::Age => "age",
        By::Size => "size",
        By::Type => "type",
        By::Depth => "depth",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_inventory::top;

    #[test]
    fn each_class_has_words() {
        assert_eq!((AGES.len(), SIZES.len()), (top::AGES.len() + 2, top::SIZES.len() + 1));
        assert_eq!(
            ["f", "d", "U", "?"].map(|letter| word(letter.as_bytes()[0])),
            ["regular", "directory", "unknown", "unknown"]
        );
    }
}
