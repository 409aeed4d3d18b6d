//! The error of this crate: the operation, its object and the cause.

use std::error::Error as Source;
use std::fmt;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Acquiring a resource that an arm needs. The arm is left out, and the run continues.
    Start,
    /// Bringing files and the page cache into the state required before a sample.
    Prepare,
    /// Executing a sample.
    Execute,
    /// Verifying the data that a sample wrote or read.
    Verify,
    /// Reading a saved run or a profile.
    Read,
    /// Writing a run or a profile.
    Write,
    /// Removing files.
    Remove,
}

/// A failed operation of a benchmark, with its object and its cause.
#[derive(Debug)]
pub struct Error {
    op: Op,
    thing: String,
    source: Box<dyn Source + Send + Sync>,
}

impl Error {
    /// Reports that `op` failed on `thing`, an arm or a file, because of `source`.
    #[must_use]
    pub fn new(op: Op, thing: impl Into<String>, source: impl Into<Box<dyn Source + Send + Sync>>) -> Self {
        Self { op, thing: thing.into(), source: source.into() }
    }

    /// Returns the operation that failed.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// Returns the arm or file that the operation failed on.
    #[must_use]
    pub fn thing(&self) -> &str {
        &self.thing
    }

    /// Returns whether an arm cannot run on this machine. The run continues without it.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.op == Op::Start
    }

    /// Returns the cause alone. For an OS error: the text of its errno (strerror(3)) without the
    /// number.
    #[must_use]
    pub fn cause(&self) -> String {
        match self.source.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            Some(code) => {
                String::from_utf8_lossy(&fathom_text::strerror(std::io::Error::from_raw_os_error(code)))
                    .into_owned()
            }
            None => self.source.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.op {
            Op::Start => "start",
            Op::Prepare => "prepare",
            Op::Execute => "execute",
            Op::Verify => "verify",
            Op::Read => "read",
            Op::Write => "write",
            Op::Remove => "remove",
        };
        write!(f, "cannot {verb} '{}': {}", self.thing, self.cause())
    }
}

impl Source for Error {
    fn source(&self) -> Option<&(dyn Source + 'static)> {
        Some(&*self.source)
    }
}

/// Returns the text of an OS error without its number and without a path that `tempfile` appends.
pub(crate) fn os_error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_errors_are_printed_without_their_number() {
        let error = Error::new(Op::Read, "a.json", std::io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "cannot read 'a.json': No such file or directory");
        let error = Error::new(Op::Start, "uring", "io_uring is forbidden here");
        assert_eq!(error.to_string(), "cannot start 'uring': io_uring is forbidden here");
    }
}
