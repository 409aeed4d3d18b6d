//! Opening and reading files through a ring, for a thread that has an event loop of its own.
//!
//! ```text
//! call ── start ──> slot (path or buffer) ── SQE ──> kernel ── CQE ──> reap ──> who waits for the slot is woken
//! ```
//! The ring's descriptor becomes readable when something has ended ([`FileRing::as_fd`]); the owner then calls [`FileRing::reap`]. The
//! kernel reads the paths and writes the buffers of what is under way, so they stay in their slot until its completion has been seen,
//! whether or not anybody still waits.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::CString;
use std::fmt;
use std::future::poll_fn;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use io_uring::squeue::Entry;
use io_uring::types::{Fd, OpenHow};
use io_uring::{IoUring, opcode};
use rustix::fs::OFlags;
use tokio::io::unix::AsyncFd;

use super::setup::{self, Shape};
use crate::beneath::{ATTEMPTS, Beneath, Patience};
use crate::{Errno, Unavailable};

/// What completions of cancellations carry instead of a slot's number.
const CANCEL: u64 = u64::MAX;

/// A ring of one thread for opening and reading files.
pub struct FileRing(RefCell<Inner>);

struct Inner {
    ring: IoUring,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Those who found no free slot.
    waiting: VecDeque<Waker>,
}

#[derive(Default)]
enum Slot {
    #[default]
    Free,
    /// The kernel has it. Where nobody waits any more, it is not `wanted`.
    UnderWay {
        call: Call,
        waker: Option<Waker>,
        wanted: bool,
    },
    Ended {
        call: Call,
        result: i32,
    },
}

/// What an operation needs to stay where it is.
enum Call {
    Open { beneath: Arc<Beneath>, path: CString, how: Box<OpenHow> },
    Read { file: Arc<dyn AsFd + Send + Sync>, offset: u64, bytes: Vec<u8> },
}

impl Call {
    /// What the kernel is told. Pointers are into memory the call owns on the heap, so the call may move.
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

    /// Closes what was opened for nobody.
    fn undo(self, result: i32) {
        if let (Self::Open { .. }, 0..) = (self, result) {
            // SAFETY: the kernel has made this descriptor for this operation, and nobody else is told of it.
            drop(unsafe { OwnedFd::from_raw_fd(result) });
        }
    }
}

impl fmt::Debug for FileRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileRing").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

impl AsFd for FileRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let fd = self.0.borrow().ring.as_raw_fd();
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
        let ring = setup::data_ring(depth.max(1), Shape::Prompt)?;
        let slots = (0..depth.max(1)).map(|_| Slot::Free).collect();
        let free = (0..depth.max(1)).rev().collect();
        Ok(Self(RefCell::new(Inner { ring, slots, free, waiting: VecDeque::new() })))
    }

    /// Operations the kernel has.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let inner = self.0.borrow();
        inner.slots.len() - inner.free.len()
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
        let resolve = beneath.resolve(Patience::Wait);
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
    pub async fn drive(&self) -> std::io::Result<()> {
        let fd = rustix::io::fcntl_dupfd_cloexec(self, 0)?;
        // SAFETY: the descriptor is our own copy, stays the same, and is open for as long as the registration owns it.
        let ready = unsafe { AsyncFd::register(fd) }?;
        loop {
            ready.readable().await?.clear_ready();
            self.reap();
        }
    }

    async fn make(&self, call: Call) -> (Call, Result<usize, Errno>) {
        let mut call = Some(call);
        let index = poll_fn(|cx| self.0.borrow_mut().start(&mut call, cx)).await;
        let held = Held { ring: self, index };
        let (call, result) = poll_fn(|cx| self.0.borrow_mut().take(index, cx)).await;
        std::mem::forget(held);
        let result = usize::try_from(result).map_err(|_negative| Errno::from_raw_os_error(-result));
        (call, result)
    }
}

/// A slot somebody waits for. Whoever stops waiting leaves it to the kernel, and a file that is opened nevertheless is closed.
struct Held<'a> {
    ring: &'a FileRing,
    index: usize,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.ring.0.borrow_mut().abandon(self.index);
    }
}

