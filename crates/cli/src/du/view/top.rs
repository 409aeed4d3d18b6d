//! `--top`: the largest entries, each with its type and path.

use std::num::NonZeroU64;

use fathom_du::options::Measure;
use fathom_du::scan::Line;
use fathom_du::top;
use fathom_inventory::type_letter;

use super::figures::{Figures, type_word};
use super::json::Object;
use super::rows::{End, Rows};
use crate::output::Output;

/// The largest entries.
#[derive(Debug)]
pub(crate) struct Top {
    largest: top::Top,
}

impl Top {
    pub(crate) fn new(measure: Measure, count: NonZeroU64) -> Self {
        Self { largest: top::Top::new(measure, usize::try_from(count.get()).unwrap_or(usize::MAX)) }
    }
}

impl Rows for Top {
    fn add(&mut self, line: &Line<'_>, _figures: &Figures) {
        self.largest.add(line);
    }

    fn wants_metas(&self, _json: bool) -> bool {
        true
    }

    fn write_text(&mut self, end: &mut End<'_>, out: &mut Output) {
        let terminator = end.figures.terminator;
        for entry in self.largest.take_sorted() {
            let buffer = out.buffer();
            end.figures.write_columns(&entry.totals, buffer);
            buffer.extend_from_slice(&[type_letter(entry.file_type), b'\t']);
            buffer.extend_from_slice(&end.screen.name(&entry.path));
            buffer.push(terminator);
            out.relieve();
        }
        if end.total {
            end.figures.write_columns(&end.outcome.total, out.buffer());
            out.buffer().extend_from_slice(b"-\ttotal");
            out.buffer().push(terminator);
        }
    }

    fn write_json(&mut self, end: &mut End<'_>, out: &mut Output) {
        for entry in self.largest.take_sorted() {
            let mut object = Object::new(out.buffer());
            object.text("path", &entry.path);
            object.number("depth", entry.depth as u64);
            object.text("type", type_word(entry.file_type).as_bytes());
            end.figures.write_members(&entry.totals, &mut object);
            object.end();
            out.relieve();
        }
    }
}
