//! The second seam: reading, writing and syncing byte ranges of open files, with buffers the operation owns.
//!
//! A [`Data`] is one thread's way of doing that. Operations go in with [`Data::submit`], each with its buffer, and come out of
//! [`Data::complete`], each with its result and the same buffer, in any order. A blocking model makes the call at once; the others
//! have up to [`Data::depth`] operations under way. A result may be short, as read(2)'s and write(2)'s may: [`Op::advance`] makes an
//! operation of what is left.
//!
//! ```text
//! files (attach) ─┐
//! Op {kind, file, offset, buffer} ── submit ──> model ── complete ──> CompletedOp (op, result)
//! ```
//! Nobody but the model touches a buffer between the two, so a model may hand its memory to the kernel or another thread. A model that is
//! dropped takes care of what is under way: nothing is written to memory that has been freed.
//!
//! Owns: the models, buffers, file tables, ways of copying inside the kernel ([`transfer`]), faults for tests ([`sim`]). Does not own:
//! what is read or written, in which order, by how many threads.

mod blocking;
mod buffer;
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

pub use blocking::{BlockingData, Position};
pub use buffer::{ALIGN_BYTES, Buffer};
pub use calls::{DataCalls, NativeData};
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use map::Mapped;
#[cfg(all(target_os = "linux", not(feature = "posix")))]
pub use nowait::{Nowait, NowaitRead, read_nowait};
pub use pool::Pool;
#[cfg(all(target_os = "linux", feature = "tokio"))]
pub use tokio_file::TokioFile;

/// A file a model knows, by the number [`Data::attach`] gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub(crate) u32);

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Reads into the buffer.
    Read,
    /// Writes what the buffer has.
    Write,
    /// fdatasync(2); has no buffer to speak of.
    SyncData,
    /// fsync(2).
    SyncAll,
}

/// An operation and the buffer it owns. It lives on the heap, so whoever passes it on moves a pointer, and whoever gets it back can ask
/// for the next one with the same memory.
#[derive(Debug)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// To which file.
    pub file: FileId,
    /// Byte of the file that [`Op::start`] stands for.
    pub offset: u64,
    /// Its memory.
    pub buffer: Buffer,
    /// The first byte of the buffer that is meant.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
    /// The caller's, for whatever it likes.
    pub tag: u64,
    /// Only [`CompletedOp`] tells it.
    result: Result<usize, Errno>,
}

impl Op {
    /// An operation on all of `buffer`.
    #[must_use]
    pub fn new(kind: OpKind, file: FileId, offset: u64, buffer: Buffer) -> Box<Self> {
        let end = buffer.len();
        Box::new(Self { kind, file, offset, buffer, start: 0, end, tag: 0, result: Ok(0) })
    }

    /// A sync of `file`.
    #[must_use]
    pub fn sync(kind: OpKind, file: FileId) -> Box<Self> {
        Self::new(kind, file, 0, Buffer::default())
    }

    /// Bytes meant.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether no byte is meant.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes meant.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The same, to write to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let range = self.start..self.end;
        &mut self.buffer[range]
    }

    /// Leaves out the first `bytes`, which have been moved; whether there are more.
    pub fn advance(&mut self, bytes: usize) -> bool {
        let bytes = bytes.min(self.len());
        self.start += bytes;
        self.offset += bytes as u64;
        !self.is_empty()
    }
}

/// An operation that has ended, and what came of it. It is one word: copies of a few words of different sizes, each read back as soon as
/// they were written, are what the loop around a cached read would spend most of its time on.
#[derive(Debug)]
pub struct CompletedOp(Box<Op>);

impl CompletedOp {
    /// `op` has ended with `result`.
    #[must_use]
    pub fn new(mut op: Box<Op>, result: Result<usize, Errno>) -> Self {
        op.result = result;
        Self(op)
    }

    /// Bytes moved; 0 for a sync, and for a read at the file's end.
    ///
    /// # Errors
    /// Why none were.
    pub fn result(&self) -> Result<usize, Errno> {
        self.0.result
    }

    /// The operation, with its buffer.
    #[must_use]
    pub fn into_op(self) -> Box<Op> {
        self.0
    }
}

/// One thread's way of moving bytes between files and memory.
pub trait Data {
    /// Makes a file known, of which [`Op::file`] then speaks.
    ///
    /// # Errors
    /// Where the model cannot use this file, or has no room for more.
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno>;

    /// Forgets a file. What is under way with it ends as if it had not been forgotten.
    fn detach(&mut self, file: FileId);

    /// Makes `count` buffers of `bytes` each, of the kind the model is fastest with.
    ///
    /// # Errors
    /// ENOMEM or EPERM where the kernel does not let memory be registered that was to be.
    fn buffers(&mut self, count: usize, bytes: usize) -> Result<Vec<Buffer>, Errno> {
        Ok((0..count).map(|_| Buffer::new(bytes)).collect())
    }

    /// Most operations that can be under way at once.
    fn depth(&self) -> usize;

    /// Operations submitted that have not come out.
    fn in_flight(&self) -> usize;

    /// Takes an operation, of which the result comes out of [`Data::complete`].
    ///
    /// # Panics
    /// If [`Data::in_flight`] is [`Data::depth`].
    fn submit(&mut self, op: Box<Op>);

    /// Waits until something that is under way has ended, and appends whatever has. Does nothing if nothing is under way.
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

/// The files a model knows.
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
        if let Some(place) = self.0.get_mut(file.0 as usize) {
            *place = None;
        }
    }

    pub(crate) fn get(&self, file: FileId) -> Result<&Arc<OwnedFd>, Errno> {
        self.0.get(file.0 as usize).and_then(Option::as_ref).ok_or(Errno::BADF)
    }
}
