//! What can go wrong with an entry, in GNU du's words.

use fathom_text::quote::{Charset, quoteaf, quotef};
use fathom_text::words;
use fathom_walk::Errno;

/// Something that could not be measured, or not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem<'a> {
    /// No metadata of this entry. `None` where a symbolic link leads nowhere: GNU du names no cause then.
    Access(&'a [u8], Option<Errno>),
    /// A directory that cannot be opened, or not be read at all.
    ReadDirectory(&'a [u8], Errno),
    /// Reading a directory ended before its end.
    ReadOn(&'a [u8], Errno),
    /// A directory below itself that no mount explains.
    Cycle(&'a [u8]),
}

impl Problem<'_> {
    /// The kind of problem, in a few words.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Access(..) => "cannot access",
            Self::ReadDirectory(..) => "cannot read directory",
            Self::ReadOn(..) => "cannot read on",
            Self::Cycle(_) => "circular directory structure",
        }
    }

    /// The message, without the program's name before it and the newline after it.
    #[must_use]
    pub fn message(&self, charset: Charset) -> Vec<u8> {
        match self {
            Self::Access(path, Some(errno)) => {
                [b"cannot access ", quoteaf(path, charset).as_slice(), b": ", &words(*errno)].concat()
            }
            Self::Access(path, None) => [b"cannot access ", quoteaf(path, charset).as_slice()].concat(),
            Self::ReadDirectory(path, errno) => {
                [b"cannot read directory ", quoteaf(path, charset).as_slice(), b": ", &words(*errno)].concat()
            }
            Self::ReadOn(path, errno) => [quotef(path, charset).as_slice(), b": ", &words(*errno)].concat(),
            Self::Cycle(path) => [CYCLE, quotef(path, charset).as_slice(), b"\n"].concat(),
        }
    }
}

/// GNU du's warning, whose words scripts look for.
const CYCLE: &[u8] = b"WARNING: Circular directory structure.\n\
    This almost certainly means that you have a corrupted file system.\n\
    NOTIFY YOUR SYSTEM MANAGER.\n\
    The following directory is part of the cycle:\n  ";
