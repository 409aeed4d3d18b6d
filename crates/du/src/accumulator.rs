//! Totals of entries, accumulated in GNU du's order: decides which inodes count once, sums up
//! directories, and prints lines. Does not know whether the entries come from a walk or from a
//! record.

use std::sync::Arc;

use fathom_walk::{Errno, Meta};

use crate::inode_set::InodeSet;
use crate::options::{Follow, Options};
use crate::problem::Problem;
use crate::scan::{Line, Report};
use crate::totals::Totals;

/// A directory on the stack: entered, not yet left.
struct DirFrame {
    own: Totals,
    meta: Meta,
    path_len: usize,
    /// The non-directories in it, and the inodes of its subdirectories.
    entries: Totals,
    /// The contents of its subdirectories.
    below: Totals,
    /// Whether the directory was readable and no entry was found in it so far.
    is_empty: bool,
}

/// The accumulated state of a run.
pub(crate) struct Accumulator<'r, R> {
    options: Arc<Options>,
    pub(crate) report: &'r mut R,
    seen: InodeSet,
    /// The path of the current entry.
    pub(crate) path: Vec<u8>,
    stack: Vec<DirFrame>,
    total: Totals,
    /// Whether any inode has been counted.
    has_counted: bool,
}

impl<'r, R: Report> Accumulator<'r, R> {
    pub(crate) fn new(options: Arc<Options>, report: &'r mut R) -> Self {
        let (seen, path, stack) = (InodeSet::default(), Vec::new(), Vec::new());
        Self { options, report, seen, path, stack, total: Totals::EPOCH, has_counted: false }
    }

    /// Returns the total of all operands. Leaves directories that are still on the stack, which
    /// happens if the run was stopped.
    pub(crate) fn end(mut self) -> Totals {
        while !self.stack.is_empty() {
            self.leave(None);
        }
        self.total
    }

    /// Starts the operand `path`.
    pub(crate) fn start_operand(&mut self, path: &[u8]) {
        self.path.clear();
        self.path.extend_from_slice(path);
    }

    /// Returns the depth, relative to the operand, of the entries of the current directory.
    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Returns whether the inode counts: it has no `id`, or its `id` is seen for the first time.
    pub(crate) fn insert_id(&mut self, id: Option<(u64, u64)>) -> bool {
        id.is_none_or(|id| self.seen.insert(id))
    }

    /// Records that the current directory has an entry.
    pub(crate) fn mark_nonempty(&mut self) {
        if let Some(frame) = self.stack.last_mut() {
            frame.is_empty = false;
        }
    }

    /// Reports a problem with the current path.
    pub(crate) fn report_problem<'p>(&'p mut self, problem: impl FnOnce(&'p [u8]) -> Problem<'p>) {
        self.report.problem(&problem(&self.path));
    }

    /// Reports a problem with an entry of the current directory.
    pub(crate) fn report_inaccessible(&mut self, name: &[u8], errno: Option<Errno>) {
        self.mark_nonempty();
        let path_len = self.push_name(name);
        self.report_problem(|path| Problem::Access(path, errno));
        self.path.truncate(path_len);
    }

    /// Appends an entry's name to the path. Returns the previous length of the path.
    pub(crate) fn push_name(&mut self, name: &[u8]) -> usize {
        let len = self.path.len();
        if self.path.last() != Some(&b'/') {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        len
    }

    /// Counts `totals` as an entry of the current directory.
    pub(crate) fn count(&mut self, totals: &Totals) {
        self.has_counted = true;
        self.total.add(totals);
        if let Some(frame) = self.stack.last_mut() {
            frame.entries.add(totals);
        }
    }

    /// Counts a file in the current directory, unless its `id` was seen before. Prints a line if
    /// `name` is not empty.
    pub(crate) fn count_file(
        &mut self,
        name: &[u8],
        totals: &Totals,
        id: Option<(u64, u64)>,
        meta: Option<&Meta>,
    ) {
        if !self.insert_id(id) {
            return;
        }
        self.count(totals);
        if !name.is_empty() {
            let len = self.push_name(name);
            self.print(self.stack.len(), totals, totals, meta, false);
            self.path.truncate(len);
        }
    }

    /// Counts an operand that is not a directory, unless its `id` was seen before.
    pub(crate) fn count_operand(&mut self, totals: &Totals, id: Option<(u64, u64)>, meta: &Meta) {
        if self.insert_id(id) {
            self.count(totals);
            self.print(0, totals, totals, Some(meta), false);
        }
    }

    /// Enters the directory at the current path. `path_len` is the length of the path before the
    /// directory's name was appended.
    pub(crate) fn enter(&mut self, path_len: usize, own: Totals, meta: &Meta, is_readable: bool) {
        self.stack.push(DirFrame {
            own,
            meta: *meta,
            path_len,
            entries: if self.has_counted { Totals::NONE } else { Totals::EPOCH },
            below: Totals::NONE,
            is_empty: is_readable,
        });
    }

    /// Leaves the current directory. `error` is the error that ended the reading of it early.
    pub(crate) fn leave(&mut self, error: Option<Errno>) {
        let Some(mut frame) = self.stack.pop() else { return };
        if !std::mem::replace(&mut self.has_counted, true) {
            frame.entries = Totals::NONE;
        }
        self.trim_empty(&frame);
        if let Some(errno) = error {
            self.report_problem(|path| Problem::ReadOn(path, errno));
        }
        let totals = self.add_to_parent(&frame);
        let depth = self.stack.len();
        // GNU du stops treating a directory as one when reading it fails midway.
        if depth == 0 || (!self.options.is_too_deep(depth) && (error.is_none() || self.options.all)) {
            self.print(depth, &totals, &frame.own, Some(&frame.meta), true);
        }
        self.path.truncate(frame.path_len);
    }

    /// Adds the directory to its parent. Returns the totals for its line.
    fn add_to_parent(&mut self, frame: &DirFrame) -> Totals {
        let separate = self.options.separate_dirs;
        let mut totals = frame.own;
        totals.add(&frame.entries);
        if !separate {
            totals.add(&frame.below);
        }
        self.total.add(&frame.own);
        if let Some(above) = self.stack.last_mut() {
            above.below.add(&frame.entries);
            above.below.add(&frame.below);
            if !separate {
                above.entries.add(&frame.own);
            }
        }
        totals
    }

    /// Removes the trailing slash of an empty operand, like GNU du where it uses whole paths.
    fn trim_empty(&mut self, frame: &DirFrame) {
        let whole = self.stack.is_empty() && self.options.follow == Follow::Always;
        if whole && frame.is_empty && self.path.len() > 1 && self.path.ends_with(b"/") {
            self.path.pop();
        }
    }

    fn print(&mut self, depth: usize, totals: &Totals, own: &Totals, meta: Option<&Meta>, is_dir: bool) {
        let line = Line { path: &self.path, depth, totals, own, meta, is_dir };
        if self.options.shows(&line) {
            self.report.line(&line);
        }
    }
}
