//! Reading, writing and syncing through a ring.
//!
//! The kernel reads and writes the buffers of operations in flight, so each stays in its slot until its completion has been seen. What is
//! under way when the ring is dropped is cancelled, and waited for.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use io_uring::squeue::Entry;
use io_uring::types::{Fd, Fixed, FsyncFlags};
use io_uring::{IoUring, opcode};

use super::setup::{self, Shape};
use crate::data::{Buffer, Data, Done, FileId, Files, Kind, Op};
use crate::{Choice, Errno, Unavailable};

/// Files a ring has room for, where they are registered with it.
const FILES_MAX: u32 = 1024;
/// How long [`Completion::Adaptive`] looks before it sleeps: about what being woken costs.
const LOOK: Duration = Duration::from_micros(20);
/// What completions of cancellations carry instead of a slot's number.
const CANCEL: u64 = u64::MAX;

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
    /// Most operations in flight, between 1 and [`Choice::COUNT_MAX`].
    pub depth: usize,
    /// Operations submitted by one system call, while there is room for more.
    pub batch: usize,
    /// How their end is waited for.
    pub completion: Completion,
    /// Files and buffers are registered with the ring, which spares the kernel looking them up each time.
    pub registered: bool,
    /// A thread of the kernel's looks for submissions.
    pub sqpoll: bool,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self { depth: super::DEPTH, batch: 1, completion: Completion::Wait, registered: false, sqpoll: false }
    }
}

