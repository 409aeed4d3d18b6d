//! Reads, writes and syncs through a ring.
//!
//! Owns the submission entries of byte ranges, registered files and buffers, and the ways to wait
//! for completions. `in_flight.rs` owns the operations in flight.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, Fixed, FsyncFlags};

use super::in_flight::{InFlight, Operation};
use super::setup::{self, RingMode};
use crate::data::calls::perform;
use crate::data::{Buffer, CompletedOp, Data, FileId, FileTable, NativeData, Op, OpKind};
use crate::{Errno, Model, Unavailable};

/// Capacity of the file table that is registered with a ring.
const FILES_MAX: u32 = 1024;
/// Time that [`Completion::Adaptive`] polls before it sleeps: about the cost of a wake-up.
const POLL: Duration = Duration::from_micros(20);

/// The way to wait for completions. The set is closed: a wait sleeps, polls, or does both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// Sleeps in the kernel.
    #[default]
    Wait,
    /// Polls the completion queue without a system call, which occupies a CPU.
    Spin,
    /// Polls for 20 microseconds, then sleeps.
    Adaptive,
}

/// The options of a ring.
///
/// ```
/// use fathom_io::uring::{Completion, RingOptions};
///
/// let completion = Completion::Adaptive;
/// let options = RingOptions { depth: 32, completion, ..RingOptions::default() };
/// assert!(!options.sqpoll && !options.registered);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Maximum number of operations in flight, between 1 and [`Model::COUNT_MAX`].
    pub depth: usize,
    /// Operations that one system call submits, unless `depth` is reached before.
    pub batch: usize,
    /// The way to wait for completions. The set is closed: a wait sleeps, polls, or does both.
    pub completion: Completion,
    /// Whether files and buffers are registered with the ring, which saves a lookup for each
    /// operation.
    pub registered: bool,
    /// Whether a kernel thread polls for submissions (`IORING_SETUP_SQPOLL`).
    pub sqpoll: bool,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self { depth: super::DEPTH, batch: 1, completion: Completion::Wait, registered: false, sqpoll: false }
    }
}

/// An operation on a byte range, with the descriptor of its submission entry.
struct RingOperation {
    op: Box<Op>,
    fd: RawFd,
    /// Whether the entry refers to the file by its number in the registered table.
    by_number: bool,
    /// Number of the buffer, if it is registered with the ring.
    buffer: Option<u16>,
    len: u32,
}

// SAFETY: the entry points into the buffer of `op`, which is on the heap and lives as long. Its
// descriptor is open until `Ring::detach`, which submits all queued entries before it drops the
// file.
unsafe impl Operation for RingOperation {
    type Context = FileTable;

    fn entry(&mut self) -> Entry {
        let (offset, len) = (self.op.offset, self.len);
        let memory = self.op.bytes_mut().as_mut_ptr();
        // Each builder takes one type of file, so a macro stands for a generic function.
        macro_rules! build {
            ($file:expr) => {
                match (self.op.kind, self.buffer) {
                    (OpKind::Read, None) => opcode::Read::new($file, memory, len).offset(offset).build(),
                    (OpKind::Write, None) => opcode::Write::new($file, memory, len).offset(offset).build(),
                    (OpKind::Read, Some(buffer)) => {
                        opcode::ReadFixed::new($file, memory, len, buffer).offset(offset).build()
                    }
                    (OpKind::Write, Some(buffer)) => {
                        opcode::WriteFixed::new($file, memory, len, buffer).offset(offset).build()
                    }
                    (OpKind::SyncData, _) => opcode::Fsync::new($file).flags(FsyncFlags::DATASYNC).build(),
                    (OpKind::SyncAll, _) => opcode::Fsync::new($file).build(),
                }
            };
        }
        if self.by_number { build!(Fixed(self.op.file.0)) } else { build!(Fd(self.fd)) }
    }

    fn perform(&mut self, files: &FileTable) -> i32 {
        let file = files.get(self.op.file);
        let result = file.and_then(|file| perform(&NativeData, file.as_fd(), &mut self.op));
        // Linux transfers at most 2 GiB in one call (read(2)), so the count fits.
        result.map_or_else(|errno| -errno.raw_os_error(), |count| i32::try_from(count).unwrap_or(i32::MAX))
    }
}

/// The io_uring model of byte ranges.
///
/// ```
/// use std::sync::Arc;
/// use fathom_io::data::{Buffer, Data, Op, OpKind};
/// use fathom_io::uring::{Ring, RingOptions};
///
/// let mut ring = match Ring::new(RingOptions::default()) {
///     Ok(ring) => ring,
///     Err(why) => return Ok(println!("{why}")),
/// };
/// let file = ring.attach(Arc::new(std::fs::File::open("Cargo.toml")?.into()))?;
/// ring.submit(Op::new(OpKind::Read, file, 0, Buffer::new(9)));
/// let mut done = Vec::new();
/// ring.complete(&mut done);
/// assert_eq!(done.remove(0).into_op().bytes(), b"[package]");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Ring {
    operations: InFlight<RingOperation>,
    /// Number of this ring, which buffers registered with it have.
    number: u64,
    options: RingOptions,
    files: FileTable,
    has_buffers: bool,
    /// Operations that could not be started.
    failed: Vec<CompletedOp>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("options", &self.options).field("in_flight", &self.in_flight()).finish()
    }
}

