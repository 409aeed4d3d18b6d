//! A listing in traversal order: the workers format lines, and the calling thread writes them in
//! order.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fathom_walk::{
    Consumer, Descend, Emit, Enter, Entry, Failure, Meta, Names, NextRoot, Node, Opened, OrderedVisitor,
    RootSource, Visitor,
};

use super::operands::RootList;
use super::plan::{LineBuffer, ListProblem, NextStep, Plan};
use super::report::ListReport;
use super::vcs;
use crate::shared::output::FULL_BYTES;

/// The lines of consecutive entries and their number, which the workers send to the consumer.
pub(crate) struct FormattedLines(Bytes, u64);

/// The visitor on the walk's workers.
pub(crate) struct PathOrderVisitor(pub(crate) Arc<Plan>);

/// The size of one allocation for lines.
const CHUNK_BYTES: usize = 16 * 1024;

/// The line buffer of a worker. The consumer frees the lines on another thread, and each
/// freed allocation makes both threads contend for the allocator's lock. So the lines of many
/// directories share one allocation.
#[derive(Default)]
pub(crate) struct WorkerBuffer {
    lines: LineBuffer,
    chunk: BytesMut,
}

impl WorkerBuffer {
    fn emit_lines(&mut self, emit: &mut Emit<'_, FormattedLines>) {
        let LineBuffer { text, count, .. } = &mut self.lines;
        if *count == 0 {
            return;
        }
        if text.len() > self.chunk.capacity() {
            self.chunk = BytesMut::with_capacity(text.len().max(CHUNK_BYTES));
        }
        self.chunk.extend_from_slice(text);
        text.clear();
        emit.item(FormattedLines(self.chunk.split().freeze(), std::mem::take(count)));
    }
}

impl Visitor for PathOrderVisitor {
    type Item = FormattedLines;
    type Local = WorkerBuffer;

    fn opened(&self, dir: Opened<'_>) -> usize {
        self.0.opened(&dir)
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        self.0.select(dir, names);
    }

    fn entries<'a>(
        &self,
        buffer: &mut WorkerBuffer,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, FormattedLines>,
    ) {
        for entry in entries {
            match self.0.entry(&entry, dir, &mut buffer.lines) {
                NextStep::Nothing => {}
                NextStep::Descend => {
                    buffer.emit_lines(emit);
                    emit.descend(&entry);
                }
                NextStep::Failed(errno) => {
                    buffer.emit_lines(emit);
                    emit.failed(&entry, errno);
                }
                NextStep::FailedDescend(errno) => {
                    buffer.emit_lines(emit);
                    emit.failed(&entry, errno);
                    emit.descend(&entry);
                }
            }
        }
        buffer.emit_lines(emit);
    }
}

impl OrderedVisitor for PathOrderVisitor {
    fn weight(FormattedLines(lines, _): &FormattedLines) -> usize {
        lines.len()
    }
}

/// The consumer on the calling thread.
pub(crate) struct OrderedConsumer<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) operands: RootList,
    pub(crate) report: &'a ListReport,
    pub(crate) lines: LineBuffer,
}

impl OrderedConsumer<'_> {
    fn print_error(&mut self, problem: &ListProblem) {
        self.flush();
        self.report.problem(problem);
    }

    pub(crate) fn flush(&mut self) {
        self.report.write(&self.lines.text, std::mem::take(&mut self.lines.count));
        self.lines.text.clear();
    }
}

impl RootSource for OrderedConsumer<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.operands.next()
    }

    fn stopped(&mut self) -> bool {
        self.report.is_stopped()
    }
}

impl Consumer<FormattedLines> for OrderedConsumer<'_> {
    fn root_file(&mut self, root: &Arc<Node>, meta: &Meta) {
        if let Err(problem) = self.plan.root_file(root.name().to_bytes(), Ok(*meta), &mut self.lines) {
            self.print_error(&problem);
        }
    }

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        let descend = self.plan.enter(&enter, &mut self.lines).unwrap_or_else(|problem| {
            self.print_error(&problem);
            Descend::No
        });
        if descend == Descend::Yes {
            vcs::problems_of(enter.node).iter().for_each(|problem| self.print_error(problem));
        }
        descend
    }

    fn item(&mut self, FormattedLines(text, count): FormattedLines) {
        self.lines.count += count;
        self.lines.text.extend_from_slice(&text);
        if self.lines.text.len() >= FULL_BYTES {
            self.flush();
        }
    }

    fn failed(&mut self, failure: Failure<'_>) {
        if let Some(problem) = self.plan.failed(&failure, &mut self.lines) {
            self.print_error(&problem);
        }
    }

    fn leave(&mut self, _node: &Arc<Node>) {}

    fn idle(&mut self) {
        self.flush();
    }
}
