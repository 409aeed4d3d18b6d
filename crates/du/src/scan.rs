//! A run over operands that are walked: reports the totals of each entry in GNU du's order and by
//! its rules of counting.

use std::ffi::CString;
use std::sync::Arc;

use fathom_walk::{
    ConcurrencyHints, Consumer, Descend, Enter, Errno, Error, Failure, Fields, Follow as Link, Found, Meta,
    Model, NextRoot, Node, Operation, Progress, RootSource, Summary,
};

use crate::accumulator::Accumulator;
use crate::dedup::{DedupRule, KnownOperands};
use crate::mounts::MountPoints;
use crate::options::{Follow, Options};
use crate::problem::Problem;
use crate::totals::Totals;
use crate::visitor::{DuVisitor, FileRun, ScanItem};

/// The I/O model and its parameters.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    /// The I/O model.
    pub model: Model,
    /// The fixed number of workers; `None` leaves it to the model.
    pub threads: Option<usize>,
    /// Concurrency hints by device.
    pub hints: ConcurrencyHints,
}

/// The result of asking for the next operand.
#[derive(Debug)]
pub enum Operand {
    /// Measure this path.
    Path(CString),
    /// Report this message in the operand's place. The run has failed in part.
    Message(Vec<u8>),
    /// The next operand is not known yet, and waiting was not allowed.
    Pending,
    /// No more operands.
    End,
}

/// An entry that gets a line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Path, starting with the operand as given.
    pub path: &'a [u8],
    /// Levels below the operand.
    pub depth: usize,
    /// The totals of the entry. For a directory they include everything below it, unless
    /// directories are separate.
    pub totals: &'a Totals,
    /// The totals of the inode itself.
    pub own: &'a Totals,
    /// The inode's metadata. For files it is set only if [`Report::wants_metas`].
    pub meta: Option<&'a Meta>,
    /// Whether the entry is a directory.
    pub is_dir: bool,
}

/// The source of a run's operands and the receiver of its results.
pub trait Report {
    /// Returns the next operand. Blocks until it is known only if `wait`.
    fn next_operand(&mut self, wait: bool) -> Operand;
    /// Receives an entry that gets a line.
    fn line(&mut self, line: &Line<'_>);
    /// Receives a problem with an entry.
    fn problem(&mut self, problem: &Problem<'_>);
    /// Receives the message of an [`Operand::Message`], in the order of the operands.
    fn message(&mut self, message: &[u8]);
    /// Called while no result is ready: output can be flushed without delaying anything.
    fn idle(&mut self) {}
    /// Returns whether the run must stop now.
    fn stopped(&mut self) -> bool {
        false
    }
    /// Returns whether lines of files carry metadata.
    fn wants_metas(&self) -> bool {
        false
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct ScanOutcome {
    /// The total of all operands.
    pub total: Totals,
    /// The summary of the walk.
    pub summary: Summary,
}

/// Measures the operands that `report` returns. The README of this crate has an example.
///
/// `watch` is called every few milliseconds; [`Progress::measured`] is the number of bytes found so
/// far.
///
/// `operands` describes the operands that [`Report::next_operand`] is going to return, as far as
/// they are known.
///
/// # Errors
/// Fails if the I/O model is not available here or no thread can be started.
pub fn scan(
    options: Arc<Options>,
    engine: Engine,
    operands: &KnownOperands,
    report: &mut impl Report,
    watch: &mut dyn FnMut(Progress),
) -> Result<ScanOutcome, Error> {
    let dedup = match options.follow {
        Follow::Always => DedupRule::All,
        follow => DedupRule::for_operands(operands, follow != Follow::Never),
    };
    let visitor = DuVisitor { options, dedup, metas: report.wants_metas() };
    let walk = walk_options(&visitor, engine);
    let accumulator = Accumulator::new(visitor.options.clone(), report);
    let (mounts, roots) = (MountPoints::default(), std::collections::VecDeque::new());
    let mut consumer =
        ScanConsumer { visitor: visitor.clone(), accumulator, mounts, roots, read_error: None };
    let summary = fathom_walk::run(walk, visitor, &mut consumer, watch)?;
    Ok(ScanOutcome { total: consumer.accumulator.end(), summary })
}

fn walk_options(visitor: &DuVisitor, engine: Engine) -> fathom_walk::Options {
    let options = &visitor.options;
    let follow = |follows| if follows { Link::Yes } else { Link::No };
    let times = if options.time.is_some() { Fields::TIMES } else { Fields::IDENTITY };
    fathom_walk::Options::default()
        .model(engine.model)
        .threads(engine.threads)
        .follow_roots(follow(options.follow != Follow::Never))
        .follow_links(follow(options.follow == Follow::Always))
        .fields(if visitor.metas { Fields::ALL } else { Fields::SIZE.union(Fields::BLOCKS).union(times) })
        .stat_dirs(options.one_file_system)
        .dedup_directories(visitor.enters_once())
        .unordered_chunks(visitor.is_total_only())
        .hints(engine.hints)
}

/// Reduces trailing slashes to one. `//` alone is kept, because POSIX allows it to differ from `/`.
fn trim_slashes(path: CString) -> CString {
    let mut bytes = path.into_bytes();
    if bytes.len() > 2 && bytes.ends_with(b"//") {
        while bytes.len() > 1 && bytes.ends_with(b"//") {
            bytes.pop();
        }
    }
    CString::new(bytes).expect("was a C string before it was cut")
}

/// A root that was passed to the walk and has not been entered yet.
enum QueuedRoot {
    Path(CString),
    Message(Vec<u8>),
}

struct ScanConsumer<'r, R> {
    visitor: DuVisitor,
    accumulator: Accumulator<'r, R>,
    mounts: MountPoints,
    roots: std::collections::VecDeque<QueuedRoot>,
    /// The error that ended the reading of the current directory early.
    read_error: Option<Errno>,
}

impl<R: Report> ScanConsumer<'_, R> {
    /// Starts the next root. Returns its message if it is one.
    fn start_root(&mut self) -> Option<Vec<u8>> {
        match self.roots.pop_front() {
            Some(QueuedRoot::Path(path)) => {
                self.accumulator.start_operand(path.to_bytes());
                None
            }
            Some(QueuedRoot::Message(message)) => Some(message),
            None => None,
        }
    }

    /// Returns whether the loop that `node` closes passes a mount point.
    fn is_mounted_loop(&mut self, node: &Node, id: (u64, u64)) -> bool {
        let mut at = node.parent();
        let mut found = self.mounts.contains(id);
        while let Some(here) = at {
            if found || here.id() == Some(id) {
                break;
            }
            found = here.id().is_some_and(|id| self.mounts.contains(id));
            at = here.parent();
        }
        found
    }

    fn report_loop(&mut self, node: &Node) {
        let Some(id) = node.id() else { return };
        if self.visitor.options.follow != Follow::Always && !self.is_mounted_loop(node, id) {
            let path_len = self.accumulator.push_name(node.name().to_bytes());
            self.accumulator.report_problem(Problem::Cycle);
            self.accumulator.path.truncate(path_len);
        }
    }

    fn report_missing_operand(&mut self, errno: Errno) {
        let follows = self.visitor.options.follow != Follow::Never;
        self.accumulator.report_problem(|path| {
            let dangling = errno == Errno::NOENT
                && follows
                && CString::new(path).is_ok_and(|path| fathom_walk::lstat(&path).is_ok());
            Problem::Access(path, (!dangling).then_some(errno))
        });
    }

    fn count_files(&mut self, run: &FileRun) {
        let mut names = run.names.as_slice();
        for (index, file) in run.files.iter().enumerate() {
            let (name, rest) = names.split_at(file.name_len as usize);
            names = rest;
            self.accumulator.count_file(name, &file.totals, file.id, run.metas.get(index));
        }
    }
}

impl<R: Report> RootSource for ScanConsumer<'_, R> {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        loop {
            match self.accumulator.report.next_operand(wait) {
                Operand::Path(path) => {
                    let path = trim_slashes(path);
                    if self.visitor.options.exclude.matches(path.to_bytes()) {
                        continue;
                    }
                    self.roots.push_back(QueuedRoot::Path(path.clone()));
                    return NextRoot::Path(path);
                }
                Operand::Message(message) => {
                    self.roots.push_back(QueuedRoot::Message(message));
                    return NextRoot::Note;
                }
                Operand::Pending => return NextRoot::NotNow,
                Operand::End => return NextRoot::End,
            }
        }
    }

    fn stopped(&mut self) -> bool {
        self.accumulator.report.stopped()
    }
}

