//! Opening and reading files through a ring, for a thread with an event loop of its own.
//!
//! ```text
//! task ── start ──> slot (call, cell) ── reap ──> cell ──> wake-up of the task
//! ```
//! The descriptor of the ring becomes readable when a call has ended ([`FileRing::as_fd`]). The
//! owner then calls [`FileRing::reap`]. A task may be dropped at any time: its call ends in its
//! slot.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::CString;
use std::fmt;
use std::future::poll_fn;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, OpenHow};
use rustix::fs::OFlags;

use super::in_flight::{InFlight, Operation};
use super::setup::{self, RingMode};
use crate::beneath::{ATTEMPTS, Beneath, LookupMode};
use crate::data::{DataCalls, NativeData};
use crate::{Errno, Unavailable};

/// A ring of one thread for opening and reading files.
///
/// ```
/// use std::path::Path;
/// use std::pin::pin;
/// use std::sync::Arc;
/// use std::task::{Context, Poll, Waker};
/// use fathom_io::beneath::{Beneath, Links};
/// use fathom_io::uring::FileRing;
///
/// let ring = match FileRing::new(8) {
///     Ok(ring) => ring,
///     Err(why) => return Ok(println!("{why}")),
/// };
/// let root = Arc::new(Beneath::new(Path::new("."), Links::Within)?);
/// let mut read = pin!(async {
///     let file = Arc::new(ring.open(&root, b"Cargo.toml").await?);
///     let (bytes, read) = ring.read(file, 0, vec![0; 9]).await;
///     read.map(|count| bytes[..count].to_vec())
/// });
/// // An event loop would sleep until the descriptor of the ring is readable.
/// let text = loop {
///     match read.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
///         Poll::Ready(text) => break text?,
///         Poll::Pending => ring.reap(),
///     }
/// };
/// assert_eq!(text, b"[package]");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct FileRing(RefCell<FileRingState>);

struct FileRingState {
    operations: InFlight<PendingCall>,
    /// Tasks that wait for a free slot.
    waiting: VecDeque<Waker>,
}

/// A call in flight, and the cell for its result.
struct PendingCall {
    call: FileCall,
    cell: Arc<ResultCell>,
}

/// The result of a call, for its task. A task that is dropped drops its reference, and the result
/// is then discarded with the cell. One thread uses the cell: the lock only makes the ring `Send`.
#[derive(Default)]
struct ResultCell(Mutex<CallResult>);

#[derive(Default)]
struct CallResult {
    result: Option<(FileCall, i32)>,
    waker: Option<Waker>,
}

