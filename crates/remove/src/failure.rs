//! Failures: the operation, the path and the cause. A failure does not end the removal.

use std::fmt;

use fathom_io::Errno;
use fathom_walk::Operation;

/// The cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalCause {
    /// A system call failed.
    Os(Errno),
    /// The target is another inode than the one that was shown, or has been changed since.
    Replaced,
    /// The directory is a mount point.
    MountPoint,
    /// Something is mounted in the directory, which is to go to the trash.
    MountInside,
    /// The directory is the working directory or contains it.
    WorkingDirectory,
    /// The path ends in `.` or `..`.
    DotName,
    /// The path is empty or has only slashes.
    RootDirectory,
    /// The path leads out of its root.
    Outside,
    /// A symbolic link is in the path, below its root.
    Link,
    /// No trash is on the filesystem of the target.
    NoTrash,
    /// A directory that a trash would be in is a symbolic link, belongs to another user, or others
    /// may write to it.
    UnsafeTrash,
}

impl RemovalCause {
    /// Returns the error number, if a system call failed.
    #[must_use]
    pub fn errno(self) -> Option<Errno> {
        match self {
            Self::Os(errno) => Some(errno),
            _ => None,
        }
    }

    /// Returns the words of a cause that is no error of a system call.
    #[must_use]
    pub fn words(self) -> Option<&'static str> {
        Some(match self {
            Self::Os(_) => return None,
            Self::Replaced => "It has been replaced or changed since it was shown",
            Self::MountPoint => "It is a mount point",
            Self::MountInside => "Something is mounted in it",
            Self::WorkingDirectory => "It is the working directory or contains it",
            Self::DotName => "The path ends in '.' or '..'",
            Self::RootDirectory => "It is the root directory",
            Self::Outside => "The path leads out of its directory",
            Self::Link => "A symbolic link is in its path",
            Self::NoTrash => "Its file system has no trash",
            Self::UnsafeTrash => "The trash of its file system is not safe to use",
        })
    }
}

impl From<Errno> for RemovalCause {
    fn from(errno: Errno) -> Self {
        Self::Os(errno)
    }
}

impl fmt::Display for RemovalCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words() {
            Some(words) => f.write_str(words),
            None => self.errno().map_or(Ok(()), |errno| write!(f, "{errno}")),
        }
    }
}

/// Returns the error number of an I/O error.
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// An operation that can fail. Its text continues the word "cannot".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalOperation {
    /// Removing an entry.
    Remove,
    /// Moving a target to the trash.
    Trash,
    /// Reading a directory below a target.
    Walk(Operation),
}

impl fmt::Display for RemovalOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remove => f.write_str("remove"),
            Self::Trash => f.write_str("trash"),
            Self::Walk(operation) => operation.fmt(f),
        }
    }
}

/// A failed operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalFailure {
    /// The path: the target's, and the names below it.
    pub path: Vec<u8>,
    /// The operation.
    pub operation: RemovalOperation,
    /// The cause.
    pub cause: RemovalCause,
}

impl fmt::Display for RemovalFailure {
    /// Writes the operation, the path and the cause. Control characters are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(&self.path);
        write!(f, "cannot {} '{}': {}", self.operation, path.escape_debug(), self.cause)
    }
}

impl std::error::Error for RemovalFailure {}
