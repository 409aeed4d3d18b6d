//! The io_uring model of metadata: openat, statx and close through one ring for each worker, with
//! up to `depth` operations in flight.
//!
//! The kernel has no getdents64 for rings, so a direct call reads names and blocks the worker. The
//! kernel also never runs a statx inline, but on a kernel thread of the ring. So this model is
//! slower than plain calls if the caches are warm, and the depth pays on slow storage.
//!
//! `data.rs` reads, writes and syncs files.
//!
//! Owns the ring and its set-up (`setup.rs`), the operations in flight (`in_flight.rs`), and the
//! metadata calls (`reactor.rs`). Does not own the names and their order. Dropping a future does
//! not cancel its operation: the operation ends normally, and its result is dropped.

#![allow(unsafe_code)]

mod data;
mod files;
mod in_flight;
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

use crate::sys::{open_flags, stat_flags};
use crate::{Dir, Errno, Fields, Follow, Meta, MetadataModel, Model, Names, Unavailable};
use reactor::{MetadataReply, MetadataRequest, Reactor, ReplyQueue};

/// Default number of operations in flight for a ring.
pub const DEPTH: usize = 64;

/// The io_uring model of metadata. The ring belongs to the thread that created it. Dropping it
/// waits for the operations in flight, because the kernel may write to their buffers until then.
///
/// ```
/// use fathom_io::uring::{DEPTH, Uring};
/// use fathom_io::{Fields, Follow, MetadataModel, sys};
///
/// let ring = match Uring::new(DEPTH) {
///     Ok(ring) => ring,
///     Err(why) => return Ok(println!("{why}")),
/// };
/// let meta = ring.run(async {
///     let dir = ring.open(sys::CWD, c"/", Follow::No).await?;
///     ring.stat_dir(&dir, Fields::ALL).await
/// })?;
/// assert!(meta.nlink > 0);
/// # Ok::<(), fathom_io::Errno>(())
/// ```
pub struct Uring {
    reactor: RefCell<Reactor>,
    depth: usize,
}

impl Uring {
    /// Creates a ring with at most `depth` operations in flight, between 1 and
    /// [`Model::COUNT_MAX`].
    ///
    /// # Errors
    /// If the kernel has no io_uring, lacks an operation, or refuses a ring to this process.
    pub fn new(depth: usize) -> Result<Self, Unavailable> {
        let depth = depth.clamp(1, Model::COUNT_MAX);
        let reactor = RefCell::new(Reactor::new(setup::ring(depth)?, depth));
        Ok(Self { reactor, depth })
    }

    /// Returns the number of operations in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.reactor.borrow().in_flight()
    }

    async fn call(&self, request: MetadataRequest, name: &CStr) -> Result<MetadataReply, Errno> {
        let queue = Rc::new(ReplyQueue::default());
        let mut started = false;
        poll_fn(|cx| {
            queue.set_waker(cx.waker());
            started = started || self.reactor.borrow_mut().start(request, name, 0, &queue);
            queue.take().map_or(Poll::Pending, |(_, reply)| Poll::Ready(reply))
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
        let request = MetadataRequest::Open { at: at.as_raw_fd(), flags: open_flags(follow) };
        self.call(request, name).await.map(MetadataReply::into_dir)
    }

    async fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        crate::sys::read_names(dir, names, limit)
    }

    async fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        let flags = stat_flags(Follow::Yes, fields) | AtFlags::EMPTY_PATH;
        let request = MetadataRequest::Stat { at: dir.as_fd().as_raw_fd(), flags, fields };
        self.call(request, c"").await.map(MetadataReply::into_meta)
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
        let request = MetadataRequest::Stat { at: at.as_raw_fd(), flags: stat_flags(follow, fields), fields };
        out.clear();
        out.resize(range.len(), None);
        let mut queued = names.range(range).enumerate().filter(|(_, name)| name.stat).peekable();
        let mut in_flight = 0_usize;
        let queue = Rc::new(ReplyQueue::default());
        poll_fn(|cx| {
            queue.set_waker(cx.waker());
            while let Some((index, reply)) = queue.take() {
                out[index] = Some(reply.map(MetadataReply::into_meta));
                in_flight -= 1;
            }
            let mut reactor = self.reactor.borrow_mut();
            while queued.peek().is_some_and(|(index, name)| reactor.start(request, name.name, *index, &queue))
            {
                queued.next();
                in_flight += 1;
            }
            if in_flight == 0 && queued.peek().is_none() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    async fn close(&self, dir: Dir) {
        let queue = Rc::new(ReplyQueue::default());
        // Until the operation is started, dropping this future closes the directory.
        let mut dir = Some(dir);
        poll_fn(|cx| {
            queue.set_waker(cx.waker());
            if let Some(raw) = dir.as_ref().map(|dir| dir.as_fd().as_raw_fd())
                && self.reactor.borrow_mut().start(MetadataRequest::Close { dir: raw }, c"", 0, &queue)
            {
                dir.take().map(|dir| dir.into_fd().into_raw_fd());
            }
            queue.take().map_or(Poll::Pending, |_| Poll::Ready(()))
        })
        .await;
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let woken = Arc::new(WakeFlag::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            // A future that has woken itself is polled again, without waiting for a completion.
            if !woken.take() {
                self.reactor.borrow_mut().turn();
            }
        }
    }
}

/// Whether a waker of [`Uring::run`] was called. Completions wake on the same thread, but a future
/// may pass its waker to another thread.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl WakeFlag {
    fn take(&self) -> bool {
        // Acquire pairs with the Release in `wake`: the next poll sees the writes of the waking
        // thread.
        self.0.swap(false, Ordering::Acquire)
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        // Release pairs with the Acquire in `take`.
        self.0.store(true, Ordering::Release);
    }
}
