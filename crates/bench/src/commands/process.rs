//! One execution of a command, with what its process used.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use fathom_io::sys::{ChildUsage, MigrationCounter, start_by_fork, wait_for_child};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::OutputSum;
use crate::machine::own_private_memory_bytes;
use crate::report::escape_line;

/// Interval of the checks for a stop. It is long enough not to disturb the measurement.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time that an output may stay open when its command has ended.
const OUTPUT_OPEN_MAX: Duration = Duration::from_secs(10);
/// Bytes of the standard error that are kept.
const KEPT_BYTES: u64 = 4096;
/// Characters of an error message that are quoted.
const REASON_MAX: usize = 500;

/// The treatment of the standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standard {
    /// It is `/dev/null`.
    Discarded,
    /// Its bytes are counted.
    Counted,
    /// Its bytes are counted and hashed.
    Summed,
}

/// A command that has ended.
pub(super) struct ProcessEnd {
    /// From the start of the process to its end.
    pub(super) seconds: f64,
    pub(super) used: ChildUsage,
    /// The private memory of this process when it started the command.
    pub(super) memory_floor_bytes: u64,
    /// `None` if this user may not count them.
    pub(super) migrations: Option<u64>,
    /// `None` if the output was discarded.
    pub(super) output: Option<OutputSum>,
    status: ExitStatus,
    stderr: Vec<u8>,
}

impl ProcessEnd {
    /// Returns the status and the first line of the standard error, unless the status is 0.
    pub(super) fn check_status(&self) -> Result<(), String> {
        if self.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.stderr);
        let line: String = text.lines().next().unwrap_or_default().trim().chars().take(REASON_MAX).collect();
        let status = self.status;
        Err(if line.is_empty() { status.to_string() } else { format!("{status}: {}", escape_line(&line)) })
    }
}

/// A message of the thread that starts a command and waits for it.
enum WaiterMessage {
    Started(Pid, Option<ChildStdout>, Option<ChildStderr>),
    /// The process has ended and is not reaped.
    Ended(Child, f64, Option<u64>),
    Failed(io::Error),
}

/// Runs `command` without standard input until it ends, or kills it with its descendants after
/// `timeout`, or when `stop` becomes true.
///
/// # Errors
/// If it cannot be started or its output cannot be read, if its output stays open after its end, if
/// it takes longer than `timeout`, and with [`io::ErrorKind::Interrupted`] if it was stopped.
pub(super) fn run(
    command: &mut Command,
    standard: Standard,
    timeout: Option<Duration>,
    stop: &AtomicBool,
) -> io::Result<ProcessEnd> {
    // A process group of its own: killing the group includes the child's descendants, and Ctrl-C in
    // the terminal signals this process only.
    command.process_group(0).stdin(Stdio::null()).stderr(Stdio::piped());
    command.stdout(if standard == Standard::Discarded { Stdio::null() } else { Stdio::piped() });
    start_by_fork(command);
    let memory_floor_bytes = own_private_memory_bytes();
    thread::scope(|scope| {
        let (sender, messages) = channel();
        scope.spawn(move || start_and_wait(command, &sender));
        let (pid, stdout, stderr) = match messages.recv() {
            Ok(WaiterMessage::Started(pid, stdout, stderr)) => (pid, stdout, stderr),
            Ok(WaiterMessage::Failed(error)) => return Err(error),
            Ok(WaiterMessage::Ended(..)) | Err(_) => return Err(io::Error::other("it could not be started")),
        };
        let output =
            stdout.map(|stream| read_aside(move || OutputSum::read(stream, standard == Standard::Summed)));
        let errors = stderr.map(|stream| read_aside(move || beginning(stream)));
        let deadline = timeout.map(|timeout| (Instant::now() + timeout, timeout));
        let (child, seconds, migrations, is_late) =
            wait_for_end(pid, &messages, deadline.map(|(end, _)| end), stop)?;
        let (status, used) = wait_for_child(child)?;
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if let Some((_, timeout)) = deadline.filter(|_| is_late) {
            return Err(io::Error::other(format!("timed out after {} s", timeout.as_secs_f64())));
        }
        let output = output.map(|output| finished(output?)).transpose()?;
        let stderr = errors.map(|errors| finished(errors?)).transpose()?.unwrap_or_default();
        Ok(ProcessEnd { seconds, used, memory_floor_bytes, migrations, output, status, stderr })
    })
}

