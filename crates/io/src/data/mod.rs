//! Models for reading, writing and syncing byte ranges of open files, with buffers that the
//! operations own.
//!
//! A [`Data`] belongs to one thread. [`Data::submit`] takes operations, each with its buffer.
//! [`Data::complete`] returns them in any order, each with its result and the same buffer. A
//! blocking model makes the call in `submit`; the others have up to [`Data::depth`] operations in
//! flight. A result may be short, as for read(2) and write(2); [`Op::advance`] turns the operation
//! into one on the remaining bytes.
//!
//! ```text
//! files (attach) ─┐
//! Op {kind, file, offset, buffer} ── submit ──> model ── complete ──> CompletedOp (op, result)
//! ```
//! Between the two, only the model accesses the buffer, so it may pass the memory to the kernel or
//! to another thread. If a model is dropped, the buffers of operations in flight stay valid until
//! these have ended.
//!
//! Owns: the models, buffers, file tables, copies inside the kernel ([`transfer`]), faults for
//! tests ([`sim`]). Does not own: the choice of ranges, their order, and the number of threads.

#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod aio;
mod blocking;
mod buffer;
#[cfg(all(target_os = "linux", feature = "tokio", feature = "uring", not(feature = "posix")))]
mod build;
pub(crate) mod calls;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod map;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
mod nowait;
mod pool;
pub mod sim;
#[cfg(all(target_os = "linux", feature = "tokio"))]
mod tokio_file;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub mod transfer;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::Errno;

#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use aio::Aio;
pub use blocking::{BlockingData, Position};
pub use buffer::{ALIGN_BYTES, Buffer};
#[cfg(all(target_os = "linux", feature = "tokio", feature = "uring", not(feature = "posix")))]
pub use build::{DataOptions, DataVisitor, build};
pub use calls::{DataCalls, NativeData};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use map::Mapped;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use nowait::{Nowait, NowaitRead, read_nowait};
pub use pool::Pool;
#[cfg(all(target_os = "linux", feature = "tokio"))]
pub use tokio_file::TokioFile;

/// The number of a file in a model, returned by [`Data::attach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub(crate) u32);

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpKind {
    /// Reads into the buffer.
    Read,
    /// Writes the buffer.
    Write,
    /// Calls fdatasync(2). The buffer is empty.
    SyncData,
    /// Calls fsync(2). The buffer is empty.
    SyncAll,
}

/// An operation and the buffer that it owns. It is on the heap, so passing it on moves a pointer,
/// and its memory can be used for the next operation.
#[derive(Debug)]
pub struct Op {
    /// Kind of the operation.
    pub kind: OpKind,
    /// File of the operation.
    pub file: FileId,
    /// Position in the file of the buffer's byte [`Op::start`].
    pub offset: u64,
    /// Memory of the operation.
    pub buffer: Buffer,
    /// First byte of the range of the buffer.
    pub start: usize,
    /// End of the range of the buffer.
    pub end: usize,
    /// Value for the use of the caller.
    pub tag: u64,
    /// Result, which only [`CompletedOp`] returns.
    result: Result<usize, Errno>,
}

impl Op {
    /// Creates an operation on all of `buffer`.
    #[must_use]
    pub fn new(kind: OpKind, file: FileId, offset: u64, buffer: Buffer) -> Box<Self> {
        let end = buffer.len();
        Box::new(Self { kind, file, offset, buffer, start: 0, end, tag: 0, result: Ok(0) })
    }

    /// Creates a sync of `file`. `kind` is [`OpKind::SyncData`] or [`OpKind::SyncAll`].
    #[must_use]
    pub fn sync(kind: OpKind, file: FileId) -> Box<Self> {
        Self::new(kind, file, 0, Buffer::default())
    }

    /// Returns the number of bytes in the range.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns whether the range is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the range.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the bytes of the range for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let range = self.start..self.end;
        &mut self.buffer[range]
    }

    /// Removes the first `bytes` from the range, after they were transferred. Returns whether the
    /// range still has bytes.
    pub fn advance(&mut self, bytes: usize) -> bool {
        let bytes = bytes.min(self.len());
        self.start += bytes;
        self.offset += bytes as u64;
        !self.is_empty()
    }
}

/// An operation that has ended, with its result. It is one pointer: a loop of cached reads would
/// spend most of its time on copies of larger values.
#[derive(Debug)]
pub struct CompletedOp(Box<Op>);

