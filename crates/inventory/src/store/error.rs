//! Why an inventory cannot be written or read.

use std::error::Error as Source;
use std::fmt;
use std::path::{Path, PathBuf};

use fathom_text::words;
use fathom_walk::Errno;

/// The deed that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Making the directory or a file of it.
    Create,
    /// Writing a file.
    Write,
    /// Giving the inventory its name.
    Rename,
    /// Keeping others from writing to it meanwhile.
    Lock,
    /// Reading a file, or making sense of it.
    Read,
    /// Walking the tree.
    Walk,
    /// Going on with a scan.
    Resume,
    /// Estimating what is in a tree.
    Estimate,
}

/// Why an inventory cannot be written or read.
#[derive(Debug)]
pub struct Error {
    op: Op,
    path: PathBuf,
    source: Box<dyn Source + Send + Sync>,
}

impl Error {
    pub(crate) fn new(op: Op, path: &Path, source: impl Into<Box<dyn Source + Send + Sync>>) -> Self {
        Self { op, path: path.to_owned(), source: source.into() }
    }

    /// The deed that failed.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// The file or directory it failed on.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The operating system's error, if it was one.
    #[must_use]
    pub fn io_error(&self) -> Option<&std::io::Error> {
        let mut source: Option<&(dyn Source + 'static)> = Some(&*self.source);
        while let Some(error) = source {
            if let Some(error) = error.downcast_ref() {
                return Some(error);
            }
            source = error.source();
        }
        None
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deed = match self.op {
            Op::Create => "create",
            Op::Write => "write",
            Op::Rename => "rename",
            Op::Lock => "lock",
            Op::Read => "read",
            Op::Walk => "scan into",
            Op::Resume => "go on with",
            Op::Estimate => "estimate",
        };
        write!(f, "cannot {deed} '{}': ", self.path.display())?;
        let errno = self.io_error().and_then(Errno::from_io_error);
        match errno {
            Some(errno) => write!(f, "{}", String::from_utf8_lossy(&words(errno))),
            None => write!(f, "{}", self.source),
        }
    }
}

impl Source for Error {
    fn source(&self) -> Option<&(dyn Source + 'static)> {
        Some(&*self.source)
    }
}
