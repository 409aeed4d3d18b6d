//! Metadata calls on one ring, the buffers the kernel reads and writes for them, and the futures that
//! wait for them.
//!
//! ```text
//! future ── start ──> flight (name, statx buffer) ── reap ──> inbox of the future
//! ```
//! A call is in flight from `start` to `reap`, whether or not the future lives that long. A future that
//! finds no slot waits in `waiting`.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::Waker;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};
use rustix::fs::{AtFlags, OFlags, Statx, StatxFlags};

use super::flight::{Flight, Operation};
use crate::{Dir, Errno, Meta};

/// What one operation does. Descriptors are numbers here: the kernel checks them, and a stale one is an error or a
/// look at the wrong directory whose result nobody takes.
#[derive(Clone, Copy)]
pub(super) enum Request {
    Open { at: RawFd, flags: OFlags },
    Stat { at: RawFd, flags: AtFlags, mask: StatxFlags },
    Close { dir: RawFd },
}

/// What a request that succeeded came back with.
pub(super) enum Reply {
    Opened(Dir),
    Stated(Meta),
    Closed,
}

impl Reply {
    pub(super) fn into_dir(self) -> Dir {
        let Self::Opened(dir) = self else { unreachable!("an open is answered by a directory") };
        dir
    }

    pub(super) fn into_meta(self) -> Meta {
        let Self::Stated(meta) = self else { unreachable!("a stat is answered by metadata") };
        meta
    }
}

/// Where the replies to one future's operations arrive, each with the tag it was started under.
#[derive(Default)]
pub(super) struct Inbox {
    replies: RefCell<Vec<(usize, Result<Reply, Errno>)>>,
    waker: RefCell<Option<Waker>>,
    waiting: Cell<bool>,
}

impl Inbox {
    pub(super) fn listen(&self, waker: &Waker) {
        let mut own = self.waker.borrow_mut();
        if !own.as_ref().is_some_and(|own| own.will_wake(waker)) {
            *own = Some(waker.clone());
        }
    }