impl Inner {
    fn start(&mut self, call: &mut Option<Call>, cx: &Context<'_>) -> Poll<usize> {
        let Some(index) = self.free.pop() else {
            self.waiting.push_back(cx.waker().clone());
            return Poll::Pending;
        };
        if let Some(call) = call.take() {
            self.slots[index] = Slot::UnderWay { call, waker: None, wanted: true };
            self.push(index);
            self.hand_over(0);
            self.reap();
        }
        Poll::Ready(index)
    }

    fn push(&mut self, index: usize) {
        let Some(Slot::UnderWay { call, .. }) = self.slots.get_mut(index) else { return };
        let entry = call.entry().user_data(index as u64);
        self.submit(&entry);
    }

    fn submit(&mut self, entry: &Entry) {
        // SAFETY: the entry points to memory on the heap and has a descriptor that both belong to a call in its slot, where it stays until
        // `reap` has seen its completion; `drop` waits for all of them.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.hand_over(0);
        }
    }

    fn hand_over(&mut self, wait: usize) {
        while let Err(error) = self.ring.submit_and_wait(wait) {
            match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                Errno::INTR if wait == 0 => {}
                Errno::INTR | Errno::BUSY => break,
                // No memory for another request right now.
                Errno::AGAIN => std::thread::sleep(std::time::Duration::from_millis(1)),
                errno => {
                    panic!("io_uring_enter on a ring this thread made fails for no lasting reason: {errno}")
                }
            }
        }
    }

    fn reap(&mut self) {
        let ended: Vec<(u64, i32)> =
            self.ring.completion().map(|cqe| (cqe.user_data(), cqe.result())).collect();
        for (user_data, result) in ended {
            let Ok(index) = usize::try_from(user_data) else { continue };
            if user_data != CANCEL {
                self.end(index, result);
            }
        }
    }

    fn end(&mut self, index: usize, result: i32) {
        if result == -libc::EINTR {
            self.push(index);
            self.hand_over(0);
            return;
        }
        let Some(slot) = self.slots.get_mut(index) else { return };
        match std::mem::take(slot) {
            Slot::UnderWay { call, waker, wanted: true } => {
                *slot = Slot::Ended { call, result };
                waker.into_iter().for_each(Waker::wake);
            }
            Slot::UnderWay { call, .. } => {
                call.undo(result);
                self.release(index);
            }
            Slot::Free | Slot::Ended { .. } => unreachable!("the kernel completes what it was given, once"),
        }
    }

    /// Nobody waits for slot `index` any more.
    fn abandon(&mut self, index: usize) {
        match std::mem::take(&mut self.slots[index]) {
            Slot::UnderWay { call, .. } => {
                self.slots[index] = Slot::UnderWay { call, waker: None, wanted: false };
            }
            Slot::Ended { call, result } => {
                call.undo(result);
                self.release(index);
            }
            Slot::Free => unreachable!("a slot that is waited for is in use"),
        }
    }

    fn take(&mut self, index: usize, cx: &Context<'_>) -> Poll<(Call, i32)> {
        match std::mem::take(&mut self.slots[index]) {
            Slot::Ended { call, result } => {
                self.release(index);
                Poll::Ready((call, result))
            }
            Slot::UnderWay { call, .. } => {
                let waker = Some(cx.waker().clone());
                self.slots[index] = Slot::UnderWay { call, waker, wanted: true };
                Poll::Pending
            }
            Slot::Free => unreachable!("a slot that is waited for is in use"),
        }
    }

    fn release(&mut self, index: usize) {
        self.slots[index] = Slot::Free;
        self.free.push(index);
        if let Some(waker) = self.waiting.pop_front() {
            waker.wake();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for index in 0..self.slots.len() {
            if matches!(self.slots[index], Slot::UnderWay { .. }) {
                self.abandon(index);
                self.submit(&opcode::AsyncCancel::new(index as u64).build().user_data(CANCEL));
            }
        }
        while self.free.len() < self.slots.len() {
            self.hand_over(1);
            self.reap();
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
}
