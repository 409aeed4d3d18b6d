//! A run over recorded trees instead of a walk: the same accounting, with lines in the order of the
//! record.

use std::collections::HashSet;
use std::sync::Arc;

use fathom_walk::{Errno, Meta};

use crate::accumulator::Accumulator;
use crate::dedup::DedupRule;
use crate::options::Options;
use crate::problem::Problem;
use crate::scan::{Line, Report};
use crate::totals::Totals;
use crate::visitor::DuVisitor;

/// A run over recorded trees. The caller calls its functions in the order of the record.
///
/// ```
/// use std::sync::Arc;
/// use fathom_du::options::Options;
/// use fathom_du::problem::Problem;
/// use fathom_du::replay::Replay;
/// use fathom_du::scan::{Line, Operand, Report};
/// use fathom_walk::Meta;
///
/// /// Keeps the lines of directories: allocated bytes and the path.
/// #[derive(Default)]
/// struct Lines(Vec<(u64, String)>);
///
/// impl Report for Lines {
///     fn next_operand(&mut self, _wait: bool) -> Operand {
///         Operand::End
///     }
///     fn line(&mut self, line: &Line<'_>) {
///         self.0.push((line.totals.bytes, String::from_utf8_lossy(line.path).into_owned()));
///     }
///     fn problem(&mut self, _problem: &Problem<'_>) {}
///     fn message(&mut self, _message: &[u8]) {}
/// }
///
/// let meta = |ino, blocks, mode| Meta { ino, blocks, mode, nlink: 1, ..Meta::default() };
/// let mut lines = Lines::default();
/// let mut replay = Replay::new(Arc::new(Options::default()), None, &mut lines);
/// replay.enter(b"top", true, &meta(1, 8, 0o40_755), None);
/// replay.enter(b"sub", false, &meta(2, 8, 0o40_755), None);
/// replay.entry(b"file", Ok(&meta(3, 16, 0o100_644)));
/// replay.leave(None);
/// replay.leave(None);
/// assert_eq!(replay.end().bytes, 32 * 512);
/// assert_eq!(lines.0, [(24 * 512, "top/sub".to_owned()), (32 * 512, "top".to_owned())]);
/// ```
pub struct Replay<'r, R> {
    visitor: DuVisitor,
    accumulator: Accumulator<'r, R>,
    /// The number of directories entered since the outermost skipped one, including that one; 0
    /// outside of skipped directories.
    skipped_dirs: usize,
    root_dev: Option<u64>,
    excluded: Vec<u8>,
}

impl<'r, R: Report> Replay<'r, R> {
    /// Creates a run of one operand, or of several operands, of which `files` are the ones that are
    /// not directories.
    pub fn new(options: Arc<Options>, files: Option<HashSet<(u64, u64)>>, report: &'r mut R) -> Self {
        let dedup = files.map_or(DedupRule::HardLinked, |files| DedupRule::HardLinkedAnd(Arc::new(files)));
        let visitor = DuVisitor { options: options.clone(), dedup, metas: report.wants_metas() };
        let accumulator = Accumulator::new(options, report);
        Self { visitor, accumulator, skipped_dirs: 0, root_dev: None, excluded: Vec::new() }
    }

    /// Returns the receiver of lines and problems.
    pub fn report(&mut self) -> &mut R {
        self.accumulator.report
    }

    /// Returns the total of all operands.
    #[must_use]
    pub fn end(self) -> Totals {
        self.accumulator.end()
    }

    /// Counts an operand that is not a directory, or reports why its metadata is not known.
    pub fn operand(&mut self, path: &[u8], meta: Result<&Meta, Errno>) {
        if self.visitor.options.exclude.matches(path) {
            return;
        }
        self.accumulator.start_operand(path);
        match meta {
            Ok(meta) => {
                self.accumulator.count_operand(&self.visitor.totals(meta), self.visitor.id(meta), meta)
            }
            Err(errno) => self.accumulator.report_problem(|path| Problem::Access(path, Some(errno))),
        }
    }

