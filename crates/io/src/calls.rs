//! The system calls a model is made of, as a trait, so that a simulation can stand between a model and the kernel.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};

use crate::model::Follow;
use crate::{Dir, Errno, Fields, Meta, Names, sys};

/// Blocking metadata calls. Each is one unit of retry: EINTR is handled inside.
pub trait Calls: Clone + Send + Sync + 'static {
    /// The kernel's own, and nothing else.
    const DIRECT: bool = false;

    /// Opens the directory `name` in `at` for reading.
    ///
    /// # Errors
    /// openat(2)'s; ENOTDIR for anything but a directory, ELOOP or ENOTDIR for a symbolic link not followed.
    fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno>;

    /// Appends names to `names` until it holds `limit`; false at the directory's end.
    ///
    /// # Errors
    /// getdents64(2)'s, or EIO for a malformed record; what was read before stays in `names`.
    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno>;

    /// The same, but no more than one system call gives: what is known then can be worked on while the rest is read.
    ///
    /// # Errors
    /// As [`Calls::read`].
    fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno>;

    /// Metadata of `name` in `at`.
    ///
    /// # Errors
    /// statx(2)'s.
    fn stat(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno>;

    /// Metadata of an open directory.
    ///
    /// # Errors
    /// statx(2)'s.
    fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno>;

    /// Makes `dir` the working directory of the calling thread and of no other; false where that cannot be had.
    fn enter(&self, _dir: BorrowedFd<'_>) -> bool {
        false
    }

    /// Magic number of the filesystem an open directory is on; `None` where it cannot be told.
    fn magic(&self, dir: &Dir) -> Option<i64> {
        sys::fs_magic(dir.as_fd())
    }
}

/// The kernel's own calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

impl Calls for Native {
    const DIRECT: bool = true;

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
