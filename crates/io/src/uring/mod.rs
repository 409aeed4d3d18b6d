//! io_uring: openat, statx and close through one ring a worker, up to `depth` of them in flight.
//!
//! The kernel has no getdents64 for rings, so names are read by a direct call that blocks the worker. It also never
//! tries a statx in place: each goes to one of the ring's kernel threads, so a warm cache is slower this way than with
//! plain calls, and slow storage is where the depth pays.
//!
//! Reading, writing and syncing files is in `data.rs`.
//!
//! Owns the ring and its set-up (`setup.rs`), the operations in flight (`flight.rs`), and the metadata
//! calls on them (`reactor.rs`). Does not own the names and their order. Dropping a future cancels
//! nothing in the kernel: the operation ends in its own time, and its result is dropped.

#![allow(unsafe_code)]

mod data;
mod files;
mod flight;
mod nop;
mod reactor;
mod setup;

pub use data::{Completion, Ring, RingOptions};
pub use files::FileRing;
pub use nop::nops;

use std::cell::RefCell;
use std::ffi::CStr;
use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use rustix::fs::AtFlags;

use crate::sys::{mask, open_flags, stat_flags};
use crate::{Dir, Errno, Fields, Follow, Meta, MetadataModel, Model, Names, Unavailable};
use reactor::{Inbox, Reactor, Reply, Request};

/// Operations in flight a ring where the user names no depth.
pub const DEPTH: usize = 64;

/// The io_uring model: one ring, for the thread that made it. Dropping it waits for what is in flight, because the kernel
/// may write until then.
pub struct Uring {
    reactor: RefCell<Reactor>,
    depth: usize,
}

impl Uring {
    /// A ring with at most `depth` operations in flight, between 1 and [`Model::COUNT_MAX`].
    ///
    /// # Errors
    /// Where the kernel has no io_uring, lacks an operation, or does not let this process have a ring.
    pub fn new(depth: usize) -> Result<Self, Unavailable> {
        let depth = depth.clamp(1, Model::COUNT_MAX);
        let reactor = RefCell::new(Reactor::new(setup::ring(depth)?, depth));
        Ok(Self { reactor, depth })
    }

    /// Operations started whose end has not been seen yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.reactor.borrow().in_flight()
    }

    async fn call(&self, request: Request, name: &CStr) -> Result<Reply, Errno> {
        let inbox = Rc::new(Inbox::default());
        let mut started = false;
        poll_fn(|cx| {
            inbox.listen(cx.waker());
            started = started || self.reactor.borrow_mut().start(request, name, 0, &inbox);
            inbox.take().map_or(Poll::Pending, |(_, reply)| Poll::Ready(reply))
        })
        .await
    }
}

impl fmt::Debug for Uring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uring").field("depth", &self.depth).finish_non_exhaustive()
    }
}

impl MetadataModel for Uring {
    const WIDTH: usize = 32;
    const BATCH: usize = DEPTH;

    async fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        let request = Request::Open { at: at.as_raw_fd(), flags: open_flags(follow) };
        self.call(request, name).await.map(Reply::into_dir)
    }

    async fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        crate::sys::read_names(dir, names, limit)
    }

    async fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        let flags = stat_flags(Follow::Yes, fields) | AtFlags::EMPTY_PATH;
        let request = Request::Stat { at: dir.as_fd().as_raw_fd(), flags, mask: mask(fields) };
        self.call(request, c"").await.map(Reply::into_meta)
    }

    async fn stat(
        &self,
        at: BorrowedFd<'_>,
        names: &Names,
        range: Range<usize>,
        follow: Follow,
        fields: Fields,
        out: &mut Vec<Option<Result<Meta, Errno>>>,
    ) {
        let request =
            Request::Stat { at: at.as_raw_fd(), flags: stat_flags(follow, fields), mask: mask(fields) };
        out.clear();
        out.resize(range.len(), None);
        let mut queued = names.range(range).enumerate().filter(|(_, name)| name.stat).peekable();
        let mut in_flight = 0_usize;
        let inbox = Rc::new(Inbox::default());
        poll_fn(|cx| {
            inbox.listen(cx.waker());
            while let Some((index, reply)) = inbox.take() {
                out[index] = Some(reply.map(Reply::into_meta));
                in_flight -= 1;
            }
            let mut reactor = self.reactor.borrow_mut();
            while queued.peek().is_some_and(|(index, name)| reactor.start(request, name.name, *index, &inbox))
            {
                queued.next();
                in_flight += 1;
            }
            if in_flight == 0 && queued.peek().is_none() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    async fn close(&self, dir: Dir) {
        let inbox = Rc::new(Inbox::default());
        // Until the ring has it, the directory is closed by whoever drops this future.
        let mut dir = Some(dir);
        poll_fn(|cx| {
            inbox.listen(cx.waker());
            if let Some(raw) = dir.as_ref().map(|dir| dir.as_fd().as_raw_fd())
                && self.reactor.borrow_mut().start(Request::Close { dir: raw }, c"", 0, &inbox)
            {
                dir.take().map(|dir| dir.into_fd().into_raw_fd());
            }
            inbox.take().map_or(Poll::Pending, |_| Poll::Ready(()))
        })
        .await;
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            // A future that woke itself wants a poll, not an event.
            if !woken.take() {
                self.reactor.borrow_mut().turn();
            }
        }
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Acquire)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}
