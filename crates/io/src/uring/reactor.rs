//! The metadata calls on one ring, the buffers that the kernel reads and writes for them, and the
//! futures that wait for them.
//!
//! ```text
//! future ── start ──> slot (name, statx buffer) ── reap ──> reply queue
//! ```
//! A call is in flight from `start` to `reap`, also if the future is dropped before. A future that
//! finds no free slot is in `waiting`.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::Waker;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};
use rustix::fs::{AtFlags, OFlags, Statx};

use super::in_flight::{InFlight, Operation};
use crate::sys::mask;
use crate::{Dir, Errno, Fields, Meta};

/// An operation. Its descriptors are plain numbers that the kernel checks: a stale one causes an
/// error, or a result for the wrong directory, which is dropped with the future that asked for it.
#[derive(Clone, Copy)]
pub(super) enum MetadataRequest {
    Open { at: RawFd, flags: OFlags },
    Stat { at: RawFd, flags: AtFlags, fields: Fields },
    Close { dir: RawFd },
}

/// The result of a successful request.
pub(super) enum MetadataReply {
    Opened(Dir),
    Stated(Meta),
    Closed,
}

impl MetadataReply {
    pub(super) fn into_dir(self) -> Dir {
        let Self::Opened(dir) = self else { unreachable!("the reply to an open is a directory") };
        dir
    }

    pub(super) fn into_meta(self) -> Meta {
        let Self::Stated(meta) = self else { unreachable!("the reply to a stat is metadata") };
        meta
    }
}

/// The replies to the operations of one future, each with the tag of its operation.
#[derive(Default)]
pub(super) struct ReplyQueue {
    replies: RefCell<Vec<(usize, Result<MetadataReply, Errno>)>>,
    waker: RefCell<Option<Waker>>,
    waiting: Cell<bool>,
}

impl ReplyQueue {
    pub(super) fn set_waker(&self, waker: &Waker) {
        let mut current = self.waker.borrow_mut();
        if !current.as_ref().is_some_and(|current| current.will_wake(waker)) {
            *current = Some(waker.clone());
        }
    }

