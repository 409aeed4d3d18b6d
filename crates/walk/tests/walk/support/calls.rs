//! A trait of blocking calls, and a model that makes them: a test replaces single calls before they
//! reach the kernel.

use std::ffi::CStr;
use std::future::Future;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use fathom_io::{Dir, Errno, Fields, Follow, Meta, MetadataModel, Names, block_on, sys};

/// Blocking metadata calls. Each is one unit of retry: EINTR is handled inside.
pub(crate) trait Calls: Clone + Send + Sync + 'static {
    /// Opens the directory `name` in `at` for reading.
    ///
    /// # Errors
    /// As openat(2); ENOTDIR for anything but a directory, ELOOP or ENOTDIR for a symbolic link
    /// that is not followed.
    fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno>;

    /// Appends names to `names` until it holds `limit`. Returns false at the end of the directory.
    ///
    /// # Errors
    /// As getdents64(2), or EIO for a malformed record; the names read before stay in `names`.
    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno>;

    /// Like [`Calls::read`], but makes one system call only: its names can be processed while the
    /// rest is read.
    ///
    /// # Errors
    /// As [`Calls::read`].
    fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno>;

    /// Returns the metadata of `name` in `at`.
    ///
    /// # Errors
    /// As statx(2).
    fn stat(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno>;

    /// Returns the metadata of an open directory.
    ///
    /// # Errors
    /// As statx(2).
    fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno>;

    /// Makes `dir` the working directory of the calling thread and of no other thread. Returns
    /// false if that is not possible.
    fn enter(&self, _dir: BorrowedFd<'_>) -> bool {
        false
    }

    /// Returns the magic number of the filesystem of an open directory; `None` if it is unknown.
    fn magic(&self, dir: &Dir) -> Option<i64> {
        sys::fs_magic(dir.as_fd())
    }
}

/// The system calls without changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Native;

impl Calls for Native {
    fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        sys::open_dir(at, name, follow)
    }

    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        sys::read_names(dir, names, limit)
    }

    fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        sys::read_some_names(dir, names, limit)
    }

    fn stat(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
        sys::stat(at, name, follow, fields)
    }

    fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        sys::stat_dir(dir, fields)
    }

    fn enter(&self, dir: BorrowedFd<'_>) -> bool {
        sys::enter(dir)
    }
}

/// The blocking model with the calls `C`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Over<C>(pub(crate) C);

impl<C: Calls> MetadataModel for Over<C> {
    async fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        self.0.open(at, name, follow)
    }

    async fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.0.read(dir, names, limit)
    }

    async fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.0.read_some(dir, names, limit)
    }

    async fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        self.0.stat_dir(dir, fields)
    }

    async fn stat(
        &self,
        at: BorrowedFd<'_>,
        names: &Names,
        range: Range<usize>,
        follow: Follow,
        fields: Fields,
        out: &mut Vec<Option<Result<Meta, Errno>>>,
    ) {
        out.clear();
        let stat = |name: fathom_io::Name<'_>| self.0.stat(at, name.name, follow, fields);
        out.extend(names.range(range).map(|name| name.stat.then(|| stat(name))));
    }

    fn enter(&self, dir: BorrowedFd<'_>) -> bool {
        self.0.enter(dir)
    }

    fn magic(&self, dir: &Dir) -> Option<i64> {
        self.0.magic(dir)
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }
}