impl ResultCell {
    fn state(&self) -> MutexGuard<'_, CallResult> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, call: FileCall, result: i32) {
        let mut state = self.state();
        state.result = Some((call, result));
        state.waker.take().into_iter().for_each(Waker::wake);
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<(FileCall, i32)> {
        let mut state = self.state();
        if let Some(result) = state.result.take() {
            return Poll::Ready(result);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for ResultCell {
    fn drop(&mut self) {
        if let Some((call, result)) = self.state().result.take() {
            call.discard(result);
        }
    }
}

/// A call, with the memory and descriptors that must stay valid while it is in flight.
enum FileCall {
    Open { beneath: Arc<Beneath>, path: CString, how: Box<OpenHow> },
    Read { file: Arc<dyn AsFd + Send + Sync>, offset: u64, bytes: Vec<u8> },
}

impl FileCall {
    /// Returns the submission entry, which points to heap memory that the call owns.
    fn entry(&mut self) -> Entry {
        match self {
            Self::Open { beneath, path, how } => {
                opcode::OpenAt2::new(Fd(beneath.dir().as_raw_fd()), path.as_ptr(), &raw const **how).build()
            }
            Self::Read { file, offset, bytes } => {
                let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                opcode::Read::new(Fd(file.as_fd().as_raw_fd()), bytes.as_mut_ptr(), len)
                    .offset(*offset)
                    .build()
            }
        }
    }

    /// Makes the call on this thread. Returns the result that its completion would have.
    fn perform(&mut self) -> i32 {
        let result = match self {
            Self::Open { beneath, path, .. } => beneath
                .open(path.as_bytes(), LookupMode::Blocking)
                .and_then(|fd| fd.map(IntoRawFd::into_raw_fd).ok_or(Errno::AGAIN)),
            Self::Read { file, offset, bytes } => NativeData
                .pread(file.as_fd(), bytes, *offset)
                .map(|count| i32::try_from(count).unwrap_or(i32::MAX)),
        };
        result.unwrap_or_else(|errno| -errno.raw_os_error())
    }

    /// Closes the file that a discarded open has returned.
    fn discard(self, result: i32) {
        if let (Self::Open { .. }, 0..) = (self, result) {
            // SAFETY: the kernel has created this descriptor for this call, whose result has no
            // other owner.
            drop(unsafe { OwnedFd::from_raw_fd(result) });
        }
    }
}

// SAFETY: `FileCall::entry` points to the path and `how`, or to the bytes, all on the heap and
// owned by the call. `beneath` and `file` keep the descriptors open.
unsafe impl Operation for PendingCall {
    type Context = ();

    fn entry(&mut self) -> Entry {
        self.call.entry()
    }

    fn perform(&mut self, (): &()) -> i32 {
        self.call.perform()
    }

    fn discard(self, result: i32) {
        self.call.discard(result);
    }
}

impl fmt::Debug for FileRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileRing").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

impl AsFd for FileRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let fd = self.0.borrow().operations.ring().as_raw_fd();
        // SAFETY: the ring is dropped with `self`, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }
}

impl FileRing {
    /// Creates a ring with at most `depth` operations in flight. Further calls wait for a slot.
    ///
    /// # Errors
    /// If the kernel has no io_uring, lacks an operation, or refuses a ring to this process.
    pub fn new(depth: usize) -> Result<Self, Unavailable> {
        let depth = depth.max(1);
        let operations = InFlight::new(setup::data_ring(depth, RingMode::Prompt)?, depth);
        Ok(Self(RefCell::new(FileRingState { operations, waiting: VecDeque::new() })))
    }

    /// Returns the number of calls in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.borrow().operations.len()
    }

    /// Opens `path` below `beneath` for reading, as [`Beneath::open`] does.
    ///
    /// # Errors
    /// As openat2(2). EINVAL for a path with a NUL.
    pub async fn open(&self, beneath: &Arc<Beneath>, path: &[u8]) -> Result<OwnedFd, Errno> {
        let path = CString::new(path).map_err(|_nul| Errno::INVAL)?;
        for _ in 0..ATTEMPTS {
            match self.open_once(beneath, path.clone()).await {
                Err(Errno::AGAIN) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    async fn open_once(&self, beneath: &Arc<Beneath>, path: CString) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = beneath.resolve(LookupMode::Blocking);
        let how = OpenHow::new().flags(u64::from(flags.bits())).resolve(resolve.bits());
        let call = FileCall::Open { beneath: Arc::clone(beneath), path, how: Box::new(how) };
        let (_call, result) = self.make(call).await;
        let fd = result.map(|fd| i32::try_from(fd).unwrap_or(-1))?;
        // SAFETY: the kernel has created this descriptor for this operation, and no other code has
        // its number.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Reads into `bytes` from `offset` of `file`. Returns `bytes`, and the number of bytes read.
    ///
    /// # Errors
    /// As pread(2).
    pub async fn read(
        &self,
        file: Arc<dyn AsFd + Send + Sync>,
        offset: u64,
        bytes: Vec<u8>,
    ) -> (Vec<u8>, Result<usize, Errno>) {
        match self.make(FileCall::Read { file, offset, bytes }).await {
            (FileCall::Read { bytes, .. }, result) => (bytes, result),
            (FileCall::Open { .. }, _) => unreachable!("a result has the call that was started"),
        }
    }

    /// Takes the results of calls that have ended, and wakes their tasks.
    pub fn reap(&self) {
        self.0.borrow_mut().reap();
    }

    /// Calls [`reap`](Self::reap) whenever a call has ended, until the future is dropped. The
    /// caller spawns it in the tokio runtime of the thread.
    ///
    /// # Errors
    /// As fcntl(2), `F_DUPFD_CLOEXEC`: EMFILE.
    #[cfg(feature = "tokio")]
    pub async fn drive(&self) -> std::io::Result<()> {
        let fd = rustix::io::fcntl_dupfd_cloexec(self, 0)?;
        // SAFETY: the registration owns this duplicate, which stays the same and open until it is
        // dropped.
        let ready = unsafe { tokio::io::unix::AsyncFd::register(fd) }?;
        loop {
            ready.readable().await?.clear_ready();
            self.reap();
        }
    }

    async fn make(&self, call: FileCall) -> (FileCall, Result<usize, Errno>) {
        let (cell, mut call) = (Arc::new(ResultCell::default()), Some(call));
        let (call, result) = poll_fn(|cx| {
            if let Some(started) = call.take() {
                call = self.0.borrow_mut().start(started, &cell, cx);
            }
            cell.poll(cx)
        })
        .await;
        let result = usize::try_from(result).map_err(|_negative| Errno::from_raw_os_error(-result));
        (call, result)
    }
}

impl FileRingState {
    /// Starts `call`. If no slot is free, returns it, and wakes the task when a slot is free.
    fn start(&mut self, call: FileCall, cell: &Arc<ResultCell>, cx: &Context<'_>) -> Option<FileCall> {
        match self.operations.start(PendingCall { call, cell: Arc::clone(cell) }) {
            Ok(()) => {
                self.operations.submit(0);
                self.reap();
                None
            }
            Err(refused) => {
                self.waiting.push_back(cx.waker().clone());
                Some(refused.call)
            }
        }
    }

    fn reap(&mut self) {
        let Self { operations, waiting } = self;
        operations.reap(&(), |PendingCall { call, cell }, result| {
            cell.put(call, result);
            waiting.pop_front().into_iter().for_each(Waker::wake);
        });
        // Submit operations again that were interrupted.
        if operations.queued() > 0 {
            operations.submit(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::pin::pin;

    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::pipe::pipe;

    use super::*;
    use crate::beneath::Links;

    /// A server creates the ring on one thread and uses it on another.
    const _: fn() = || {
        fn may_be_sent<T: Send>() {}
        may_be_sent::<FileRing>();
    };

    /// Runs `future` to its end as an event loop does: sleeps until the ring's descriptor is
    /// readable.
    fn run<T>(ring: &FileRing, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return value;
            }
            poll(&mut [PollFd::new(ring, PollFlags::IN)], None).unwrap();
            ring.reap();
        }
    }

    fn tree() -> (tempfile::TempDir, Arc<Beneath>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "hello").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("out")).unwrap();
        let beneath = Arc::new(Beneath::new(dir.path(), Links::Within).unwrap());
        (dir, beneath)
    }

    #[test]
    fn files_are_opened_below_and_read() {
        let (_dir, beneath) = tree();
        let ring = FileRing::new(2).unwrap();
        let file = Arc::new(run(&ring, ring.open(&beneath, b"a")).unwrap());
        let (bytes, read) = run(&ring, ring.read(file, 1, vec![0; 10]));
        assert_eq!((&bytes[..4], read), (&b"ello"[..], Ok(4)));
        assert_eq!(run(&ring, ring.open(&beneath, b"out")).unwrap_err(), Errno::XDEV);
        assert_eq!(run(&ring, ring.open(&beneath, b"none")).unwrap_err(), Errno::NOENT);
        assert_eq!(run(&ring, ring.open(&beneath, b"a\0")).unwrap_err(), Errno::INVAL);
    }

    #[test]
    fn calls_beyond_the_depth_wait_for_a_slot() {
        let (_dir, beneath) = tree();
        let ring = FileRing::new(2).unwrap();
        let opened = run(&ring, join_all((0..20).map(|_| ring.open(&beneath, b"a"))));
        assert!(opened.iter().all(Result::is_ok));
        assert_eq!(ring.in_flight(), 0);
    }

    #[test]
    fn a_dropped_read_keeps_its_buffer_until_its_completion() {
        let ring = FileRing::new(2).unwrap();
        let (reader, writer) = pipe().unwrap();
        let reader = Arc::new(reader);
        let dropped = ring.read(reader, u64::MAX, vec![0; 8]);
        assert!(dropped.now_or_never().is_none(), "the pipe is empty");
        assert_eq!(ring.in_flight(), 1);
        File::from(writer).write_all(b"late").unwrap();
        while ring.in_flight() > 0 {
            poll(&mut [PollFd::new(&ring, PollFlags::IN)], None).unwrap();
            ring.reap();
        }
    }

    #[test]
    fn dropping_a_ring_ends_its_calls() {
        let ring = FileRing::new(2).unwrap();
        let (reader, _writer) = pipe().unwrap();
        let reader = Arc::new(reader);
        assert!(
            ring.read(reader.clone(), u64::MAX, vec![0; 8]).now_or_never().is_none(),
            "the pipe is empty"
        );
        assert_eq!(ring.in_flight(), 1);
        drop(ring);
        assert_eq!(Arc::strong_count(&reader), 1);
    }
    /// Only a read of a pipe is still in flight when it is cancelled. The call that replaces it is
    /// pread(2), which fails on a pipe.
    #[test]
    fn a_cancelled_call_is_performed_on_this_thread() {
        let ring = FileRing::new(2).unwrap();
        let (reader, _writer) = pipe().unwrap();
        let mut read = pin!(ring.read(Arc::new(reader), 0, vec![0; 8]));
        assert!(read.as_mut().now_or_never().is_none(), "the pipe is empty");
        let mut inner = ring.0.borrow_mut();
        inner.operations.cancel();
        inner.operations.submit(0);
        drop(inner);
        assert_eq!(run(&ring, read).1, Err(Errno::SPIPE));
    }
}
