//! Where a listing goes: lines to standard output, problems to standard error. Workers share it; a write is whole lines.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_inventory::ignores::Malformed;
use fathom_text::quote::{Charset, quoteaf};
use fathom_text::words;
use fathom_walk::Errno;

use super::NAME;
use super::plan::Problem;
use crate::output::{Output, complain};

/// Lines are written once there are so many bytes: what a pipe takes at once.
pub(crate) const FULL_BYTES: usize = 64 * 1024;

/// Standard output and standard error.
pub(crate) struct Report {
    charset: Charset,
    out: Mutex<Output>,
    /// Set by Ctrl-C.
    stop: Arc<AtomicBool>,
    broken: AtomicBool,
    entries: AtomicU64,
    problems: AtomicU64,
}

impl Report {
    pub(crate) fn new(charset: Charset, stop: Arc<AtomicBool>) -> Self {
        Self {
            charset,
            out: Mutex::new(Output::of_quoted()),
            stop,
            broken: AtomicBool::new(false),
            entries: AtomicU64::new(0),
            problems: AtomicU64::new(0),
        }
    }

    fn out(&self) -> MutexGuard<'_, Output> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines, whole ones, of `count` entries.
    pub(crate) fn write(&self, lines: &[u8], count: u64) {
        self.entries.fetch_add(count, Ordering::Relaxed);
        if lines.is_empty() {
            return;
        }
        let mut out = self.out();
        out.write(lines);
        self.broken.store(out.has_failed(), Ordering::Relaxed);
    }

    /// Entries listed.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Whether there is no point in going on.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_interrupted() || self.broken.load(Ordering::Relaxed)
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn problem(&self, problem: &Problem) {
        let is_failure = !matches!(problem, Problem::Rule(..));
        self.problems.fetch_add(u64::from(is_failure), Ordering::Relaxed);
        self.say(&message(problem, self.charset));
    }

    /// Prints a message, after the lines before it.
    pub(crate) fn say(&self, message: &[u8]) {
        let _whole = self.out();
        complain(&[NAME.as_bytes(), b": ", message, b"\n"].concat());
    }

    pub(crate) fn problems(&self) -> u64 {
        self.problems.load(Ordering::Relaxed)
    }

    /// The exit status, with a message if not everything could be written.
    pub(crate) fn status(&self) -> u8 {
        let out = std::mem::replace(&mut *self.out(), Output::of_quoted());
        out.finish(NAME).max(u8::from(self.problems() > 0))
    }
}

/// Returns the message about a problem, without the program's name.
pub(crate) fn message(problem: &Problem, charset: Charset) -> Vec<u8> {
    let said = |deed: &str, path: &[u8], cause: &[u8]| {
        [b"cannot ", deed.as_bytes(), b" ", &quoteaf(path, charset)[..], b": ", cause].concat()
    };
    let cause = |errno: &Errno| words(*errno);
    match problem {
        Problem::Access(path, errno) => said("access", path, &cause(errno)),
        Problem::Read(path, errno) => said("read directory", path, &cause(errno)),
        Problem::File(path, errno) => said("read", path, &cause(errno)),
        Problem::Rule(path, malformed) => warning(path, malformed, charset),
        Problem::Loop(path) => said("descend into", path, b"It is one of the directories it is in"),
    }
}

fn warning(path: &[u8], malformed: &Malformed, charset: Charset) -> Vec<u8> {
    let place = malformed.line.map_or_else(String::new, |line| format!("line {line} of "));
    let others = match malformed.more {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let cause = format!("{others} has no effect: {malformed}");
    [b"warning: ", place.as_bytes(), &quoteaf(path, charset), cause.as_bytes()].concat()
}
