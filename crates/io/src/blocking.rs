//! Blocking calls on the thread of the worker, for the models `sync`, `threads` and `auto`.

use std::ffi::CStr;
use std::future::Future;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use crate::metadata::block_on;
use crate::{Dir, Errno, Fields, Follow, Meta, MetadataModel, Names, sys};

/// The blocking metadata model.
///
/// ```
/// use fathom_io::blocking::Blocking;
/// use fathom_io::{Fields, Follow, MetadataModel, sys};
///
/// let meta = Blocking.run(async {
///     let dir = Blocking.open(sys::CWD, c"/", Follow::No).await?;
///     Blocking.stat_dir(&dir, Fields::IDENTITY).await
/// })?;
/// assert_eq!(meta.file_type(), fathom_io::FileType::Directory);
/// # Ok::<(), fathom_io::Errno>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Blocking;

impl MetadataModel for Blocking {
    const DIRECT: bool = true;

    async fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        sys::open_dir(at, name, follow)
    }

    async fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        sys::read_names(dir, names, limit)
    }

    async fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        sys::read_some_names(dir, names, limit)
    }

    async fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        sys::stat_dir(dir, fields)
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
        out.extend(
            names.range(range).map(|name| name.stat.then(|| sys::stat(at, name.name, follow, fields))),
        );
    }

    fn enter(&self, dir: BorrowedFd<'_>) -> bool {
        sys::enter(dir)
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        block_on(future)
    }
}
