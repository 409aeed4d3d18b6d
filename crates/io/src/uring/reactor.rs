//! The operations in flight on one ring, and the buffers the kernel reads and writes on their behalf.
//!
//! ```text
//! future --start--> slot (name, statx buffer) --SQE--> kernel --CQE--> reap --> inbox of the future
//! ```
//! A slot is taken from `start` to `reap`, whether or not the future lives that long. There are `depth` slots, so there
//! are never more than `depth` operations in flight; a future that finds none waits in `waiting`.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::ffi::CStr;
use std::mem::{MaybeUninit, forget, take};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};
use rustix::fs::{AtFlags, OFlags, Statx, StatxFlags};

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

/// One operation in flight and the memory it may touch. Behind `Rc`, because the kernel writes the buffer while Rust
/// holds references to the slot.
struct Slot {
    request: Request,
    name: Vec<u8>,
    statx: Rc<UnsafeCell<MaybeUninit<Statx>>>,
    tag: usize,
    inbox: Option<Rc<Inbox>>,
}

impl Slot {
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

/// One ring with its slots.
pub(super) struct Reactor {
    ring: IoUring,
    slots: Vec<Slot>,
    free: Vec<usize>,
    waiting: VecDeque<Rc<Inbox>>,
}

impl Reactor {
    /// Over `ring`, which has at least `depth` submission entries.
    pub(super) fn new(ring: IoUring, depth: usize) -> Self {
        let slots = (0..depth).map(|_| Slot::new()).collect();
        Self { ring, slots, free: (0..depth).rev().collect(), waiting: VecDeque::new() }
    }

    pub(super) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Queues `request`, to be submitted by the next [`turn`](Self::turn), whose reply comes to `inbox` under `tag`. False if as
    /// many are in flight as may be; `inbox` is then woken when one has ended.
    pub(super) fn start(&mut self, request: Request, name: &CStr, tag: usize, inbox: &Rc<Inbox>) -> bool {
        let Some(index) = self.free.pop() else {
            if !inbox.waiting.replace(true) {
                self.waiting.push_back(Rc::clone(inbox));
            }
            return false;
        };
        let slot = &mut self.slots[index];
        slot.request = request;
        slot.name.clear();
        slot.name.extend_from_slice(name.to_bytes_with_nul());
        slot.tag = tag;
        slot.inbox = Some(Rc::clone(inbox));
        self.push(index);
        true
    }

    fn push(&mut self, index: usize) {
        let entry = self.slots[index].entry().user_data(index as u64);
        // SAFETY: the entry points to the slot's name and statx buffer, heap blocks of their own. The slot is not in `free`
        // until `reap` has seen the CQE, so `start` does not touch them before; `drop` frees them after the last CQE only.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("a ring has as many entries as there are slots, and a slot has one entry at most");
    }

    /// Submits what is queued, waits until something has ended, and wakes the futures concerned.
    ///
    /// # Panics
    /// If there is nothing to wait for, or the kernel refuses the ring it made.
    pub(super) fn turn(&mut self) {
        if self.in_flight() > 0 {
            self.enter().expect("io_uring_enter on a ring this thread made fails for no lasting reason");
            self.reap();
        } else {
            assert!(!self.waiting.is_empty(), "the future waits for something that is no call of this model");
        }
        let all = self.in_flight() == 0;
        self.wake_waiting(if all { self.waiting.len() } else { self.free.len() });
    }

    fn enter(&self) -> Result<(), Errno> {
        let Err(error) = self.ring.submit_and_wait(1) else { return Ok(()) };
        match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
            Errno::INTR | Errno::BUSY => Ok(()),
            // No memory for another request right now.
            Errno::AGAIN => {
                std::thread::sleep(Duration::from_millis(1));
                Ok(())
            }
            errno => Err(errno),
        }
    }

    fn reap(&mut self) {
        let mut interrupted = Vec::new();
        for cqe in self.ring.completion() {
            let index = usize::try_from(cqe.user_data()).expect("user_data is a slot's index");
            let slot = &mut self.slots[index];
            // Nothing here cancels: the kernel could start none of its threads for this
            // (RLIMIT_NPROC), and has not begun.
            let result = if cqe.result() == -libc::ECANCELED { slot.call() } else { cqe.result() };
            if result == -libc::EINTR && !matches!(slot.request, Request::Close { .. }) {
                interrupted.push(index);
                continue;
            }
            let inbox = slot.inbox.take().expect("a slot in flight has its inbox");
            inbox.replies.borrow_mut().push((slot.tag, slot.reply(result)));
            inbox.wake();
            self.free.push(index);
        }
        interrupted.into_iter().for_each(|index| self.push(index));
    }

    /// Wakes `count` of those waiting. When nothing is in flight it must be all: the first ones' futures may be gone.
    fn wake_waiting(&mut self, count: usize) {
        for inbox in self.waiting.drain(..count.min(self.waiting.len())) {
            inbox.waiting.set(false);
            inbox.wake();
        }
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        while self.in_flight() > 0 {
            if self.enter().is_err() {
                // The kernel may still write: better lose the memory than free it.
                forget(take(&mut self.slots));
                return;
            }
            self.reap();
        }
    }
}
