//! Failures of a walk: the operation that failed, its path, and the error. Every failure reaches
//! the caller of an unordered walk through one function, [`Gather::failed`](crate::Gather::failed),
//! and is counted on the way there.

use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;

use fathom_io::Errno;

use crate::node::Node;

/// An operation of the walk that can fail without ending the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Finding out what is at a path: of a root, or of a directory that vanished after its name had
    /// been read.
    Access,
    /// Opening a directory that is there.
    Open,
    /// Reading the names in a directory; those read before are reported as ever.
    Read,
    /// Opening a directory again, to go on with it after its descriptor had been closed.
    Reopen,
    /// Taking the metadata of an entry.
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
    /// The root or directory concerned, or the directory of the entry concerned.
    pub node: &'a Arc<Node>,
    /// The entry concerned; `None` where it is `node` itself.
    pub name: Option<&'a CStr>,
    /// The operation that failed.
    pub operation: Operation,
    /// The error it failed with.
    pub errno: Errno,
}
