//! A listing in traversal order: the workers format lines, and the calling thread writes them in
//! order.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fathom_walk::{Consume, Descend, Emit, Enter, Entry, Errno, Meta, Names, NextRoot, Node, Opened, Visit};

use super::operands::RootList;
use super::plan::{self, LineBuffer, ListProblem, NextStep, Plan};
use super::report::ListReport;
use super::vcs;
use crate::shared::output::FULL_BYTES;

/// An item that the workers send to the consumer: the lines of consecutive entries, or a problem.
pub(crate) enum ListItem {
    Lines(Bytes, u64),
    Problem(ListProblem),
}

/// The visitor on the walk's workers.
pub(crate) struct OrderedVisitor(pub(crate) Arc<Plan>);

/// The size of one allocation for lines.
const CHUNK_BYTES: usize = 16 * 1024;

/// The line buffer of a worker thread. The consumer frees the lines on another thread, and each
/// freed allocation makes both threads contend for the allocator's lock. So the lines of many
/// directories share one allocation.
#[derive(Default)]
struct WorkerBuffer {
    lines: LineBuffer,
    chunk: BytesMut,
}

impl WorkerBuffer {
    fn emit_lines(&mut self, emit: &mut Emit<'_, ListItem>) {
        let LineBuffer { text, count, .. } = &mut self.lines;
        if *count == 0 {
            return;
        }
        if text.len() > self.chunk.capacity() {
            self.chunk = BytesMut::with_capacity(text.len().max(CHUNK_BYTES));
        }
        self.chunk.extend_from_slice(text);
        text.clear();
        emit.item(ListItem::Lines(self.chunk.split().freeze(), std::mem::take(count)));
    }
}

thread_local! {
    static WORKER_BUFFER: RefCell<WorkerBuffer> = RefCell::default();
}

impl Visit for OrderedVisitor {
    type Item = ListItem;

    fn opened(&self, dir: Opened<'_>) -> usize {
        self.0.opened(&dir)
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        self.0.select(dir, names);
    }

    fn entries<'a>(
        &self,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, ListItem>,
    ) {
        WORKER_BUFFER.with_borrow_mut(|buffer| {
            for entry in entries {
                match self.0.entry(&entry, dir, &mut buffer.lines) {
                    NextStep::Nothing => {}
                    NextStep::Descend => {
                        buffer.emit_lines(emit);
                        emit.descend(&entry);
                    }
                    NextStep::Problem(problem) => {
                        buffer.emit_lines(emit);
                        emit.item(ListItem::Problem(*problem));
                    }
                }
            }
            buffer.emit_lines(emit);
        });
    }

    fn weight(item: &ListItem) -> usize {
        match item {
            ListItem::Lines(lines, _) => lines.len(),
            ListItem::Problem(problem) => problem.heap_bytes(),
        }
    }
}

/// The consumer on the calling thread.
pub(crate) struct OrderedConsumer<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) operands: RootList,
    pub(crate) report: &'a ListReport,
    pub(crate) lines: LineBuffer,
    /// The path of the current directory, and for each directory on the stack the length of the
    /// path before it was entered.
    pub(crate) path: Vec<u8>,
    pub(crate) lens: Vec<usize>,
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

impl Consume<ListItem> for OrderedConsumer<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.operands.next()
    }

    fn root_file(&mut self, root: usize, meta: Result<Meta, Errno>) {
        let path = self.operands.path(root).to_owned();
        if let Err(problem) = self.plan.root_file(&path, meta, &mut self.lines) {
            self.print_error(&problem);
        }
    }

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        let (descend, problem) = self.plan.enter(&enter, &mut self.lines);
        problem.into_iter().for_each(|problem| self.print_error(&problem));
        if descend == Descend::Yes {
            vcs::problems_of(enter.node).iter().for_each(|problem| self.print_error(problem));
            self.lens.push(self.path.len());
            if self.lens.len() > 1 && self.path.last() != Some(&b'/') {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(enter.node.name().to_bytes());
        }
        descend
    }

    fn lost(&mut self, node: &Node, errno: Errno) {
        self.print_error(&ListProblem::Access(plan::path(node), errno));
    }

    fn item(&mut self, item: ListItem) {
        match item {
            ListItem::Lines(text, count) => {
                self.lines.count += count;
                self.lines.text.extend_from_slice(&text);
                if self.lines.text.len() >= FULL_BYTES {
                    self.flush();
                }
            }
            ListItem::Problem(problem) => self.print_error(&problem),
        }
    }

    fn leave(&mut self, error: Option<Errno>) {
        if let Some(errno) = error {
            self.print_error(&ListProblem::Read(self.path.clone(), errno));
        }
        self.path.truncate(self.lens.pop().unwrap_or(0));
    }

    fn idle(&mut self) {
        self.flush();
    }

    fn stopped(&mut self) -> bool {
        self.report.is_stopped()
    }
}
