//! Why a walk could not start, or not go on. What goes wrong while it runs is an event in its stream instead.

use std::fmt;
use std::io;

/// The deed that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Setting up the I/O model that was asked for.
    StartModel,
    /// Starting the first worker thread.
    StartWorker,
    /// Adding a root.
    AddRoot,
    /// What the caller has done on the workers.
    Work,
}

/// Why a walk could not start.
#[derive(Debug)]
pub struct Error {
    op: Op,
    source: io::Error,
}

impl Error {
    pub(crate) fn new(op: Op, source: io::Error) -> Self {
        Self { op, source }
    }

    /// The deed that failed.
    #[must_use]
    pub fn op(&self) -> Op {
        self.op
    }

    /// The error it failed with.
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
