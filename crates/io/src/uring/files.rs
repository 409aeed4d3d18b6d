//! Opening and reading files through a ring, for a thread that has an event loop of its own.
//!
//! ```text
//! task ── start ──> flight (call, mailbox) ── reap ──> mailbox ──> task is woken
//! ```
//! The ring's descriptor becomes readable when a call has ended ([`FileRing::as_fd`]); the owner then
//! calls [`FileRing::reap`]. A task may stop waiting at any time: the call ends in its slot.

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

use super::flight::{Flight, Operation};
use super::setup::{self, Shape};
use crate::beneath::{ATTEMPTS, Beneath, LookupMode};
use crate::data::{DataCalls, NativeData};
use crate::{Errno, Unavailable};

/// A ring of one thread for opening and reading files.
pub struct FileRing(RefCell<Inner>);

struct Inner {
    flight: Flight<Flying>,
    /// Tasks that found no free slot.
    waiting: VecDeque<Waker>,
}

/// A call in flight, and the mailbox of the task that waits for it.
struct Flying {
    call: Call,
    mailbox: Arc<Mailbox>,
}

/// A result on its way to a task. A task that stops waiting drops its reference; the result is then
/// discarded with the mailbox. One thread uses it: the lock only lets a ring move to its thread.
#[derive(Default)]
struct Mailbox(Mutex<Mail>);

#[derive(Default)]
struct Mail {
    result: Option<(Call, i32)>,
    waker: Option<Waker>,
}

impl Mailbox {
    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, call: Call, result: i32) {
        let mut mail = self.mail();
        mail.result = Some((call, result));
        mail.waker.take().into_iter().for_each(Waker::wake);
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<(Call, i32)> {
        let mut mail = self.mail();
        if let Some(result) = mail.result.take() {
            return Poll::Ready(result);
        }
        mail.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        if let Some((call, result)) = self.mail().result.take() {
            call.discard(result);
        }
    }
}

/// What an operation needs to stay where it is.
enum Call {
    Open { beneath: Arc<Beneath>, path: CString, how: Box<OpenHow> },
    Read { file: Arc<dyn AsFd + Send + Sync>, offset: u64, bytes: Vec<u8> },
}

impl Call {
    /// The submission entry, which points to memory that the call owns on the heap.
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

    /// Closes the file that an open has returned.
    fn discard(self, result: i32) {
        if let (Self::Open { .. }, 0..) = (self, result) {
            // SAFETY: the kernel has made this descriptor for this call, whose result goes nowhere else.
            drop(unsafe { OwnedFd::from_raw_fd(result) });
        }
    }
}

// SAFETY: `Call::entry` points to the path and `how`, or to the bytes, all on the heap and owned by the
// call. `beneath` and `file` keep the descriptors open.
unsafe impl Operation for Flying {
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
        let fd = self.0.borrow().flight.ring().as_raw_fd();
        // SAFETY: the ring is dropped with `self`, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(fd) }
    }
}

impl FileRing {
    /// With at most `depth` operations in flight; who wants one more waits.
    ///
    /// # Errors
    /// Where the kernel has no io_uring, lacks an operation, or does not let this process have it.
    pub fn new(depth: usize) -> Result<Self, Unavailable> {
        let depth = depth.max(1);
        let flight = Flight::new(setup::data_ring(depth, Shape::Prompt)?, depth);
        Ok(Self(RefCell::new(Inner { flight, waiting: VecDeque::new() })))
    }

