//! Reading, writing and syncing through a ring.
//!
//! Owns the submission entries of byte ranges, registered files and buffers, and the ways of waiting.
//! `flight.rs` owns the operations in flight.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, Fixed, FsyncFlags};

use super::flight::{Flight, Operation};
use super::setup::{self, Shape};
use crate::data::calls::perform;
use crate::data::{Buffer, CompletedOp, Data, FileId, FileTable, NativeData, Op, OpKind};
use crate::{Errno, Model, Unavailable};

/// FileTable a ring has room for, where they are registered with it.
const FILES_MAX: u32 = 1024;
/// How long [`Completion::Adaptive`] looks before it sleeps: about what being woken costs.
const LOOK: Duration = Duration::from_micros(20);

/// How the end of an operation is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// Asleep, in the kernel.
    #[default]
    Wait,
    /// Looking at the completion queue without a system call, on a CPU of its own.
    Spin,
    /// Looking for 20 microseconds, then asleep.
    Adaptive,
}

/// How a ring is used.
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Most operations in flight, between 1 and [`Model::COUNT_MAX`].
    pub depth: usize,
    /// Operations submitted by one system call, while there is room for more.
    pub batch: usize,
    /// How their end is waited for.
    pub completion: Completion,
    /// FileTable and buffers are registered with the ring, which spares the kernel looking them up each time.
    pub registered: bool,
    /// A thread of the kernel's looks for submissions.
    pub sqpoll: bool,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self { depth: super::DEPTH, batch: 1, completion: Completion::Wait, registered: false, sqpoll: false }
    }
}

/// An operation on a byte range, and the descriptors that its entry names.
struct Transfer {
    op: Box<Op>,
    fd: RawFd,
    /// The file is named by its number in the ring's table.
    by_number: bool,
    /// The number of the buffer, if that is registered with the ring.
    buffer: Option<u16>,
    len: u32,
}

// SAFETY: the entry points into the buffer of `op`, which is on the heap and lives as long. Its
// descriptor is open until `Ring::detach`, which submits what is queued before it lets go of the file.
unsafe impl Operation for Transfer {
    type Context = FileTable;

    fn entry(&mut self) -> Entry {
        let (offset, len) = (self.op.offset, self.len);
        let memory = self.op.bytes_mut().as_mut_ptr();
        // The builders take one type of file each.
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
        // Linux transfers 2 GiB at most in one call (read(2)).
        result.map_or_else(|errno| -errno.raw_os_error(), |count| i32::try_from(count).unwrap_or(i32::MAX))
    }
}

/// The io_uring model.
pub struct Ring {
    flight: Flight<Transfer>,
    /// Tells buffers registered with this ring from those of others.
    number: u64,
    options: RingOptions,
    files: FileTable,
    has_buffers: bool,
    /// Operations that could not be started, and why.
    failed: Vec<CompletedOp>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("options", &self.options).field("in_flight", &self.in_flight()).finish()
    }
}

impl Ring {
    /// A ring used as `options` say.
    ///
    /// # Errors
    /// Where the kernel has no io_uring, lacks an operation or a mode, or does not let this process have it.
    pub fn new(mut options: RingOptions) -> Result<Self, Unavailable> {
        static RINGS: AtomicU64 = AtomicU64::new(0);
        options.depth = options.depth.clamp(1, Model::COUNT_MAX);
        options.batch = options.batch.clamp(1, options.depth);
        let shape = match (options.sqpoll, options.completion) {
            (true, _) => Shape::Polled,
            // A thread that makes no system call would never see a deferred completion.
            (false, Completion::Spin | Completion::Adaptive) => Shape::Prompt,
            (false, Completion::Wait) => Shape::Deferred,
        };
        let ring = setup::data_ring(options.depth, shape)?;
        if options.registered {
            let registered = ring.submitter().register_files_sparse(FILES_MAX);
            registered.map_err(|error| setup::refused("register files with io_uring", &error))?;
        }
        let number = RINGS.fetch_add(1, Ordering::Relaxed);
        let flight = Flight::new(ring, options.depth);
        Ok(Self {
            flight,
            number,
            options,
            files: FileTable::default(),
            has_buffers: false,
            failed: Vec::new(),
        })
    }

