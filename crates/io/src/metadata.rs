//! The interface of metadata models: directories, names and the metadata of entries.

use std::ffi::CStr;
use std::future::Future;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::{Dir, Errno, Fields, Meta, Names};

/// Whether a symbolic link as the last component is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Follow {
    /// The call applies to the link itself.
    #[default]
    No,
    /// The call applies to the target of the link.
    Yes,
}

/// The metadata calls of one worker. Each worker owns its model; no part of it is shared between
/// threads.
///
/// The futures of a blocking model are ready at the first poll, so generic code over
/// `MetadataModel` costs it nothing.
pub trait MetadataModel {
    /// Directories that one worker should read at once, so that its calls overlap.
    const WIDTH: usize = 1;

    /// Whether the calls are system calls on the calling thread, which block while the storage is
    /// busy.
    const DIRECT: bool = false;

    /// The smallest number of names that are worth one call of [`stat`](Self::stat), in a directory
    /// that has as many.
    const BATCH: usize = 1;

    /// Opens the directory `name` in `at`.
    ///
    /// # Errors
    /// The errors of openat(2) with `O_DIRECTORY`.
    fn open(
        &self,
        at: BorrowedFd<'_>,
        name: &CStr,
        follow: Follow,
    ) -> impl Future<Output = Result<Dir, Errno>>;

    /// Appends names to `names` until it holds `limit`. Returns false at the end of the directory.
    ///
    /// # Errors
    /// The errors of getdents64(2). The names that were read before stay in `names`.
    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> impl Future<Output = Result<bool, Errno>>;

    /// Does the same as [`MetadataModel::read`], but may stop after one system call: other workers
    /// can process these names while the rest is read.
    ///
    /// # Errors
    /// The errors of [`MetadataModel::read`].
    fn read_some(
        &self,
        dir: &Dir,
        names: &mut Names,
        limit: usize,
    ) -> impl Future<Output = Result<bool, Errno>> {
        self.read(dir, names, limit)
    }

    /// Returns the metadata of an open directory.
    ///
    /// # Errors
    /// The errors of statx(2).
    fn stat_dir(&self, dir: &Dir, fields: Fields) -> impl Future<Output = Result<Meta, Errno>>;

    /// Reads the metadata of the entries `range` of `names` in `at`. `out` gets one element for
    /// each entry, `None` where [`Name::stat`](crate::Name) is off. `out` is emptied first.
    fn stat(
        &self,
        at: BorrowedFd<'_>,
        names: &Names,
        range: Range<usize>,
        follow: Follow,
        fields: Fields,
        out: &mut Vec<Option<Result<Meta, Errno>>>,
    ) -> impl Future<Output = ()>;

    /// Makes `dir` the working directory of the calling thread and of no other thread. Returns
    /// false if that is not possible. A call relative to [`CWD`](crate::sys::CWD) saves the kernel
    /// the lookup and the reference of a descriptor.
    fn enter(&self, _dir: BorrowedFd<'_>) -> bool {
        false
    }

    /// Returns the magic number of the filesystem of an open directory; `None` if it is unknown.
    fn magic(&self, dir: &Dir) -> Option<i64> {
        crate::sys::fs_magic(dir.as_fd())
    }

    /// Closes `dir`. A future that is dropped before its end closes it, too.
    fn close(&self, dir: Dir) -> impl Future<Output = ()> {
        drop(dir);
        std::future::ready(())
    }

    /// Runs `future`, which awaits only calls of this model, to its end.
    fn run<F: Future>(&self, future: F) -> F::Output;
}

/// Polls `future`, which is ready at the first poll, and returns its output.
///
/// # Panics
/// If it is not ready.
pub fn block_on<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a blocking model's calls are done when they return"),
    }
}
