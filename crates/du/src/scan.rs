//! A run: walks the operands and reports what each entry comes to, in GNU du's order and by its rules of counting.

use std::ffi::CString;
use std::sync::Arc;

use fathom_walk::{
    Choice, Consume, Descend, Enter, Errno, Error, Fields, Follow as Link, Found, Leaps, Meta, NextRoot,
    Node, Progress, Summary,
};

use crate::again::{Again, Operands};
use crate::gather::{Gather, Item, Run};
use crate::ledger::Ledger;
use crate::mounts::Mounts;
use crate::options::{Follow, Options};
use crate::problem::Problem;
use crate::totals::Totals;

/// How the operands are walked.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    /// The I/O model.
    pub choice: Choice,
    /// This many workers, whatever the model would have.
    pub threads: Option<usize>,
    /// What is known beforehand of devices.
    pub leaps: Leaps,
}

/// The next operand, if there is one.
#[derive(Debug)]
pub enum Operand {
    /// Measure this.
    Path(CString),
    /// Report this message when its turn comes; the run has failed in part.
    Message(Vec<u8>),
    /// None is known without waiting for it.
    NotNow,
    /// There are no more.
    End,
}

/// An entry that gets a line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Path, starting with the operand as given.
    pub path: &'a [u8],
    /// Levels below the operand.
    pub depth: usize,
    /// What it comes to; for a directory with all that is below it, unless directories are separate.
    pub totals: &'a Totals,
    /// What the inode itself comes to.
    pub own: &'a Totals,
    /// The inode's metadata; for files only where [`Report::wants_metas`].
    pub meta: Option<&'a Meta>,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// Where a run gets its operands from and where its results go.
pub trait Report {
    /// The next operand. Waits for it only if `wait`.
    fn next_operand(&mut self, wait: bool) -> Operand;
    /// An entry that gets a line.
    fn line(&mut self, line: &Line<'_>);
    /// Something could not be measured.
    fn problem(&mut self, problem: &Problem<'_>);
    /// The turn of an [`Operand::Message`].
    fn message(&mut self, message: &[u8]);
    /// Nothing is ready to be reported: a good time to flush.
    fn idle(&mut self) {}
    /// Whether to stop now.
    fn stopped(&mut self) -> bool {
        false
    }
    /// Whether lines of files are to carry their metadata.
    fn wants_metas(&self) -> bool {
        false
    }
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// All operands together.
    pub total: Totals,
    /// How the walk went.
    pub summary: Summary,
}

/// Measures the operands `report` names.
///
/// `watch` is called every few milliseconds; [`Progress::measured`] is the bytes seen so far.
///
/// `operands` says what is known beforehand of those that [`Report::next_operand`] is going to name.
///
/// # Errors
/// If the I/O model cannot run here or no thread can be started.
pub fn scan(
    options: Arc<Options>,
    engine: Engine,
    operands: &Operands,
    report: &mut impl Report,
    watch: &mut dyn FnMut(Progress),
) -> Result<Outcome, Error> {
    let again = match options.follow {
        Follow::Always => Again::All,
        follow => Again::among(operands, follow != Follow::Never),
    };
    let gather = Gather { options, again, metas: report.wants_metas() };
    let walk = walk_options(&gather, engine);
    let ledger = Ledger::new(gather.options.clone(), report);
    let (mounts, roots) = (Mounts::default(), std::collections::VecDeque::new());
    let mut consumer = Consumer { gather: gather.clone(), ledger, mounts, roots };
    let summary = fathom_walk::run(walk, gather, &mut consumer, watch)?;
    Ok(Outcome { total: consumer.ledger.end(), summary })
}

fn walk_options(gather: &Gather, engine: Engine) -> fathom_walk::Options {
    let options = &gather.options;
    let follow = |follows| if follows { Link::Yes } else { Link::No };
    let times = if options.time.is_some() { Fields::TIMES } else { Fields::IDENTITY };
    fathom_walk::Options {
        choice: engine.choice,
        threads: engine.threads,
        roots: follow(options.follow != Follow::Never),
        links: follow(options.follow == Follow::Always),
        fields: if gather.metas { Fields::ALL } else { Fields::SIZE.and(Fields::BLOCKS).and(times) },
        stat_dirs: options.one_file_system,
        once: gather.enters_once(),
        loose: gather.is_total_only(),
        workers_max: None,
        fds_max: None,
        whole: false,
        leaps: engine.leaps,
    }
}

/// Leaves one of several slashes at the end; `//` alone stays, because POSIX lets it mean something else than `/`.
fn trim_slashes(path: CString) -> CString {
    let mut bytes = path.into_bytes();
    if bytes.len() > 2 && bytes.ends_with(b"//") {
        while bytes.len() > 1 && bytes.ends_with(b"//") {
            bytes.pop();
        }
    }
    CString::new(bytes).expect("was a C string before it was cut")
}

/// A root known to the walk whose turn has not come.
enum Root {
    Path(CString),
    Message(Vec<u8>),
}

struct Consumer<'r, R> {
    gather: Gather,
    ledger: Ledger<'r, R>,
    mounts: Mounts,
    roots: std::collections::VecDeque<Root>,
}

impl<R: Report> Consumer<'_, R> {
    /// Starts on the next root; the message, if it is one.
    fn start_root(&mut self) -> Option<Vec<u8>> {
        match self.roots.pop_front() {
            Some(Root::Path(path)) => {
                self.ledger.start(path.to_bytes());
                None
            }
            Some(Root::Message(message)) => Some(message),
            None => None,
        }
    }

