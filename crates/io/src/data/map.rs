//! FileTable in memory: an operation is a copy, and the kernel does the input and output when a page is touched.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, OFlags, fallocate, fcntl_getfl, fstat};

use super::calls::DataCalls;
use super::{CompletedOp, Data, FileId, FileTable, NativeData, Op, OpKind};
use crate::Errno;
use crate::sys::Map;

/// The mmap model. A file is mapped when it is attached; a write beyond its end makes it longer first. The file must be nobody else's:
/// truncated by others while it is mapped, it ends the process with SIGBUS.
#[derive(Debug, Default)]
pub struct Mapped {
    files: FileTable,
    /// By file, with whether it may be written.
    maps: Vec<Option<(Map, bool)>>,
    random: bool,
    done: Option<CompletedOp>,
}

impl Mapped {
    /// For reads in no order: the kernel is told not to read around them, as it does not around random calls of read(2).
    #[must_use]
    pub fn random() -> Self {
        Self { random: true, ..Self::default() }
    }

    fn map(&mut self, id: FileId, len: u64) -> Result<(), Errno> {
        let file = self.files.get(id)?.as_fd();
        let writable = fcntl_getfl(file)? & OFlags::RWMODE == OFlags::RDWR;
        if writable && len > 0 {
            // Space the disk does not have is an error here, and would be a signal later.
            fallocate(file, FallocateFlags::empty(), 0, len)?;
        }
        let map = Map::new(file, usize::try_from(len).map_err(|_| Errno::FBIG)?, writable)?;
        if self.random {
            map.expect_random()?;
        }
        let index = id.0 as usize;
        self.maps.resize_with(self.maps.len().max(index + 1), || None);
        self.maps[index] = Some((map, writable));
        Ok(())
    }

    fn map_of(&mut self, file: FileId) -> Result<&mut (Map, bool), Errno> {
        self.maps.get_mut(file.0 as usize).and_then(Option::as_mut).ok_or(Errno::BADF)
    }

    fn write(&mut self, op: &Op) -> Result<usize, Errno> {
        let end = op.offset.checked_add(op.len() as u64).ok_or(Errno::FBIG)?;
        let (map, writable) = self.map_of(op.file)?;
        if !*writable {
            return Err(Errno::BADF);
        }
        if end > map.len() as u64 {
            self.map(op.file, end)?;
        }
        Ok(self.map_of(op.file)?.0.write(op.offset, op.bytes()))
    }

    fn perform(&mut self, op: &mut Op) -> Result<usize, Errno> {
        match op.kind {
            OpKind::Read => {
                let offset = op.offset;
                Ok(self.map_of(op.file)?.0.read(offset, op.bytes_mut()))
            }
            OpKind::Write => self.write(op),
            OpKind::SyncData | OpKind::SyncAll => {
                self.map_of(op.file)?.0.sync()?;
                NativeData.sync(self.files.get(op.file)?.as_fd(), op.kind == OpKind::SyncAll).map(|()| 0)
            }
        }
    }
}

impl Data for Mapped {
    /// A file that is written must be open for reading, too (EACCES).
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        let len = u64::try_from(fstat(file.as_fd())?.st_size).unwrap_or(0);
        let id = self.files.add(file)?;
        match self.map(id, len) {
            Ok(()) => Ok(id),
            Err(errno) => {
                self.files.remove(id);
                Err(errno)
            }
        }
    }

    fn detach(&mut self, file: FileId) {
        self.files.remove(file);
        if let Some(map) = self.maps.get_mut(file.0 as usize) {
            *map = None;
        }
    }

    fn depth(&self) -> usize {
        1
    }

    fn in_flight(&self) -> usize {
        usize::from(self.done.is_some())
    }

    fn submit(&mut self, mut op: Box<Op>) {
        assert!(self.done.is_none(), "one operation at a time");
        let result = self.perform(&mut op);
        self.done = Some(CompletedOp::new(op, result));
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        done.extend(self.done.take());
    }
}
