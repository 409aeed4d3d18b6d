//! Why a benchmark cannot be run, or a saved one not be read.

use std::error::Error as Source;
use std::fmt;

/// The deed that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Getting what an arm needs of the machine. Such an arm is left out, and the others go on.
    Start,
    /// Executing a sample.
    Execute,
    /// Reading back what a sample should have written, or checking what it read.
    Verify,
    /// Reading a saved run.
    Read,
    /// Making the text of a run.
    Write,
}

/// Why a benchmark cannot be run, or a saved one not be read.
#[derive(Debug)]
pub struct Error {
    op: Op,
    thing: String,
    source: Box<dyn Source + Send + Sync>,
}

impl Error {
    /// `op` failed on `thing`, an arm or a file, because of `source`.
    #[must_use]
    pub fn new(op: Op, thing: impl Into<String>, source: impl Into<Box<dyn Source + Send + Sync>>) -> Self {
        Self { op, thing: thing.into(), source: source.into() }
    }

    /// The deed that failed.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// The arm or file it failed on.
    #[must_use]
    pub fn thing(&self) -> &str {
        &self.thing
    }

    /// Whether an arm cannot run here at all, which is no failure of the run.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.op == Op::Start
    }

    /// The cause alone, in the system's words if it was the system's.
    #[must_use]
    pub fn cause(&self) -> String {
        match self.source.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            Some(code) => {
                String::from_utf8_lossy(&fathom_text::words(std::io::Error::from_raw_os_error(code)))
                    .into_owned()
            }
            None => self.source.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deed = match self.op {
            Op::Start => "start",
            Op::Execute => "execute",
            Op::Verify => "verify",
            Op::Read => "read",
            Op::Write => "write",
        };
        write!(f, "cannot {deed} '{}': {}", self.thing, self.cause())
    }
}

impl Source for Error {
    fn source(&self) -> Option<&(dyn Source + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_words_come_without_its_number() {
        let error = Error::new(Op::Read, "a.json", std::io::Error::from_raw_os_error(2));
        assert_eq!(error.to_string(), "cannot read 'a.json': No such file or directory");
        let error = Error::new(Op::Start, "uring", "io_uring is forbidden here");
        assert_eq!(error.to_string(), "cannot start 'uring': io_uring is forbidden here");
    }
}