    /// Enters a directory, whose `name` is a path for an operand. `unread` is the error with which
    /// it could not be read.
    pub fn enter(&mut self, name: &[u8], is_operand: bool, meta: &Meta, unread: Option<Errno>) {
        if is_operand {
            self.root_dev = Some(meta.dev);
        }
        if !self.finds_entry() || self.is_excluded(name, is_operand) || self.is_on_other_device(meta) {
            self.skipped_dirs += 1;
            return;
        }
        let path_len = if is_operand {
            self.accumulator.start_operand(name);
            0
        } else {
            self.accumulator.push_name(name)
        };
        if self.visitor.enters_once() && !self.accumulator.insert_id(Some(meta.id())) {
            self.accumulator.path.truncate(path_len);
            self.skipped_dirs = 1;
            return;
        }
        if let Some(errno) = unread {
            self.accumulator.report_problem(|path| Problem::ReadDirectory(path, errno));
        }
        self.accumulator.enter(path_len, self.visitor.totals(meta), meta, unread.is_none());
    }

    /// Enters a directory that does not count, and whose contents do not count.
    pub fn skip_directory(&mut self) {
        self.skipped_dirs += 1;
    }

    /// Enters a directory whose metadata is not known: reports the error and skips the contents.
    pub fn skip_inaccessible(&mut self, name: &[u8], is_operand: bool, errno: Errno) {
        if is_operand {
            self.operand(name, Err(errno));
        } else {
            self.entry(name, Err(errno));
        }
        self.skip_directory();
    }

    /// Counts an entry of the current directory that is not a directory, or reports why its
    /// metadata is not known.
    pub fn entry(&mut self, name: &[u8], meta: Result<&Meta, Errno>) {
        if !self.finds_entry() || self.is_excluded(name, false) {
            return;
        }
        let meta = match meta {
            Ok(meta) if self.is_on_other_device(meta) => return,
            Ok(meta) => meta,
            Err(errno) => return self.accumulator.report_inaccessible(name, Some(errno)),
        };
        let name = if self.visitor.gets_line(self.accumulator.depth()) { name } else { b"" };
        self.accumulator.count_file(name, &self.visitor.totals(meta), self.visitor.id(meta), Some(meta));
    }

    /// Leaves the current directory. `broken` is the error due to which some of its entries are not
    /// known.
    pub fn leave(&mut self, broken: Option<Errno>) {
        if self.skipped_dirs > 0 {
            self.skipped_dirs -= 1;
        } else {
            self.accumulator.leave(broken);
        }
    }

    /// Records that the current directory has an entry, counted or not. Returns false in a
    /// directory that is skipped.
    fn finds_entry(&mut self) -> bool {
        let counted = self.skipped_dirs == 0;
        if counted {
            self.accumulator.mark_nonempty();
        }
        counted
    }

    fn is_excluded(&mut self, name: &[u8], is_operand: bool) -> bool {
        let exclude = &self.visitor.options.exclude;
        if is_operand {
            exclude.matches(name)
        } else {
            !exclude.is_empty() && exclude.matches_below(&self.accumulator.path, name, &mut self.excluded)
        }
    }

    fn is_on_other_device(&self, meta: &Meta) -> bool {
        self.visitor.options.one_file_system && self.root_dev.is_some_and(|dev| dev != meta.dev)
    }
}

/// Returns whether the recorded totals of directories are enough for all lines, without the files
/// in them.
#[must_use]
pub fn needs_directories_only(options: &Options, report: &impl Report) -> bool {
    use crate::options::Measure;
    let Options { all, exclude, time, one_file_system, measure, .. } = options;
    !*all
        && exclude.is_empty()
        && time.is_none()
        && !*one_file_system
        && *measure != Measure::Lengths
        && !report.wants_metas()
}

/// Reports a line, unless the options omit it.
pub fn report_line(options: &Options, line: &Line<'_>, report: &mut impl Report) {
    if options.shows(line) {
        report.line(line);
    }
}
