//! Errors that prevent or end a walk. A failure that does not end it is a
//! [`Failure`](crate::Failure).

use std::fmt;
use std::io;

/// The operation that prevented or ended the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// Setting up the requested I/O model.
    StartModel,
    /// Starting the first worker thread.
    StartWorker,
    /// Adding a root.
    AddRoot,
    /// A call of the caller's visitor on a worker, which panicked.
    Work,
}

/// The error that prevented or ended a walk.
#[derive(Debug)]
pub struct Error {
    op: Op,
    source: io::Error,
}

impl Error {
    pub(crate) fn new(op: Op, source: io::Error) -> Self {
        Self { op, source }
    }

    /// Returns the operation that failed.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// Returns the cause.
    #[must_use]
    pub fn io_error(&self) -> &io::Error {
        &self.source
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            Op::StartModel | Op::Work => write!(f, "{}", self.source),
            Op::AddRoot => write!(f, "cannot add a root: {}", self.source),
            Op::StartWorker => write!(f, "cannot start a worker thread: {}", self.source),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
