//! JSON Lines: an object for each line, and a last one with the total and the completeness of the
//! result.

use fathom_du::scan::{Line, ScanOutcome};
use fathom_du::top::file_type;

use super::View;
use super::figures::FigureFormat;
use crate::shared::json::JsonObject;
use crate::shared::output::Output;

/// The lines of du as JSON.
#[derive(Debug)]
pub(crate) struct JsonLinesView {
    /// Whether files have lines. Their types require metadata.
    files: bool,
    figures: FigureFormat,
    errors: u64,
}

impl JsonLinesView {
    pub(crate) fn new(files: bool, figures: FigureFormat) -> Self {
        Self { files, figures, errors: 0 }
    }
}

impl View for JsonLinesView {
    fn line(&mut self, line: &Line<'_>, out: &mut Output) {
        let mut object = JsonObject::new(out.buffer());
        object.text("path", line.path);
        object.number("depth", line.depth as u64);
        object.text("type", file_type(line).name().as_bytes());
        self.figures.write_members(line.totals, &mut object);
        object.end();
    }

    fn finish(&mut self, outcome: &ScanOutcome, _total: bool, out: &mut Output) {
        write_end(outcome, self.errors, &mut self.figures, out.buffer());
    }

    fn problem(&mut self) {
        self.errors += 1;
    }

    fn warning(&mut self) -> Option<Vec<u8>> {
        self.figures.warning()
    }

    fn wants_metas(&self) -> bool {
        self.files
    }
}

/// Writes the last object.
pub(crate) fn write_end(outcome: &ScanOutcome, errors: u64, figures: &mut FigureFormat, out: &mut Vec<u8>) {
    let mut object = JsonObject::new(out);
    object.nested("total", |total| figures.write_members(&outcome.total, total));
    object.flag("complete", outcome.summary.complete);
    object.number("errors", errors);
    object.end();
}
