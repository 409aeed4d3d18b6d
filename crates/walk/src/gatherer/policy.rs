//! Decisions of the caller: a [`Policy`] for every entry, directory and failure, and a [`Filter`]
//! that drops entries.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fathom_io::{Fields, FileType, Follow, Meta, Name};

use super::path::EntryPath;
use crate::failure::Failure;
use crate::node::Node;
use crate::visitor::{self, Opened};

/// The argument of [`Policy::pick`]: an entry of a directory, or a root that is not a directory.
#[derive(Clone, Copy, Debug)]
pub struct PolicyEntry<'a> {
    pub(super) dir: &'a Arc<Node>,
    /// `None` for a root.
    pub(super) found: Option<visitor::Entry<'a>>,
    pub(super) file_type: FileType,
    pub(super) ino: u64,
    pub(super) meta: Option<&'a Meta>,
}

impl PolicyEntry<'_> {
    /// Returns its directory; for a root, the node of the root.
    #[must_use]
    pub fn dir(&self) -> &Arc<Node> {
        self.dir
    }

    /// Returns its name; for a root, its path.
    #[must_use]
    pub fn name(&self) -> &CStr {
        self.found.as_ref().map_or(self.dir.name(), |found| found.name.name)
    }

    /// Returns [`PolicyEntry::name`] as an [`OsStr`].
    #[must_use]
    pub fn file_name(&self) -> &OsStr {
        OsStr::from_bytes(self.name().to_bytes())
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> EntryPath {
        EntryPath::new(self.dir, self.found.map(|found| found.name.name))
    }

    /// Returns the number of levels below the root.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.dir.depth() + usize::from(self.found.is_some())
    }

    /// Returns its type, from the metadata if it was read, otherwise from the directory. The type
    /// is never [`FileType::Unknown`].
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.file_type
    }

    /// Returns its inode number, all 64 bits. Without metadata, a mount point has the number of the
    /// covered directory.
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.ino
    }

    /// Returns its metadata, if the policy [requested](Policy::wants_metadata) it or its type was
    /// unknown otherwise.
    #[must_use]
    pub fn meta(&self) -> Option<&Meta> {
        self.meta
    }

    /// Opens the entry for reading, relative to its directory. Never waits for a fifo or a device.
    ///
    /// # Errors
    /// As openat(2); ELOOP for a symbolic link that is not to be followed.
    pub fn open(&self, follow: Follow) -> io::Result<File> {
        match &self.found {
            Some(found) => Ok(found.open(follow)?.into()),
            None => self.path().open(follow),
        }
    }

    /// Reads metadata of the entry now, relative to its directory.
    ///
    /// # Errors
    /// As statx(2).
    pub fn stat(&self, follow: Follow, fields: Fields) -> io::Result<Meta> {
        match &self.found {
            Some(found) => Ok(found.stat(follow, fields)?),
            None => self.path().stat(follow, fields),
        }
    }

    /// Returns the target of the symbolic link.
    ///
    /// # Errors
    /// As readlinkat(2).
    pub fn read_link(&self) -> io::Result<CString> {
        match &self.found {
            Some(found) => Ok(found.read_link()?),
            None => Ok(crate::read_link(self.dir.name())?),
        }
    }
}

/// The actions for an entry. Default: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick<T = ()> {
    pub(super) descends: bool,
    pub(super) sends: Option<(usize, T)>,
}

impl<T> Default for Pick<T> {
    fn default() -> Self {
        Self { descends: false, sends: None }
    }
}

impl Pick {
    /// Sends the entry to a channel, with its metadata if that was read.
    #[must_use]
    pub fn send(channel: usize) -> Self {
        Self::send_with(channel, ())
    }
}

impl<T> Pick<T> {
    /// Sends the entry to a channel, with a payload of the policy.
    #[must_use]
    pub fn send_with(channel: usize, payload: T) -> Self {
        Self { descends: false, sends: Some((channel, payload)) }
    }

    /// Also walks the entry, if it is a directory.
    #[must_use]
    pub fn descend(self) -> Self {
        Self { descends: true, ..self }
    }
}

