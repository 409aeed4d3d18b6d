//! Standard output and standard error without the standard library's buffers: a failed write must
//! become GNU's message and exit status, and lines must appear while a walk is still running.
//!
//! Names from a file tree cannot control the terminal: control characters in all terminal output
//! are escaped, except in output of [`draw`] and [`Output::with_quoted_names`].

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_io::threads::panic_message;
use fathom_io::{Errno, sys};
use fathom_text::quote::escape_controls;
use fathom_text::time::TimeSink;

use super::exit::PANICKED;

/// A buffer of whole lines is written out past this many bytes. A pipe holds 64 KiB (pipe(7)): a
/// write of one byte more would sleep until the reader has taken all of them, so the last line has
/// room for a path of `PATH_MAX`.
pub(crate) const FULL_BYTES: usize = 60 * 1024;

/// Returns whether standard output is a terminal. Cached, because the check takes a system call.
pub(crate) fn stdout_is_terminal() -> bool {
    static TERMINAL: OnceLock<bool> = OnceLock::new();
    *TERMINAL.get_or_init(|| io::stdout().is_terminal())
}

/// The beginning of the message about a panic.
pub(crate) const BUG: &str = "this is a bug: ";

/// Escapes the control characters of `text` if it is written to a terminal.
fn shown(text: &[u8], terminal: bool) -> Cow<'_, [u8]> {
    if terminal { escape_controls(text) } else { Cow::Borrowed(text) }
}

/// Prints a help or version text. Returns the exit status.
pub(crate) fn print(name: &str, text: &str) -> u8 {
    let mut out = Output::new();
    out.buffer().extend_from_slice(text.as_bytes());
    out.finish(name)
}

/// Prints an error message behind the command's name.
pub(crate) fn print_error(name: &str, message: &[u8]) {
    write_stderr(&[name.as_bytes(), b": ", message, b"\n"].concat());
}

/// Prints an error about the command line, with a reference to `--help`.
pub(crate) fn print_usage_error(name: &str, message: &[u8]) {
    let hint = format!("\nTry '{name} --help' for more information.");
    print_error(name, &[message, hint.as_bytes()].concat());
}

/// Buffered standard output.
#[derive(Debug)]
pub(crate) struct Output {
    buffer: Vec<u8>,
    /// The error of the first failed write. Later output is discarded.
    failed: Option<Errno>,
    /// Whether names in the text are already quoted. Control characters are then kept.
    is_quoted: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::with_capacity(FULL_BYTES + 4096), failed: None, is_quoted: false }
    }

    /// Creates an output for text whose names are already in the style for standard output. It may
    /// contain colours.
    pub(crate) fn with_quoted_names() -> Self {
        Self { is_quoted: true, ..Self::new() }
    }

    /// Returns the buffer for appending text. Call [`Output::flush_if_full`] after every few lines
    /// to bound its size.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Flushes the buffer if it is full.
    pub(crate) fn flush_if_full(&mut self) {
        if self.buffer.len() >= FULL_BYTES {
            self.flush();
        }
    }

    /// Writes the whole buffer.
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

    /// Writes `bytes` immediately, behind the contents of the buffer.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.flush();
        self.write_out(bytes);
    }

    /// Returns whether a write has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Flushes the buffer. Returns exit status 0, or 1 with an error message if any write failed.
    pub(crate) fn finish(mut self, name: &str) -> u8 {
        self.flush();
        match self.failed {
            None => 0,
            Some(errno) => {
                let cause = fathom_text::strerror(errno);
                write_stderr(&[name.as_bytes(), b": write error: ", &cause, b"\n"].concat());
                1
            }
        }
    }
}

impl TimeSink for Output {
    fn text(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(text);
    }

    fn fill(&mut self, byte: u8, mut count: usize) {
        while count > 0 && !self.has_failed() {
            let part = count.min(FULL_BYTES);
            self.buffer.resize(self.buffer.len() + part, byte);
            self.flush_if_full();
            count -= part;
        }
    }
}

/// Whether a write to standard error has failed.
static STDERR_FAILED: AtomicBool = AtomicBool::new(false);

/// Writes to standard error, in place of a line that is [drawn](draw) there. A failure affects the
/// exit status only: see [`status`].
pub(crate) fn write_stderr(text: &[u8]) {
    if text.is_empty() {
        return;
    }
    let erased = erasing(&IS_DRAWN);
    let text = [erased, &shown(text, io::stderr().is_terminal())].concat();
    if write_all(rustix::stdio::stderr(), &text).is_err() {
        STDERR_FAILED.store(true, Ordering::Relaxed);
    }
}

/// The text that erases a line on a terminal.
pub(crate) const ERASE: &[u8] = b"\r\x1b[K";

/// Whether standard error ends with a line that is replaced by the next one.
static IS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Returns what erases the line that is drawn, if there is one.
fn erasing(is_drawn: &AtomicBool) -> &'static [u8] {
    // Relaxed: a thread that reads an old value writes behind the line, or erases an empty one.
    if is_drawn.swap(false, Ordering::Relaxed) { ERASE } else { b"" }
}

/// Makes a panic of any thread a message on standard error that ends no line early and contains no
/// control characters: the text may quote a name from a file tree or a client. With
/// `RUST_BACKTRACE`, a backtrace follows.
pub(crate) fn report_panics(name: &'static str) {
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
        let text = panic_message(panic.payload()).replace('\n', "\\n");
        let thread = thread.name().unwrap_or("without a name");
        let message = format!("{BUG}the thread {thread} panicked{place}: {text}");
        print_error(name, message.as_bytes());
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            write_stderr(backtrace.to_string().as_bytes());
        }
    }));
}

/// Runs `program` and returns its exit status, [`PANICKED`] if it panics on this thread.
pub(crate) fn exit_status(program: impl FnOnce() -> u8) -> u8 {
    // Nothing is used after the panic but standard error.
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(program));
    status(ended.unwrap_or(PANICKED))
}

/// Writes the program's own text to standard error, including its control characters.
pub(crate) fn draw(text: &[u8]) {
    IS_DRAWN.store(text != ERASE, Ordering::Relaxed);
    let _ = write_all(rustix::stdio::stderr(), text);
}

/// Returns the exit status of a program that would exit with `status`: like GNU programs, it fails
/// if a message could not be written.
fn status(status: u8) -> u8 {
    if status == 0 && STDERR_FAILED.load(Ordering::Relaxed) { 1 } else { status }
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

/// Returns the system's message for an error, without the number that Rust appends.
pub(crate) fn reason(error: &io::Error) -> Vec<u8> {
    match error.raw_os_error() {
        Some(code) => fathom_text::strerror(Errno::from_raw_os_error(code)),
        None => error.to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once, a message stood behind the progress line, whose next update erased its end.
    #[test]
    fn a_line_that_is_drawn_is_erased_once() {
        let is_drawn = AtomicBool::new(true);
        assert_eq!([erasing(&is_drawn), erasing(&is_drawn)], [ERASE, b""]);
    }
}