    pub(super) fn take(&self) -> Option<(usize, Result<MetadataReply, Errno>)> {
        self.replies.borrow_mut().pop()
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

/// A metadata call and the memory that it uses. The statx buffer is behind `Rc`, because the kernel
/// writes it while Rust holds references to the call.
struct MetadataCall {
    request: MetadataRequest,
    name: Vec<u8>,
    statx: Rc<UnsafeCell<MaybeUninit<Statx>>>,
    tag: usize,
    queue: Option<Rc<ReplyQueue>>,
}

impl MetadataCall {
    fn new() -> Self {
        let statx = Rc::new(UnsafeCell::new(MaybeUninit::zeroed()));
        Self { request: MetadataRequest::Close { dir: -1 }, name: Vec::new(), statx, tag: 0, queue: None }
    }

    fn entry(&self) -> Entry {
        let name = self.name.as_ptr().cast();
        match self.request {
            MetadataRequest::Open { at, flags } => {
                opcode::OpenAt::new(types::Fd(at), name).flags(flags.bits().cast_signed()).build()
            }
            MetadataRequest::Stat { at, flags, fields } => {
                opcode::Statx::new(types::Fd(at), name, self.statx.get().cast())
                    .flags(flags.bits().cast_signed())
                    .mask(mask(fields).bits())
                    .build()
            }
            MetadataRequest::Close { dir } => opcode::Close::new(types::Fd(dir)).build(),
        }
    }

    /// Makes the call on this thread. Returns the result that its completion would have.
    fn call(&self) -> i32 {
        let name = self.name.as_ptr().cast();
        // SAFETY: `name` ends in a NUL and the buffer has the size of a `statx`; both belong to
        // this call, whose operation in the kernel has ended. Descriptors are numbers that the
        // kernel checks; the descriptor of a `Close` belongs to this call.
        let result = unsafe {
            match self.request {
                MetadataRequest::Open { at, flags } => libc::openat(at, name, flags.bits().cast_signed()),
                MetadataRequest::Stat { at, flags, fields } => {
                    let (flags, statx) = (flags.bits().cast_signed(), self.statx.get().cast());
                    libc::statx(at, name, flags, mask(fields).bits(), statx)
                }
                MetadataRequest::Close { dir } => libc::close(dir),
            }
        };
        if result >= 0 {
            result
        } else {
            -std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
        }
    }

    fn reply(&self, result: i32) -> Result<MetadataReply, Errno> {
        if result < 0 {
            return Err(Errno::from_raw_os_error(-result));
        }
        Ok(match self.request {
            MetadataRequest::Open { .. } => {
                // SAFETY: the CQE of a successful openat has a descriptor created for it, and is
                // reaped once.
                MetadataReply::Opened(Dir::from_fd(unsafe { OwnedFd::from_raw_fd(result) }))
            }
            MetadataRequest::Stat { fields, .. } => {
                // SAFETY: the statx has ended, so the kernel no longer writes the buffer; it was
                // zeroed when allocated, and a `Statx` has only integers, so any bytes are valid.
                MetadataReply::Stated(crate::sys::meta(
                    unsafe { (*self.statx.get()).assume_init_ref() },
                    fields,
                ))
            }
            MetadataRequest::Close { .. } => MetadataReply::Closed,
        })
    }
}

// SAFETY: the entry points to the name and to the statx buffer, heap blocks that the call owns. The
// kernel checks the descriptors, which are numbers: a stale one causes an error, or a result for
// the wrong directory, which is dropped.
unsafe impl Operation for MetadataCall {
    type Context = ();

    fn entry(&mut self) -> Entry {
        MetadataCall::entry(self)
    }

    fn perform(&mut self, (): &()) -> i32 {
        self.call()
    }

    /// Returns false for a close: Linux closes the descriptor before close(2) returns EINTR.
    fn is_restartable(&self) -> bool {
        !matches!(self.request, MetadataRequest::Close { .. })
    }

    fn discard(self, result: i32) {
        match self.request {
            // A cancelled close has not begun.
            MetadataRequest::Close { .. } if result == -libc::ECANCELED => drop(self.call()),
            _ => drop(self.reply(result)),
        }
    }
}

/// The metadata calls of one ring, and the futures that wait for a slot.
pub(super) struct Reactor {
    operations: InFlight<MetadataCall>,
    /// Calls that have ended, whose buffers are reused.
    reusable: Vec<MetadataCall>,
    waiting: VecDeque<Rc<ReplyQueue>>,
}

impl Reactor {
    /// Creates a reactor on `ring`, which has at least `depth` submission entries.
    pub(super) fn new(ring: IoUring, depth: usize) -> Self {
        Self { operations: InFlight::new(ring, depth), reusable: Vec::new(), waiting: VecDeque::new() }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.operations.len()
    }

    /// Queues `request`. The next [`turn`](Self::turn) submits it, and `queue` gets the reply under
    /// `tag`. Returns false if all slots are in use; `queue` is then woken when a slot is free.
    pub(super) fn start(
        &mut self,
        request: MetadataRequest,
        name: &CStr,
        tag: usize,
        queue: &Rc<ReplyQueue>,
    ) -> bool {
        let mut call = self.reusable.pop().unwrap_or_else(MetadataCall::new);
        call.request = request;
        call.name.clear();
        call.name.extend_from_slice(name.to_bytes_with_nul());
        call.tag = tag;
        call.queue = Some(Rc::clone(queue));
        let Err(refused) = self.operations.start(call) else { return true };
        self.reusable.push(refused);
        if !queue.waiting.replace(true) {
            self.waiting.push_back(Rc::clone(queue));
        }
        false
    }

    /// Submits queued entries, waits for at least one completion, and wakes the futures concerned.
    ///
    /// # Panics
    /// If no operation is in flight or waiting, or the kernel rejects the ring that it created.
    pub(super) fn turn(&mut self) {
        if self.in_flight() > 0 {
            self.operations.submit(1);
            self.reap();
        } else {
            assert!(
                !self.waiting.is_empty(),
                "the future waits for an event that is not a call of this model"
            );
        }
        let all = self.in_flight() == 0;
        let free = self.operations.depth() - self.in_flight();
        self.wake_waiting(if all { self.waiting.len() } else { free });
    }

    fn reap(&mut self) {
        let Self { operations, reusable, .. } = self;
        operations.reap(&(), |mut call, result| {
            let queue = call.queue.take().expect("a call in flight has a reply queue");
            queue.replies.borrow_mut().push((call.tag, call.reply(result)));
            queue.wake();
            reusable.push(call);
        });
    }

    /// Wakes `count` of the waiting futures. If no operation is in flight, `count` must cover all
    /// of them: the first ones may have been dropped.
    fn wake_waiting(&mut self, count: usize) {
        for queue in self.waiting.drain(..count.min(self.waiting.len())) {
            queue.waiting.set(false);
            queue.wake();
        }
    }
}
