//! What entries come to, added up as they are told in GNU du's order: what counts once, what is in which directory, and what gets
//! a line. Who tells of them is another matter.

use std::sync::Arc;

use fathom_walk::{Errno, Meta};

use crate::options::{Follow, Options};
use crate::problem::Problem;
use crate::scan::{Line, Report};
use crate::seen::Seen;
use crate::totals::Totals;

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

/// The books of a run.
pub(crate) struct Ledger<'r, R> {
    options: Arc<Options>,
    pub(crate) report: &'r mut R,
    seen: Seen,
    /// Of what is being told.
    pub(crate) path: Vec<u8>,
    levels: Vec<Level>,
    total: Totals,
    /// Whether anything has been counted.
    started: bool,
}

impl<'r, R: Report> Ledger<'r, R> {
    pub(crate) fn new(options: Arc<Options>, report: &'r mut R) -> Self {
        let (seen, path, levels) = (Seen::default(), Vec::new(), Vec::new());
        Self { options, report, seen, path, levels, total: Totals::EPOCH, started: false }
    }

    /// All operands together. Directories that have not been left are: the run was stopped.
    pub(crate) fn end(mut self) -> Totals {
        while !self.levels.is_empty() {
            self.leave(None);
        }
        self.total
    }

    /// An operand's turn.
    pub(crate) fn start(&mut self, path: &[u8]) {
        self.path.clear();
        self.path.extend_from_slice(path);
    }

    /// Levels below the operand of what is in the directory entered last.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Whether an inode, if it could be met again, has not been before.
    pub(crate) fn is_new(&mut self, id: Option<(u64, u64)>) -> bool {
        id.is_none_or(|id| self.seen.insert(id))
    }

    /// Something came of the directory entered last.
    pub(crate) fn see_something(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.is_empty = false;
        }
    }

    /// Something is wrong with what the path leads to.
    pub(crate) fn problem<'p>(&'p mut self, problem: impl FnOnce(&'p [u8]) -> Problem<'p>) {
        self.report.problem(&problem(&self.path));
    }

    /// The same with an entry of the directory entered last.
    pub(crate) fn lost(&mut self, name: &[u8], errno: Option<Errno>) {
        self.see_something();
        let path_len = self.push_name(name);
        self.problem(|path| Problem::Access(path, errno));
        self.path.truncate(path_len);
    }

    /// Makes the path lead to an entry; how long it was.
    pub(crate) fn push_name(&mut self, name: &[u8]) -> usize {
        let len = self.path.len();
        if self.path.last() != Some(&b'/') {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        len
    }

    /// Counts `totals` as an entry of the directory entered last.
    pub(crate) fn count(&mut self, totals: &Totals) {
        self.started = true;
        self.total.add(totals);
        if let Some(level) = self.levels.last_mut() {
            level.entries.add(totals);
        }
    }

    /// A file in the directory entered last, unless it has been met; it gets a line if it has a name.
    pub(crate) fn file(&mut self, name: &[u8], totals: &Totals, id: Option<(u64, u64)>, meta: Option<&Meta>) {
        if !self.is_new(id) {
            return;
        }
        self.count(totals);
        if !name.is_empty() {
            let len = self.push_name(name);
            self.print(self.levels.len(), (totals, totals), meta, false);
            self.path.truncate(len);
        }
    }

    /// An operand that is no directory.
    pub(crate) fn operand(&mut self, totals: &Totals, id: Option<(u64, u64)>, meta: &Meta) {
        if self.is_new(id) {
            self.count(totals);
            self.print(0, (totals, totals), Some(meta), false);
        }
    }

    /// Enters the directory that the path leads to, which had `path_len` bytes before its name.
    pub(crate) fn enter(&mut self, path_len: usize, own: Totals, meta: &Meta, is_readable: bool) {
        self.levels.push(Level {
            own,
            meta: *meta,
            path_len,
            entries: if self.started { Totals::NONE } else { Totals::EPOCH },
            below: Totals::NONE,
            is_empty: is_readable,
        });
    }

    /// Leaves the directory entered last; `error` is why reading it broke off.
    pub(crate) fn leave(&mut self, error: Option<Errno>) {
        let Some(mut level) = self.levels.pop() else { return };
        if !std::mem::replace(&mut self.started, true) {
            level.entries = Totals::NONE;
        }
        self.trim_empty(&level);
        if let Some(errno) = error {
            self.problem(|path| Problem::ReadOn(path, errno));
        }
        let totals = self.add_up(&level);
        let depth = self.levels.len();
        // A directory whose reading broke off is no directory to GNU du any more.
        if depth == 0 || (!self.options.is_too_deep(depth) && (error.is_none() || self.options.all)) {
            self.print(depth, (&totals, &level.own), Some(&level.meta), true);
        }
        self.path.truncate(level.path_len);
    }

    /// Adds a directory to the one it is in; what its line says.
    fn add_up(&mut self, level: &Level) -> Totals {
        let separate = self.options.separate_dirs;
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
        totals
    }

    /// GNU du takes the slash off an empty operand where it goes by whole paths.
    fn trim_empty(&mut self, level: &Level) {
        let whole = self.levels.is_empty() && self.options.follow == Follow::Always;
        if whole && level.is_empty && self.path.len() > 1 && self.path.ends_with(b"/") {
            self.path.pop();
        }
    }

    fn print(&mut self, depth: usize, (totals, own): (&Totals, &Totals), meta: Option<&Meta>, is_dir: bool) {
        let line = Line { path: &self.path, depth, totals, own, meta, is_dir };
        if self.options.shows(&line) {
            self.report.line(&line);
        }
    }
}
