//! BlockingData calls on the thread that asks: an operation has ended when it has been submitted.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{SeekFrom, seek};

use super::calls::perform;
use super::{CompletedOp, Data, DataCalls, FileId, FileTable, Op, OpKind};
use crate::Errno;

/// How a call is told where in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// pread(2) and pwrite(2): with each call.
    Explicit,
    /// read(2) and write(2): by the file's own position, which is moved only if it stands elsewhere.
    Own,
}

/// The blocking model.
#[derive(Debug)]
pub struct BlockingData<C> {
    calls: C,
    position: Position,
    files: FileTable,
    /// Where [`Position::Own`] has left which file.
    at: Option<(FileId, u64)>,
    done: Option<CompletedOp>,
}

impl<C: DataCalls> BlockingData<C> {
    /// Over `calls`.
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
        assert!(self.done.is_none(), "one operation at a time");
        let result = self.perform(&mut op);
        self.done = Some(CompletedOp::new(op, result));
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        done.extend(self.done.take());
    }
}
