//! A listing in traversal order: the workers make lines, and the calling thread writes them in their turn.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fathom_walk::{Consume, Descend, Emit, Enter, Entry, Errno, Meta, Names, NextRoot, Node, Opened, Visit};

use super::operands::Operands;
use super::plan::{self, Lines, Next, Plan, Problem};
use super::report::{FULL_BYTES, Report};
use super::vcs;

/// What entries next to each other come to.
pub(crate) enum Piece {
    Lines(Bytes, u64),
    Problem(Problem),
}

/// The workers' side.
pub(crate) struct Maker(pub(crate) Arc<Plan>);

/// Bytes of lines that are allocated at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// Where a worker makes lines. What it hands on is let go of by another thread, and each allocation that is has both of them meet
/// at the allocator's lock: so lines of many directories share one.
#[derive(Default)]
struct Bench {
    lines: Lines,
    chunk: BytesMut,
}

impl Bench {
    fn hand_on(&mut self, emit: &mut Emit<'_, Piece>) {
        let Lines { text, count, .. } = &mut self.lines;
        if *count == 0 {
            return;
        }
        if text.len() > self.chunk.capacity() {
            self.chunk = BytesMut::with_capacity(text.len().max(CHUNK_BYTES));
        }
        self.chunk.extend_from_slice(text);
        text.clear();
        emit.item(Piece::Lines(self.chunk.split().freeze(), std::mem::take(count)));
    }
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::default();
}

impl Visit for Maker {
    type Item = Piece;

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
        emit: &mut Emit<'_, Piece>,
    ) {
        BENCH.with_borrow_mut(|bench| {
            for entry in entries {
                match self.0.entry(&entry, dir, &mut bench.lines) {
                    Next::Nothing => {}
                    Next::Descend => {
                        bench.hand_on(emit);
                        emit.descend(&entry);
                    }
                    Next::Problem(problem) => {
                        bench.hand_on(emit);
                        emit.item(Piece::Problem(problem));
                    }
                }
            }
            bench.hand_on(emit);
        });
    }

    fn weight(item: &Piece) -> usize {
        match item {
            Piece::Lines(lines, _) => lines.len(),
            Piece::Problem(problem) => problem.heap_bytes(),
        }
    }
}

/// The calling thread's side.
pub(crate) struct Taker<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) operands: Operands,
    pub(crate) report: &'a Report,
    pub(crate) lines: Lines,
    /// The path of the directory entered last and not left, and how long it was before each of these was entered.
    pub(crate) path: Vec<u8>,
    pub(crate) lens: Vec<usize>,
}

impl Taker<'_> {
    fn complain(&mut self, problem: &Problem) {
        self.flush();
        self.report.problem(problem);
    }

    pub(crate) fn flush(&mut self) {
        self.report.write(&self.lines.text, std::mem::take(&mut self.lines.count));
        self.lines.text.clear();
    }
}

impl Consume<Piece> for Taker<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.operands.next()
    }

    fn root_file(&mut self, root: usize, meta: Result<Meta, Errno>) {
        let path = self.operands.path(root).to_owned();
        if let Err(problem) = self.plan.root_file(&path, meta, &mut self.lines) {
            self.complain(&problem);
        }
    }

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        let (descend, problem) = self.plan.enter(&enter, &mut self.lines);
        problem.into_iter().for_each(|problem| self.complain(&problem));
        if descend == Descend::Yes {
            vcs::problems_of(enter.node).iter().for_each(|problem| self.complain(problem));
            self.lens.push(self.path.len());
            if self.lens.len() > 1 && self.path.last() != Some(&b'/') {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(enter.node.name().to_bytes());
        }
        descend
    }

    fn lost(&mut self, node: &Node, errno: Errno) {
        self.complain(&Problem::Access(plan::path(node), errno));
    }

    fn item(&mut self, item: Piece) {
        match item {
            Piece::Lines(text, count) => {
                self.lines.count += count;
                self.lines.text.extend_from_slice(&text);
                if self.lines.text.len() >= FULL_BYTES {
                    self.flush();
                }
            }
            Piece::Problem(problem) => self.complain(&problem),
        }
    }

    fn leave(&mut self, error: Option<Errno>) {
        if let Some(errno) = error {
            self.complain(&Problem::Read(self.path.clone(), errno));
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