impl<R: Report> Consumer<ScanItem> for ScanConsumer<'_, R> {
    fn note(&mut self, _root: usize) {
        if let Some(message) = self.start_root() {
            self.accumulator.report.message(&message);
        }
    }

    fn root_file(&mut self, _root: &Arc<Node>, meta: &Meta) {
        self.start_root();
        self.accumulator.count_operand(&self.visitor.totals(meta), self.visitor.id(meta), meta);
    }

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        self.accumulator.mark_nonempty();
        let path_len = match enter.node.parent() {
            Some(_) => self.accumulator.push_name(enter.node.name().to_bytes()),
            None => {
                self.start_root();
                0
            }
        };
        let known = self.visitor.enters_once() && !self.accumulator.insert_id(Some(enter.meta.id()));
        if known || enter.found == Found::Loop {
            self.accumulator.path.truncate(path_len);
            return if known { Descend::No } else { Descend::Yes };
        }
        let own = self.visitor.totals(enter.meta);
        self.accumulator.enter(path_len, own, enter.meta, enter.found == Found::Readable);
        Descend::Yes
    }

    fn item(&mut self, item: ScanItem) {
        self.accumulator.mark_nonempty();
        match item {
            ScanItem::Sum(totals) => self.accumulator.count(&totals),
            ScanItem::Files(run) => self.count_files(&run),
            ScanItem::Dangling { name } => self.accumulator.report_inaccessible(&name, None),
        }
    }

    fn failed(&mut self, Failure { node, name, operation, errno }: Failure<'_>) {
        match operation {
            Operation::Access if node.parent().is_none() => {
                self.start_root();
                self.report_missing_operand(errno);
            }
            Operation::Open => self.accumulator.report_problem(|path| Problem::ReadDirectory(path, errno)),
            Operation::Read | Operation::Reopen => self.read_error = Some(errno),
            Operation::Descend => self.report_loop(node),
            _ => {
                let name = name.unwrap_or(node.name()).to_bytes();
                self.accumulator.report_inaccessible(name, Some(errno));
            }
        }
    }

    fn leave(&mut self, _node: &Arc<Node>) {
        self.accumulator.leave(self.read_error.take());
    }

    fn idle(&mut self) {
        self.accumulator.report.idle();
    }
}
