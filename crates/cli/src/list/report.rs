//! The output of a listing: lines to standard output, problems to standard error. Shared by the
//! workers; each write consists of whole lines.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_inventory::ignores::MalformedRule;
use fathom_text::quote::{Charset, quoteaf};
use fathom_text::strerror;
use fathom_walk::Errno;

use super::NAME;
use super::plan::ListProblem;
use crate::shared::output::{Output, write_stderr};

/// Standard output and standard error, with counters.
pub(crate) struct ListReport {
    charset: Charset,
    out: Mutex<Output>,
    /// Set by SIGINT.
    stop: Arc<AtomicBool>,
    broken: AtomicBool,
    entries: AtomicU64,
    problems: AtomicU64,
}

impl ListReport {
    pub(crate) fn new(charset: Charset, stop: Arc<AtomicBool>) -> Self {
        Self {
            charset,
            out: Mutex::new(Output::with_quoted_names()),
            stop,
            broken: AtomicBool::new(false),
            entries: AtomicU64::new(0),
            problems: AtomicU64::new(0),
        }
    }

    fn out(&self) -> MutexGuard<'_, Output> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the whole lines of `count` entries.
    pub(crate) fn write(&self, lines: &[u8], count: u64) {
        self.entries.fetch_add(count, Ordering::Relaxed);
        if lines.is_empty() {
            return;
        }
        let mut out = self.out();
        out.write(lines);
        self.broken.store(out.has_failed(), Ordering::Relaxed);
    }

    /// Returns the number of listed entries.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Returns whether the listing must stop: interrupted, or standard output has failed.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_interrupted() || self.broken.load(Ordering::Relaxed)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn problem(&self, problem: &ListProblem) {
        let is_failure = !matches!(problem, ListProblem::Rule(..));
        self.problems.fetch_add(u64::from(is_failure), Ordering::Relaxed);
        self.print_error(&message(problem, self.charset));
    }

    /// Prints a message on standard error, behind all lines written before.
    pub(crate) fn print_error(&self, message: &[u8]) {
        let _whole = self.out();
        write_stderr(&[NAME.as_bytes(), b": ", message, b"\n"].concat());
    }

    pub(crate) fn problems(&self) -> u64 {
        self.problems.load(Ordering::Relaxed)
    }

    /// Flushes standard output. Returns the exit status, with a message if a write failed.
    pub(crate) fn status(&self) -> u8 {
        let out = std::mem::replace(&mut *self.out(), Output::with_quoted_names());
        out.finish(NAME).max(u8::from(self.problems() > 0))
    }
}

/// Returns the message about a problem, without the program name.
pub(crate) fn message(problem: &ListProblem, charset: Charset) -> Vec<u8> {
    let failed = |operation: &str, path: &[u8], cause: &[u8]| {
        [b"cannot ", operation.as_bytes(), b" ", &quoteaf(path, charset)[..], b": ", cause].concat()
    };
    let cause = |errno: &Errno| strerror(*errno);
    match problem {
        ListProblem::Access(path, errno) => failed("access", path, &cause(errno)),
        ListProblem::Read(path, errno) => failed("read directory", path, &cause(errno)),
        ListProblem::File(path, errno) => failed("read", path, &cause(errno)),
        ListProblem::Rule(path, malformed) => warning(path, malformed, charset),
        ListProblem::Loop(path) => failed("descend into", path, b"It is a parent of itself"),
    }
}

fn warning(path: &[u8], malformed: &MalformedRule, charset: Charset) -> Vec<u8> {
    let place = malformed.line.map_or_else(String::new, |line| format!("line {line} of "));
    let others = match malformed.more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let cause = format!("{others} has no effect: {malformed}");
    [b"warning: ", place.as_bytes(), &quoteaf(path, charset), cause.as_bytes()].concat()
}
