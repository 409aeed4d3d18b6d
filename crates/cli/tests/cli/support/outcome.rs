//! The output and exit status of a finished program, and the difference between two of them. Kills
//! a program that exceeds the time limit.

use std::fmt;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Time limit of one run. Long enough for a loaded machine: a program that exceeds it hangs.
const RUN_MAX: Duration = Duration::from_secs(120);

/// The way in which a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramEnd {
    /// It exited with this status.
    Status(i32),
    /// It was terminated by this signal.
    Signal(i32),
    /// It was killed after [`RUN_MAX`].
    TimedOut,
}

/// The output of a program and the way in which it ended.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Standard output.
    pub(crate) stdout: Vec<u8>,
    /// Standard error.
    pub(crate) stderr: Vec<u8>,
    /// Exit status, signal or timeout.
    pub(crate) end: ProgramEnd,
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

    /// Asserts the exit status, to prove that the case tests the behaviour that it names.
    #[track_caller]
    pub(crate) fn status(&self, expected: i32) -> &Outcome {
        assert_eq!(self.end, ProgramEnd::Status(expected), "GNU du: {self:?}");
        self
    }

    /// Asserts that standard output contains `text`.
    #[track_caller]
    pub(crate) fn prints(&self, text: &str) -> &Outcome {
        assert!(self.out().contains(text), "GNU du does not print {text:?}: {self:?}");
        self
    }

    /// Asserts that standard error contains `text`, or is empty if `text` is.
    #[track_caller]
    pub(crate) fn says(&self, text: &str) -> &Outcome {
        let err = self.err();
        let holds = if text.is_empty() { err.is_empty() } else { err.contains(text) };
        assert!(holds, "GNU du does not say {text:?}: {self:?}");
        self
    }

    /// Describes the first difference of each stream and of the end between `self` (GNU du) and
    /// `other`. Returns `None` if they are equal.
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

/// Runs `command` to its end with `stdin` as its standard input.
pub(crate) fn finish(command: &mut Command, stdin: &[u8]) -> Outcome {
    let mut running = RunningProgram::start(command);
    thread::scope(|scope| {
        if let Some(mut pipe) = running.child.stdin.take() {
            // Ignore EPIPE: a program need not read its input.
            scope.spawn(move || pipe.write_all(stdin));
        }
        running.reap()
    })
}

/// A running program that is killed when it exceeds [`RUN_MAX`].
pub(crate) struct RunningProgram {
    /// The process.
    pub(crate) child: Child,
    done: Sender<()>,
    watchdog: JoinHandle<bool>,
}

impl RunningProgram {
    /// Starts `command`.
    pub(crate) fn start(command: &mut Command) -> RunningProgram {
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let pid = Pid::from_child(&child);
        let (done, watch) = channel();
        let watchdog = thread::spawn(move || {
            let late = watch.recv_timeout(RUN_MAX) == Err(RecvTimeoutError::Timeout);
            late && kill_process(pid, Signal::KILL).is_ok()
        });
        RunningProgram { child, done, watchdog }
    }

    /// Waits for the process to end and collects the output of its pipes.
    pub(crate) fn reap(mut self) -> Outcome {
        let stderr = self.child.stderr.take().map(|pipe| thread::spawn(move || drain(pipe)));
        let stdout = self.child.stdout.take().map(drain).unwrap_or_default();
        let stderr = stderr.map(|reader| reader.join().expect("reading does not panic")).unwrap_or_default();
        let status = self.child.wait().expect("no other code waits for this child");
        drop(self.done);
        let killed = self.watchdog.join().expect("the watchdog does not panic");
        Outcome { stdout, stderr, end: if killed { ProgramEnd::TimedOut } else { end_of(status) } }
    }
}

fn drain(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).expect("pipes can be read");
    bytes
}

fn end_of(status: ExitStatus) -> ProgramEnd {
    status.code().map_or_else(|| ProgramEnd::Signal(status.signal().unwrap_or(0)), ProgramEnd::Status)
}
