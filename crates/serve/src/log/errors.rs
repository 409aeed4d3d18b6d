//! The error log: trouble that no single response shows, at most one line a second of each kind.
//!
//! Owns: which kinds there are, how often each is written, how many lines were left out. Does not
//! own: how lines travel (`writer`), what a message says beside its kind.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;

use super::writer::{Notices, Queue, Target};
use crate::error::Error;

/// Lines of one kind are this far apart.
const PAUSE: Duration = Duration::from_secs(1);

/// A kind of trouble. Kinds are counted and limited apart, so that one client's failed handshakes
/// hide no full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Connections cannot be accepted: descriptors or memory are used up.
    Accept,
    /// As many connections are open as the configuration allows.
    Connections,
    /// Descriptors or memory for files are used up.
    Descriptors,
    /// A file that is there cannot be read.
    Files,
    /// More calls wait for storage than the pool takes.
    Pool,
    /// Memory for responses is used up.
    Buffers,
    /// The access log cannot be written.
    AccessLog,
    /// A proxy did not say whom it speaks for.
    Proxy,
    /// A TLS handshake failed.
    Tls,
    /// A file is too large to be compressed while serving.
    Compress,
}

impl Trouble {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Accept,
        Self::Connections,
        Self::Descriptors,
        Self::Files,
        Self::Pool,
        Self::Buffers,
        Self::AccessLog,
        Self::Proxy,
        Self::Tls,
        Self::Compress,
    ];

    /// The kind in a message that counts more of it.
    fn words(self) -> &'static str {
        match self {
            Self::Accept => "connections that could not be accepted",
            Self::Connections => "times at the limit of connections",
            Self::Descriptors => "requests without a descriptor or memory",
            Self::Files => "files that could not be read",
            Self::Pool => "requests while too many waited for storage",
            Self::Buffers => "responses given up for want of buffers",
            Self::AccessLog => "failed writes of the access log",
            Self::Proxy => "connections of proxies without a PROXY header",
            Self::Tls => "failed TLS handshakes",
            Self::Compress => "files that are too large to compress",
        }
    }
}

/// When a kind was last written, and how often it was left out since.
#[derive(Debug, Default)]
struct Limit {
    written: Option<Instant>,
    left_out: u64,
}

impl Limit {
    /// Whether a message may be written at `now`, and how many were left out before it.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.written.is_some_and(|written| now.saturating_duration_since(written) < PAUSE) {
            self.left_out += 1;
            return None;
        }
        self.written = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }

    /// How many messages were left out, once a line may be written again.
    fn due(&mut self, now: Instant) -> Option<u64> {
        let left_out = self.left_out;
        if left_out == 0 {
            return None;
        }
        let admitted = self.admit(now);
        if admitted.is_none() {
            self.left_out = left_out;
        }
        admitted
    }
}

/// The error log. Clones are the same log.
#[derive(Clone, Default)]
pub struct Errors(Arc<Inner>);

#[derive(Default)]
struct Inner {
    limits: [Mutex<Limit>; Trouble::ALL.len()],
    /// None where messages go nowhere.
    queue: Mutex<Option<Queue>>,
    /// Whether lines begin with the time: true for files, where no other program adds it.
    timed: bool,
}

impl Errors {
    /// Opens `target` and starts the thread that writes to it. Lines in a file begin with the time.
    pub fn start(target: Target) -> Result<Self, Error> {
        let timed = matches!(target, Target::File(_));
        let dropped = move |time, count: u64, out: &mut Vec<u8>| {
            out.extend_from_slice(&line(timed, time, &format!("{count} messages dropped")));
        };
        let notices = Notices { dropped: Box::new(dropped), failed: Box::new(|_| {}) };
        let queue = Mutex::new(Some(Queue::start("error-log", target, notices)?));
        Ok(Self(Arc::new(Inner { limits: Default::default(), queue, timed })))
    }

    /// Writes what `message` gives, unless a message of the same kind was written less than a
    /// second ago: then it is counted, and the count follows. Never waits for the disk.
    pub fn report(&self, trouble: Trouble, message: impl FnOnce() -> String) {
        self.report_at(trouble, message, Instant::now());
    }

    /// Writes `message` without rate limiting; the caller must limit the number of messages.
    pub fn note(&self, message: &str) {
        self.write(message);
    }

