//! The kernel's asynchronous I/O, which programs reach through libaio.
//!
//! Without `O_DIRECT`, and for what a filesystem cannot do without waiting, io_submit(2) makes the
//! whole transfer before it returns.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::{CompletedOp, Data, FileId, FileTable, Op, OpKind};
use crate::sys::{AioCall, AioQueue, AioRequest};
use crate::{Errno, Model, Unavailable};

/// The model of io_submit(2).
///
/// ```
/// use std::sync::Arc;
/// use fathom_io::data::{Aio, Buffer, Data, Op, OpKind};
///
/// let mut aio = match Aio::new(8, 1) {
///     Ok(aio) => aio,
///     Err(why) => return Ok(println!("{why}")),
/// };
/// let file = aio.attach(Arc::new(std::fs::File::open("Cargo.toml")?.into()))?;
/// aio.submit(Op::new(OpKind::Read, file, 0, Buffer::new(9)));
/// let mut done = Vec::new();
/// aio.complete(&mut done);
/// assert_eq!(done.remove(0).into_op().bytes(), b"[package]");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Aio {
    queue: AioQueue,
    files: FileTable,
    /// The operations in the slots of the queue, without the memory of their buffers.
    operations: Vec<Option<Box<Op>>>,
    free: Vec<usize>,
    batch: usize,
    /// Operations that could not be started.
    failed: Vec<CompletedOp>,
}

impl Aio {
    /// Creates a context for up to `depth` operations in flight, submitted in batches of `batch`.
    ///
    /// # Errors
    /// If the kernel has no asynchronous I/O, or no room for another context.
    pub fn new(depth: usize, batch: usize) -> Result<Self, Unavailable> {
        let depth = depth.clamp(1, Model::COUNT_MAX);
        let queue = AioQueue::new(depth).map_err(refused)?;
        Ok(Self {
            queue,
            files: FileTable::default(),
            operations: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            batch: batch.clamp(1, depth),
            failed: Vec::new(),
        })
    }

    /// Returns the request of `op`, whose buffer is left empty.
    fn request(&self, op: &mut Op) -> Result<AioRequest, Errno> {
        let file = self.files.get(op.file)?.clone();
        let call = match op.kind {
            OpKind::Read => AioCall::Read,
            OpKind::Write => AioCall::Write,
            OpKind::SyncData => AioCall::SyncData,
            OpKind::SyncAll => AioCall::SyncAll,
        };
        let (memory, range) = op.buffer.take_memory(op.start..op.end);
        Ok(AioRequest { call, file, offset: op.offset, memory, range })
    }

    fn run(&mut self, done: &mut Vec<CompletedOp>, waits: bool) {
        let Self { queue, operations, free, .. } = self;
        let mut ended = |slot: usize, request: AioRequest, result| {
            let mut op = operations[slot].take().expect("a request has its operation");
            op.buffer.put_back(request.memory);
            free.push(slot);
            done.push(CompletedOp::new(op, result));
        };
        queue.submit(&mut ended);
        if waits {
            queue.wait(&mut ended);
        }
    }
}

fn refused(errno: Errno) -> Unavailable {
    let cause = match errno {
        Errno::AGAIN => "all contexts of the machine together have reached the sysctl fs.aio-max-nr",
        Errno::NOSYS => "the kernel was built without it, or a seccomp filter hides it",
        Errno::PERM | Errno::ACCESS => "a seccomp filter or security module forbids it",
        _ => "the kernel refuses the context",
    };
    Unavailable { operation: "set up asynchronous I/O", errno, cause: cause.to_owned() }
}

impl Data for Aio {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        self.files.add(file)
    }

    /// Removes a file. Requests keep it until they end.
    fn detach(&mut self, file: FileId) {
        self.files.remove(file);
    }

    fn depth(&self) -> usize {
        self.operations.len()
    }

    fn in_flight(&self) -> usize {
        self.operations.len() - self.free.len() + self.failed.len()
    }

    fn submit(&mut self, mut op: Box<Op>) {
        assert!(self.in_flight() < self.depth(), "the number of operations in flight is at most the depth");
        let request = match self.request(&mut op) {
            Ok(request) => request,
            Err(errno) => return self.failed.push(CompletedOp::new(op, Err(errno))),
        };
        let slot = self.free.pop().expect("fewer operations than slots are in flight");
        self.operations[slot] = Some(op);
        self.queue.start(slot, request);
        if self.queue.queued() >= self.batch {
            let mut done = std::mem::take(&mut self.failed);
            self.run(&mut done, false);
            self.failed = done;
        }
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        let before = done.len();
        done.append(&mut self.failed);
        let found = done.len() > before;
        self.run(done, !found);
        // The kernel may have refused all that was queued while it had no room.
        if done.len() == before && self.in_flight() > 0 {
            self.run(done, true);
        }
    }
}