    fn transfer(&self, op: Box<Op>) -> Result<Transfer, CompletedOp> {
        let fd = self.files.get(op.file).map(AsRawFd::as_raw_fd);
        let len = u32::try_from(op.len()).map_err(|_| Errno::INVAL);
        match (fd, len) {
            (Ok(fd), Ok(len)) => {
                let buffer = op.buffer.registered_with(self.number);
                Ok(Transfer { op, fd, by_number: self.options.registered, buffer, len })
            }
            (Err(errno), _) | (_, Err(errno)) => Err(CompletedOp::new(op, Err(errno))),
        }
    }

    /// Takes the operations that have ended. Returns whether there was one.
    fn reap(&mut self, done: &mut Vec<CompletedOp>) -> bool {
        let ended = |transfer: Transfer, result: i32| {
            let result = usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
            done.push(CompletedOp::new(transfer.op, result));
        };
        self.flight.reap(&self.files, ended) > 0
    }

    fn wait(&mut self, done: &mut Vec<CompletedOp>) {
        if self.options.completion == Completion::Wait {
            self.flight.submit(1);
            return;
        }
        if self.flight.queued() > 0 {
            self.flight.submit(0);
        }
        let start = Instant::now();
        let patient = self.options.completion == Completion::Spin;
        while !self.reap(done) {
            std::hint::spin_loop();
            if !patient && start.elapsed() > LOOK {
                self.flight.submit(1);
            }
        }
    }
}

impl Data for Ring {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        let fd = file.as_fd().as_raw_fd();
        let id = self.files.add(file)?;
        if self.options.registered {
            let room = if id.0 < FILES_MAX { Ok(()) } else { Err(Errno::MFILE) };
            let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let update = || self.flight.ring().submitter().register_files_update(id.0, &[fd]).map_err(errno);
            if let Err(errno) = room.and_then(|()| update()) {
                self.files.remove(id);
                return Err(errno);
            }
        }
        Ok(id)
    }

    fn detach(&mut self, file: FileId) {
        self.flight.submit_all();
        if self.options.registered {
            // The kernel holds the file for operations in flight. If this fails, the next file to get the number overwrites it.
            let _ = self.flight.ring().submitter().register_files_update(file.0, &[-1]);
        }
        self.files.remove(file);
    }

    /// Where buffers are registered, the first ones asked for are.
    fn buffers(&mut self, count: usize, bytes: usize) -> Result<Vec<Buffer>, Errno> {
        let mut buffers: Vec<Buffer> = (0..count).map(|_| Buffer::new(bytes)).collect();
        if !self.options.registered || self.has_buffers || bytes == 0 {
            return Ok(buffers);
        }
        let vectors: Vec<libc::iovec> = buffers
            .iter_mut()
            .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: bytes })
            .collect();
        // SAFETY: the memory is valid now, which is when the kernel pins its pages; only operations that own the buffer use them. A buffer
        // freed before the ring leaves pages pinned that nothing is written to.
        let registered = unsafe { self.flight.ring().submitter().register_buffers(&vectors) };
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
        self.flight.len() + self.failed.len()
    }

    fn submit(&mut self, op: Box<Op>) {
        match self.transfer(op) {
            Ok(transfer) => {
                assert!(self.flight.start(transfer).is_ok(), "no more operations than the depth");
            }
            Err(done) => self.failed.push(done),
        }
        // The system call that waits takes the last one that fits.
        if self.flight.queued() >= self.options.batch && self.flight.len() < self.options.depth {
            self.flight.submit(0);
        }
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        if !self.failed.is_empty() {
            done.append(&mut self.failed);
            return;
        }
        let before = done.len();
        while done.len() == before && self.flight.len() > 0 {
            if !self.reap(done) {
                self.wait(done);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read of a pipe is the one operation that is still under way when it is cancelled. The call
    /// that is made in its place is pread(2), which a pipe refuses.
    #[test]
    fn an_operation_that_the_kernel_gives_up_is_made_by_a_call() {
        let mut ring = Ring::new(RingOptions::default()).unwrap();
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        let file = ring.attach(Arc::new(reader)).unwrap();
        ring.submit(Op::new(OpKind::Read, file, 0, Buffer::new(1)));
        ring.flight.cancel();
        let mut done = Vec::new();
        ring.complete(&mut done);
        assert_eq!(done.iter().map(CompletedOp::result).collect::<Vec<_>>(), [Err(Errno::SPIPE)]);
    }
}
