//! What a finished program left behind, and how two of them differ. Waits for a program no longer than it may take.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Longest that one run may take, on a loaded machine, before it counts as hanging.
const RUN_MAX: Duration = Duration::from_secs(120);

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It returned this status.
    Status(i32),
    /// This signal ended it.
    Signal(i32),
    /// It had to be killed after [`RUN_MAX`].
    TimedOut,
}

/// What a program wrote and how it ended.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Its standard output.
    pub(crate) stdout: Vec<u8>,
    /// Its standard error.
    pub(crate) stderr: Vec<u8>,
    /// How it ended.
    pub(crate) end: End,
}

impl Outcome {
    /// Standard output as text.
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Checks the exit status: proof that a case is the one its test means.
    #[track_caller]
    pub(crate) fn status(&self, expected: i32) -> &Outcome {
        assert_eq!(self.end, End::Status(expected), "GNU du: {self:?}");
        self
    }

    /// Checks that standard output has this text in it.
    #[track_caller]
    pub(crate) fn prints(&self, text: &str) -> &Outcome {
        assert!(self.out().contains(text), "GNU du does not print {text:?}: {self:?}");
        self
    }

    /// Checks that standard error has this text in it; without text, that it is empty.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Outcome {
        let err = self.err();
        let holds = if text.is_empty() { err.is_empty() } else { err.contains(text) };
        assert!(holds, "GNU du does not say {text:?}: {self:?}");
        self
    }

    /// Where `other` first departs from `self`, for a person to read; nothing if it does not.
    pub(crate) fn difference(&self, other: &Outcome) -> Option<String> {
        let stdout = first_difference("stdout", &self.stdout, &other.stdout);
        let stderr = first_difference("stderr", &self.stderr, &other.stderr);
        let end = (self.end != other.end).then(|| format!("end: {:?}, not {:?}", other.end, self.end));
        let all: Vec<String> = [stdout, stderr, end].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let excerpt = |text: String| text.chars().take(2000).collect::<String>();
        write!(f, "{:?}\nstdout:\n{}\nstderr:\n{}", self.end, excerpt(self.out()), excerpt(self.err()))
    }
}

fn first_difference(stream: &str, expected: &[u8], actual: &[u8]) -> Option<String> {
    if expected == actual {
        return None;
    }
    let lines = |text: &[u8]| -> Vec<String> {
        text.split_inclusive(|&byte| byte == b'\n' || byte == 0)
            .map(|line| line.escape_ascii().to_string())
            .collect()
    };
    let (expected, actual) = (lines(expected), lines(actual));
    let same = expected.iter().zip(&actual).take_while(|(a, b)| a == b).count();
    let excerpt = |lines: &[String], mark: &str| -> String {
        lines[same..].iter().take(8).map(|line| format!("  {mark} {line}\n")).collect()
    };
    let counts = format!(
        "{stream}: GNU du {} lines, fathom {}; from line {}:",
        expected.len(),
        actual.len(),
        same + 1
    );
    Some(format!("{counts}\n{}{}", excerpt(&expected, "-"), excerpt(&actual, "+")))
}

/// Runs `command` to its end with `stdin` as its input.
pub(crate) fn finish(command: &mut Command, stdin: &[u8]) -> Outcome {
    let mut running = Running::start(command);
    thread::scope(|scope| {
        if let Some(mut pipe) = running.child.stdin.take() {
            // A program that does not read its input breaks the pipe: its right.
            scope.spawn(move || pipe.write_all(stdin));
        }
        running.reap()
    })
}

/// A program that is killed if it takes too long.
pub(crate) struct Running {
    /// The program.
    pub(crate) child: Child,
    done: Sender<()>,
    watchdog: JoinHandle<bool>,
}

impl Running {
    /// Starts `command`.
    pub(crate) fn start(command: &mut Command) -> Running {
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let pid = Pid::from_child(&child);
        let (done, watch) = channel();
        let watchdog = thread::spawn(move || {
            let late = watch.recv_timeout(RUN_MAX) == Err(RecvTimeoutError::Timeout);
            late && kill_process(pid, Signal::KILL).is_ok()
        });
        Running { child, done, watchdog }
    }

    /// Waits for its end while collecting what it writes to its pipes.
    pub(crate) fn reap(mut self) -> Outcome {
        let stderr = self.child.stderr.take().map(|pipe| thread::spawn(move || drain(pipe)));
        let stdout = self.child.stdout.take().map(drain).unwrap_or_default();
        let stderr = stderr.map(|reader| reader.join().expect("reading does not panic")).unwrap_or_default();
        let status = self.child.wait().expect("nobody else waits for it");
        drop(self.done);
        let killed = self.watchdog.join().expect("the watchdog does not panic");
        Outcome { stdout, stderr, end: if killed { End::TimedOut } else { end_of(status) } }
    }
}

fn drain(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).expect("pipes can be read");
    bytes
}

fn end_of(status: ExitStatus) -> End {
    status.code().map_or_else(|| End::Signal(status.signal().unwrap_or(0)), End::Status)
}
