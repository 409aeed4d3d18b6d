//! Runs DuckDB as a child in a process group of its own, which ends with this process: the program
//! that was found may be a script that starts another one.
//!
//! Owns: signals, the exit status, and what of the output a terminal may see. Does not own: the
//! command.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use fathom_io::sys::end_with_parent;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use signal_hook::consts::SIGPIPE;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::shared::cmdline::exit::FAILED;
use crate::shared::interrupt::termination_signals;
use crate::shared::output::{Output, stdout_is_terminal};

/// The most bytes of one line that are escaped at once.
const LINE_BYTES: u64 = 1 << 20;

/// How the child has ended.
pub(super) enum ChildEnd {
    /// By itself, with this exit status.
    Status(u8),
    /// With this process, which has got this signal, or because nobody reads its output (SIGPIPE).
    Signal(i32),
    /// By another signal.
    Killed(i32),
}

/// Runs `command` to its end. A signal that ends this process ends all processes of the child
/// first. On a terminal, its output has no control characters.
pub(super) fn run(command: &mut Command) -> io::Result<ChildEnd> {
    let is_shown = stdout_is_terminal();
    command.process_group(0).stdout(if is_shown { Stdio::piped() } else { Stdio::inherit() });
    end_with_parent(command);
    // Before the child starts, so that no signal finds it without this process.
    let mut signals = Signals::new(termination_signals())?;
    let mut child = command.spawn()?;
    let (group, received) = (Pid::from_child(&child), Arc::new(AtomicI32::new(0)));
    let (handle, ended_by) = (signals.handle(), Arc::clone(&received));
    let waiting = std::thread::Builder::new().spawn(move || {
        if let Some(signal) = signals.forever().next() {
            ended_by.store(signal, Ordering::Relaxed);
            kill(group);
        }
        // The handlers write to a pipe, which has to have a reader until `handle` is closed.
        signals
    });
    let waiting = waiting.inspect_err(|_| kill(group));
    let failed = child.stdout.take().is_some_and(|stdout| !show(stdout));
    if failed {
        kill(group);
    }
    // The number of the group stays taken until the child has been waited for, so the thread kills
    // no other one.
    let _ended = waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    handle.close();
    // The thread ends with its signals, so what it has received is known after that.
    let _ended = waiting?.join();
    let ended = child.wait();
    match received.load(Ordering::Relaxed) {
        0 if failed => Ok(ChildEnd::Status(FAILED)),
        0 => ended.map(end),
        signal => Ok(ChildEnd::Signal(signal)),
    }
}

/// Ends this process by `signal`, as its default action does.
pub(super) fn end_by(signal: i32) -> u8 {
    let _ended = emulate_default_handler(signal);
    u8::try_from(signal).map_or(FAILED, |signal| signal.saturating_add(128))
}

fn end(status: ExitStatus) -> ChildEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => ChildEnd::Status(u8::try_from(code).unwrap_or(FAILED)),
        (None, Some(SIGPIPE)) => ChildEnd::Signal(SIGPIPE),
        (None, signal) => ChildEnd::Killed(signal.unwrap_or(0)),
    }
}

fn kill(group: Pid) {
    // It fails if all of them have ended.
    let _gone = kill_process_group(group, Signal::KILL);
}

/// Shows the output on the terminal. Returns whether that worked.
fn show(stdout: ChildStdout) -> bool {
    let (mut stdout, mut out, mut line) = (BufReader::new(stdout), Output::new(), Vec::new());
    loop {
        line.clear();
        match (&mut stdout).take(LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => return out.finish(super::NAME) == 0,
            Ok(_) => out.buffer().extend_from_slice(&line),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
        // A line is shown at once, whether or not more comes.
        if stdout.buffer().is_empty() {
            out.flush();
        }
        out.flush_if_full();
        if out.has_failed() {
            return out.finish(super::NAME) == 0;
        }
    }
}
