//! Reads of cached data on the calling thread, and all other operations on a pool. preadv2(2) with
//! `RWF_NOWAIT` decides.
//!
//! If a filesystem does not support the flag (EOPNOTSUPP: tmpfs before 6.11, overlayfs, FUSE), the
//! reads of that file go to the pool after the first attempt. Writes are tried in the same way;
//! ext4 refuses buffered ones.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{ReadWriteFlags, preadv2, pwritev2, retry_on_intr};

use super::{CompletedOp, Data, FileId, FileTable, Op, OpKind, Pool};
use crate::Errno;

/// The result of a read that does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NowaitRead {
    /// The number of bytes read. 0 is the end of the file.
    Bytes(usize),
    /// The read would have to wait.
    WouldBlock,
    /// The filesystem does not support `RWF_NOWAIT`.
    Unsupported,
}

/// Reads up to `bytes.len()` bytes of `file` from `offset`, unless that would have to wait.
///
/// # Errors
/// As preadv2(2).
///
/// ```
/// use std::os::fd::AsFd;
/// use fathom_io::data::{NowaitRead, read_nowait};
///
/// let file = std::fs::File::open("Cargo.toml")?;
/// let mut bytes = [0; 9];
/// match read_nowait(file.as_fd(), &mut bytes, 0)? {
///     NowaitRead::Bytes(count) => assert_eq!(bytes[..count], b"[package]"[..count]),
///     NowaitRead::WouldBlock | NowaitRead::Unsupported => println!("use a pool"),
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read_nowait(file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> Result<NowaitRead, Errno> {
    match read(file, bytes, offset) {
        Err(Errno::AGAIN) => Ok(NowaitRead::WouldBlock),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(NowaitRead::Unsupported),
        result => result.map(NowaitRead::Bytes),
    }
}

fn read(file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
    retry_on_intr(|| preadv2(file, &mut [IoSliceMut::new(bytes)], offset, ReadWriteFlags::NOWAIT))
}

/// The model of reads that do not wait, with a pool for the others.
///
/// ```
/// use std::sync::Arc;
/// use fathom_io::data::{Buffer, Data, NativeData, Nowait, Op, OpKind, Pool};
///
/// let mut model = Nowait::new(Pool::new(NativeData, 2, 8, 1)?);
/// let file = model.attach(Arc::new(std::fs::File::open("Cargo.toml")?.into()))?;
/// model.submit(Op::new(OpKind::Read, file, 0, Buffer::new(9)));
/// let mut done = Vec::new();
/// model.complete(&mut done);
/// assert_eq!(done.remove(0).into_op().bytes(), b"[package]");
/// println!("{} operations without the pool", model.at_once());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Nowait {
    pool: Pool,
    files: FileTable,
    /// For each file, whether reads and whether writes are tried without waiting.
    tries: Vec<(bool, bool)>,
    done: Vec<CompletedOp>,
    at_once: u64,
}

impl Nowait {
    /// Creates the model. `pool` takes the operations that would have to wait.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { pool, files: FileTable::default(), tries: Vec::new(), done: Vec::new(), at_once: 0 }
    }

    /// Returns the number of operations that did not need the pool.
    #[must_use]
    pub fn at_once(&self) -> u64 {
        self.at_once
    }

    /// Tries `op` without waiting. `None` if it needs the pool.
    fn attempt(&mut self, op: &mut Op) -> Option<Result<usize, Errno>> {
        let (reads, writes) = *self.tries.get(op.file.0 as usize)?;
        let file = self.files.get(op.file).ok()?.as_fd();
        let offset = op.offset;
        let result = match op.kind {
            OpKind::Read if reads => read(file, op.bytes_mut(), offset),
            OpKind::Write if writes => {
                let bytes = op.bytes();
                retry_on_intr(|| pwritev2(file, &[IoSlice::new(bytes)], offset, ReadWriteFlags::NOWAIT))
            }
            _ => return None,
        };
        match result {
            Err(Errno::AGAIN) => None,
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                let tries = &mut self.tries[op.file.0 as usize];
                *(if op.kind == OpKind::Read { &mut tries.0 } else { &mut tries.1 }) = false;
                None
            }
            result => Some(result),
        }
    }
}

impl Data for Nowait {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        let id = self.files.add(file.clone())?;
        // Both tables have the same changes, so the numbers are the same.
        let pooled = self.pool.attach(file)?;
        debug_assert_eq!(pooled, id);
        self.tries.resize(self.tries.len().max(id.0 as usize + 1), (true, true));
        self.tries[id.0 as usize] = (true, true);
        Ok(id)
    }

    fn detach(&mut self, file: FileId) {
        self.files.remove(file);
        self.pool.detach(file);
    }

    fn depth(&self) -> usize {
        self.pool.depth()
    }

    fn in_flight(&self) -> usize {
        self.pool.in_flight() + self.done.len()
    }

    fn submit(&mut self, mut op: Box<Op>) {
        assert!(self.in_flight() < self.depth(), "the number of operations in flight is at most the depth");
        match self.attempt(&mut op) {
            Some(result) => {
                self.at_once += 1;
                self.done.push(CompletedOp::new(op, result));
            }
            None => self.pool.submit(op),
        }
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        if self.done.is_empty() {
            self.pool.complete(done);
        } else {
            done.append(&mut self.done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_just_written_is_read_without_waiting() {
        let file = tempfile::tempfile().unwrap();
        rustix::io::pwrite(&file, b"12345", 0).unwrap();
        let mut bytes = [0; 8];
        let NowaitRead::Bytes(read) = read_nowait(file.as_fd(), &mut bytes, 1).unwrap() else {
            return println!("skipped: this filesystem does not support RWF_NOWAIT");
        };
        assert_eq!(&bytes[..read], b"2345");
        assert_eq!(read_nowait(file.as_fd(), &mut bytes, 5), Ok(NowaitRead::Bytes(0)), "the end of the file");
    }

    #[test]
    fn read_nowait_returns_the_error_of_a_pipe() {
        let (_writer, reader) = std::io::pipe().map(|(reader, writer)| (writer, reader)).unwrap();
        assert_eq!(read_nowait(reader.as_fd(), &mut [0; 8], 0), Err(Errno::SPIPE), "a pipe has no offsets");
    }
}
