//! Copies from one file to another inside the kernel: copy_file_range(2), sendfile(2), splice(2).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

use crate::Errno;

/// A system call that copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyMethod {
    /// copy_file_range(2), between regular files. It may share blocks instead of copying them.
    CopyFileRange,
    /// sendfile(2), from a regular file to any file.
    Sendfile,
    /// splice(2) through a pipe, from a file to any file.
    Splice,
}

/// A copy method with the resources that it needs.
///
/// ```
/// use std::os::fd::AsFd;
/// use fathom_io::data::transfer::{CopyMethod, Transfer};
///
/// let (from, to) = (std::fs::File::open("Cargo.toml")?, std::fs::File::create("/dev/null")?);
/// let transfer = Transfer::new(CopyMethod::Splice)?;
/// assert_eq!(transfer.step(from.as_fd(), 0, to.as_fd(), 9)?, 9);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Transfer {
    method: CopyMethod,
    pipe: Option<(OwnedFd, OwnedFd)>,
}

impl Transfer {
    /// Prepares a copy, which takes a pipe for [`CopyMethod::Splice`].
    ///
    /// # Errors
    /// As pipe2(2).
    pub fn new(method: CopyMethod) -> Result<Self, Errno> {
        let pipe = (method == CopyMethod::Splice).then(|| pipe_with(PipeFlags::CLOEXEC)).transpose()?;
        Ok(Self { method, pipe })
    }

    /// Copies up to `bytes` from byte `offset` of `from` to the position of `to`. Returns the
    /// number of bytes copied, which is 0 at the end of `from`.
    ///
    /// # Errors
    /// The errors of the call. EXDEV, EINVAL or EOPNOTSUPP mean that it does not support these two
    /// files.
    pub fn step(
        &self,
        from: BorrowedFd<'_>,
        mut offset: u64,
        to: BorrowedFd<'_>,
        bytes: usize,
    ) -> Result<usize, Errno> {
        match (self.method, &self.pipe) {
            (CopyMethod::CopyFileRange, _) => {
                retry_on_intr(|| rustix::fs::copy_file_range(from, Some(&mut offset), to, None, bytes))
            }
            (CopyMethod::Splice, Some((out, into))) => {
                splice_through(out, into, from, &mut offset, to, bytes)
            }
            (CopyMethod::Sendfile | CopyMethod::Splice, _) => {
                retry_on_intr(|| rustix::fs::sendfile(to, from, Some(&mut offset), bytes))
            }
        }
    }
}

/// Copies through a pipe. Everything that the pipe accepts is written before the next read, so the
/// pipe is empty afterwards.
fn splice_through(
    out: &OwnedFd,
    into: &OwnedFd,
    from: BorrowedFd<'_>,
    offset: &mut u64,
    to: BorrowedFd<'_>,
    bytes: usize,
) -> Result<usize, Errno> {
    let read =
        retry_on_intr(|| splice(from, Some(&mut *offset), into.as_fd(), None, bytes, SpliceFlags::MOVE))?;
    let mut left = read;
    while left > 0 {
        match retry_on_intr(|| splice(out.as_fd(), None, to, None, left, SpliceFlags::MOVE))? {
            0 => return Err(Errno::IO),
            moved => left -= moved,
        }
    }
    Ok(read)
}