impl Ring {
    /// Creates a ring.
    ///
    /// # Errors
    /// If the kernel has no io_uring, lacks an operation or a mode, or refuses a ring to this
    /// process.
    pub fn new(mut options: RingOptions) -> Result<Self, Unavailable> {
        static RINGS: AtomicU64 = AtomicU64::new(0);
        options.depth = options.depth.clamp(1, Model::COUNT_MAX);
        options.batch = options.batch.clamp(1, options.depth);
        let mode = match (options.sqpoll, options.completion) {
            (true, _) => RingMode::Polled,
            // A thread that makes no system call would never see a deferred completion.
            (false, Completion::Spin | Completion::Adaptive) => RingMode::Prompt,
            (false, Completion::Wait) => RingMode::Deferred,
        };
        let ring = setup::data_ring(options.depth, mode)?;
        if options.registered {
            let registered = ring.submitter().register_files_sparse(FILES_MAX);
            registered.map_err(|error| setup::refused("register files with io_uring", &error))?;
        }
        let number = RINGS.fetch_add(1, Ordering::Relaxed);
        let operations = InFlight::new(ring, options.depth);
        Ok(Self {
            operations,
            number,
            options,
            files: FileTable::default(),
            has_buffers: false,
            failed: Vec::new(),
        })
    }

    fn transfer(&self, op: Box<Op>) -> Result<RingOperation, CompletedOp> {
        let fd = self.files.get(op.file).map(AsRawFd::as_raw_fd);
        let len = u32::try_from(op.len()).map_err(|_| Errno::INVAL);
        match (fd, len) {
            (Ok(fd), Ok(len)) => {
                let buffer = op.buffer.registered_with(self.number);
                Ok(RingOperation { op, fd, by_number: self.options.registered, buffer, len })
            }
            (Err(errno), _) | (_, Err(errno)) => Err(CompletedOp::new(op, Err(errno))),
        }
    }

    /// Takes the operations that have ended. Returns whether there was at least one.
    fn reap(&mut self, done: &mut Vec<CompletedOp>) -> bool {
        let ended = |transfer: RingOperation, result: i32| {
            let result = usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
            done.push(CompletedOp::new(transfer.op, result));
        };
        self.operations.reap(&self.files, ended) > 0
    }

    fn wait(&mut self, done: &mut Vec<CompletedOp>) {
        if self.options.completion == Completion::Wait {
            self.operations.submit(1);
            return;
        }
        if self.operations.queued() > 0 {
            self.operations.submit(0);
        }
        let start = Instant::now();
        let polls_only = self.options.completion == Completion::Spin;
        while !self.reap(done) {
            std::hint::spin_loop();
            if !polls_only && start.elapsed() > POLL {
                self.operations.submit(1);
            }
        }
    }
}

impl Data for Ring {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        let fd = file.as_fd().as_raw_fd();
        let id = self.files.add(file)?;
        if self.options.registered {
            let fits = if id.0 < FILES_MAX { Ok(()) } else { Err(Errno::MFILE) };
            let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let update =
                || self.operations.ring().submitter().register_files_update(id.0, &[fd]).map_err(errno);
            if let Err(errno) = fits.and_then(|()| update()) {
                self.files.remove(id);
                return Err(errno);
            }
        }
        Ok(id)
    }

    fn detach(&mut self, file: FileId) {
        self.operations.submit_all();
        if self.options.registered {
            // The kernel holds the file for operations in flight. After a failure, the next file
            // with this number overwrites the entry.
            let _ = self.operations.ring().submitter().register_files_update(file.0, &[-1]);
        }
        self.files.remove(file);
    }

    /// Allocates buffers. If the ring registers buffers, registers the buffers of the first call.
    fn buffers(&mut self, count: usize, bytes: usize) -> Result<Vec<Buffer>, Errno> {
        let mut buffers: Vec<Buffer> = (0..count).map(|_| Buffer::new(bytes)).collect();
        if !self.options.registered || self.has_buffers || bytes == 0 {
            return Ok(buffers);
        }
        let vectors: Vec<libc::iovec> = buffers
            .iter_mut()
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: bytes })
            .collect();
        // SAFETY: the memory is valid during this call, in which the kernel pins its pages; only
        // operations that own the buffer use them. A buffer freed before the ring leaves pinned
        // pages that no operation writes to.
        let registered = unsafe { self.operations.ring().submitter().register_buffers(&vectors) };
        registered.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::NOMEM))?;
        self.has_buffers = true;
        for (index, buffer) in buffers.iter_mut().enumerate() {
            u16::try_from(index).into_iter().for_each(|index| buffer.set_registered(self.number, index));
        }
        Ok(buffers)
    }

    fn depth(&self) -> usize {
        self.options.depth
    }

    fn in_flight(&self) -> usize {
        self.operations.len() + self.failed.len()
    }

    fn submit(&mut self, op: Box<Op>) {
        match self.transfer(op) {
            Ok(transfer) => {
                assert!(
                    self.operations.start(transfer).is_ok(),
                    "the number of operations in flight is at most the depth"
                );
            }
            Err(done) => self.failed.push(done),
        }
        // The last operation that fits is submitted by the system call that waits.
        if self.operations.queued() >= self.options.batch && self.operations.len() < self.options.depth {
            self.operations.submit(0);
        }
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        if !self.failed.is_empty() {
            done.append(&mut self.failed);
            return;
        }
        let before = done.len();
        while done.len() == before && self.operations.len() > 0 {
            if !self.reap(done) {
                self.wait(done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a read of a pipe is still in flight when it is cancelled. The call that replaces it is
    /// pread(2), which fails on a pipe.
    #[test]
    fn a_cancelled_operation_is_performed_by_a_blocking_call() {
        let mut ring = Ring::new(RingOptions::default()).unwrap();
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let file = ring.attach(Arc::new(reader)).unwrap();
        ring.submit(Op::new(OpKind::Read, file, 0, Buffer::new(1)));
        ring.operations.cancel();
        let mut done = Vec::new();
        ring.complete(&mut done);
        assert_eq!(done.iter().map(CompletedOp::result).collect::<Vec<_>>(), [Err(Errno::SPIPE)]);
    }
}