/// Selects entries and their channels, on the workers. Channels are taken modulo their number, so a
/// hash is a valid channel.
///
/// `T` is the type of the payload in messages.
///
/// ```
/// use fathom_walk::FileType;
/// use fathom_walk::gatherer::{Builder, Message, Pick, Policy, PolicyEntry};
///
/// /// Sends regular files with the length of their names, and skips hidden directories.
/// struct Files;
///
/// impl Policy<usize> for Files {
///     fn pick(&self, entry: &PolicyEntry<'_>) -> Pick<usize> {
///         let name = entry.name().to_bytes();
///         match entry.file_type() {
///             FileType::Directory if !name.starts_with(b".") => Pick::default().descend(),
///             FileType::Regular => Pick::send_with(0, name.len()),
///             _ => Pick::default(),
///         }
///     }
/// }
///
/// let (gatherer, mut inboxes) = Builder::new().start(Files)?;
/// gatherer.add_root("src")?;
/// gatherer.no_more_roots();
/// for message in inboxes.remove(0) {
///     if let Message::Entry(item) = message {
///         assert_eq!(item.payload, item.path.name().to_bytes().len());
///     }
/// }
/// assert!(gatherer.finish()?.complete);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Policy<T = ()>: Send + Sync + 'static {
    /// Returns whether [`Policy::pick`] needs the metadata of the entries of `dir` that have this
    /// type. Called at most once for each type in a batch of entries, not for each entry.
    fn wants_metadata(&self, _dir: &Arc<Node>, _file_type: FileType) -> bool {
        false
    }

    /// Returns the actions for an entry. Called exactly once for each entry, except if its metadata
    /// is needed and cannot be read.
    fn pick(&self, entry: &PolicyEntry<'_>) -> Pick<T>;

    /// Returns the channel for the message about a failure, or `None` for no message. With or
    /// without it, [`Gatherer::finish`](super::Gatherer::finish) returns a summary that is not
    /// complete.
    fn failed(&self, _failure: &Failure<'_>) -> Option<usize> {
        Some(0)
    }

    /// Returns the channel for a message once all entries of `dir` have been sent, or `None` for no
    /// message.
    fn end(&self, _dir: &Node) -> Option<usize> {
        None
    }

    /// Returns the channel for a message once everything below `dir` has been sent, or `None` for
    /// no message.
    fn done(&self, _dir: &Node) -> Option<usize> {
        None
    }

    /// Returns the channel for a message once everything below `dir` has been processed, or `None`
    /// for no message. Processed means that it has been sent, and that the consumers have dropped
    /// every message about it. Called once, when the directory has been opened; a directory that
    /// cannot be opened is a failure instead.
    fn processed(&self, _dir: &Node) -> Option<usize> {
        None
    }
}

/// Drops entries from a walk, with everything below them: for instance those that an ignore file
/// lists.
///
/// A function of a directory and a name is also a filter.
///
/// ```
/// use std::sync::Arc;
/// use fathom_walk::{FileType, Name, Node};
/// use fathom_walk::gatherer::Builder;
///
/// let sources = |_dir: &Arc<Node>, name: Name<'_>| {
///     name.file_type == FileType::Directory || name.name.to_bytes().ends_with(b".rs")
/// };
/// for item in Builder::new().filter(sources).walk(["."])? {
///     let item = item?;
///     let is_source = item.path.name().to_bytes().ends_with(b".rs");
///     assert!(item.file_type == FileType::Directory || is_source);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Filter: Send + Sync + 'static {
    /// Inspects a directory that has been opened, before any of its entries is selected, for
    /// instance to read an ignore file among [`Opened::names`]. [`Node::set_note`] keeps the
    /// result. Returns the approximate memory of the result in bytes.
    fn opened(&self, _dir: &Opened<'_>) -> usize {
        0
    }

    /// Returns whether the policy sees an entry of `dir`. The type of the entry is known.
    fn keeps(&self, dir: &Arc<Node>, name: Name<'_>) -> bool;
}

impl<F: Fn(&Arc<Node>, Name<'_>) -> bool + Send + Sync + 'static> Filter for F {
    fn keeps(&self, dir: &Arc<Node>, name: Name<'_>) -> bool {
        self(dir, name)
    }
}