    pub(super) fn take(&self) -> Option<(usize, Result<Reply, Errno>)> {
        self.replies.borrow_mut().pop()
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

/// A metadata call and the memory it may touch. The statx buffer is behind `Rc`, because the kernel
/// writes it while Rust holds references to the call.
struct Metadata {
    request: Request,
    name: Vec<u8>,
    statx: Rc<UnsafeCell<MaybeUninit<Statx>>>,
    tag: usize,
    inbox: Option<Rc<Inbox>>,
}

impl Metadata {
    fn new() -> Self {
        let statx = Rc::new(UnsafeCell::new(MaybeUninit::zeroed()));
        Self { request: Request::Close { dir: -1 }, name: Vec::new(), statx, tag: 0, inbox: None }
    }

    fn entry(&self) -> Entry {
        let name = self.name.as_ptr().cast();
        match self.request {
            Request::Open { at, flags } => {
                opcode::OpenAt::new(types::Fd(at), name).flags(flags.bits().cast_signed()).build()
            }
            Request::Stat { at, flags, mask } => {
                opcode::Statx::new(types::Fd(at), name, self.statx.get().cast())
                    .flags(flags.bits().cast_signed())
                    .mask(mask.bits())
                    .build()
            }
            Request::Close { dir } => opcode::Close::new(types::Fd(dir)).build(),
        }
    }

    /// Makes the call on this thread; what its CQE would have had for a result.
    fn call(&self) -> i32 {
        let name = self.name.as_ptr().cast();
        // SAFETY: `name` ends in a NUL and the buffer has room for a `statx`; both are the slot's,
        // which no operation of the kernel's uses any more. Descriptors are numbers that the kernel
        // checks; that of a `Close` belongs to this slot.
        let result = unsafe {
            match self.request {
                Request::Open { at, flags } => libc::openat(at, name, flags.bits().cast_signed()),
                Request::Stat { at, flags, mask } => {
                    let (flags, statx) = (flags.bits().cast_signed(), self.statx.get().cast());
                    libc::statx(at, name, flags, mask.bits(), statx)
                }
                Request::Close { dir } => libc::close(dir),
            }
        };
        if result >= 0 {
            result
        } else {
            -std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
        }
    }

    fn reply(&self, result: i32) -> Result<Reply, Errno> {
        if result < 0 {
            return Err(Errno::from_raw_os_error(-result));
        }
        Ok(match self.request {
            Request::Open { .. } => {
                // SAFETY: the CQE of an openat that succeeded carries a descriptor made for it, and is reaped once.
                Reply::Opened(Dir::from_fd(unsafe { OwnedFd::from_raw_fd(result) }))
            }
            Request::Stat { mask, .. } => {
                // SAFETY: the statx has ended, so nobody writes the buffer; it was zeroed when made, and a `Statx` is
                // integers only, so any bytes the kernel left are one.
                Reply::Stated(crate::sys::meta(unsafe { (*self.statx.get()).assume_init_ref() }, mask))
            }
            Request::Close { .. } => Reply::Closed,
        })
    }
}

// SAFETY: the entry points to the name and to the statx buffer, heap blocks that the call owns. The
// kernel checks the descriptors, which are numbers: a stale one is an error or a look at the wrong
// directory whose result goes nowhere.
unsafe impl Operation for Metadata {
    type Context = ();

    fn entry(&mut self) -> Entry {
        Metadata::entry(self)
    }

    fn perform(&mut self, (): &()) -> i32 {
        self.call()
    }

    /// Linux closes the descriptor before close(2) returns EINTR.
    fn is_restartable(&self) -> bool {
        !matches!(self.request, Request::Close { .. })
    }

    fn discard(self, result: i32) {
        match self.request {
            // A close that was cancelled has not begun.
            Request::Close { .. } if result == -libc::ECANCELED => drop(self.call()),
            _ => drop(self.reply(result)),
        }
    }
}

/// The metadata calls of one ring, and the futures that wait for a slot.
pub(super) struct Reactor {
    flight: Flight<Metadata>,
    /// Calls that have ended, for their buffers.
    spare: Vec<Metadata>,
    waiting: VecDeque<Rc<Inbox>>,
}

impl Reactor {
    /// Over `ring`, which has at least `depth` submission entries.
    pub(super) fn new(ring: IoUring, depth: usize) -> Self {
        Self { flight: Flight::new(ring, depth), spare: Vec::new(), waiting: VecDeque::new() }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Queues `request`, to be submitted by the next [`turn`](Self::turn), whose reply comes to `inbox` under `tag`. False if as
    /// many are in flight as may be; `inbox` is then woken when one has ended.
    pub(super) fn start(&mut self, request: Request, name: &CStr, tag: usize, inbox: &Rc<Inbox>) -> bool {
        let mut call = self.spare.pop().unwrap_or_else(Metadata::new);
        call.request = request;
        call.name.clear();
        call.name.extend_from_slice(name.to_bytes_with_nul());
        call.tag = tag;
        call.inbox = Some(Rc::clone(inbox));
        let Err(refused) = self.flight.start(call) else { return true };
        self.spare.push(refused);
        if !inbox.waiting.replace(true) {
            self.waiting.push_back(Rc::clone(inbox));
        }
        false
    }

    /// Submits what is queued, waits until something has ended, and wakes the futures concerned.
    ///
    /// # Panics
    /// If there is nothing to wait for, or the kernel refuses the ring it made.
    pub(super) fn turn(&mut self) {
        if self.in_flight() > 0 {
            self.flight.submit(1);
            self.reap();
        } else {
            assert!(!self.waiting.is_empty(), "the future waits for something that is no call of this model");
        }
        let all = self.in_flight() == 0;
        let free = self.flight.depth() - self.in_flight();
        self.wake_waiting(if all { self.waiting.len() } else { free });
    }

    fn reap(&mut self) {
        let Self { flight, spare, .. } = self;
        flight.reap(&(), |mut call, result| {
            let inbox = call.inbox.take().expect("a call in flight has its inbox");
            inbox.replies.borrow_mut().push((call.tag, call.reply(result)));
            inbox.wake();
            spare.push(call);
        });
    }

    /// Wakes `count` of those waiting. When nothing is in flight it must be all: the first ones' futures may be gone.
    fn wake_waiting(&mut self, count: usize) {
        for inbox in self.waiting.drain(..count.min(self.waiting.len())) {
            inbox.waiting.set(false);
            inbox.wake();
        }
    }
}