/// The io_uring model.
pub struct Ring {
    ring: IoUring,
    /// Tells buffers registered with this ring from those of others.
    number: u64,
    options: RingOptions,
    files: Files,
    has_buffers: bool,
    slots: Vec<Option<Box<Op>>>,
    free: Vec<usize>,
    /// Entries pushed that the kernel has not been told of.
    queued: usize,
    failed: Vec<Done>,
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
        options.depth = options.depth.clamp(1, Choice::COUNT_MAX);
        options.batch = options.batch.clamp(1, options.depth);
        let shape = match (options.sqpoll, options.completion) {
            (true, _) => Shape::Polled,
            // A completion that is put off until the next system call is never seen by who makes none.
            (false, Completion::Spin | Completion::Adaptive) => Shape::Prompt,
            (false, Completion::Wait) => Shape::Deferred,
        };
        let ring = setup::data_ring(options.depth, shape)?;
        if options.registered {
            let registered = ring.submitter().register_files_sparse(FILES_MAX);
            registered.map_err(|error| setup::refused("register files with io_uring", &error))?;
        }
        let (number, free) = (RINGS.fetch_add(1, Ordering::Relaxed), (0..options.depth).rev().collect());
        let slots = (0..options.depth).map(|_| None).collect();
        let (files, failed) = (Files::default(), Vec::new());
        Ok(Self { ring, number, options, files, has_buffers: false, slots, free, queued: 0, failed })
    }

    fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// What the kernel is to do for the operation in slot `index`.
    fn entry(&mut self, index: usize) -> Result<Entry, Errno> {
        let op = self.slots[index].as_mut().expect("an entry is made of a slot in use");
        let file = self.files.get(op.file)?.as_raw_fd();
        let (offset, len) = (op.offset, u32::try_from(op.len()).map_err(|_| Errno::INVAL)?);
        let fixed = op.buffer.registered_with(self.number);
        let start = op.start;
        let memory = op.buffer[start..].as_mut_ptr();
        // The builders take one type of file each.
        macro_rules! build {
            ($file:expr) => {
                match (op.kind, fixed) {
                    (Kind::Read, None) => opcode::Read::new($file, memory, len).offset(offset).build(),
                    (Kind::Write, None) => opcode::Write::new($file, memory, len).offset(offset).build(),
                    (Kind::Read, Some(buffer)) => {
                        opcode::ReadFixed::new($file, memory, len, buffer).offset(offset).build()
                    }
                    (Kind::Write, Some(buffer)) => {
                        opcode::WriteFixed::new($file, memory, len, buffer).offset(offset).build()
                    }
                    (Kind::SyncData, _) => opcode::Fsync::new($file).flags(FsyncFlags::DATASYNC).build(),
                    (Kind::SyncAll, _) => opcode::Fsync::new($file).build(),
                }
            };
        }
        let entry = if self.options.registered { build!(Fixed(op.file.0)) } else { build!(Fd(file)) };
        Ok(entry.user_data(index as u64))
    }

    fn push(&mut self, entry: &Entry) {
        // SAFETY: the entry points into the buffer of an operation that stays in its slot, and so where it is, until `reap` has seen its
        // completion; `drop` waits for all of them. A descriptor in it is open until `detach`, which first hands over what is queued.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.hand_over(0);
        }
        self.queued += 1;
    }

    /// Tells the kernel of what is queued, and waits for `wait` completions.
    fn hand_over(&mut self, wait: usize) {
        while let Err(error) = self.ring.submit_and_wait(wait) {
            match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                Errno::INTR if wait == 0 => {}
                Errno::INTR | Errno::BUSY => break,
                // No memory for another request right now.
                Errno::AGAIN => std::thread::sleep(Duration::from_millis(1)),
                errno => {
                    panic!("io_uring_enter on a ring this thread made fails for no lasting reason: {errno}")
                }
            }
        }
        self.queued = 0;
    }

    /// Takes what has ended; whether that was anything.
    fn reap(&mut self, done: &mut Vec<Done>) -> bool {
        let before = done.len();
        let mut interrupted = Vec::new();
        for cqe in self.ring.completion() {
            let Some(slot) =
                usize::try_from(cqe.user_data()).ok().and_then(|index| self.slots.get_mut(index))
            else {
                continue;
            };
            let index = cqe.user_data() as usize;
            if cqe.result() == -libc::EINTR {
                interrupted.push(index);
                continue;
            }
            let op = slot.take().expect("a slot in flight has its operation");
            let result = usize::try_from(cqe.result()).map_err(|_| Errno::from_raw_os_error(-cqe.result()));
            done.push(Done::new(op, result));
            self.free.push(index);
        }
        interrupted.into_iter().for_each(|index| self.start(index, done));
        done.len() > before
    }

    fn start(&mut self, index: usize, done: &mut Vec<Done>) {
        match self.entry(index) {
            Ok(entry) => self.push(&entry),
            Err(errno) => {
                done.extend(self.slots[index].take().map(|op| Done::new(op, Err(errno))));
                self.free.push(index);
            }
        }
    }

    fn wait(&mut self, done: &mut Vec<Done>) {
        if self.options.completion == Completion::Wait {
            self.hand_over(1);
            return;
        }
        if self.queued > 0 {
            self.hand_over(0);
        }
        let start = Instant::now();
        let patient = self.options.completion == Completion::Spin;
        while !self.reap(done) {
            std::hint::spin_loop();
            if !patient && start.elapsed() > LOOK {
                self.hand_over(1);
            }
        }
    }

    /// Asks the kernel to end what is under way.
    fn cancel(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].is_some() {
                let entry = opcode::AsyncCancel::new(index as u64).build().user_data(CANCEL);
                self.push(&entry);
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
            let update = || self.ring.submitter().register_files_update(id.0, &[fd]).map_err(errno);
            if let Err(errno) = room.and_then(|()| update()) {
                self.files.remove(id);
                return Err(errno);
            }
        }
        Ok(id)
    }

    fn detach(&mut self, file: FileId) {
        while !self.ring.submission().is_empty() {
            self.hand_over(0);
        }
        if self.options.registered {
            // What is under way keeps the file; the place is overwritten by the next one even if this fails.
            let _ = self.ring.submitter().register_files_update(file.0, &[-1]);
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
        let registered = unsafe { self.ring.submitter().register_buffers(&vectors) };
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
        self.under_way() + self.failed.len()
    }

    fn submit(&mut self, op: Box<Op>) {
        let index = self.free.pop().expect("no more operations than the depth");
        self.slots[index] = Some(op);
        let mut failed = std::mem::take(&mut self.failed);
        self.start(index, &mut failed);
        self.failed = failed;
        // The last one that fits goes with the call that waits.
        if self.queued >= self.options.batch && self.under_way() < self.options.depth {
            self.hand_over(0);
        }
    }

    fn complete(&mut self, done: &mut Vec<Done>) {
        if !self.failed.is_empty() {
            done.append(&mut self.failed);
            return;
        }
        let before = done.len();
        while done.len() == before && self.under_way() > 0 {
            if !self.reap(done) {
                self.wait(done);
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.cancel();
        let mut done = Vec::new();
        while self.under_way() > 0 {
            self.hand_over(1);
            self.reap(&mut done);
            done.clear();
        }
    }
}
