//! A child process that ends when the caller says so, with everything it has started.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a stop may go unnoticed. Waking this seldom takes no time from what is measured.
const STOP_NOTICED: Duration = Duration::from_millis(50);
/// What is kept of a stream; a compiler's first words, and far more than a row.
const KEPT_BYTES: u64 = 64 * 1024;

/// What a child left.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// The beginning of what it printed.
    pub(super) stdout: Vec<u8>,
    /// The same for its errors.
    pub(super) stderr: Vec<u8>,
}

/// Runs `command` to its end, without input. Nothing if `stop` became true first: it is killed then.
pub(super) fn run(command: &mut Command, stop: &AtomicBool) -> io::Result<Option<Ended>> {
    // A group of its own: the child's children are killed with it, and a terminal's Ctrl-C is this program's alone.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let streams = watch(&mut child).inspect_err(|_| kill(&mut child))?;
    let Some([stdout, stderr]) = collect(&streams, stop) else {
        kill(&mut child);
        return Ok(None);
    };
    Ok(Some(Ended { status: child.wait()?, stdout, stderr }))
}

/// Reads both streams at once, so that a child never waits for one while the other is read.
fn watch(child: &mut Child) -> io::Result<Receiver<(usize, Vec<u8>)>> {
    let (sender, receiver) = channel();
    if let Some(stdout) = child.stdout.take() {
        read_in_thread(0, stdout, sender.clone())?;
    }
    if let Some(stderr) = child.stderr.take() {
        read_in_thread(1, stderr, sender)?;
    }
    Ok(receiver)
}

/// The thread outlives a killed child only while a process that left its group holds the pipe.
fn read_in_thread(
    index: usize,
    mut stream: impl Read + Send + 'static,
    sender: Sender<(usize, Vec<u8>)>,
) -> io::Result<()> {
    let read = move || {
        let mut kept = Vec::new();
        // What cannot be read any more is as good as its end. The rest is read too: a full pipe would stop the child.
        let _ = stream.by_ref().take(KEPT_BYTES).read_to_end(&mut kept);
        let _ = io::copy(&mut stream, &mut io::sink());
        // Nobody waits for it after a stop.
        let _ = sender.send((index, kept));
    };
    thread::Builder::new().name("child's output".to_owned()).spawn(read).map(|_| ())
}

/// Both streams when they have ended; nothing if it is to stop first.
fn collect(streams: &Receiver<(usize, Vec<u8>)>, stop: &AtomicBool) -> Option<[Vec<u8>; 2]> {
    let mut kept = [Vec::new(), Vec::new()];
    loop {
        match streams.recv_timeout(STOP_NOTICED) {
            Ok((index, bytes)) => kept[index] = bytes,
            Err(RecvTimeoutError::Disconnected) => return Some(kept),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// It is not waited for yet, so its number is still its own.
fn kill(child: &mut Child) {
    // That it has ended already is no failure, and then nothing is left to be done.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}