impl CompletedOp {
    /// Creates an operation `op` that has ended with `result`.
    #[must_use]
    pub fn new(mut op: Box<Op>, result: Result<usize, Errno>) -> Self {
        op.result = result;
        Self(op)
    }

    /// Returns the number of bytes transferred, which is 0 for a sync and for a read at the end of
    /// the file.
    ///
    /// # Errors
    /// The error of the operation.
    pub fn result(&self) -> Result<usize, Errno> {
        self.0.result
    }

    /// Returns the operation with its buffer.
    #[must_use]
    pub fn into_op(self) -> Box<Op> {
        self.0
    }
}

/// A model of transfers between files and memory. It belongs to one thread.
///
/// ```
/// use std::sync::Arc;
/// use fathom_io::Errno;
/// use fathom_io::data::{BlockingData, Data, NativeData, Op, OpKind, Position};
///
/// fn read_all(model: &mut impl Data, file: std::fs::File) -> Result<Vec<u8>, Errno> {
///     let id = model.attach(Arc::new(file.into()))?;
///     let (mut text, mut done) = (Vec::new(), Vec::new());
///     let mut buffer = model.buffers(1, 4096)?.remove(0);
///     loop {
///         model.submit(Op::new(OpKind::Read, id, text.len() as u64, buffer));
///         model.complete(&mut done);
///         let ended = done.remove(0);
///         let (count, op) = (ended.result()?, ended.into_op());
///         text.extend_from_slice(&op.bytes()[..count]);
///         buffer = op.buffer;
///         if count == 0 {
///             return Ok(text);
///         }
///     }
/// }
///
/// let mut model = BlockingData::new(NativeData, Position::Explicit);
/// let text = read_all(&mut model, std::fs::File::open("Cargo.toml")?)?;
/// assert_eq!(text, std::fs::read("Cargo.toml")?);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Data {
    /// Adds a file to the model. [`Op::file`] refers to it by the number returned.
    ///
    /// # Errors
    /// If the model cannot use this file, or its file table is full.
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno>;

    /// Removes a file from the model. Operations in flight on it end normally.
    fn detach(&mut self, file: FileId);

    /// Allocates `count` buffers of `bytes` each, of the kind that is fastest with the model.
    ///
    /// # Errors
    /// ENOMEM or EPERM if the kernel refuses to register the memory.
    fn buffers(&mut self, count: usize, bytes: usize) -> Result<Vec<Buffer>, Errno> {
        Ok((0..count).map(|_| Buffer::new(bytes)).collect())
    }

    /// Returns the maximum number of operations in flight.
    fn depth(&self) -> usize;

    /// Returns the number of operations that were submitted and not yet returned.
    fn in_flight(&self) -> usize;

    /// Starts an operation. [`Data::complete`] returns its result.
    ///
    /// # Panics
    /// If [`Data::in_flight`] is [`Data::depth`].
    fn submit(&mut self, op: Box<Op>);

    /// Waits until at least one operation in flight has ended, and appends those that have. Does
    /// nothing if none is in flight.
    fn complete(&mut self, done: &mut Vec<CompletedOp>);
}

impl<D: Data + ?Sized> Data for Box<D> {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        (**self).attach(file)
    }

    fn detach(&mut self, file: FileId) {
        (**self).detach(file);
    }

    fn buffers(&mut self, count: usize, bytes: usize) -> Result<Vec<Buffer>, Errno> {
        (**self).buffers(count, bytes)
    }

    fn depth(&self) -> usize {
        (**self).depth()
    }

    fn in_flight(&self) -> usize {
        (**self).in_flight()
    }

    fn submit(&mut self, op: Box<Op>) {
        (**self).submit(op);
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        (**self).complete(done);
    }
}

/// The files of a model.
#[derive(Debug, Default)]
pub(crate) struct FileTable(Vec<Option<Arc<OwnedFd>>>);

impl FileTable {
    pub(crate) fn add(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        let index = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        let id = FileId(u32::try_from(index).map_err(|_| Errno::MFILE)?);
        if index == self.0.len() {
            self.0.push(None);
        }
        self.0[index] = Some(file);
        Ok(id)
    }

    pub(crate) fn remove(&mut self, file: FileId) {
        if let Some(entry) = self.0.get_mut(file.0 as usize) {
            *entry = None;
        }
    }

    pub(crate) fn get(&self, file: FileId) -> Result<&Arc<OwnedFd>, Errno> {
        self.0.get(file.0 as usize).and_then(Option::as_ref).ok_or(Errno::BADF)
    }
}
