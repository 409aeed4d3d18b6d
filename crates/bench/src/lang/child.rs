//! Child processes that are killed, with their descendants, when the caller stops the run.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// Interval of the checks for a stop. It is long enough not to disturb the measurement.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes of each output stream that are kept: enough for a compiler's first errors, far more than a
/// row.
const KEPT_BYTES: u64 = 64 * 1024;

/// Exit status and output of a child process.
pub(super) struct ChildOutput {
    pub(super) status: ExitStatus,
    /// The beginning of its standard output.
    pub(super) stdout: Vec<u8>,
    /// The beginning of its standard error.
    pub(super) stderr: Vec<u8>,
}

/// Runs `command` without standard input until it exits. Returns `None` if `stop` became true
/// first, in which case the child is killed.
pub(super) fn run(command: &mut Command, stop: &AtomicBool) -> io::Result<Option<ChildOutput>> {
    // A process group of its own: killing the group includes the child's descendants, and Ctrl-C in
    // the terminal signals this process only.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let streams = spawn_readers(&mut child).inspect_err(|_| kill(&mut child))?;
    let Some([stdout, stderr]) = collect(&streams, stop) else {
        kill(&mut child);
        return Ok(None);
    };
    Ok(Some(ChildOutput { status: child.wait()?, stdout, stderr }))
}

/// Reads both streams concurrently. Reading them in turn would block a child that fills the other
/// pipe.
fn spawn_readers(child: &mut Child) -> io::Result<Receiver<(usize, Vec<u8>)>> {
    let (sender, receiver) = channel();
    if let Some(stdout) = child.stdout.take() {
        read_in_thread(0, stdout, sender.clone())?;
    }
    if let Some(stderr) = child.stderr.take() {
        read_in_thread(1, stderr, sender)?;
    }
    Ok(receiver)
}

/// Reads `stream` to its end on a thread of its own. After the child is killed, the thread only
/// persists while a process that left the process group holds the pipe open.
fn read_in_thread(
    index: usize,
    mut stream: impl Read + Send + 'static,
    sender: Sender<(usize, Vec<u8>)>,
) -> io::Result<()> {
    let read = move || {
        let mut beginning = Vec::new();
        // A read error counts as the end of the stream. The rest is discarded, not left unread: a
        // full pipe would block the child.
        let _ = stream.by_ref().take(KEPT_BYTES).read_to_end(&mut beginning);
        let _ = io::copy(&mut stream, &mut io::sink());
        // The receiver is gone if the run was stopped.
        let _ = sender.send((index, beginning));
    };
    thread::Builder::new().name("child's output".to_owned()).spawn(read).map(|_| ())
}

/// Returns both streams when they have ended; `None` if `stop` becomes true first.
fn collect(streams: &Receiver<(usize, Vec<u8>)>, stop: &AtomicBool) -> Option<[Vec<u8>; 2]> {
    let mut beginning = [Vec::new(), Vec::new()];
    loop {
        match streams.recv_timeout(STOP_POLL_INTERVAL) {
            Ok((index, bytes)) => beginning[index] = bytes,
            Err(RecvTimeoutError::Disconnected) => return Some(beginning),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Kills the child's process group. The child has not been reaped, so its PID cannot have been
/// reused.
fn kill(child: &mut Child) {
    // ESRCH: the group has already exited, so nothing is left to kill.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}
