//! Moving bytes from one file to another without taking them into the process: copy_file_range(2), sendfile(2), splice(2).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

use crate::Errno;

/// How.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMethod {
    /// copy_file_range(2): between regular files; may share blocks instead of copying them.
    CopyFileRange,
    /// sendfile(2): from a regular file to anything.
    Sendfile,
    /// splice(2), through a pipe: from a file to anything.
    Splice,
}

/// One way, with what it needs.
#[derive(Debug)]
pub struct Transfer {
    way: CopyMethod,
    pipe: Option<(OwnedFd, OwnedFd)>,
}

impl Transfer {
    /// Made ready.
    ///
    /// # Errors
    /// If there is no descriptor left for the pipe.
    pub fn new(way: CopyMethod) -> Result<Self, Errno> {
        let pipe = (way == CopyMethod::Splice).then(|| pipe_with(PipeFlags::CLOEXEC)).transpose()?;
        Ok(Self { way, pipe })
    }

    /// Moves up to `bytes` from byte `offset` of `from` to the position of `to`; how many it were, 0 at the end of `from`.
    ///
    /// # Errors
    /// The call's. EXDEV, EINVAL or EOPNOTSUPP mean that these two files cannot be copied this way.
    pub fn step(
        &self,
        from: BorrowedFd<'_>,
        mut offset: u64,
        to: BorrowedFd<'_>,
        bytes: usize,
    ) -> Result<usize, Errno> {
        match (self.way, &self.pipe) {
            (CopyMethod::CopyFileRange, _) => {
                retry_on_intr(|| rustix::fs::copy_file_range(from, Some(&mut offset), to, None, bytes))
            }
            (CopyMethod::Splice, Some((out, into))) => through(out, into, from, &mut offset, to, bytes),
            (CopyMethod::Sendfile | CopyMethod::Splice, _) => {
                retry_on_intr(|| rustix::fs::sendfile(to, from, Some(&mut offset), bytes))
            }
        }
    }
}

/// A pipe takes what fits; all of that is passed on before anything else is read, so it is empty again afterwards.
fn through(
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
