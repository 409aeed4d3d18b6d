//! Failures of a walk: the operation that failed, its path, and the error. Each failure is one
//! call: of [`Consumer::failed`](crate::Consumer::failed) in an ordered walk, of
//! [`UnorderedVisitor::failed`](crate::UnorderedVisitor::failed) in an unordered one.

use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;

use fathom_io::Errno;

use crate::node::Node;

/// An operation whose failure does not end the walk.
///
/// ```
/// use fathom_walk::Operation;
///
/// assert_eq!(Operation::Open.to_string(), "open directory");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Reading the metadata of a root, or of a directory that vanished after its name had been
    /// read.
    Access,
    /// Opening a directory that exists; in an ordered walk, also reading its first names.
    Open,
    /// Reading the names in a directory, after others have been read.
    Read,
    /// Opening a directory again to continue it, after its descriptor had been closed.
    Reopen,
    /// Reading the metadata of an entry.
    Stat,
    /// Descending into a directory that is one of its own ancestors: always ELOOP.
    Descend,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 6] =
        [Self::Access, Self::Open, Self::Read, Self::Reopen, Self::Stat, Self::Descend];
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Access => "access",
            Self::Open => "open directory",
            Self::Read => "read directory",
            Self::Reopen => "reopen directory",
            Self::Stat => "stat",
            Self::Descend => "descend into directory",
        })
    }
}

/// One failed operation.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// The root or directory that the operation failed on, or the directory of the entry.
    pub node: &'a Arc<Node>,
    /// The entry; `None` if the operation failed on `node` itself.
    pub name: Option<&'a CStr>,
    /// The operation that failed.
    pub operation: Operation,
    /// The error.
    pub errno: Errno,
}
