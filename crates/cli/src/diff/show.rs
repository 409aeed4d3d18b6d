//! The output formats for changes: text and JSON.

use fathom_questions::diff::{
    Change, ChangeKind, ChangedField, DiffSummary, DirGrowth, GrowthReport, InodeInfo, NumericField,
};
use fathom_text::human::BlockSize;
use fathom_text::quote::quoteaf;
use fathom_text::time::{TimeStyle, Zone};
use fathom_walk::Attributes;

use crate::shared::json::JsonObject;
use crate::shared::output::Output;
use crate::shared::screen::Screen;

/// Writes a line of text.
pub(crate) fn text(change: &Change, screen: &Screen, out: &mut Vec<u8>) {
    let sign: &[u8] = match change.kind {
        ChangeKind::Created => b"+ ",
        ChangeKind::Removed => b"- ",
        ChangeKind::Modified => b"M ",
        ChangeKind::Renamed => b"R ",
    };
    out.extend_from_slice(sign);
    if let Some(from) = &change.from {
        write_name(from, change.old.as_ref(), screen, out);
        out.extend_from_slice(b" -> ");
    }
    write_name(&change.path, change.new.as_ref().or(change.old.as_ref()), screen, out);
    if let (Some(old), Some(new)) = (&change.old, &change.new) {
        for (place, field) in change.fields().into_iter().enumerate() {
            out.extend_from_slice(if place == 0 { b": " } else { b", " });
            write_field(field, [old, new], screen, out);
        }
    }
    out.push(b'\n');
}

fn write_name(path: &[u8], facts: Option<&InodeInfo>, screen: &Screen, out: &mut Vec<u8>) {
    let is_dir = facts.is_some_and(|facts| facts.letter == b'd') && !path.ends_with(b"/");
    let slash: &[u8] = if is_dir { b"/" } else { b"" };
    out.extend_from_slice(&screen.name(&[path, slash].concat()));
}

/// Writes the name of a changed field, and its old and new value if they are short enough to be
/// useful.
fn write_field(field: ChangedField, sides: [&InodeInfo; 2], screen: &Screen, out: &mut Vec<u8>) {
    out.extend_from_slice(field.word().as_bytes());
    let value = |facts: &InodeInfo| {
        let number = |number| facts.number(number).unwrap_or(0);
        match field {
            ChangedField::Mtime | ChangedField::Ctime => None,
            ChangedField::Type => Some(vec![facts.letter]),
            ChangedField::Size => Some(number(NumericField::Size).to_string().into_bytes()),
            ChangedField::Uid => Some(number(NumericField::Uid).to_string().into_bytes()),
            ChangedField::Gid => Some(number(NumericField::Gid).to_string().into_bytes()),
            ChangedField::Mode => Some(format!("{:04o}", number(NumericField::Mode) & 0o7777).into_bytes()),
            ChangedField::Attributes => facts.attributes().map(attributes),
            ChangedField::Project => {
                facts.number(NumericField::Project).map(|number| number.to_string().into_bytes())
            }
            ChangedField::Xattrs => facts.xattrs.as_deref().map(|names| quoteaf(names, screen.charset)),
            ChangedField::Acl => {
                facts.number(NumericField::Acl).map(|acl| (acl == 1).to_string().into_bytes())
            }
            ChangedField::Target => Some(quoteaf(&facts.link, screen.charset)),
        }
    };
    if let [Some(old), Some(new)] = sides.map(value) {
        out.extend_from_slice(&[b" ", &old[..], b" -> ", &new[..]].concat());
    }
}

fn attributes(attributes: Attributes) -> Vec<u8> {
    attributes.text(&mut [0; Attributes::TEXT_BYTES_MAX]).to_vec()
}

/// A writer of changes as JSON objects.
pub(crate) struct ChangeJson {
    /// RFC 3339, in universal time.
    times: TimeStyle,
}

impl ChangeJson {
    pub(crate) fn new() -> Self {
        let times = TimeStyle::parse(b"+%Y-%m-%dT%H:%M:%S.%NZ", Zone::UTC).unwrap_or_default();
        Self { times }
    }

    pub(crate) fn write(&self, change: &Change, out: &mut Vec<u8>) {
        let mut object = JsonObject::new(out);
        object.text("change", change.kind.word().as_bytes());
        object.text("path", &change.path);
        if let Some(from) = &change.from {
            object.text("old_path", from);
        }
        if change.old.is_some() && change.new.is_some() {
            let words: Vec<_> = change.fields().into_iter().map(ChangedField::word).collect();
            object.words("fields", &words);
        }
        for (name, facts) in [("old", &change.old), ("new", &change.new)] {
            if let Some(facts) = facts {
                object.nested(name, |object| self.write_facts(facts, object));
            }
        }
        object.end();
    }

