//! Standard output and standard error, written to without the standard library's buffers: a failing write has to
//! become GNU's message and status, and lines have to come out while a walk is still running.

use std::io;

use fathom_io::{Errno, sys};

/// Written out past this many bytes, so that a pipe is filled in one call.
const FULL_BYTES: usize = 64 * 1024;

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
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { buffer: Vec::with_capacity(FULL_BYTES + 4096), failed: None }
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
        if !self.buffer.is_empty() && self.failed.is_none() {
            self.failed = write_all(rustix::stdio::stdout(), &self.buffer).err();
        }
        self.buffer.clear();
    }

    /// Writes `bytes` at once, after what is in the buffer.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.flush();
        if self.failed.is_none() {
            self.failed = write_all(rustix::stdio::stdout(), bytes).err();
        }
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

/// Writes to standard error; there is nobody left to tell if that fails.
pub(crate) fn complain(text: &[u8]) {
    let _ = write_all(rustix::stdio::stderr(), text);
}

fn write_all(fd: std::os::fd::BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    if fd.as_raw_fd() == 1 && sys::stdout_was_closed() {
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