/// Starts `command` and waits for its end. The counter counts what this thread starts.
fn start_and_wait(command: &mut Command, messages: &Sender<WaiterMessage>) {
    // The receiver waits for each message, so sending cannot fail.
    let send = |message| drop(messages.send(message));
    let counter = MigrationCounter::start().ok();
    let start = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return send(WaiterMessage::Failed(error)),
    };
    let pid = Pid::from_child(&child);
    send(WaiterMessage::Started(pid, child.stdout.take(), child.stderr.take()));
    // Without reaping it: the receiver may still kill its group, whose number must stay taken.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let ended = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), options));
    let seconds = start.elapsed().as_secs_f64();
    let migrations = counter.and_then(|counter| counter.of_children().ok());
    send(match ended {
        Ok(_) => WaiterMessage::Ended(child, seconds, migrations),
        Err(errno) => WaiterMessage::Failed(errno.into()),
    });
}

/// Waits for the end of the process `pid`, and kills its group at `deadline`, or when `stop`
/// becomes true. The last result says whether the deadline was over.
fn wait_for_end(
    pid: Pid,
    messages: &Receiver<WaiterMessage>,
    deadline: Option<Instant>,
    stop: &AtomicBool,
) -> io::Result<(Child, f64, Option<u64>, bool)> {
    let mut is_late = false;
    loop {
        match messages.recv_timeout(STOP_POLL_INTERVAL) {
            Ok(WaiterMessage::Ended(child, seconds, migrations)) => {
                return Ok((child, seconds, migrations, is_late));
            }
            Ok(WaiterMessage::Failed(error)) => return Err(error),
            Ok(WaiterMessage::Started(..)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("the thread that waits for it is gone"));
            }
        }
        is_late |= deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late || stop.load(Ordering::Relaxed) {
            // ESRCH: the group has already ended, so nothing is left to kill.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// Reads a stream on a thread of its own, so that no full pipe blocks the command. The thread goes
/// on only while a process that left the group holds the pipe open.
fn read_aside<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<Receiver<io::Result<T>>> {
    let (sender, receiver) = channel();
    // The receiver is gone if the run was stopped.
    let read = move || drop(sender.send(read()));
    thread::Builder::new().name("command's output".to_owned()).spawn(read)?;
    Ok(receiver)
}

/// Returns the first bytes of `stream` and reads the rest.
fn beginning(mut stream: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.by_ref().take(KEPT_BYTES).read_to_end(&mut bytes)?;
    io::copy(&mut stream, &mut io::sink())?;
    Ok(bytes)
}

fn finished<T>(receiver: Receiver<io::Result<T>>) -> io::Result<T> {
    let open = "its output is still open 10 s after it exited: a process that it started holds it";
    receiver.recv_timeout(OUTPUT_OPEN_MAX).unwrap_or_else(|_| Err(io::Error::other(open)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_kills_the_command_and_what_it_started() {
        let stop = AtomicBool::new(false);
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo started; wait"]);
        thread::scope(|scope| {
            let ran = scope.spawn(|| run(&mut command, Standard::Counted, None, &stop));
            stop.store(true, Ordering::Relaxed);
            let error = ran.join().unwrap().err().map(|error| error.kind());
            assert_eq!(error, Some(io::ErrorKind::Interrupted));
        });
    }

    #[test]
    fn a_timeout_kills_the_command_and_says_so() {
        let stop = AtomicBool::new(false);
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & wait"]);
        let ended = run(&mut command, Standard::Counted, Some(Duration::ZERO), &stop);
        let said = ended.err().map(|error| error.to_string());
        assert_eq!(said.as_deref(), Some("timed out after 0 s"));
    }

    #[test]
    fn much_output_and_many_errors_block_nothing() {
        let stop = AtomicBool::new(false);
        let mut command = Command::new("sh");
        let text = "head -c 300000 /dev/zero >&2; head -c 3000000 /dev/zero; head -c 300000 /dev/zero >&2";
        let end = run(command.args(["-c", text]), Standard::Counted, None, &stop).unwrap();
        assert_eq!(end.output.map(|sum| sum.bytes), Some(3_000_000));
        assert_eq!(end.stderr.len() as u64, KEPT_BYTES);
        assert!(end.memory_floor_bytes > 0);
    }

    #[test]
    fn a_discarded_output_is_dev_null() {
        let stop = AtomicBool::new(false);
        let mut command = Command::new("sh");
        command.args(["-c", "test /dev/null -ef /proc/self/fd/1"]);
        let end = run(&mut command, Standard::Discarded, None, &stop).unwrap();
        assert!(end.output.is_none() && end.check_status().is_ok(), "{:?}", end.check_status());
    }
}
