//! What takes a system call for a single entry that is printed.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use fathom_inventory::{Entry, Lookup, Target};
use fathom_io::sys;
use fathom_walk::{Errno, Fields, Follow, Meta, Stamp, mounts};

/// Where single entries are looked up.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// What roots are relative to: the current directory of the worker that comes upon one may be another by then.
    start: Option<OwnedFd>,
    /// Whether links are followed.
    follow: Follow,
    /// Devices and the types of their filesystems, read when first asked for.
    filesystems: OnceLock<Vec<(u64, Vec<u8>)>>,
}

impl Places {
    /// Roots are relative to the current directory.
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

    /// Metadata of the root `path` itself, be it a symbolic link.
    pub(crate) fn root_itself(&self, path: &[u8], fields: Fields) -> Result<Meta, Errno> {
        sys::stat(self.start(), &c_path(path), Follow::No, fields)
    }
}

/// Of a link that is followed and leads nowhere, the link itself is asked.
fn ask<T>(follow: Follow, ask: impl Fn(Follow) -> Result<Option<T>, Errno>) -> Option<T> {
    match (follow, ask(follow)) {
        (Follow::Yes, Err(Errno::NOENT | Errno::NOTDIR)) => ask(Follow::No),
        (_, told) => told,
    }
    .ok()
    .flatten()
}

fn c_path(path: &[u8]) -> CString {
    CString::new(path).unwrap_or_default()
}

/// What takes a further call for an entry.
pub(super) struct Asked<'a> {
    pub(super) places: &'a Places,
    /// None for a root, which is looked at by its path.
    pub(super) entry: Option<&'a fathom_walk::Entry<'a>>,
}

impl Lookup for Asked<'_> {
    fn link(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let target = match self.entry {
            Some(entry) => entry.read_link(),
            None => sys::read_link(self.places.start(), &c_path(entry.name)),
        };
        target.ok().map(CString::into_bytes)
    }

    fn target(&mut self, entry: &Entry<'_>) -> Target {
        let found = match self.entry {
            Some(entry) => entry.stat(Follow::Yes, Fields::IDENTITY),
            None => sys::stat(self.places.start(), &c_path(entry.name), Follow::Yes, Fields::IDENTITY),
        };
        match found {
            Ok(meta) => Target::Type(meta.file_type()),
            Err(Errno::NOENT | Errno::NOTDIR) => Target::Missing,
            Err(Errno::LOOP) => Target::Loop,
            Err(_) => Target::Unknown,
        }
    }

    fn filesystem(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        let dev = entry.meta?.dev;
        let kind = self.places.filesystems().iter().find(|(each, _)| *each == dev).map(|(_, kind)| kind);
        // find's word, for btrfs and others with a device number that the mount table does not know.
        Some(kind.map_or_else(|| b"unknown".to_vec(), Clone::clone))
    }

    fn context(&mut self, entry: &Entry<'_>) -> Option<Vec<u8>> {
        ask(self.places.follow, |follow| match self.entry {
            Some(entry) => entry.context(follow),
            None => sys::context(self.places.start(), &c_path(entry.name), follow),
        })
    }

    fn born(&mut self, entry: &Entry<'_>) -> Option<Stamp> {
        ask(self.places.follow, |follow| match self.entry {
            Some(entry) => entry.born(follow),
            None => sys::born(self.places.start(), &c_path(entry.name), follow),
        })
    }
}
