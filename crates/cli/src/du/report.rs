//! The output of a run: lines through a view to standard output, problems to standard error, both
//! in traversal order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_du::problem::Problem;
use fathom_du::scan::{Line, Operand, Report, ScanOutcome};

use super::args::Invocation;
use super::operands::OperandReader;
use super::view::View;
use crate::shared::output::{self, Output};
use crate::shared::progress::ProgressMeter;

/// The report of a run.
pub(crate) struct DuReporter<'r, V: ?Sized> {
    invocation: &'r Invocation,
    operands: OperandReader,
    view: &'r mut V,
    meter: &'r ProgressMeter,
    stop: &'r AtomicBool,
    out: Output,
    failed: bool,
    problems: BTreeMap<&'static str, u64>,
}

impl<'r, V: View + ?Sized> DuReporter<'r, V> {
    pub(crate) fn new(
        invocation: &'r Invocation,
        operands: OperandReader,
        view: &'r mut V,
        meter: &'r ProgressMeter,
        stop: &'r AtomicBool,
    ) -> Self {
        let (out, problems) = (Output::with_quoted_names(), BTreeMap::new());
        Self { invocation, operands, view, meter, stop, out, failed: false, problems }
    }

    /// Prints a message on standard error, behind all output before it.
    pub(crate) fn print_error(&mut self, message: &[u8]) {
        self.out.flush();
        self.meter.clear();
        output::write_stderr(&[&self.invocation.name[..], b": ", message, b"\n"].concat());
    }

    /// Returns the number of problems of each kind.
    pub(crate) fn problems(&self) -> &BTreeMap<&'static str, u64> {
        &self.problems
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn finish_view(&mut self, outcome: &ScanOutcome, total: bool) {
        self.view.finish(outcome, total, &mut self.out);
        self.warn();
    }

    /// Flushes standard output. Returns the exit status.
    pub(crate) fn finish(self) -> u8 {
        let name = String::from_utf8_lossy(&self.invocation.name);
        self.out.finish(&name).max(u8::from(self.failed))
    }

    fn warn(&mut self) {
        while let Some(warning) = self.view.warning() {
            self.print_error(&warning);
        }
    }

    fn count(&mut self, kind: &'static str) {
        self.failed = true;
        *self.problems.entry(kind).or_default() += 1;
    }
}

impl<V: View + ?Sized> Report for DuReporter<'_, V> {
    fn next_operand(&mut self, wait: bool) -> Operand {
        self.operands.next(wait)
    }

    fn line(&mut self, line: &Line<'_>) {
        self.view.line(line, &mut self.out);
        self.warn();
        self.out.flush_if_full();
    }

    fn problem(&mut self, problem: &Problem<'_>) {
        self.count(problem.kind());
        self.view.problem();
        self.print_error(&problem.message(self.invocation.charset));
    }

    fn message(&mut self, message: &[u8]) {
        self.count("bad operand");
        self.view.problem();
        self.print_error(message);
    }

    fn idle(&mut self) {
        self.out.flush();
    }

    fn stopped(&mut self) -> bool {
        self.is_interrupted() || self.out.has_failed()
    }

    fn wants_metas(&self) -> bool {
        self.view.wants_metas()
    }
}
