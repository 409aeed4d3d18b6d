//! Messages that a channel delivers to its consumer.

use std::fmt;
use std::sync::Arc;

use fathom_io::{Errno, FileType, Meta};

use super::path::EntryPath;
use super::token::{Processed, Token};
use crate::failure::{Failure, Operation};
use crate::node::Node;

/// The number of a tree, in the order in which trees were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RootId(pub(super) usize);

impl RootId {
    /// Returns 0 for the first tree added.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// An entry of a directory, or a root that is no directory.
#[derive(Clone, Debug)]
pub struct Item<T = ()> {
    /// Its path.
    pub path: EntryPath,
    /// Its type, from the metadata if it was read, otherwise from the directory.
    pub file_type: FileType,
    /// Its inode number. Without metadata, a mount point has the number of the covered directory.
    pub ino: u64,
    /// Its metadata, if it was read.
    pub meta: Option<Meta>,
    /// The value that the policy sends with the entry.
    pub payload: T,
    /// Delays the report that its directory is processed.
    pub token: Token,
}

/// A failed operation of the walk, with the path concerned.
#[derive(Clone, Debug)]
pub struct Failed {
    /// The root, directory or entry that the operation failed on.
    pub path: EntryPath,
    /// The operation that failed.
    pub operation: Operation,
    /// The error of the operation.
    pub errno: Errno,
    /// Delays the report that its directory is processed.
    pub token: Token,
}

impl Failed {
    pub(super) fn new(Failure { node, name, operation, errno }: Failure<'_>, token: Token) -> Self {
        Self { path: EntryPath::new(node, name), operation, errno, token }
    }
}

impl fmt::Display for Failed {
    /// Writes the operation, the path and the cause, with control characters escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} '{}': {}", self.operation, self.path, self.errno)
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.errno)
    }
}

/// A message of a gatherer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message<T = ()> {
    /// An entry that the policy picked.
    Entry(Item<T>),
    /// An operation that failed.
    Error(Failed),
    /// All entries of this directory have been sent.
    End(Arc<Node>),
    /// Everything below this directory has been sent.
    Done(Arc<Node>),
    /// Everything below this directory has been sent, and all messages about it have been dropped.
    Processed(Processed),
    /// All messages of this tree on this channel have been sent. Every channel has one such message
    /// for each tree.
    RootDone(RootId),
}
