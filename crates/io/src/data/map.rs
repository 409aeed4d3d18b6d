//! Memory-mapped files: an operation is a copy, and a page fault does the I/O.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, OFlags, fallocate, fcntl_getfl, fstat};

use super::calls::DataCalls;
use super::{CompletedOp, Data, FileId, FileTable, NativeData, Op, OpKind};
use crate::Errno;
use crate::sys::Map;

/// The mmap model. [`Data::attach`] maps the file. A write beyond its end first extends it. If
/// another process truncates a mapped file, an access ends this process with SIGBUS.
///
/// ```
/// use std::sync::Arc;
/// use fathom_io::data::{Buffer, Data, Mapped, Op, OpKind};
///
/// let mut model = Mapped::default();
/// let file = model.attach(Arc::new(std::fs::File::open("Cargo.toml")?.into()))?;
/// model.submit(Op::new(OpKind::Read, file, 0, Buffer::new(9)));
/// let mut done = Vec::new();
/// model.complete(&mut done);
/// assert_eq!(done.remove(0).into_op().bytes(), b"[package]");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Mapped {
    files: FileTable,
    /// The mapping of each file, and whether it is writable.
    maps: Vec<Option<(Map, bool)>>,
    random: bool,
    done: Option<CompletedOp>,
}

impl Mapped {
    /// Creates a model for random access. It turns off read-ahead, as the kernel does for random
    /// read(2) calls.
    #[must_use]
    pub fn random() -> Self {
        Self { random: true, ..Self::default() }
    }

    fn map(&mut self, id: FileId, len: u64) -> Result<(), Errno> {
        let file = self.files.get(id)?.as_fd();
        let writable = fcntl_getfl(file)? & OFlags::RWMODE == OFlags::RDWR;
        if writable && len > 0 {
            // Without this, a lack of disk space would be a SIGBUS at the first write to the page.
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
    /// Adds a file. It must be open for reading even if it is only written (EACCES).
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
        assert!(self.done.is_none(), "the model has one operation in flight");
        let result = self.perform(&mut op);
        self.done = Some(CompletedOp::new(op, result));
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        done.extend(self.done.take());
    }
}
