//! Reads of what is in memory on the thread that asks, everything else by a pool: preadv2(2) with `RWF_NOWAIT` tells which is which.
//!
//! A filesystem that does not know the flag (EOPNOTSUPP: tmpfs before 6.11, overlayfs, FUSE) is asked once; its reads go to the pool.
//! Writes are tried as well, where the filesystem has it: ext4 refuses buffered ones.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{ReadWriteFlags, preadv2, pwritev2, retry_on_intr};

use super::{CompletedOp, Data, FileId, FileTable, Op, OpKind, Pool};
use crate::Errno;

/// What came of a read that must not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NowaitRead {
    /// That many bytes; 0 is the end.
    Bytes(usize),
    /// It would have to wait.
    WouldBlock,
    /// Nobody can tell: the filesystem does not know the question.
    Unsupported,
}

/// Reads up to `bytes` of `file` from `offset`, unless that would have to wait.
///
/// # Errors
/// preadv2(2)'s.
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

/// The model.
#[derive(Debug)]
pub struct Nowait {
    pool: Pool,
    files: FileTable,
    /// By file: whether reads, and writes, are worth a try.
    tries: Vec<(bool, bool)>,
    done: Vec<CompletedOp>,
    at_once: u64,
}

impl Nowait {
    /// With `pool` for what would have to wait.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { pool, files: FileTable::default(), tries: Vec::new(), done: Vec::new(), at_once: 0 }
    }

    /// Operations that did not need the pool.
    #[must_use]
    pub fn at_once(&self) -> u64 {
        self.at_once
    }

    /// The result of `op`, if there is one at once.
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
        // Both tables are changed together, so the numbers are the same.
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
        assert!(self.in_flight() < self.depth(), "no more operations than the depth");
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
    fn what_has_just_been_written_is_read_at_once() {
        let file = tempfile::tempfile().unwrap();
        rustix::io::pwrite(&file, b"12345", 0).unwrap();
        let mut bytes = [0; 8];
        let NowaitRead::Bytes(read) = read_nowait(file.as_fd(), &mut bytes, 1).unwrap() else {
            return println!("skipped: this filesystem does not know RWF_NOWAIT");
        };
        assert_eq!(&bytes[..read], b"2345");
        assert_eq!(read_nowait(file.as_fd(), &mut bytes, 5), Ok(NowaitRead::Bytes(0)), "the end");
    }

    #[test]
    fn what_the_flag_is_not_for_is_left_to_others() {
        let (_writer, reader) = std::io::pipe().map(|(reader, writer)| (writer, reader)).unwrap();
        assert_eq!(read_nowait(reader.as_fd(), &mut [0; 8], 0), Err(Errno::SPIPE), "a pipe has no offsets");
    }
}
