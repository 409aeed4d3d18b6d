//! The error log: problems that no single response shows, at most one line a second for each
//! category.
//!
//! Owns: the categories, their rate limits, and the counts of suppressed lines. Does not own: the
//! queue (`writer`), and the text of a message besides its category.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fathom_io::Clock;
use jiff::Timestamp;

use super::writer::{LogCallbacks, LogQueue, LogTarget};
use crate::error::Error;

/// The minimum time between two lines of one category.
const PAUSE: Duration = Duration::from_secs(1);

/// A category of errors. Each has its own count and rate limit, so that one client's failed
/// handshakes do not hide a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCategory {
    /// Connections cannot be accepted: descriptors or memory are used up.
    Accept,
    /// The number of connections has reached the configured limit.
    Connections,
    /// Descriptors or memory for files are used up.
    Descriptors,
    /// An existing file cannot be read.
    Files,
    /// The queue of the thread pool is full.
    Pool,
    /// Memory for responses is used up.
    Buffers,
    /// The access log cannot be written.
    AccessLog,
    /// A proxy did not name its client.
    Proxy,
    /// Passwords are not checked: too many wait, or too many were wrong.
    Passwords,
    /// A TLS handshake failed.
    Tls,
    /// A file is too large to be compressed while serving.
    Compress,
    /// A bug: a connection, a call or a worker panicked.
    Panics,
}

impl ErrorCategory {
    /// All categories, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Accept,
        Self::Connections,
        Self::Descriptors,
        Self::Files,
        Self::Pool,
        Self::Buffers,
        Self::AccessLog,
        Self::Proxy,
        Self::Passwords,
        Self::Tls,
        Self::Compress,
        Self::Panics,
    ];

    /// Returns the name of the category in a count of suppressed messages.
    fn description(self) -> &'static str {
        match self {
            Self::Accept => "connections that could not be accepted",
            Self::Connections => "times at the limit of connections",
            Self::Descriptors => "requests without a descriptor or memory",
            Self::Files => "files that could not be read",
            Self::Pool => "requests while too many waited for storage",
            Self::Buffers => "responses dropped because the buffers were full",
            Self::AccessLog => "failed writes of the access log",
            Self::Proxy => "connections of proxies without a PROXY header",
            Self::Passwords => "passwords that were not checked",
            Self::Tls => "failed TLS handshakes",
            Self::Compress => "files that are too large to compress",
            Self::Panics => "panics",
        }
    }
}

/// The time of the last line of a category, and the number of suppressed lines since.
#[derive(Debug, Default)]
struct ReportLimit {
    written: Option<Instant>,
    suppressed: u64,
}

impl ReportLimit {
    /// Returns the number of suppressed messages if a message may be written at `now`; otherwise
    /// counts it as suppressed.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.written.is_some_and(|written| now.saturating_duration_since(written) < PAUSE) {
            self.suppressed += 1;
            return None;
        }
        self.written = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }

    /// Returns the number of suppressed messages, if there are any and a line may be written.
    fn due(&mut self, now: Instant) -> Option<u64> {
        let suppressed = self.suppressed;
        if suppressed == 0 {
            return None;
        }
        let admitted = self.admit(now);
        if admitted.is_none() {
            self.suppressed = suppressed;
        }
        admitted
    }
}

/// A handle of the error log. Clones share the log.
#[derive(Clone, Default)]
pub struct ErrorReporter(Arc<ReporterInner>);

#[derive(Default)]
struct ReporterInner {
    limits: [Mutex<ReportLimit>; ErrorCategory::ALL.len()],
    /// `None` if messages are discarded.
    queue: Mutex<Option<LogQueue>>,
    /// Whether lines begin with the time: true for files, where no other program adds it.
    timed: bool,
    /// The clock of the rate limits.
    clock: Clock,
}

impl ErrorReporter {
    /// Opens `target` and starts the thread that writes to it. Lines in a file begin with the time.
    /// `clock` tells when a category may have its next line.
    pub fn start(target: LogTarget, clock: Clock) -> Result<Self, Error> {
        let timed = matches!(target, LogTarget::File(_));
        let dropped = move |time, count: u64, out: &mut Vec<u8>| {
            out.extend_from_slice(&line(timed, time, &format!("{count} messages dropped")));
        };
        let (dropped, failed) = (Box::new(dropped), Box::new(|_: &_| {}));
        let notices = LogCallbacks { dropped, failed, splits_lines: true };
        let queue = Mutex::new(Some(LogQueue::start("error-log", target, notices)?));
        Ok(Self(Arc::new(ReporterInner { limits: Default::default(), queue, timed, clock })))
    }

    /// Writes the message that `message` returns, unless a message of the same category was written
    /// less than a second ago: then it is counted, and the count is written later. Never waits for
    /// the disk.
    pub fn report(&self, category: ErrorCategory, message: impl FnOnce() -> String) {
        let now = self.0.clock.now();
        if let Some(suppressed) = self.limit(category, |limit| limit.admit(now)) {
            let more = match suppressed {
                0 => String::new(),
                count => format!(" (and {count} more {} before)", category.description()),
            };
            self.write(&(message() + &more));
        }
    }

    /// Writes `message` without rate limiting; the caller must limit the number of messages.
    pub fn note(&self, message: &str) {
        self.write(message);
    }

