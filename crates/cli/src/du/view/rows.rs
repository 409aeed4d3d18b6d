//! Views that process all lines and then show a few rows. Owns their common parts: the end of JSON
//! output, the count of errors, warnings. The individual views select the rows.

use fathom_du::scan::{Line, ScanOutcome};

use super::View;
use super::figures::FigureFormat;
use super::json;
use crate::shared::output::Output;
use crate::shared::screen::Screen;

/// A selection of rows from all lines of a run.
pub(crate) trait Rows {
    /// Examines a line.
    fn add(&mut self, line: &Line<'_>, figures: &FigureFormat);

    /// Returns whether lines of files carry metadata. `json` tells whether the output is JSON.
    fn wants_metas(&self, json: bool) -> bool;

    /// Writes the rows as text.
    fn write_text(&mut self, end: &mut FinishedRun<'_>, out: &mut Output);

    /// Writes the rows as JSON objects, one per line.
    fn write_json(&mut self, end: &mut FinishedRun<'_>, out: &mut Output);
}

/// The result of a run, with everything needed to show it.
pub(crate) struct FinishedRun<'v> {
    /// The result of the run.
    pub(crate) outcome: &'v ScanOutcome,
    /// Whether a row with the total of all operands was requested.
    pub(crate) total: bool,
    /// The format of numbers.
    pub(crate) figures: &'v mut FigureFormat,
    /// The properties of standard output.
    pub(crate) screen: &'v Screen,
}

/// The view of a selection of rows.
pub(crate) struct RowsView<R> {
    rows: R,
    figures: FigureFormat,
    screen: Screen,
    json: bool,
    errors: u64,
}

impl<R: Rows> RowsView<R> {
    pub(crate) fn new(rows: R, figures: FigureFormat, screen: Screen, json: bool) -> Self {
        Self { rows, figures, screen, json, errors: 0 }
    }
}

impl<R: Rows> View for RowsView<R> {
    fn line(&mut self, line: &Line<'_>, _out: &mut Output) {
        self.rows.add(line, &self.figures);
    }

    fn finish(&mut self, outcome: &ScanOutcome, total: bool, out: &mut Output) {
        let (figures, screen) = (&mut self.figures, &self.screen);
        let mut end = FinishedRun { outcome, total, figures, screen };
        if self.json {
            self.rows.write_json(&mut end, out);
            json::write_end(outcome, self.errors, &mut self.figures, out.buffer());
        } else {
            self.rows.write_text(&mut end, out);
        }
    }

    fn problem(&mut self) {
        self.errors += 1;
    }

    fn warning(&mut self) -> Option<Vec<u8>> {
        self.figures.warning()
    }

    fn wants_metas(&self) -> bool {
        self.rows.wants_metas(self.json)
    }
}
