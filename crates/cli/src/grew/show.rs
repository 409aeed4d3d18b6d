//! The output formats of growth: text and JSON.

use std::path::PathBuf;

use fathom_questions::diff::Sides;
use fathom_questions::top::GroupKey;
use fathom_text::human::BlockSize;
use fathom_text::time::{TimeStyle, Zone};

use super::args::GrewBy;
use super::measure::{GrowthLine, GrowthMeasure};
use crate::shared::json::JsonObject;
use crate::shared::locale::env;
use crate::shared::output::Output;
use crate::shared::screen::Screen;
use crate::top::show::{label, write_key};

/// Writes the summary and a line for each row.
pub(super) fn text(measure: &GrowthMeasure, screen: &Screen, out: &mut Output) {
    write_summary(measure, out.buffer());
    if !measure.rows.is_empty() {
        let about = match measure.by {
            GrewBy::Dir => "directory",
            GrewBy::Owner => "owner",
            GrewBy::Ext => "ext",
            GrewBy::Type => "type",
        };
        screen.write_header(&["usage", "per day", "entries", about], out.buffer());
    }
    for row in &measure.rows {
        let buffer = out.buffer();
        buffer.extend_from_slice(if row.complete { b"" } else { b"~" });
        write_growth(row.allocated, buffer);
        buffer.push(b'\t');
        match measure.per_day(row.allocated) {
            Some(rate) => write_growth(rate as i64, buffer),
            None => buffer.push(b'-'),
        }
        buffer.extend_from_slice(format!("\t{:+}\t", row.entries).as_bytes());
        buffer.extend_from_slice(&label(row.key, &row.text, screen));
        buffer.push(b'\n');
        out.flush_if_full();
    }
}

/// Writes a number of bytes with its sign.
fn write_growth(bytes: i64, out: &mut Vec<u8>) {
    out.push(if bytes < 0 { b'-' } else { b'+' });
    BlockSize::HUMAN.write(bytes.unsigned_abs(), out);
}

/// Writes the time between the scans, the growth of everything, and until when there is room.
fn write_summary(measure: &GrowthMeasure, out: &mut Vec<u8>) {
    let times = TimeStyle::parse(b"long-iso", Zone::from_env(env)).unwrap_or_default();
    // A time out of range is written as a number.
    let _ = times.write(measure.times.old, 0, out);
    out.extend_from_slice(b" to ");
    let _ = times.write(measure.times.new, 0, out);
    out.extend_from_slice(format!(", {}: ", span(measure.days())).as_bytes());
    write_growth(measure.total.allocated, out);
    if let Some(rate) = measure.per_day(measure.total.allocated) {
        out.extend_from_slice(b", ");
        write_growth(rate as i64, out);
        out.extend_from_slice(b" per day");
    }
    if let Ok(space) = &measure.space {
        out.extend_from_slice(b"; ");
        BlockSize::HUMAN.write(space.available, out);
        out.extend_from_slice(b" free");
    }
    if let Some(days) = measure.days_until_full() {
        let days = if days < 10.0 { format!("{days:.1}") } else { format!("{days:.0}") };
        out.extend_from_slice(format!(", full in {days} days").as_bytes());
    }
    out.push(b'\n');
}

/// Returns a number of days in words, with a unit of which there is at least one.
fn span(days: f64) -> String {
    match days * 24.0 {
        24.0.. => format!("{days:.1} days"),
        hours @ 1.0.. => format!("{hours:.1} hours"),
        hours => format!("{:.0} minutes", hours * 60.0),
    }
}

/// Writes JSON objects.
pub(super) fn json(measure: &GrowthMeasure, paths: &Sides<PathBuf>, out: &mut Output) {
    for row in &measure.rows {
        let mut object = JsonObject::new(out.buffer());
        write_key(row.key, &row.text, measure.by.kind(), &mut object);
        write_numbers(row, &mut object);
        match measure.per_day(row.allocated) {
            Some(rate) => object.signed("bytes_per_day", rate as i64),
            None => object.null("bytes_per_day"),
        }
        if row.key == GroupKey::Path {
            object.flag("complete", row.complete);
        }
        object.end();
        out.flush_if_full();
    }
    let mut object = JsonObject::new(out.buffer());
    for (name, path) in [("old", &paths.old), ("new", &paths.new)] {
        object.text(name, path.as_os_str().as_encoded_bytes());
    }
    object.signed("start", measure.times.old);
    object.signed("end", measure.times.new);
    thousandths("days", Some(measure.days()), &mut object);
    object.nested("total", |total| write_numbers(&measure.total, total));
    match &measure.space {
        Ok(space) => object.number("available", space.available),
        Err(_) => object.null("available"),
    }
    thousandths("days_until_full", measure.days_until_full(), &mut object);
    object.flag("complete", measure.complete);
    object.end();
}

fn write_numbers(row: &GrowthLine, object: &mut JsonObject<'_>) {
    object.signed("bytes", row.allocated);
    object.signed("apparent", row.apparent);
    object.signed("entries", row.entries);
}

/// Writes a number with three decimals; null if it is unknown or negative.
fn thousandths(name: &str, value: Option<f64>, object: &mut JsonObject<'_>) {
    match value.filter(|value| *value >= 0.0) {
        Some(value) => object.per_mille(name, (value * 1000.0).round() as u64),
        None => object.null(name),
    }
}
