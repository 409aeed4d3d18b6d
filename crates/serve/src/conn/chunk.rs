//! Chunks of response bodies, as hyper writes them, and the placeholders that carry file ranges
//! through hyper unread.
//!
//! hyper takes buffers and writes them with writev(2). A sendfile segment is a buffer as well: a
//! window of [`PLACEHOLDER`], whose content is never read. [`SendfileQueue`] records which file
//! range the window stands for. The transport recognises the address of the window and calls
//! sendfile(2) instead. So headers, framing and order stay with hyper. A transport that does not
//! check addresses (TLS, HTTP/2) must never get a placeholder.
//!
//! A library that copies buffers would send zeros. So a placeholder is consumed only as far as its
//! segment was sent, and is not dropped before; otherwise the connection sends nothing any more.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Buf, Bytes};
use fathom_files::{OpenFile, WorkerBuffer};
use fathom_io::Errno;
use fathom_io::sys::{SealedMemory, unacknowledged};

use super::deadlines::ConnectionState;
use super::send_budget::SendCharge;
use super::send_cost::SendCostEstimator;

/// The size from which sendfile(2) may cost less than copying into the writev(2) of the headers.
pub(crate) const SENDFILE_BYTES_MIN: u64 = 32 << 10;
/// The largest sendfile segment, in bytes.
pub(crate) const SEGMENT_BYTES: usize = 1 << 20;

/// The address range of all placeholders. Its content is never read or written, so it takes address
/// space and no memory.
static PLACEHOLDER: [u8; SEGMENT_BYTES] = [0; SEGMENT_BYTES];

/// A piece of a response body.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// Bytes, possibly shared with other responses. `_charge` counts them if this response alone
    /// holds them.
    Bytes { bytes: Bytes, _charge: Option<SendCharge> },
    /// The bytes of a buffer of the worker from `start` on, and the charge for the buffer.
    Pooled { buffer: WorkerBuffer, start: usize, _charge: SendCharge },
    /// A placeholder for bytes of the next segment in the connection's [`SendfileQueue`].
    Sendfile(Placeholder),
}

/// A placeholder for the rest of a segment.
#[derive(Debug)]
pub(crate) struct Placeholder {
    bytes: usize,
    queue: SendfileQueue,
}

impl Placeholder {
    fn window(&self) -> &[u8] {
        PLACEHOLDER.get(..self.bytes).unwrap_or(&PLACEHOLDER)
    }

    fn advance(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_sub(count);
        self.queue.consume(count);
    }
}

impl Drop for Placeholder {
    fn drop(&mut self) {
        // The segment stays in the queue: the next placeholder would send its bytes.
        if self.bytes > 0 {
            self.queue.break_off();
        }
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        match self {
            Self::Bytes { bytes, .. } => bytes.len(),
            Self::Pooled { buffer, start, .. } => buffer.bytes().len().saturating_sub(*start),
            Self::Sendfile(placeholder) => placeholder.bytes,
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Self::Bytes { bytes, .. } => bytes,
            Self::Pooled { buffer, start, .. } => buffer.bytes().get(*start..).unwrap_or_default(),
            Self::Sendfile(placeholder) => placeholder.window(),
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Self::Bytes { bytes, .. } => bytes.advance(count),
            Self::Pooled { start, .. } => *start = start.saturating_add(count),
            Self::Sendfile(placeholder) => placeholder.advance(count),
        }
    }
}

/// Returns whether `bytes` is a placeholder for a sendfile segment.
pub(crate) fn is_placeholder(bytes: &[u8]) -> bool {
    PLACEHOLDER.as_ptr_range().contains(&bytes.as_ptr())
}

/// A byte range of a file or of a cached body, to be sent with sendfile(2).
#[derive(Debug)]
pub(crate) struct SendfileSegment {
    pub(crate) from: SegmentSource,
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
}

/// The file whose pages sendfile(2) sends.
#[derive(Debug)]
pub(crate) enum SegmentSource {
    /// A served file. Its unsent bytes change when the file is overwritten.
    File(OpenFile),
    /// A cached body in a sealed memfd, which never changes.
    CachedBody(Arc<SealedMemory>),
}

impl SegmentSource {
    pub(crate) fn fd(&self) -> Result<BorrowedFd<'_>, Errno> {
        match self {
            Self::File(opened) => opened.fd(),
            Self::CachedBody(sealed) => Ok(sealed.as_fd()),
        }
    }

    /// Returns the [`SendCostEstimator`] method that records the cost of sending this source.
    pub(crate) fn cost_recorder(&self) -> fn(&SendCostEstimator, Duration, usize) {
        match self {
            Self::File(_) => SendCostEstimator::record_sendfile,
            Self::CachedBody(_) => SendCostEstimator::record_sendfile_cached,
        }
    }
}

