//! Standard output and standard error, written to without the standard library's buffers: a failing
//! write has to become GNU's message and status, and lines have to come out while a walk is still
//! running.
//!
//! Nothing from a file tree controls a terminal: whatever goes to one has its control characters
//! escaped, unless it is written by [`draw`] or [`Output::of_quoted`].

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_io::{Errno, sys};
use fathom_text::quote::escape_controls;
use fathom_text::time::Out;

/// Written out past this many bytes, so that a pipe is filled in one call.
const FULL_BYTES: usize = 64 * 1024;

/// Whether standard output is a terminal. Asked once: it takes a system call.
pub(crate) fn stdout_is_terminal() -> bool {
    static TERMINAL: OnceLock<bool> = OnceLock::new();
    *TERMINAL.get_or_init(|| io::stdout().is_terminal())
}

/// `text` as it may be written to a stream that is a terminal or not.
fn shown(text: &[u8], terminal: bool) -> Cow<'_, [u8]> {
    if terminal { escape_controls(text) } else { Cow::Borrowed(text) }
}

/// Prints a text that was asked for, help or a version; the exit status.
pub(crate) fn print(name: &str, text: &str) -> u8 {
    let mut out = Output::new();
    out.buffer().extend_from_slice(text.as_bytes());
    out.finish(name)
}

/// Says something on standard error, after the command's name.
pub(crate) fn say(name: &str, message: &[u8]) {
    complain(&[name.as_bytes(), b": ", message, b"\n"].concat());
}

/// Says what is wrong with a command line.
pub(crate) fn say_misuse(name: &str, message: &[u8]) {
    let hint = format!("\nTry '{name} --help' for more information.");
    say(name, &[message, hint.as_bytes()].concat());
}

/// Buffered standard output.
#[derive(Debug)]
pub(crate) struct Output {
    buffer: Vec<u8>,
    /// The first write that failed; nothing is written after it.
    failed: Option<Errno>,
    /// Names in the text are quoted, and other control characters are meant.
    is_quoted: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::with_capacity(FULL_BYTES + 4096), failed: None, is_quoted: false }
    }

    /// For text in which every name is in the style for standard output already: it may have
    /// colours.
    pub(crate) fn of_quoted() -> Self {
        Self { is_quoted: true, ..Self::new() }
    }

    /// Where text is put; [`Output::relieve`] after every few lines keeps it small.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes if there is enough to write.
    pub(crate) fn relieve(&mut self) {
        if self.buffer.len() >= FULL_BYTES {
            self.flush();
        }
    }

    /// Writes everything.
    pub(crate) fn flush(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.write_out(&buffer);
        buffer.clear();
        self.buffer = buffer;
    }

    fn write_out(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() && self.failed.is_none() {
            let shown = shown(bytes, !self.is_quoted && stdout_is_terminal());
            self.failed = write_all(rustix::stdio::stdout(), &shown).err();
        }
    }

    /// Writes `bytes` at once, after what is in the buffer.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.flush();
        self.write_out(bytes);
    }

    /// Whether a write has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Writes what is left; exit status 0, or 1 with a message if not everything could be written.
    pub(crate) fn finish(mut self, name: &str) -> u8 {
        self.flush();
        match self.failed {
            None => 0,
            Some(errno) => {
                let cause = fathom_text::words(errno);
                complain(&[name.as_bytes(), b": write error: ", &cause, b"\n"].concat());
                1
            }
        }
    }
}

impl Out for Output {
    fn text(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(text);
    }

    fn fill(&mut self, byte: u8, mut count: usize) {
        while count > 0 && !self.has_failed() {
            let part = count.min(FULL_BYTES);
            self.buffer.resize(self.buffer.len() + part, byte);
            self.relieve();
            count -= part;
        }
    }
}

/// A message could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// Writes to standard error. A failure can only be told by the exit status: see [`status`].
pub(crate) fn complain(text: &[u8]) {
    if !text.is_empty()
        && write_all(rustix::stdio::stderr(), &shown(text, io::stderr().is_terminal())).is_err()
    {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Writes text of this program's own to standard error, with the control characters that are in it.
pub(crate) fn draw(text: &[u8]) {
    let _ = write_all(rustix::stdio::stderr(), text);
}

/// The exit status of a program that would end with `status`: as GNU's, it fails if a message could
/// not be written.
pub(crate) fn status(status: u8) -> u8 {
    if status == 0 && LOST.load(Ordering::Relaxed) { 1 } else { status }
}

fn write_all(fd: std::os::fd::BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let was_closed = match fd.as_raw_fd() {
        1 => sys::stdout_was_closed(),
        2 => sys::stderr_was_closed(),
        _ => false,
    };
    if was_closed {
        return Err(Errno::BADF);
    }
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// The system's words for an error, without the number Rust adds.
pub(crate) fn reason(error: &io::Error) -> Vec<u8> {
    match error.raw_os_error() {
        Some(code) => fathom_text::words(Errno::from_raw_os_error(code)),
        None => error.to_string().into_bytes(),
    }
}