    /// Calls that the kernel has.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.0.borrow().flight.len()
    }

    /// Opens `path` below `beneath` to read, as [`Beneath::open`] does.
    ///
    /// # Errors
    /// As openat2(2); `INVAL` for a path with a NUL.
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
        let call = Call::Open { beneath: Arc::clone(beneath), path, how: Box::new(how) };
        let (_call, result) = self.make(call).await;
        let fd = result.map(|fd| i32::try_from(fd).unwrap_or(-1))?;
        // SAFETY: the kernel has just made this descriptor for this operation, and nobody else has been told of it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Reads into `bytes`, which come back, from `offset` of `file`; how many were read.
    ///
    /// # Errors
    /// As pread(2).
    pub async fn read(
        &self,
        file: Arc<dyn AsFd + Send + Sync>,
        offset: u64,
        bytes: Vec<u8>,
    ) -> (Vec<u8>, Result<usize, Errno>) {
        match self.make(Call::Read { file, offset, bytes }).await {
            (Call::Read { bytes, .. }, result) => (bytes, result),
            (Call::Open { .. }, _) => unreachable!("a slot keeps its call"),
        }
    }

    /// Takes note of what has ended, and wakes who waits for it.
    pub fn reap(&self) {
        self.0.borrow_mut().reap();
    }

    /// Reaps whenever something has ended, for as long as the future lives: to be spawned in the thread's tokio runtime.
    ///
    /// # Errors
    /// If there is no descriptor left for it.
    #[cfg(feature = "tokio")]
    pub async fn drive(&self) -> std::io::Result<()> {
        let fd = rustix::io::fcntl_dupfd_cloexec(self, 0)?;
        // SAFETY: the descriptor is our own copy, stays the same, and is open for as long as the registration owns it.
        let ready = unsafe { tokio::io::unix::AsyncFd::register(fd) }?;
        loop {
            ready.readable().await?.clear_ready();
            self.reap();
        }
    }

    async fn make(&self, call: Call) -> (Call, Result<usize, Errno>) {
        let (mailbox, mut call) = (Arc::new(Mailbox::default()), Some(call));
        let (call, result) = poll_fn(|cx| {
            if let Some(started) = call.take() {
                call = self.0.borrow_mut().start(started, &mailbox, cx);
            }
            mailbox.poll(cx)
        })
        .await;
        let result = usize::try_from(result).map_err(|_negative| Errno::from_raw_os_error(-result));
        (call, result)
    }
}

impl Inner {
    /// Starts `call`, or gives it back and wakes the task when a slot is free.
    fn start(&mut self, call: Call, mailbox: &Arc<Mailbox>, cx: &Context<'_>) -> Option<Call> {
        match self.flight.start(Flying { call, mailbox: Arc::clone(mailbox) }) {
            Ok(()) => {
                self.flight.submit(0);
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
        let Self { flight, waiting } = self;
        flight.reap(&(), |Flying { call, mailbox }, result| {
            mailbox.put(call, result);
            waiting.pop_front().into_iter().for_each(Waker::wake);
        });
        // An operation that was interrupted is queued again.
        if flight.queued() > 0 {
            flight.submit(0);
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

    /// The server makes a ring and hands it to the thread that uses it.
    const _: fn() = || {
        fn may_be_sent<T: Send>() {}
        may_be_sent::<FileRing>();
    };

    /// Runs `future` to its end as an event loop would: sleeps until the ring's descriptor is readable.
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
    fn more_calls_than_slots_wait_for_each_other() {
        let (_dir, beneath) = tree();
        let ring = FileRing::new(2).unwrap();
        let opened = run(&ring, join_all((0..20).map(|_| ring.open(&beneath, b"a"))));
        assert!(opened.iter().all(Result::is_ok));
        assert_eq!(ring.in_flight(), 0);
    }

    #[test]
    fn an_abandoned_read_keeps_its_buffer_until_the_kernel_is_done() {
        let ring = FileRing::new(2).unwrap();
        let (reader, writer) = pipe().unwrap();
        let reader = Arc::new(reader);
        let abandoned = ring.read(reader, u64::MAX, vec![0; 8]);
        assert!(abandoned.now_or_never().is_none(), "nobody has written");
        assert_eq!(ring.in_flight(), 1);
        File::from(writer).write_all(b"late").unwrap();
        while ring.in_flight() > 0 {
            poll(&mut [PollFd::new(&ring, PollFlags::IN)], None).unwrap();
            ring.reap();
        }
    }

    #[test]
    fn a_ring_that_is_dropped_ends_what_is_under_way() {
        let ring = FileRing::new(2).unwrap();
        let (reader, _writer) = pipe().unwrap();
        let reader = Arc::new(reader);
        assert!(
            ring.read(reader.clone(), u64::MAX, vec![0; 8]).now_or_never().is_none(),
            "nobody has written"
        );
        assert_eq!(ring.in_flight(), 1);
        drop(ring);
        assert_eq!(Arc::strong_count(&reader), 1);
    }
    /// A read of a pipe is the one call that is still under way when it is cancelled. The call that is
    /// made in its place is pread(2), which a pipe refuses.
    #[test]
    fn a_call_that_the_kernel_gives_up_is_made_on_this_thread() {
        let ring = FileRing::new(2).unwrap();
        let (reader, _writer) = pipe().unwrap();
        let mut read = pin!(ring.read(Arc::new(reader), 0, vec![0; 8]));
        assert!(read.as_mut().now_or_never().is_none(), "nobody has written");
        let mut inner = ring.0.borrow_mut();
        inner.flight.cancel();
        inner.flight.submit(0);
        drop(inner);
        assert_eq!(run(&ring, read).1, Err(Errno::SPIPE));
    }
}
