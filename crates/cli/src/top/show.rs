//! The output formats of a report: text and JSON.

use std::borrow::Cow;

use fathom_du::groups::TYPES;
use fathom_inventory::type_letter;
use fathom_questions::top::{AGE_LABELS, GroupKey, ReportKind, SIZE_LABELS, UsageReport, UsageSum};
use fathom_text::human::BlockSize;

use crate::shared::json::JsonObject;
use crate::shared::output::Output;
use crate::shared::screen::Screen;

/// Writes lines of text.
pub(crate) fn text(report: &UsageReport, by: ReportKind, screen: &Screen, out: &mut Output) {
    if !report.rows.is_empty() {
        screen.write_header(&["usage", "size", "entries", "share", by.word()], out.buffer());
    }
    for row in &report.rows {
        let share = per_mille(&row.sum, &report.total);
        let buffer = out.buffer();
        for bytes in [row.sum.allocated, row.sum.apparent] {
            BlockSize::HUMAN.write(bytes, buffer);
            buffer.push(b'\t');
        }
        buffer.extend_from_slice(format!("{}\t{}.{}%\t", row.sum.entries, share / 10, share % 10).as_bytes());
        buffer.extend_from_slice(&label(row.key, &row.text, screen));
        buffer.push(b'\n');
        out.flush_if_full();
    }
}

/// Writes JSON objects.
pub(crate) fn json(report: &UsageReport, by: ReportKind, complete: bool, out: &mut Output) {
    for row in &report.rows {
        let mut object = JsonObject::new(out.buffer());
        write_key(row.key, &row.text, by, &mut object);
        write_sum(&row.sum, &mut object);
        object.per_mille("share", per_mille(&row.sum, &report.total));
        object.end();
        out.flush_if_full();
    }
    let mut object = JsonObject::new(out.buffer());
    object.nested("total", |total| write_sum(&report.total, total));
    object.flag("complete", complete);
    object.end();
}

fn write_sum(sum: &UsageSum, object: &mut JsonObject<'_>) {
    object.number("bytes", sum.allocated);
    object.number("apparent", sum.apparent);
    object.number("entries", sum.entries);
}

/// Returns the share of `part` in `whole`, in thousandths, rounded.
fn per_mille(part: &UsageSum, whole: &UsageSum) -> u64 {
    let (part, whole) = (u128::from(part.allocated), u128::from(whole.allocated));
    let share = (part * 1000 + whole / 2).checked_div(whole).unwrap_or(0);
    u64::try_from(share.min(1000)).expect("not above 1000")
}

pub(crate) fn label(key: GroupKey, text: &[u8], screen: &Screen) -> Cow<'static, [u8]> {
    match key {
        GroupKey::Path | GroupKey::Extension => screen.name(text).into(),
        GroupKey::Id(id) if text.is_empty() => id.to_string().into_bytes().into(),
        GroupKey::Id(_) => screen.name(text).into(),
        GroupKey::NoExtension => b"(none)"[..].into(),
        GroupKey::Directory => b"(directory)"[..].into(),
        GroupKey::Other => b"(other)"[..].into(),
        GroupKey::Unknown => b"(unknown)"[..].into(),
        GroupKey::Age(place) => class(&AGE_LABELS, place).as_bytes().into(),
        GroupKey::Size(place) => class(&SIZE_LABELS, place).as_bytes().into(),
        GroupKey::Type(letter) => word(letter).as_bytes().into(),
        GroupKey::Depth(depth) => depth.to_string().into_bytes().into(),
    }
}

/// Writes the members that identify a row.
pub(crate) fn write_key(key: GroupKey, text: &[u8], by: ReportKind, object: &mut JsonObject<'_>) {
    if key == GroupKey::Path {
        return object.text("path", text);
    }
    object.text("by", by.word().as_bytes());
    match key {
        GroupKey::Path | GroupKey::Extension => object.text("key", text),
        GroupKey::Id(id) => {
            if text.is_empty() {
                object.null("key")
            } else {
                object.text("key", text)
            }
            object.number("id", id.into());
        }
        GroupKey::NoExtension => object.null("key"),
        GroupKey::Directory => {
            object.null("key");
            object.text("type", b"directory");
        }
        GroupKey::Other | GroupKey::Unknown => {
            object.null("key");
            object.flag(if key == GroupKey::Other { "other" } else { "unknown" }, true);
        }
        GroupKey::Age(place) => object.text("key", class(&AGE_LABELS, place).as_bytes()),
        GroupKey::Size(place) => object.text("key", class(&SIZE_LABELS, place).as_bytes()),
        GroupKey::Type(letter) => object.text("key", word(letter).as_bytes()),
        GroupKey::Depth(depth) => object.number("key", u64::try_from(depth).unwrap_or(0)),
    }
}

fn class(words: &[&'static str], place: usize) -> &'static str {
    words.get(place).copied().unwrap_or("unknown")
}

fn word(letter: u8) -> &'static str {
    TYPES.into_iter().find(|kind| type_letter(*kind) == letter).map_or("unknown", fathom_walk::FileType::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_words() {
        assert_eq!(
            ["f", "d", "U", "?"].map(|letter| word(letter.as_bytes()[0])),
            ["regular", "directory", "unknown", "unknown"]
        );
    }
}
