//! What a run says, where: lines through a view to standard output, problems to standard error, in one order.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_du::problem::Problem;
use fathom_du::scan::{Line, Operand, Outcome, Report};

use super::args::Caller;
use super::operands::Source;
use super::progress::Meter;
use super::view::View;
use crate::output::{self, Output};

/// The report of a run.
pub(crate) struct Reporter<'r, V: ?Sized> {
    caller: &'r Caller,
    source: Source,
    view: &'r mut V,
    meter: &'r Meter,
    stop: &'r AtomicBool,
    out: Output,
    failed: bool,
    problems: BTreeMap<&'static str, u64>,
}

impl<'r, V: View + ?Sized> Reporter<'r, V> {
    pub(crate) fn new(
        caller: &'r Caller,
        source: Source,
        view: &'r mut V,
        meter: &'r Meter,
        stop: &'r AtomicBool,
    ) -> Self {
        let (out, problems) = (Output::of_quoted(), BTreeMap::new());
        Self { caller, source, view, meter, stop, out, failed: false, problems }
    }

    /// Prints a message, after everything that came before it.
    pub(crate) fn complain(&mut self, message: &[u8]) {
        self.out.flush();
        self.meter.clear();
        output::complain(&[&self.caller.name[..], b": ", message, b"\n"].concat());
    }

    /// How many problems there were of which kind.
    pub(crate) fn problems(&self) -> &BTreeMap<&'static str, u64> {
        &self.problems
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn finish_view(&mut self, outcome: &Outcome, total: bool) {
        self.view.finish(outcome, total, &mut self.out);
        self.warn();
    }

    /// Writes what is left; the exit status.
    pub(crate) fn finish(self) -> u8 {
        let name = String::from_utf8_lossy(&self.caller.name);
        self.out.finish(&name).max(u8::from(self.failed))
    }

    fn warn(&mut self) {
        while let Some(warning) = self.view.warning() {
            self.complain(&warning);
        }
    }

    fn count(&mut self, kind: &'static str) {
        self.failed = true;
        *self.problems.entry(kind).or_default() += 1;
    }
}

impl<V: View + ?Sized> Report for Reporter<'_, V> {
    fn next_operand(&mut self, wait: bool) -> Operand {
        self.source.next(wait)
    }

    fn line(&mut self, line: &Line<'_>) {
        self.view.line(line, &mut self.out);
        self.warn();
        self.out.relieve();
    }

    fn problem(&mut self, problem: &Problem<'_>) {
        self.count(problem.kind());
        self.view.problem();
        self.complain(&problem.message(self.caller.charset));
    }

    fn message(&mut self, message: &[u8]) {
        self.count("bad operand");
        self.view.problem();
        self.complain(message);
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
