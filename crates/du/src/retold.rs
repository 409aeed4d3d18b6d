//! A run over trees that are told of, by whoever has a record of them, and not walked: the same books, and the same lines in the
//! order in which they are told.

use std::collections::HashSet;
use std::sync::Arc;

use fathom_walk::{Errno, Meta};

use crate::again::Again;
use crate::gather::Gather;
use crate::ledger::Ledger;
use crate::options::Options;
use crate::problem::Problem;
use crate::scan::{Line, Report};
use crate::totals::Totals;

/// A run.
pub struct Retold<'r, R> {
    gather: Gather,
    ledger: Ledger<'r, R>,
    /// How many directories below one that does not count have been entered, with that one.
    passed_over: usize,
    root_dev: Option<u64>,
    excluded: Vec<u8>,
}

impl<'r, R: Report> Retold<'r, R> {
    /// Of one operand; or of several, of which `files` are no directories.
    pub fn new(options: Arc<Options>, files: Option<HashSet<(u64, u64)>>, report: &'r mut R) -> Self {
        let again = files.map_or(Again::Linked, |files| Again::Named(Arc::new(files)));
        let gather = Gather { options: options.clone(), again, metas: report.wants_metas() };
        let ledger = Ledger::new(options, report);
        Self { gather, ledger, passed_over: 0, root_dev: None, excluded: Vec::new() }
    }

    /// Where lines and problems go.
    pub fn report(&mut self) -> &mut R {
        self.ledger.report
    }

    /// All operands together.
    #[must_use]
    pub fn end(self) -> Totals {
        self.ledger.end()
    }

    /// An operand that is no directory; or why it is not known.
    pub fn operand(&mut self, path: &[u8], meta: Result<&Meta, Errno>) {
        if self.gather.options.exclude.matches(path) {
            return;
        }
        self.ledger.start(path);
        match meta {
            Ok(meta) => self.ledger.operand(&self.gather.totals(meta), self.gather.id(meta), meta),
            Err(errno) => self.ledger.problem(|path| Problem::Access(path, Some(errno))),
        }
    }

    /// Enters a directory: an operand by its path, any other by its name. `unread` is why it could not be read.
    pub fn enter(&mut self, name: &[u8], is_operand: bool, meta: &Meta, unread: Option<Errno>) {
        if is_operand {
            self.root_dev = Some(meta.dev);
        }
        if self.passed_over > 0 || self.is_left_out(name, is_operand) || self.is_foreign(meta) {
            self.passed_over += 1;
            return;
        }
        self.ledger.see_something();
        let path_len = if is_operand {
            self.ledger.start(name);
            0
        } else {
            self.ledger.push_name(name)
        };
        if self.gather.enters_once() && !self.ledger.is_new(Some(meta.id())) {
            self.ledger.path.truncate(path_len);
            self.passed_over = 1;
            return;
        }
        if let Some(errno) = unread {
            self.ledger.problem(|path| Problem::ReadDirectory(path, errno));
        }
        self.ledger.enter(path_len, self.gather.totals(meta), meta, unread.is_none());
    }

    /// Enters a directory that does not count, nor does anything below it.
    pub fn pass_over(&mut self) {
        self.passed_over += 1;
    }

    /// The same with one of which nothing is known.
    pub fn lose(&mut self, name: &[u8], is_operand: bool, errno: Errno) {
        if is_operand {
            self.operand(name, Err(errno));
        } else {
            self.entry(name, Err(errno));
        }
        self.pass_over();
    }

    /// An entry of the directory entered last that is none; or why it is not known.
    pub fn entry(&mut self, name: &[u8], meta: Result<&Meta, Errno>) {
        if self.passed_over > 0 || self.is_left_out(name, false) {
            return;
        }
        let meta = match meta {
            Ok(meta) if self.is_foreign(meta) => return,
            Ok(meta) => meta,
            Err(errno) => return self.ledger.lost(name, Some(errno)),
        };
        self.ledger.see_something();
        let name = if self.gather.has_line(self.ledger.depth()) { name } else { b"" };
        self.ledger.file(name, &self.gather.totals(meta), self.gather.id(meta), Some(meta));
    }

    /// Leaves the directory entered last; `broken` is why some of its entries are not known.
    pub fn leave(&mut self, broken: Option<Errno>) {
        if self.passed_over > 0 {
            self.passed_over -= 1;
        } else {
            self.ledger.leave(broken);
        }
    }

    fn is_left_out(&mut self, name: &[u8], is_operand: bool) -> bool {
        let exclude = &self.gather.options.exclude;
        if is_operand {
            exclude.matches(name)
        } else {
            !exclude.is_empty() && exclude.matches_below(&self.ledger.path, name, &mut self.excluded)
        }
    }

    fn is_foreign(&self, meta: &Meta) -> bool {
        self.gather.options.one_file_system && self.root_dev.is_some_and(|dev| dev != meta.dev)
    }
}

/// Whether lines can be made of what directories come to, with nothing known of the files in them.
#[must_use]
pub fn is_of_directories(options: &Options, report: &impl Report) -> bool {
    use crate::options::Measure;
    let Options { all, exclude, time, one_file_system, measure, .. } = options;
    !*all
        && exclude.is_empty()
        && time.is_none()
        && !*one_file_system
        && *measure != Measure::Lengths
        && !report.wants_metas()
}

/// Reports a line, unless options leave it out.
pub fn report_line(options: &Options, line: &Line<'_>, report: &mut impl Report) {
    if options.shows(line) {
        report.line(line);
    }
}
