//! Lookups that take system calls for each printed or tested entry.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use fathom_inventory::{Entry, LinkTarget, Lookup};
use fathom_io::sys;
use fathom_walk::{Errno, Fields, Follow, Meta, Names, mounts};

/// The context of lookups: the start directory and the mount table.
#[derive(Debug, Default)]
pub(crate) struct LookupContext {
    /// The directory that roots are relative to. A worker's current directory may differ from it by
    /// the time of a lookup.
    start: Option<OwnedFd>,
    /// Whether symbolic links are followed.
    follow: Follow,
    /// Device numbers with their filesystem types, read on first use.
    filesystems: OnceLock<Vec<(u64, Vec<u8>)>>,
}

impl LookupContext {
    /// Creates a context for roots that are relative to the current directory.
    pub(crate) fn new(follow: Follow) -> Self {
        let start = sys::open_path(sys::CWD, c".", Follow::Yes).ok();
        Self { start, follow, filesystems: OnceLock::new() }
    }

    fn start(&self) -> BorrowedFd<'_> {
        self.start.as_ref().map_or(sys::CWD, AsFd::as_fd)
    }

    fn filesystems(&self) -> &[(u64, Vec<u8>)] {
        self.filesystems.get_or_init(|| {
            let mounts = mounts::read().unwrap_or_default();
            mounts.into_iter().map(|mount| (mount.dev, mount.kind)).collect()
        })
    }

    /// Returns the metadata of the root `path` itself, even if it is a symbolic link.
    pub(crate) fn root_itself(&self, path: &[u8], fields: Fields) -> Result<Meta, Errno> {
        sys::stat(self.start(), &c_path(path), Follow::No, fields)
    }
}

/// Calls `ask`. If a followed link is dangling, calls it for the link itself.
fn with_link_fallback<T>(follow: Follow, ask: impl Fn(Follow) -> Result<Option<T>, Errno>) -> Option<T> {
    match (follow, ask(follow)) {
        (Follow::Yes, Err(Errno::NOENT | Errno::NOTDIR)) => ask(Follow::No),
        (_, result) => result,
    }
    .ok()
    .flatten()
}

fn c_path(path: &[u8]) -> CString {
    CString::new(path).unwrap_or_default()
}

/// The lookups for one entry.
pub(super) struct EntryLookup<'a> {
    pub(super) context: &'a LookupContext,
    /// The entry; `None` for a root, which is looked up by its path.
    entry: Option<&'a fathom_walk::Entry<'a>>,
    /// The error of a directory that a test had to read.
    pub(super) failure: Option<Errno>,
}

impl<'a> EntryLookup<'a> {
    pub(super) fn new(context: &'a LookupContext, entry: Option<&'a fathom_walk::Entry<'a>>) -> Self {
        Self { context, entry, failure: None }
    }

    /// Returns whether a directory has no entries.
    fn read_emptiness(&self, entry: &Entry<'_>) -> Result<bool, Errno> {
        let dir = match self.entry {
            Some(entry) => sys::open_dir(entry.dir(), entry.name.name, self.context.follow),
            None => sys::open_dir(self.context.start(), &c_path(entry.name), self.context.follow),
        }?;
        let mut names = Names::new();
        // A batch may have no names before the end: `.` and `..` are dropped.
        sys::read_names(&dir, &mut names, 1)?;
        Ok(names.is_empty())
    }
}

impl Lookup for EntryLookup<'_> {
    fn link(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let target = match self.entry {
            Some(entry) => entry.read_link(),
            None => sys::read_link(self.context.start(), &c_path(entry.name)),
        };
        target.ok().map(CString::into_bytes)
    }

    fn target(&mut self, entry: &Entry<'_>) -> LinkTarget {
        let found = match self.entry {
            Some(entry) => entry.stat(Follow::Yes, Fields::IDENTITY),
            None => sys::stat(self.context.start(), &c_path(entry.name), Follow::Yes, Fields::IDENTITY),
        };
        match found {
            Ok(meta) => LinkTarget::Type(meta.file_type()),
            Err(Errno::NOENT | Errno::NOTDIR) => LinkTarget::Missing,
            Err(Errno::LOOP) => LinkTarget::Loop,
            Err(_) => LinkTarget::Unknown,
        }
    }

    fn is_empty_dir(&mut self, entry: &Entry<'_>) -> Option<bool> {
        self.read_emptiness(entry).map_err(|errno| self.failure = Some(errno)).ok()
    }

    fn filesystem(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let dev = entry.meta?.dev;
        let kind = self.context.filesystems().iter().find(|(each, _)| *each == dev).map(|(_, kind)| kind);
        // find(1) prints `unknown` too, for btrfs and other filesystems with device numbers that
        // are not in the mount table.
        Some(kind.map_or_else(|| b"unknown".to_vec(), Clone::clone))
    }

    fn context(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        with_link_fallback(self.context.follow, |follow| match self.entry {
            Some(entry) => entry.context(follow),
            None => sys::security_context(self.context.start(), &c_path(entry.name), follow),
        })
    }
}