/// The sendfile segments that the bodies of one connection have pushed and the transport has not
/// sent, in order.
#[derive(Clone, Debug)]
pub(crate) struct SendfileQueue(Rc<SendfileQueueState>);

#[derive(Debug)]
struct SendfileQueueState {
    segments: RefCell<VecDeque<SendfileSegment>>,
    /// The bytes that were sent and whose placeholders have not been consumed so far.
    unconsumed: Cell<usize>,
    /// Whether a placeholder was copied, or dropped before its segment was sent.
    is_broken: Cell<bool>,
    /// Whether [`SendfileQueue::is_acknowledged`] will be called for the next segment. If so,
    /// `socket` is set when that segment is sent. `socket` is a duplicate of the connection's
    /// descriptor and is kept only until all bytes are acknowledged.
    watched: Cell<bool>,
    socket: RefCell<Option<OwnedFd>>,
    /// The unacknowledged bytes at the last call of [`SendfileQueue::is_acknowledged`].
    unacknowledged: Cell<usize>,
    state: Rc<ConnectionState>,
    send_cost: Rc<SendCostEstimator>,
}

impl SendfileQueue {
    /// Creates an empty queue for the connection with `state`. `send_cost` records the cost of each
    /// send.
    pub(crate) fn new(state: Rc<ConnectionState>, send_cost: Rc<SendCostEstimator>) -> Self {
        let (segments, watched, socket) = (RefCell::default(), Cell::new(false), RefCell::default());
        Self(Rc::new(SendfileQueueState {
            segments,
            unconsumed: Cell::new(0),
            is_broken: Cell::new(false),
            watched,
            socket,
            unacknowledged: Cell::new(0),
            state,
            send_cost,
        }))
    }

    /// Returns the time of day now, by the clock of the connection.
    pub(crate) fn wall_now(&self) -> SystemTime {
        self.0.state.wall_now()
    }

    /// Returns whether `bytes` of a cached body are to be sent with sendfile(2) rather than copied.
    pub(crate) fn should_sendfile_cached(&self, bytes: usize) -> bool {
        self.0.send_cost.prefers_sendfile_cached(bytes)
    }

    /// Returns the send-cost estimator of the worker.
    pub(crate) fn send_cost(&self) -> &SendCostEstimator {
        &self.0.send_cost
    }

    /// Appends `segment`, of at most [`SEGMENT_BYTES`], and returns its placeholder.
    pub(crate) fn push(&self, segment: SendfileSegment) -> Chunk {
        let bytes = segment.bytes;
        self.0.segments.borrow_mut().push_back(segment);
        Chunk::Sendfile(Placeholder { bytes, queue: self.clone() })
    }

    /// Records that `count` bytes of placeholders were consumed. More than were sent have been
    /// copied.
    fn consume(&self, count: usize) {
        match self.0.unconsumed.get().checked_sub(count) {
            Some(left) => self.0.unconsumed.set(left),
            None => self.break_off(),
        }
    }

    fn break_off(&self) {
        self.0.is_broken.set(true);
    }

    /// Returns whether the connection may send nothing any more: a placeholder was copied, or
    /// dropped before its segment was sent.
    pub(crate) fn is_broken(&self) -> bool {
        self.0.is_broken.get()
    }

    /// Makes the queue keep the socket of the next segment, for [`SendfileQueue::is_acknowledged`].
    pub(crate) fn watch_acknowledgement(&self) {
        self.0.watched.set(true);
    }

    /// Calls `send` with the first segment and advances the segment by the bytes sent.
    ///
    /// # Errors
    /// The errors of `send` and, for a watched segment, of dup(2), and an error if the queue is
    /// empty.
    pub(crate) fn send(
        &self,
        socket: BorrowedFd<'_>,
        send: impl FnOnce(&SendfileSegment) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut segments = self.0.segments.borrow_mut();
        let segment = segments.front_mut().ok_or_else(|| io::Error::other("the sendfile queue is empty"))?;
        // Duplicate the socket first: if that fails, no byte of the segment has been sent.
        if self.0.watched.replace(false) {
            self.0.socket.replace(Some(socket.try_clone_to_owned()?));
        }
        let sent = send(segment)?;
        self.0.unconsumed.set(self.0.unconsumed.get() + sent);
        segment.offset += sent as u64;
        segment.bytes = segment.bytes.saturating_sub(sent);
        if segment.bytes == 0 {
            segments.pop_front();
        }
        Ok(sent)
    }