    /// Whether the loop that `node` closes goes over a mount point.
    fn is_mounted_loop(&mut self, node: &Node, id: (u64, u64)) -> bool {
        let mut at = node.parent();
        let mut found = self.mounts.has(id);
        while let Some(here) = at {
            if found || here.id() == Some(id) {
                break;
            }
            found = here.id().is_some_and(|id| self.mounts.has(id));
            at = here.parent();
        }
        found
    }

    fn closes_loop(&mut self, node: &Node, meta: &Meta) {
        if self.gather.options.follow != Follow::Always && !self.is_mounted_loop(node, meta.id()) {
            self.ledger.problem(Problem::Cycle);
        }
    }

    fn run_of_files(&mut self, run: &Run) {
        let mut names = run.names.as_slice();
        for (index, file) in run.files.iter().enumerate() {
            let (name, rest) = names.split_at(file.name_len as usize);
            names = rest;
            self.ledger.file(name, &file.totals, file.id, run.metas.get(index));
        }
    }
}

impl<R: Report> Consume<Item> for Consumer<'_, R> {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        loop {
            match self.ledger.report.next_operand(wait) {
                Operand::Path(path) => {
                    let path = trim_slashes(path);
                    if self.gather.options.exclude.matches(path.to_bytes()) {
                        continue;
                    }
                    self.roots.push_back(Root::Path(path.clone()));
                    return NextRoot::Path(path);
                }
                Operand::Message(message) => {
                    self.roots.push_back(Root::Message(message));
                    return NextRoot::Note;
                }
                Operand::NotNow => return NextRoot::NotNow,
                Operand::End => return NextRoot::End,
            }
        }
    }

    fn note(&mut self, _root: usize) {
        if let Some(message) = self.start_root() {
            self.ledger.report.message(&message);
        }
    }

    fn root_file(&mut self, _root: usize, meta: Result<Meta, Errno>) {
        self.start_root();
        match meta {
            Ok(meta) => self.ledger.operand(&self.gather.totals(&meta), self.gather.id(&meta), &meta),
            Err(errno) => {
                let follows = self.gather.options.follow != Follow::Never;
                self.ledger.problem(|path| {
                    let dangling = errno == Errno::NOENT
                        && follows
                        && CString::new(path).is_ok_and(|path| fathom_walk::lstat(&path).is_ok());
                    Problem::Access(path, (!dangling).then_some(errno))
                });
            }
        }
    }

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        self.ledger.see_something();
        let path_len = match enter.node.parent() {
            Some(_) => self.ledger.push_name(enter.node.name().to_bytes()),
            None => {
                self.start_root();
                0
            }
        };
        let known = self.gather.enters_once() && !self.ledger.is_new(Some(enter.meta.id()));
        if !known && enter.found == Found::Loop {
            self.closes_loop(enter.node, enter.meta);
        }
        if known || enter.found == Found::Loop {
            self.ledger.path.truncate(path_len);
            return Descend::No;
        }
        if let Found::Unreadable(errno) = enter.found {
            self.ledger.problem(|path| Problem::ReadDirectory(path, errno));
        }
        let own = self.gather.totals(enter.meta);
        self.ledger.enter(path_len, own, enter.meta, enter.found == Found::Readable);
        Descend::Yes
    }

    fn lost(&mut self, node: &Node, errno: Errno) {
        self.ledger.lost(node.name().to_bytes(), Some(errno));
    }

    fn item(&mut self, item: Item) {
        self.ledger.see_something();
        match item {
            Item::Sum(totals) => self.ledger.count(&totals),
            Item::Run(run) => self.run_of_files(&run),
            Item::Lost { name, errno } => self.ledger.lost(&name, errno),
        }
    }

    fn leave(&mut self, error: Option<Errno>) {
        self.ledger.leave(error);
    }

    fn idle(&mut self) {
        self.ledger.report.idle();
    }

    fn stopped(&mut self) -> bool {
        self.ledger.report.stopped()
    }
}
