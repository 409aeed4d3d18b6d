//! A run: walks the operands and reports what each entry comes to, in GNU du's order and by its rules of counting.

use std::ffi::CString;
use std::sync::Arc;

use fathom_walk::{
    Choice, Consume, Descend, Enter, Errno, Error, Fields, Follow as Link, Found, Meta, NextRoot, Node,
    Progress, Summary,
};

use crate::again::{Again, Operands};
use crate::gather::{File, Gather, Item, Run};
use crate::mounts::Mounts;
use crate::options::{Follow, Measure, Options};
use crate::problem::Problem;
use crate::seen::Seen;
use crate::totals::Totals;

/// How the operands are walked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Engine {
    /// The I/O model.
    pub choice: Choice,
    /// This many workers, whatever the model would have.
    pub threads: Option<usize>,
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
    let mut consumer = Consumer {
        gather: gather.clone(),
        report,
        seen: Seen::default(),
        mounts: Mounts::default(),
        path: Vec::new(),
        levels: Vec::new(),
        roots: std::collections::VecDeque::new(),
        total: Totals::EPOCH,
        started: false,
    };
    let summary = fathom_walk::run(walk, gather, &mut consumer, watch)?;
    consumer.leave_all();
    Ok(Outcome { total: consumer.total, summary })
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

/// A directory that has been entered and not left.
struct Level {
    own: Totals,
    meta: Meta,
    path_len: usize,
    /// Entries that are no directories, and the directories' own inodes.
    entries: Totals,
    /// What is below the directories in it.
    below: Totals,
    /// Whether it could be read and nothing came of it.
    is_empty: bool,
}

/// A root known to the walk whose turn has not come.
enum Root {
    Path(CString),
    Message(Vec<u8>),
}

struct Consumer<'r, R> {
    gather: Gather,
    report: &'r mut R,
    seen: Seen,
    mounts: Mounts,
    path: Vec<u8>,
    levels: Vec<Level>,
    roots: std::collections::VecDeque<Root>,
    total: Totals,
    /// Whether anything has been counted.
    started: bool,
}

impl<R: Report> Consumer<'_, R> {
    fn options(&self) -> &Options {
        &self.gather.options
    }

    fn is_new(&mut self, id: Option<(u64, u64)>) -> bool {
        id.is_none_or(|id| self.seen.insert(id))
    }

    fn see_something(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.is_empty = false;
        }
    }

    /// GNU du takes the slash off an empty operand where it goes by whole paths.
    fn trim_empty(&mut self, level: &Level) {
        let whole = self.levels.is_empty() && self.options().follow == Follow::Always;
        if whole && level.is_empty && self.path.len() > 1 && self.path.ends_with(b"/") {
            self.path.pop();
        }
    }

    /// Starts on the next root; the message, if it is one.
    fn start_root(&mut self) -> Option<Vec<u8>> {
        match self.roots.pop_front() {
            Some(Root::Path(path)) => {
                self.path.clear();
                self.path.extend_from_slice(path.to_bytes());
                None
            }
            Some(Root::Message(message)) => Some(message),
            None => None,
        }
    }

    fn push_name(&mut self, name: &[u8]) -> usize {
        let len = self.path.len();
        if self.path.last() != Some(&b'/') {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        len
    }

    /// Counts `totals` as an entry of the directory entered last.
    fn count(&mut self, totals: &Totals) {
        self.started = true;
        self.total.add(totals);
        if let Some(level) = self.levels.last_mut() {
            level.entries.add(totals);
        }
    }

    fn print(&mut self, line: &Line<'_>) {
        let options = self.options();
        let value = match options.measure {
            Measure::Inodes => line.totals.inodes,
            _ => line.totals.bytes,
        };
        if options.threshold.as_ref().is_none_or(|threshold| threshold.admits(value)) {
            self.report.line(line);
        }
    }

    fn run_of_files(&mut self, run: &Run) {
        let depth = self.levels.len();
        let mut names = run.names.as_slice();
        for (index, file) in run.files.iter().enumerate() {
            let (name, rest) = names.split_at(file.name_len as usize);
            names = rest;
            if self.is_new(file.id) {
                self.count(&file.totals);
                if !name.is_empty() {
                    self.file_line(name, depth, file, run.metas.get(index));
                }
            }
        }
    }

    fn file_line(&mut self, name: &[u8], depth: usize, file: &File, meta: Option<&Meta>) {
        let len = self.push_name(name);
        let path = std::mem::take(&mut self.path);
        let (totals, own) = (&file.totals, &file.totals);
        self.print(&Line { path: &path, depth, totals, own, meta, is_dir: false });
        self.path = path;
        self.path.truncate(len);
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
        let path = std::mem::take(&mut self.path);
        if self.options().follow != Follow::Always && !self.is_mounted_loop(node, meta.id()) {
            self.report.problem(&Problem::Cycle(&path));
        }
        self.path = path;
    }

    /// Leaves what the walk did not: it was stopped.
    fn leave_all(&mut self) {
        while !self.levels.is_empty() {
            self.leave(None);
        }
    }
}

