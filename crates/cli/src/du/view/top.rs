//! `--top`: the largest entries with their types and paths.

use std::num::NonZeroU64;

use fathom_du::options::Measure;
use fathom_du::scan::Line;
use fathom_du::top;
use fathom_inventory::type_letter;

use super::figures::FigureFormat;
use super::rows::{FinishedRun, Rows};
use crate::shared::json::JsonObject;
use crate::shared::output::Output;

/// The largest entries.
#[derive(Debug)]
pub(crate) struct TopRows {
    largest: top::Top,
}

impl TopRows {
    pub(crate) fn new(measure: Measure, count: NonZeroU64) -> Self {
        Self { largest: top::Top::new(measure, usize::try_from(count.get()).unwrap_or(usize::MAX)) }
    }
}

impl Rows for TopRows {
    fn add(&mut self, line: &Line<'_>, _figures: &FigureFormat) {
        self.largest.add(line);
    }

    fn wants_metas(&self, _json: bool) -> bool {
        true
    }

    fn write_text(&mut self, end: &mut FinishedRun<'_>, out: &mut Output) {
        let terminator = end.figures.terminator;
        end.figures.write_header(&end.outcome.total, &["type", "path"], end.screen, out.buffer());
        for entry in self.largest.take_sorted() {
            let buffer = out.buffer();
            end.figures.write_columns(&entry.totals, buffer);
            buffer.extend_from_slice(&[type_letter(entry.file_type), b'\t']);
            buffer.extend_from_slice(&end.screen.name(&entry.path));
            buffer.push(terminator);
            out.flush_if_full();
        }
        if end.total {
            end.figures.write_columns(&end.outcome.total, out.buffer());
            out.buffer().extend_from_slice(b"-\ttotal");
            out.buffer().push(terminator);
        }
    }

    fn write_json(&mut self, end: &mut FinishedRun<'_>, out: &mut Output) {
        for entry in self.largest.take_sorted() {
            let mut object = JsonObject::new(out.buffer());
            object.text("path", &entry.path);
            object.number("depth", entry.depth as u64);
            object.text("type", entry.file_type.name().as_bytes());
            end.figures.write_members(&entry.totals, &mut object);
            object.end();
            out.flush_if_full();
        }
    }
}