    /// Returns whether the client has acknowledged all segments, so that no unsent byte refers to
    /// the pages of their files. If two calls in a row find the same number of unacknowledged
    /// bytes, the connection counts as blocked.
    ///
    /// # Errors
    /// The errors of ioctl(2) `SIOCOUTQ`.
    pub(crate) fn is_acknowledged(&self) -> io::Result<bool> {
        let mut watched = self.0.socket.borrow_mut();
        let Some(socket) = watched.as_ref().filter(|_| self.0.segments.borrow().is_empty()) else {
            return Ok(false);
        };
        let now = unacknowledged(socket.as_fd())?;
        if now > 0 && now == self.0.unacknowledged.replace(now) {
            self.0.state.record_blocked();
        } else {
            self.0.state.record_sent();
        }
        if now == 0 {
            *watched = None;
        }
        Ok(now == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_placeholder_is_recognised_by_its_address() {
        let queue = SendfileQueue::new(ConnectionState::new(fathom_io::Clock::default()), Rc::default());
        let mut chunk = Chunk::Sendfile(Placeholder { bytes: SEGMENT_BYTES, queue });
        assert!(is_placeholder(chunk.chunk()));
        chunk.advance(SEGMENT_BYTES - 1);
        assert_eq!((chunk.remaining(), chunk.chunk().len()), (1, 1));
        assert!(is_placeholder(chunk.chunk()));
        assert!(!is_placeholder(&[0; 16]));
        assert!(!is_placeholder(&[]));
    }

    /// Returns a queue with a segment of ten bytes, of which three were sent, and its placeholder.
    fn begun() -> (SendfileQueue, Chunk) {
        let (socket, _peer) = std::os::unix::net::UnixStream::pair().unwrap();
        let queue = SendfileQueue::new(ConnectionState::new(fathom_io::Clock::default()), Rc::default());
        let from = SegmentSource::CachedBody(Arc::new(SealedMemory::new(b"0123456789").unwrap()));
        let chunk = queue.push(SendfileSegment { from, offset: 0, bytes: 10 });
        assert_eq!(queue.send(socket.as_fd(), |_| Ok(3)).unwrap(), 3);
        (queue, chunk)
    }

    #[test]
    fn a_placeholder_that_is_consumed_before_its_bytes_are_sent_breaks_the_connection() {
        let (queue, mut chunk) = begun();
        chunk.advance(3);
        assert!(!queue.is_broken());
        chunk.advance(1);
        assert!(queue.is_broken());
    }

    #[test]
    fn a_placeholder_that_is_dropped_before_its_bytes_are_sent_breaks_the_connection() {
        let (queue, mut chunk) = begun();
        chunk.advance(3);
        assert!(!queue.is_broken());
        drop(chunk);
        assert!(queue.is_broken());
    }

    #[test]
    fn sent_bytes_are_removed_from_a_segment() {
        let opened = OpenFile::new(tempfile::tempfile().unwrap().into()).unwrap();
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let segments = SendfileQueue::new(ConnectionState::new(fathom_io::Clock::default()), Rc::default());
        segments.watch_acknowledgement();
        assert!(!segments.is_acknowledged().unwrap(), "none was sent");
        segments.push(SendfileSegment { from: SegmentSource::File(opened), offset: 7, bytes: 10 });
        let sealed = SegmentSource::CachedBody(Arc::new(SealedMemory::new(b"x").unwrap()));
        segments.push(SendfileSegment { from: sealed, offset: 0, bytes: 1 });
        let send = |by: &dyn Fn(&SendfileSegment) -> io::Result<usize>| segments.send(ours.as_fd(), by);
        assert_eq!(send(&|segment| Ok(segment.bytes - 4)).unwrap(), 6);
        assert!(send(&|_| Err(io::ErrorKind::WouldBlock.into())).is_err());
        assert_eq!(send(&|segment| Ok((segment.offset == 13).then_some(segment.bytes).unwrap())).unwrap(), 4);
        assert!(!segments.is_acknowledged().unwrap(), "one is left");
        (&ours).write_all(b"x").unwrap();
        assert_eq!(send(&|segment| Ok(segment.bytes)).unwrap(), 1);
        assert!(send(&|_| Ok(1)).is_err());
        assert!(!segments.is_acknowledged().unwrap(), "the client has not taken it");
        theirs.read_exact(&mut [0]).unwrap();
        assert!(segments.is_acknowledged().unwrap());
        assert!(segments.0.socket.borrow().is_none(), "its descriptor is kept");
    }
}