    fn report_at(&self, trouble: Trouble, message: impl FnOnce() -> String, now: Instant) {
        if let Some(left_out) = self.limit(trouble, |limit| limit.admit(now)) {
            let more = match left_out {
                0 => String::new(),
                count => format!(" (and {count} more {} before)", trouble.words()),
            };
            self.write(&(message() + &more));
        }
    }

    /// Writes how many messages were left out, for kinds that may be written again. To be called
    /// now and then.
    pub fn sweep(&self, now: Instant) {
        for trouble in Trouble::ALL {
            if let Some(count) = self.limit(trouble, |limit| limit.due(now)) {
                self.write(&format!("{count} more {}", trouble.words()));
            }
        }
    }

    /// Goes on with a file newly opened under the same name.
    ///
    /// # Errors
    /// If it cannot be opened; then the old one is kept.
    pub fn reopen(&self) -> Result<(), Error> {
        self.queue(|queue| queue.as_ref().map_or(Ok(()), Queue::reopen))
    }

    /// Waits until everything is written, `timeout` at most; whether it is. Later messages go
    /// nowhere.
    pub fn close(&self, timeout: Duration) -> bool {
        let far = Instant::now() + PAUSE;
        self.sweep(far);
        self.queue(Option::take).is_none_or(|queue| queue.close(timeout))
    }

    fn write(&self, message: &str) {
        let line = line(self.0.timed, SystemTime::now(), message);
        self.queue(|queue| {
            if let Some(queue) = queue {
                queue.line(line);
            }
        });
    }

    fn queue<T>(&self, look: impl FnOnce(&mut Option<Queue>) -> T) -> T {
        look(&mut self.0.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn limit<T>(&self, trouble: Trouble, look: impl FnOnce(&mut Limit) -> Option<T>) -> Option<T> {
        let limit = self.0.limits.get(trouble as usize)?;
        look(&mut limit.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A line of `message`. Control characters, which a name of a file may have, are escaped: a message
/// stays on its line and reaches no terminal as a command.
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

    fn written(act: impl FnOnce(&Errors)) -> String {
        let lines = Lines::default();
        let errors = Errors::start(Target::Stream(Box::new(lines.clone()))).unwrap();
        act(&errors);
        assert!(errors.close(PATIENCE));
        errors.report(Trouble::Tls, || "after the end".to_owned());
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_kind_has_one_line_a_second_and_the_rest_is_counted() {
        let start = Instant::now();
        let text = written(|errors| {
            let report = |trouble, after_ms, text: &str| {
                errors.report_at(trouble, || text.to_owned(), start + Duration::from_millis(after_ms));
            };
            report(Trouble::Tls, 0, "one");
            report(Trouble::Tls, 999, "two");
            report(Trouble::Accept, 999, "another kind");
            report(Trouble::Tls, 1000, "three");
            report(Trouble::Tls, 1001, "four");
            report(Trouble::Tls, 1002, "five");
            errors.sweep(start + Duration::from_millis(1999));
            errors.sweep(start + Duration::from_millis(2000));
            errors.sweep(start + Duration::from_millis(9000));
        });
        let expected = "one\nanother kind\nthree (and 1 more failed TLS handshakes before)\n2 more failed TLS handshakes\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_was_left_out_is_said_before_the_end() {
        let text = written(|errors| {
            (0..3).for_each(|_| errors.report(Trouble::Pool, || "full".to_owned()));
        });
        assert_eq!(text, "full\n2 more requests while too many waited for storage\n");
    }

    #[test]
    fn a_message_is_one_line() {
        let text =
            written(|errors| errors.report(Trouble::Files, || "'a\n\x1b[31m\u{9b}é' is bad".to_owned()));
        assert_eq!(text, "'a\\n\\u{1b}[31m\\u{9b}é' is bad\n");
    }

    #[test]
    fn lines_of_a_file_begin_with_the_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("error.log");
        let errors = Errors::start(Target::File(path.clone())).unwrap();
        std::fs::rename(&path, dir.path().join("old")).unwrap();
        errors.reopen().unwrap();
        errors.report(Trouble::Files, || "bad".to_owned());
        assert!(errors.close(PATIENCE));
        let text = std::fs::read_to_string(&path).unwrap();
        let (time, message) = text.split_once(' ').unwrap();
        assert!(time.len() == 20 && time.ends_with('Z'), "{text}");
        assert_eq!(message, "bad\n");
    }
}
