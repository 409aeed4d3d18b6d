//! An unordered listing: each worker collects the lines of its entries and writes them itself when
//! its buffer is full.

use std::sync::Arc;

use fathom_walk::{
    Below, Descend, Enter, Entry, Failure, Gather, Meta, Names, NextRoot, Node, Opened, Operation, Roots,
};

use super::operands::RootList;
use super::plan::{self, LineBuffer, ListProblem, NextStep, Plan};
use super::report::ListReport;
use super::vcs;
use crate::shared::output::FULL_BYTES;

/// The visitor on the walk's workers.
pub(crate) struct UnorderedVisitor {
    pub(crate) plan: Arc<Plan>,
    pub(crate) report: Arc<ListReport>,
}

impl Gather for UnorderedVisitor {
    type Local = LineBuffer;

    fn opened(&self, dir: Opened<'_>) -> usize {
        let bytes = self.plan.opened(&dir);
        vcs::problems_of(dir.node).iter().for_each(|problem| self.report.problem(problem));
        bytes
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        self.plan.select(dir, names);
    }

    fn enter(&self, lines: &mut LineBuffer, enter: Enter<'_>) -> Descend {
        self.plan.enter(&enter, lines).0
    }

    fn entries<'a>(
        &self,
        lines: &mut LineBuffer,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        below: &mut Below<'_, '_>,
    ) {
        for entry in entries {
            match self.plan.entry(&entry, dir, lines) {
                NextStep::Nothing => {}
                NextStep::Descend => below.descend(&entry),
                NextStep::Problem(problem) => self.report.problem(&problem),
            }
            if lines.text.len() >= FULL_BYTES {
                self.flush(lines);
            }
        }
    }

    fn failed(&self, lines: &mut LineBuffer, Failure { node, operation, errno, .. }: Failure<'_>) {
        let problem = match operation {
            Operation::Access if node.parent().is_none() => {
                self.plan.root_file(node.name().to_bytes(), Err(errno), lines).err()
            }
            Operation::Access => Some(ListProblem::Access(plan::path(node), errno)),
            Operation::Open | Operation::Read | Operation::Reopen => {
                Some(ListProblem::Read(plan::path(node), errno))
            }
            Operation::Descend => Some(ListProblem::Loop(plan::path(node))),
            // `Plan::entry` handles this failure: it lists a dangling link as itself.
            Operation::Stat => None,
        };
        problem.into_iter().for_each(|problem| self.report.problem(&problem));
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

impl Roots for RootSupplier<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.operands.next()
    }

    fn stopped(&mut self) -> bool {
        self.report.is_stopped()
    }
}
