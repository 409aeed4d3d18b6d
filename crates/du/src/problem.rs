//! Problems with entries, with GNU du's messages.

use fathom_text::quote::{Charset, quoteaf, quotef};
use fathom_text::strerror;
use fathom_walk::Errno;

/// An entry that could not be measured, or only in part.
///
/// ```
/// use fathom_du::problem::Problem;
/// use fathom_text::quote::Charset;
/// use fathom_walk::Errno;
///
/// let problem = Problem::ReadDirectory(b"a b", Errno::ACCESS);
/// assert_eq!(problem.message(Charset::Utf8), b"cannot read directory 'a b': Permission denied");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem<'a> {
    /// The entry's metadata is not available. `None` for a dangling symbolic link, where GNU du
    /// names no cause.
    Access(&'a [u8], Option<Errno>),
    /// A directory cannot be opened, or not be read at all.
    ReadDirectory(&'a [u8], Errno),
    /// Reading a directory failed midway.
    ReadOn(&'a [u8], Errno),
    /// A directory is its own descendant, and no mount point explains it.
    Cycle(&'a [u8]),
}

impl Problem<'_> {
    /// Returns the kind of the problem, in a few words.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Access(..) => "cannot access",
            Self::ReadDirectory(..) => "cannot read directory",
            Self::ReadOn(..) => "cannot read on",
            Self::Cycle(_) => "circular directory structure",
        }
    }

    /// Returns the message, without the program name and the final newline.
    #[must_use]
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        match self {
            Self::Access(path, Some(errno)) => {
                [b"cannot access ", quoteaf(path, charset).as_slice(), b": ", &strerror(*errno)].concat()
            }
            Self::Access(path, None) => [b"cannot access ", quoteaf(path, charset).as_slice()].concat(),
            Self::ReadDirectory(path, errno) => {
                [b"cannot read directory ", quoteaf(path, charset).as_slice(), b": ", &strerror(*errno)]
                    .concat()
            }
            Self::ReadOn(path, errno) => {
                [quotef(path, charset).as_slice(), b": ", &strerror(*errno)].concat()
            }
            Self::Cycle(path) => [CYCLE, quotef(path, charset).as_slice(), b"\n"].concat(),
        }
    }
}

/// GNU du's warning. Scripts search for its text.
const CYCLE: &[u8] = b"WARNING: Circular directory structure.\n\
    This almost certainly means that you have a corrupted file system.\n\
    NOTIFY YOUR SYSTEM MANAGER.\n\
    The following directory is part of the cycle:\n  ";