impl<R: Report> Consume<Item> for Consumer<'_, R> {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        loop {
            match self.report.next_operand(wait) {
                Operand::Path(path) => {
                    let path = trim_slashes(path);
                    if self.options().exclude.matches(path.to_bytes()) {
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
            self.report.message(&message);
        }
    }

    fn root_file(&mut self, _root: usize, meta: Result<Meta, Errno>) {
        self.start_root();
        let path = std::mem::take(&mut self.path);
        match meta {
            Ok(meta) => {
                if self.is_new(self.gather.id(&meta)) {
                    let totals = self.gather.totals(&meta);
                    self.count(&totals);
                    let (totals, meta) = (&totals, Some(&meta));
                    self.print(&Line { path: &path, depth: 0, totals, own: totals, meta, is_dir: false });
                }
            }
            Err(errno) => {
                let dangling = errno == Errno::NOENT
                    && self.options().follow != Follow::Never
                    && CString::new(path.as_slice()).is_ok_and(|path| fathom_walk::lstat(&path).is_ok());
                self.report.problem(&Problem::Access(&path, (!dangling).then_some(errno)));
            }
        }
        self.path = path;
    }

    fn enter(&mut self, enter: Enter<'_>) -> Descend {
        self.see_something();
        let path_len = match enter.node.parent() {
            Some(_) => self.push_name(enter.node.name().to_bytes()),
            None => {
                self.start_root();
                0
            }
        };
        let known = self.gather.enters_once() && !self.seen.insert(enter.meta.id());
        if !known && enter.found == Found::Loop {
            self.closes_loop(enter.node, enter.meta);
        }
        if known || enter.found == Found::Loop {
            self.path.truncate(path_len);
            return Descend::No;
        }
        if let Found::Unreadable(errno) = enter.found {
            self.report.problem(&Problem::ReadDirectory(&self.path, errno));
        }
        self.levels.push(Level {
            own: self.gather.totals(enter.meta),
            meta: *enter.meta,
            path_len,
            entries: if self.started { Totals::NONE } else { Totals::EPOCH },
            below: Totals::NONE,
            is_empty: enter.found == Found::Readable,
        });
        Descend::Yes
    }

    fn lost(&mut self, node: &Node, errno: Errno) {
        self.see_something();
        let path_len = self.push_name(node.name().to_bytes());
        self.report.problem(&Problem::Access(&self.path, Some(errno)));
        self.path.truncate(path_len);
    }

    fn item(&mut self, item: Item) {
        self.see_something();
        match item {
            Item::Sum(totals) => self.count(&totals),
            Item::Run(run) => self.run_of_files(&run),
            Item::Lost { name, errno } => {
                let path_len = self.push_name(&name);
                self.report.problem(&Problem::Access(&self.path, errno));
                self.path.truncate(path_len);
            }
        }
    }

    fn leave(&mut self, error: Option<Errno>) {
        let Some(mut level) = self.levels.pop() else { return };
        if !std::mem::replace(&mut self.started, true) {
            level.entries = Totals::NONE;
        }
        self.trim_empty(&level);
        let path = std::mem::take(&mut self.path);
        if let Some(errno) = error {
            self.report.problem(&Problem::ReadOn(&path, errno));
        }
        let depth = self.levels.len();
        let (separate, all) = (self.options().separate_dirs, self.options().all);
        let deep = self.options().depth_max.is_some_and(|max| depth as u64 > max);
        let mut totals = level.own;
        totals.add(&level.entries);
        if !separate {
            totals.add(&level.below);
        }
        self.total.add(&level.own);
        if let Some(above) = self.levels.last_mut() {
            above.below.add(&level.entries);
            above.below.add(&level.below);
            if !separate {
                above.entries.add(&level.own);
            }
        }
        // A directory whose reading broke off is no directory to GNU du any more.
        if depth == 0 || (!deep && (error.is_none() || all)) {
            let (own, meta) = (&level.own, Some(&level.meta));
            self.print(&Line { path: &path, depth, totals: &totals, own, meta, is_dir: true });
        }
        self.path = path;
        self.path.truncate(level.path_len);
    }

    fn idle(&mut self) {
        self.report.idle();
    }

    fn stopped(&mut self) -> bool {
        self.report.stopped()
    }
}
