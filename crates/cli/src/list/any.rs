//! A listing in no order: each worker keeps the lines of what it finds until there is enough to write, and writes them itself.

use std::sync::Arc;

use fathom_walk::{
    Below, Descend, Enter, Entry, Failure, Gather, Meta, Names, NextRoot, Node, Opened, Operation, Roots,
};

use super::operands::Operands;
use super::plan::{self, Lines, Next, Plan, Problem};
use super::report::{FULL_BYTES, Report};
use super::vcs;

/// The workers' side.
pub(crate) struct Teller {
    pub(crate) plan: Arc<Plan>,
    pub(crate) report: Arc<Report>,
}

impl Gather for Teller {
    type Local = Lines;

    fn opened(&self, dir: Opened<'_>) -> usize {
        let bytes = self.plan.opened(&dir);
        vcs::problems_of(dir.node).iter().for_each(|problem| self.report.problem(problem));
        bytes
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        self.plan.select(dir, names);
    }

    fn enter(&self, lines: &mut Lines, enter: Enter<'_>) -> Descend {
        self.plan.enter(&enter, lines).0
    }

    fn entries<'a>(
        &self,
        lines: &mut Lines,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        below: &mut Below<'_, '_>,
    ) {
        for entry in entries {
            match self.plan.entry(&entry, dir, lines) {
                Next::Nothing => {}
                Next::Descend => below.descend(&entry),
                Next::Problem(problem) => self.report.problem(&problem),
            }
            if lines.text.len() >= FULL_BYTES {
                self.flush(lines);
            }
        }
    }

    fn failed(&self, lines: &mut Lines, Failure { node, operation, errno, .. }: Failure<'_>) {
        let problem = match operation {
            Operation::Access if node.parent().is_none() => {
                self.plan.root_file(node.name().to_bytes(), Err(errno), lines).err()
            }
            Operation::Access => Some(Problem::Access(plan::path(node), errno)),
            Operation::Open | Operation::Read | Operation::Reopen => {
                Some(Problem::Read(plan::path(node), errno))
            }
            Operation::Descend => Some(Problem::Loop(plan::path(node))),
            // `Plan::entry` sees it too: a link that leads nowhere stands for itself there.
            Operation::Stat => None,
        };
        problem.into_iter().for_each(|problem| self.report.problem(&problem));
    }

    fn root_file(&self, lines: &mut Lines, root: &Arc<Node>, meta: &Meta) {
        if let Err(problem) = self.plan.root_file(root.name().to_bytes(), Ok(*meta), lines) {
            self.report.problem(&problem);
        }
    }

    fn flush(&self, lines: &mut Lines) {
        self.report.write(&lines.text, std::mem::take(&mut lines.count));
        lines.text.clear();
    }
}

/// The calling thread's side.
pub(crate) struct Leader<'a> {
    pub(crate) operands: Operands,
    pub(crate) report: &'a Report,
}

impl Roots for Leader<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.operands.next()
    }

    fn stopped(&mut self) -> bool {
        self.report.is_stopped()
    }
}
