//! The reasons why a file cannot be read.

use std::error::Error;
use std::fmt;

use fathom_io::Errno;

use crate::pool::CallError;

/// The reason why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileError {
    /// A system call failed.
    System(Errno),
    /// The pool's queue is full.
    Busy,
    /// A bug: the call panicked, which has been reported.
    Panicked,
    /// The file changed while it was read.
    Changed,
    /// The root directory does not exist.
    NoRoot,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(errno) => errno.fmt(f),
            Self::Busy => f.write_str("the queue of the thread pool is full"),
            Self::Panicked => f.write_str("the call panicked"),
            Self::Changed => f.write_str("the file changed while it was read"),
            Self::NoRoot => f.write_str("the root directory does not exist"),
        }
    }
}

impl Error for FileError {}

impl From<Errno> for FileError {
    #[inline]
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

impl From<CallError> for FileError {
    #[inline]
    fn from(error: CallError) -> Self {
        match error {
            CallError::QueueFull => Self::Busy,
            CallError::Panicked => Self::Panicked,
        }
    }
}
