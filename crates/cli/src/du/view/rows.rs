//! Views that see all lines first and then show a few rows. Owns what they have in common: the end of JSON output,
//! the count of errors, warnings. Which rows there are is each view's own.

use fathom_du::scan::{Line, Outcome};

use super::View;
use super::figures::Figures;
use super::json;
use super::screen::Screen;
use crate::output::Output;

/// Rows picked from all lines of a run.
pub(crate) trait Rows {
    /// Looks at a line.
    fn add(&mut self, line: &Line<'_>, figures: &Figures);

    /// Whether lines of files are to carry their metadata; `json` is whether rows become JSON.
    fn wants_metas(&self, json: bool) -> bool;

    /// Writes the rows as text.
    fn write_text(&mut self, end: &mut End<'_>, out: &mut Output);

    /// Writes the rows as JSON objects, one a line.
    fn write_json(&mut self, end: &mut End<'_>, out: &mut Output);
}

/// A run that is over, and what it takes to show it.
pub(crate) struct End<'v> {
    /// How the run went.
    pub(crate) outcome: &'v Outcome,
    /// Whether a row for all operands together was asked for.
    pub(crate) total: bool,
    /// How numbers look.
    pub(crate) figures: &'v mut Figures,
    /// Where rows are shown.
    pub(crate) screen: &'v Screen,
}

/// The view of such rows.
pub(crate) struct Picked<R> {
    rows: R,
    figures: Figures,
    screen: Screen,
    json: bool,
    errors: u64,
}

impl<R: Rows> Picked<R> {
    pub(crate) fn new(rows: R, figures: Figures, screen: Screen, json: bool) -> Self {
        Self { rows, figures, screen, json, errors: 0 }
    }
}

impl<R: Rows> View for Picked<R> {
    fn line(&mut self, line: &Line<'_>, _out: &mut Output) {
        self.rows.add(line, &self.figures);
    }

    fn finish(&mut self, outcome: &Outcome, total: bool, out: &mut Output) {
        let (figures, screen) = (&mut self.figures, &self.screen);
        let mut end = End { outcome, total, figures, screen };
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
