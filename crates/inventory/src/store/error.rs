//! The errors of writing and reading inventories.

use std::error::Error as Source;
use std::fmt;
use std::path::{Path, PathBuf};

use fathom_text::strerror;
use fathom_walk::Errno;

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Creating the directory or one of its files.
    Create,
    /// Writing a file.
    Write,
    /// Giving the inventory its final name.
    Rename,
    /// Removing an inventory.
    Remove,
    /// Taking the lock.
    Lock,
    /// Reading or decoding a file.
    Read,
    /// Walking the tree.
    Walk,
    /// Resuming a scan.
    Resume,
    /// Estimating the contents of a tree.
    Estimate,
}

/// The error of an operation on an inventory.
#[derive(Debug)]
pub struct Error {
    op: Op,
    path: PathBuf,
    source: Box<dyn Source + Send + Sync>,
}

impl Error {
    /// Makes the error of an operation on `path`.
    pub fn new(op: Op, path: &Path, source: impl Into<Box<dyn Source + Send + Sync>>) -> Self {
        Self { op, path: path.to_owned(), source: source.into() }
    }

    /// Returns the operation that failed.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// Returns the file or directory on which the operation failed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the error of the operating system, if there was one.
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
        let operation = match self.op {
            Op::Create => "create",
            Op::Write => "write",
            Op::Rename => "rename",
            Op::Remove => "remove",
            Op::Lock => "lock",
            Op::Read => "read",
            Op::Walk => "scan into",
            Op::Resume => "go on with",
            Op::Estimate => "estimate",
        };
        write!(f, "cannot {operation} '{}': ", self.path.display())?;
        let errno = self.io_error().and_then(Errno::from_io_error);
        match errno {
            Some(errno) => write!(f, "{}", String::from_utf8_lossy(&strerror(errno))),
            None => write!(f, "{}", self.source),
        }
    }
}

impl Source for Error {
    fn source(&self) -> Option<&(dyn Source + 'static)> {
        Some(&*self.source)
    }
}