    fn write_facts(&self, facts: &InodeInfo, object: &mut JsonObject<'_>) {
        object.text("type", &[facts.letter]);
        let Some(mode) = facts.number(NumericField::Mode) else { return };
        let numbers = |numbers: &[(&str, NumericField)], object: &mut JsonObject<'_>| {
            for (name, number) in numbers {
                object.signed(name, facts.number(*number).unwrap_or(0));
            }
        };
        numbers(&[("size", NumericField::Size), ("blocks", NumericField::Blocks)], object);
        object.text("mode", format!("{:04o}", mode & 0o7777).as_bytes());
        numbers(
            &[("uid", NumericField::Uid), ("gid", NumericField::Gid), ("nlink", NumericField::Nlink)],
            object,
        );
        object.number("ino", facts.number(NumericField::Ino).unwrap_or(0).cast_unsigned());
        for (name, micros, nanos) in [
            ("mtime", NumericField::Mtime, Some(NumericField::MtimeNs)),
            ("ctime", NumericField::Ctime, Some(NumericField::CtimeNs)),
            ("btime", NumericField::Btime, None),
        ] {
            let nanos = nanos.and_then(|nanos| facts.number(nanos)).unwrap_or(0);
            self.write_time(name, facts.number(micros), nanos, object);
        }
        if let Some(found) = facts.attributes() {
            object.text("attributes", &attributes(found));
        }
        if let Some(project) = facts.number(NumericField::Project) {
            object.number("project", project.cast_unsigned());
        }
        if let Some(xattrs) = &facts.xattrs {
            object.text("xattrs", xattrs);
        }
        if let Some(acl) = facts.number(NumericField::Acl) {
            object.flag("acl", acl == 1);
        }
        if facts.letter == b'l' {
            object.text("link_target", &facts.link);
        }
    }

    fn write_time(&self, name: &str, micros: Option<i64>, nanos: i64, object: &mut JsonObject<'_>) {
        let mut text = Vec::new();
        let written = micros.is_some_and(|micros| {
            let nanos = micros.rem_euclid(1_000_000) * 1000 + nanos.clamp(0, 999);
            self.times.write(micros.div_euclid(1_000_000), nanos as u32, &mut text).is_ok()
        });
        if written { object.text(name, &text) } else { object.null(name) }
    }
}

/// Writes the last object, with the counts.
pub(crate) fn json_end(summary: &DiffSummary, complete: bool, out: &mut Vec<u8>) {
    let mut object = JsonObject::new(out);
    object.nested("total", |total| {
        for verb in ChangeKind::ALL {
            total.number(verb.word(), summary.counts[verb as usize]);
        }
    });
    object.number("unknown", summary.unknown);
    object.flag("complete", complete);
    object.end();
}

/// Writes lines about directories.
pub(crate) fn dirs(report: &GrowthReport, screen: &Screen, out: &mut Output) {
    if !report.rows.is_empty() {
        screen.write_header(&["usage", "size", "entries", "directory"], out.buffer());
    }
    for row in &report.rows {
        let buffer = out.buffer();
        buffer.extend_from_slice(if row.complete { b"" } else { b"~" });
        for bytes in [row.allocated, row.apparent] {
            buffer.push(if bytes < 0 { b'-' } else { b'+' });
            BlockSize::HUMAN.write(bytes.unsigned_abs(), buffer);
            buffer.push(b'\t');
        }
        buffer.extend_from_slice(format!("{:+}\t", row.entries).as_bytes());
        buffer.extend_from_slice(&screen.name(&row.path));
        buffer.push(b'\n');
        out.flush_if_full();
    }
}

/// Writes JSON objects about directories.
pub(crate) fn dirs_json(report: &GrowthReport, complete: bool, out: &mut Output) {
    for row in &report.rows {
        let mut object = JsonObject::new(out.buffer());
        object.text("path", &row.path);
        write_growth(row, &mut object);
        object.flag("complete", row.complete);
        object.end();
        out.flush_if_full();
    }
    let mut object = JsonObject::new(out.buffer());
    object.nested("total", |total| write_growth(&report.total, total));
    object.flag("complete", complete);
    object.end();
}

fn write_growth(growth: &DirGrowth, object: &mut JsonObject<'_>) {
    object.signed("bytes", growth.allocated);
    object.signed("apparent", growth.apparent);
    object.signed("entries", growth.entries);
}
