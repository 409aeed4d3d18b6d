//! The output of a removal: names of removed entries, messages about failures, the log. The threads
//! that remove entries share it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_remove::{Observer, RemovalFailure, RemovedEntry};
use fathom_text::quote::{Charset, quoteaf};
use fathom_text::strerror;
use fathom_walk::{Errno, FileType};

use super::NAME;
use crate::shared::output::{Output, write_stderr};
use crate::shared::removal::{RemovalLog, failure_message};

/// The words before the name of an entry that is no directory, and of a directory.
pub(crate) type EventWords = [&'static str; 2];

/// The receiver of events.
pub(crate) struct RmReport {
    charset: Charset,
    out: Mutex<Output>,
    /// The words of `-v`.
    words: Option<EventWords>,
    log: Option<Mutex<RemovalLog>>,
    /// Stops the removal if the log cannot be written.
    stop: Arc<AtomicBool>,
    has_failed: AtomicBool,
    /// Whether a failure of the log has been reported.
    has_lost_log: AtomicBool,
}

impl RmReport {
    pub(crate) fn new(
        charset: Charset,
        words: Option<EventWords>,
        log: Option<RemovalLog>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let (out, log) = (Mutex::new(Output::with_quoted_names()), log.map(Mutex::new));
        let (has_failed, has_lost_log) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { charset, out, words, log, stop, has_failed, has_lost_log }
    }

    pub(crate) fn charset(&self) -> Charset {
        self.charset
    }

    fn out(&self) -> MutexGuard<'_, Output> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes text to standard output.
    pub(crate) fn print(&self, text: &[u8]) {
        self.out().write(text);
    }

    /// Prints a message on standard error, behind all lines written before.
    pub(crate) fn print_error(&self, message: &[u8]) {
        let _whole = self.out();
        write_stderr(&[NAME.as_bytes(), b": ", message, b"\n"].concat());
    }

    /// Prints a failure of something other than a removal.
    pub(crate) fn fail(&self, message: &[u8]) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.print_error(message);
    }

    /// Returns the exit status, with a message if standard output could not be written.
    pub(crate) fn status(&self) -> u8 {
        let out = std::mem::replace(&mut *self.out(), Output::new());
        out.finish(NAME).max(u8::from(self.has_failed.load(Ordering::Relaxed)))
    }

    fn write_log(&self, entries: &[RemovedEntry]) {
        let Some(log) = &self.log else { return };
        let written = log.lock().unwrap_or_else(PoisonError::into_inner).append(entries);
        let Err(error) = written else { return };
        self.stop.store(true, Ordering::Relaxed);
        if !self.has_lost_log.swap(true, Ordering::Relaxed) {
            self.fail(&[b"cannot write the log: ", &cause(&error)[..]].concat());
        }
    }
}

impl Observer for RmReport {
    fn wants_entries(&self) -> bool {
        self.words.is_some() || self.log.is_some()
    }

    fn removed(&self, entries: &[RemovedEntry]) {
        self.write_log(entries);
        let Some([file, directory]) = self.words else { return };
        let mut lines = Vec::new();
        for entry in entries {
            let words = if entry.file_type == FileType::Directory { directory } else { file };
            let name = quoteaf(&entry.path, self.charset);
            lines.extend([words.as_bytes(), b" ", &name, b"\n"].concat());
        }
        self.out().write(&lines);
    }

    fn failed(&self, failure: &RemovalFailure) {
        self.fail(&failure_message(failure, self.charset));
    }
}

/// The failures of a count before the question: why something stays.
#[derive(Default)]
pub(crate) struct KeptReasons(Mutex<(Vec<RemovalFailure>, u64)>);

/// The most failures that are shown before the question.
const REASONS_MAX: usize = 5;

impl KeptReasons {
    /// Returns a line for each of the first failures, and for how many others there are.
    pub(crate) fn texts(&self, charset: Charset) -> Vec<u8> {
        let (kept, others) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = |message: &[u8]| [NAME.as_bytes(), b": ", message, b"\n"].concat();
        let mut text: Vec<u8> =
            kept.iter().flat_map(|failure| line(&failure_message(failure, charset))).collect();
        if *others > 0 {
            text.extend(line(format!("{others} more cannot be removed").as_bytes()));
        }
        text
    }
}

impl Observer for KeptReasons {
    fn failed(&self, failure: &RemovalFailure) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0.len() < REASONS_MAX {
            kept.0.push(failure.clone());
        } else {
            kept.1 += 1;
        }
    }
}

/// Returns the words for an I/O error.
pub(crate) fn cause(error: &std::io::Error) -> Vec<u8> {
    Errno::from_io_error(error).map_or_else(|| error.to_string().into_bytes(), strerror)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_the_log_is_reported_after_a_signal_too() {
        let log = RemovalLog::open(std::path::Path::new("/dev/full"), "remove").unwrap();
        let report = RmReport::new(Charset::Ascii, None, Some(log), Arc::new(AtomicBool::new(true)));
        let (path, file_type) = (b"a".to_vec(), FileType::Regular);
        let entry = RemovedEntry { path, file_type, dev: 1, ino: 2, allocated: None };
        assert!(!report.has_failed.load(Ordering::Relaxed));
        report.removed(&[entry]);
        assert!(report.has_failed.load(Ordering::Relaxed));
    }
}