    /// Writes the number of suppressed messages of each category that may write again. Call it
    /// regularly.
    pub fn sweep(&self) {
        self.sweep_at(self.0.clock.now());
    }

    fn sweep_at(&self, now: Instant) {
        for category in ErrorCategory::ALL {
            if let Some(count) = self.limit(category, |limit| limit.due(now)) {
                self.write(&format!("{count} more {}", category.description()));
            }
        }
    }

    /// Reopens the log file under its name.
    ///
    /// # Errors
    /// If the file cannot be opened; then the old one is kept.
    pub fn reopen(&self) -> Result<(), Error> {
        self.queue(|queue| queue.as_ref().map_or(Ok(()), LogQueue::reopen))
    }

    /// Waits until all messages are written, for at most `timeout`. Returns whether they are. Later
    /// messages are discarded.
    pub fn close(&self, timeout: Duration) -> bool {
        self.sweep_at(self.0.clock.now() + PAUSE);
        self.queue(Option::take).is_none_or(|queue| queue.close(timeout))
    }

    fn write(&self, message: &str) {
        let line = line(self.0.timed, SystemTime::now(), message);
        self.queue(|queue| {
            if let Some(queue) = queue {
                queue.line(&line);
            }
        });
    }

    fn queue<T>(&self, look: impl FnOnce(&mut Option<LogQueue>) -> T) -> T {
        look(&mut self.0.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn limit<T>(
        &self,
        category: ErrorCategory,
        look: impl FnOnce(&mut ReportLimit) -> Option<T>,
    ) -> Option<T> {
        let limit = self.0.limits.get(category as usize)?;
        look(&mut limit.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Formats a line. Control characters, which a file name may have, are escaped: a message stays on
/// its line and cannot send commands to a terminal.
fn line(timed: bool, time: SystemTime, message: &str) -> Vec<u8> {
    let mut text = match timed {
        true => {
            let time = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
            time.strftime("%Y-%m-%dT%H:%M:%SZ ").to_string()
        }
        false => String::new(),
    };
    for char in message.chars() {
        match char.is_control() {
            true => text.extend(char.escape_default()),
            false => text.push(char),
        }
    }
    text.push('\n');
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(act: impl FnOnce(&ErrorReporter)) -> String {
        let lines = Lines::default();
        let errors = ErrorReporter::start(LogTarget::Stream(Box::new(lines.clone())), Clock::held()).unwrap();
        act(&errors);
        assert!(errors.close(PATIENCE));
        errors.report(ErrorCategory::Tls, || "after the end".to_owned());
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_kind_has_one_line_a_second_and_the_rest_is_counted() {
        let text = written(|errors| {
            let later = |ms| errors.0.clock.advance(Duration::from_millis(ms));
            let report = |category, text: &str| errors.report(category, || text.to_owned());
            report(ErrorCategory::Tls, "one");
            later(999);
            report(ErrorCategory::Tls, "two");
            report(ErrorCategory::Accept, "another kind");
            later(1);
            report(ErrorCategory::Tls, "three");
            later(1);
            report(ErrorCategory::Tls, "four");
            report(ErrorCategory::Tls, "five");
            later(998);
            errors.sweep();
            later(1);
            errors.sweep();
            later(9_000);
            errors.sweep();
        });
        let expected = "one\nanother kind\nthree (and 1 more failed TLS handshakes before)\n2 more failed TLS handshakes\n";
        assert_eq!(text, expected);
    }

    /// A stream that puts the program's name before each write would else leave it out.
    #[test]
    fn each_line_is_a_write_of_its_own() {
        struct Named(Lines);
        impl Write for Named {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.write_all(b"name: ")?;
                self.0.write(bytes)
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let lines = Lines::default();
        let stream = LogTarget::Stream(Box::new(Named(lines.clone())));
        let errors = ErrorReporter::start(stream, Clock::held()).unwrap();
        // The writer cannot take all of them one by one.
        (0..200).for_each(|number| errors.note(&number.to_string()));
        assert!(errors.close(PATIENCE));
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(text.lines().eq((0..200).map(|number| format!("name: {number}"))), "{text}");
    }

    #[test]
    fn suppressed_messages_are_counted_before_the_end() {
        let text = written(|errors| {
            (0..3).for_each(|_| errors.report(ErrorCategory::Pool, || "full".to_owned()));
        });
        assert_eq!(text, "full\n2 more requests while too many waited for storage\n");
    }

    #[test]
    fn a_message_is_one_line() {
        let text = written(|errors| {
            errors.report(ErrorCategory::Files, || "'a\n\x1b[31m\u{9b}é' is bad".to_owned())
        });
        assert_eq!(text, "'a\\n\\u{1b}[31m\\u{9b}é' is bad\n");
    }

    #[test]
    fn lines_of_a_file_begin_with_the_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("error.log");
        let errors = ErrorReporter::start(LogTarget::File(path.clone()), Clock::default()).unwrap();
        std::fs::rename(&path, dir.path().join("old")).unwrap();
        errors.reopen().unwrap();
        errors.report(ErrorCategory::Files, || "bad".to_owned());
        assert!(errors.close(PATIENCE));
        let text = std::fs::read_to_string(&path).unwrap();
        let (time, message) = text.split_once(' ').unwrap();
        assert!(time.len() == 20 && time.ends_with('Z'), "{text}");
        assert_eq!(message, "bad\n");
    }
}
