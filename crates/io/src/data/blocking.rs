//! Blocking calls on the calling thread: an operation has ended when `submit` returns.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{SeekFrom, seek};

use super::calls::perform;
use super::{CompletedOp, Data, DataCalls, FileId, FileTable, Op, OpKind};
use crate::Errno;

/// The way in which a call gets the position in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// pread(2) and pwrite(2), which take it as an argument.
    Explicit,
    /// read(2) and write(2), which use the position of the open file. lseek(2) sets it if it
    /// differs.
    Own,
}

/// The blocking model of byte ranges. See [`Data`] for an example.
#[derive(Debug)]
pub struct BlockingData<C> {
    calls: C,
    position: Position,
    files: FileTable,
    /// File that [`Position::Own`] has used last, and its position.
    at: Option<(FileId, u64)>,
    done: Option<CompletedOp>,
}

impl<C: DataCalls> BlockingData<C> {
    /// Creates a model that makes `calls`.
    pub fn new(calls: C, position: Position) -> Self {
        Self { calls, position, files: FileTable::default(), at: None, done: None }
    }

    fn perform(&mut self, op: &mut Op) -> Result<usize, Errno> {
        let file = self.files.get(op.file)?.as_fd();
        if self.position == Position::Explicit || !matches!(op.kind, OpKind::Read | OpKind::Write) {
            return perform(&self.calls, file, op);
        }
        if self.at != Some((op.file, op.offset)) {
            seek(file, SeekFrom::Start(op.offset))?;
        }
        self.at = None;
        let bytes = match op.kind {
            OpKind::Read => self.calls.read(file, op.bytes_mut())?,
            _ => self.calls.write(file, op.bytes())?,
        };
        self.at = Some((op.file, op.offset + bytes as u64));
        Ok(bytes)
    }
}

impl<C: DataCalls> Data for BlockingData<C> {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        self.at = None;
        self.files.add(file)
    }

    fn detach(&mut self, file: FileId) {
        self.files.remove(file);
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
