//! An unordered listing: each worker collects the lines of its entries and writes them itself when
//! its buffer is full.

use std::convert::Infallible;
use std::sync::Arc;

use fathom_walk::{
    Descend, Emit, Enter, Entry, Failure, Meta, Names, NextRoot, Node, Opened, RootSource, UnorderedVisitor,
    Visitor,
};

use super::operands::RootList;
use super::plan::{LineBuffer, NextStep, Plan};
use super::report::ListReport;
use super::vcs;
use crate::shared::output::FULL_BYTES;

/// The visitor on the walk's workers.
pub(crate) struct AnyOrderVisitor {
    pub(crate) plan: Arc<Plan>,
    pub(crate) report: Arc<ListReport>,
}

impl Visitor for AnyOrderVisitor {
    type Item = Infallible;
    type Local = LineBuffer;

    fn opened(&self, dir: Opened<'_>) -> usize {
        let bytes = self.plan.opened(&dir);
        vcs::problems_of(dir.node).iter().for_each(|problem| self.report.problem(problem));
        bytes
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        self.plan.select(dir, names);
    }

    fn entries<'a>(
        &self,
        lines: &mut LineBuffer,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        for entry in entries {
            match self.plan.entry(&entry, dir, lines) {
                NextStep::Nothing => {}
                NextStep::Descend => emit.descend(&entry),
                NextStep::Failed(errno) => emit.failed(&entry, errno),
                NextStep::FailedDescend(errno) => {
                    emit.failed(&entry, errno);
                    emit.descend(&entry);
                }
            }
            if lines.text.len() >= FULL_BYTES {
                self.flush(lines);
            }
        }
    }
}

impl UnorderedVisitor for AnyOrderVisitor {
    fn enter(&self, lines: &mut LineBuffer, enter: Enter<'_>) -> Descend {
        self.plan.enter(&enter, lines).unwrap_or_else(|problem| {
            self.report.problem(&problem);
            Descend::No
        })
    }

    fn failed(&self, lines: &mut LineBuffer, failure: Failure<'_>) {
        if let Some(problem) = self.plan.failed(&failure, lines) {
            self.report.problem(&problem);
        }
    }

    fn root_file(&self, lines: &mut LineBuffer, root: &Arc<Node>, meta: &Meta) {
        if let Err(problem) = self.plan.root_file(root.name().to_bytes(), Ok(*meta), lines) {
            self.report.problem(&problem);
        }
    }

    fn flush(&self, lines: &mut LineBuffer) {
        self.report.write(&lines.text, std::mem::take(&mut lines.count));
        lines.text.clear();
    }
}

/// The supplier of roots, on the calling thread.
pub(crate) struct RootSupplier<'a> {
    pub(crate) operands: RootList,
    pub(crate) report: &'a ListReport,
}

impl RootSource for RootSupplier<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.operands.next()
    }

    fn stopped(&mut self) -> bool {
        self.report.is_stopped()
    }
}
