//! Response bodies: the chunks that hyper, HTTP/2 and HTTP/3 streams poll for.
//!
//! Owns: the order of waiting for the file, the body queue and the send budget. Does not own:
//! reading files ([`fathom_files`]), the frame of several ranges ([`crate::multipart`]).

mod archive_body;
mod file_body;

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use fathom_files::{FileError, RangeReadFuture};
use fathom_io::fault::point;
use fathom_io::sys::SealedMemory;
use http_body::{Frame, SizeHint};

use crate::cache::SmallBody;
use crate::conn::body_queue::Ticket;
use crate::conn::chunk::{
    Chunk, SEGMENT_BYTES, SENDFILE_BYTES_MIN, SegmentSource, SendfileQueue, SendfileSegment,
};
use crate::conn::send_budget::{ConnectionSendBudget, SendCharge};
use crate::conn::send_cost::SendCostEstimator;
use crate::log::{BodySource, ErrorCategory};
use crate::multipart::{Multipart, MultipartSegment};
use crate::state::RequestAccount;
use file_body::FileBodyStep;

pub(crate) use archive_body::{ArchiveBody, ArchivePool};
pub(crate) use file_body::FileBody;

/// The largest piece of a long body in memory. After each piece the worker polls its sockets.
const PIECE_BYTES: usize = 64 << 10;

/// The content of a body.
pub(crate) enum Content {
    /// No bytes.
    Empty,
    /// Bytes in memory.
    Bytes(Bytes),
    /// Bytes in memory that are sent in pieces of [`PIECE_BYTES`].
    Long(Bytes),
    /// A range of a cached body in a sealed memfd.
    Sealed(SealedRange),
    /// A range of a file.
    File(Box<FileBody>),
    /// Several ranges with multipart/byteranges framing.
    Multipart(Box<MultipartBody>),
    /// An archive of a directory, whose length is not known in advance.
    Archive(Box<ArchiveBody>),
}

impl Content {
    /// Returns whether the body takes slots of the body queue. A sealed range does so only if its
    /// length rules out copying, so the choice between copy and sendfile(2) does not change the
    /// order of bodies.
    fn is_long(&self) -> bool {
        match self {
            Self::Sealed(kept) => kept.range.len() > SendCostEstimator::CACHED_BYTES_MAX,
            Self::File(reader) => reader.left() >= SENDFILE_BYTES_MIN,
            Self::Long(bytes) => bytes.len() > PIECE_BYTES,
            Self::Empty | Self::Bytes(_) | Self::Multipart(_) | Self::Archive(_) => false,
        }
    }

    /// Returns whether the next piece of a file is already in memory, and counted.
    fn has_buffered(&self) -> bool {
        match self {
            Self::File(reader) => reader.has_buffered(),
            Self::Multipart(pieces) => pieces.current.has_buffered(),
            _ => false,
        }
    }

    /// Returns the bytes of memory that this body alone holds.
    fn own_bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) if bytes.is_unique() => bytes.len(),
            Self::Multipart(pieces) => match &pieces.from {
                RangeSource::Memory(body, _) => body.bytes.len(),
                RangeSource::File(_) => 0,
            },
            _ => 0,
        }
    }

    /// Returns the bytes to come; 1 for an unfinished archive, whose length is unknown.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Bytes(bytes) | Self::Long(bytes) => bytes.len() as u64,
            Self::Sealed(kept) => kept.range.len() as u64,
            Self::File(reader) => reader.left(),
            Self::Multipart(pieces) => pieces.remaining_bytes(),
            Self::Archive(archive) => u64::from(!archive.is_over()),
        }
    }
}

/// The source of the ranges of a response.
pub(crate) enum RangeSource {
    /// A small body in memory, and the connection's sendfile queue if it has one.
    Memory(SmallBody, Option<SendfileQueue>),
    /// A file.
    File(Box<FileBody>),
}

impl RangeSource {
    /// Returns the content for one of several ranges, which must end within the source.
    fn range(&self, range: Range<u64>, is_first: bool) -> Content {
        match self {
            Self::Memory(body, queue) => memory_range(body, queue.as_ref(), range),
            Self::File(reader) => Content::File(Box::new(reader.range(range, is_first))),
        }
    }

    /// Returns the content for the only range.
    pub(crate) fn only(self, range: Range<u64>) -> Content {
        match self {
            Self::Memory(body, queue) => memory_range(&body, queue.as_ref(), range),
            Self::File(mut reader) => {
                reader.restrict(range);
                Content::File(reader)
            }
        }
    }
}

fn memory_range(body: &SmallBody, queue: Option<&SendfileQueue>, range: Range<u64>) -> Content {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(body.bytes.len());
    let range = at(range.start)..at(range.end);
    match (&body.sealed, queue) {
        (Some(sealed), Some(queue))
            if range.len() as u64 >= SENDFILE_BYTES_MIN && queue.should_sendfile_cached(range.len()) =>
        {
            Content::Sealed(SealedRange { sealed: Arc::clone(sealed), queue: queue.clone(), range })
        }
        _ => Content::Bytes(body.bytes.slice(range)),
    }
}

/// A range of a cached body, sent with sendfile(2) without a copy.
pub(crate) struct SealedRange {
    sealed: Arc<SealedMemory>,
    queue: SendfileQueue,
    range: Range<usize>,
}

impl SealedRange {
    fn next(&mut self) -> Chunk {
        let (start, bytes) = (self.range.start, self.range.len().min(SEGMENT_BYTES));
        self.range.start += bytes;
        let from = SegmentSource::CachedBody(Arc::clone(&self.sealed));
        self.queue.push(SendfileSegment { from, offset: start as u64, bytes })
    }
}

/// Several ranges of one source with their multipart/byteranges framing.
pub(crate) struct MultipartBody {
    parts: Multipart,
    from: RangeSource,
    current: Content,
    has_begun: bool,
}

impl MultipartBody {
    pub(crate) fn new(parts: Multipart, from: RangeSource) -> Self {
        Self { parts, from, current: Content::Empty, has_begun: false }
    }

    fn remaining_bytes(&self) -> u64 {
        self.current.len().saturating_add(self.parts.remaining_bytes().unwrap_or(u64::MAX))
    }

    /// Returns the content to send now: a part header, a range, or the closing delimiter; empty at
    /// the end.
    fn next(&mut self) -> &mut Content {
        if self.current.len() == 0 {
            self.current = match self.parts.next() {
                None => Content::Empty,
                Some(MultipartSegment::Head(bytes) | MultipartSegment::End(bytes)) => Content::Bytes(bytes),
                Some(MultipartSegment::Range(range)) => {
                    let is_first = !std::mem::replace(&mut self.has_begun, true);
                    self.from.range(range, is_first)
                }
            };
        }
        &mut self.current
    }
}

/// A response body. When it is dropped, the request is logged and counted.
pub(crate) struct Body {
    content: Content,
    pending: Option<PendingRead>,
    ticket: Ticket,
    /// The first chunk, read before the head is sent.
    first_chunk: Option<Result<Chunk, FileError>>,
    send_budget: ConnectionSendBudget,
    account: RequestAccount,
}

impl Body {
    pub(crate) fn new(content: Content, send_budget: ConnectionSendBudget, account: RequestAccount) -> Self {
        Self { content, pending: None, ticket: None, first_chunk: None, send_budget, account }
    }

    /// Returns the send budget of the connection.
    pub(crate) fn send_budget(&self) -> &ConnectionSendBudget {
        &self.send_budget
    }

    /// Returns the bytes of memory that this body alone holds.
    pub(crate) fn own_bytes(&self) -> usize {
        self.content.own_bytes()
    }

    /// Waits for the first chunk, so that hyper writes it together with the head. Without it, hyper
    /// would send the head in a packet of its own.
    pub(crate) async fn prefetch(&mut self) {
        if matches!(
            self.content,
            Content::Long(_) | Content::Sealed(_) | Content::File(_) | Content::Archive(_)
        ) {
            self.first_chunk = poll_fn(|cx| self.poll(usize::MAX, cx)).await;
        }
    }

    /// Returns the bytes to come.
    pub(crate) fn remaining_bytes(&self) -> u64 {
        let first = self.first_chunk.as_ref().and_then(|first| first.as_ref().ok());
        self.content.len() + first.map_or(0, |chunk| chunk.remaining() as u64)
    }

    /// Returns whether reading the next chunk has begun: its bytes count as unsent already.
    pub(crate) fn has_begun_piece(&self) -> bool {
        self.pending.is_some() || self.content.has_buffered()
    }

    /// Polls for the next chunk of at most `max_bytes` bytes, and counts it as sent.
    pub(crate) fn poll_piece(
        &mut self,
        max_bytes: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, FileError>>> {
        let piece = ready!(self.poll(max_bytes, cx));
        if let Some(Ok(chunk)) = &piece {
            self.account.record_sent(chunk);
        }
        Poll::Ready(piece)
    }

    /// Polls for the next chunk of at most `max_bytes` bytes, and no more than the send budget of
    /// the connection allows.
    fn poll(&mut self, max_bytes: usize, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, FileError>>> {
        point("serve-body");
        let has_begun = self.has_begun_piece();
        let content = match &mut self.content {
            Content::Multipart(pieces) => pieces.next(),
            content => content,
        };
        // Do not hold a slot of the body queue while waiting for the disk.
        if let Some(pending) = &mut self.pending {
            ready!(pending.poll(cx));
        }
        let is_long = content.is_long();
        if is_long {
            ready!(self.account.body_queue().poll_slot(&mut self.ticket, cx));
        }
        let chunk = match content {
            Content::Empty | Content::Multipart(_) => Poll::Ready(None),
            Content::Bytes(bytes) => {
                let bytes = bytes.split_to(max_bytes.min(bytes.len()));
                Poll::Ready((!bytes.is_empty()).then_some(Ok(Chunk::Bytes { bytes, _charge: None })))
            }
            Content::Long(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE_BYTES).min(max_bytes));
                Poll::Ready((!piece.is_empty()).then_some(Ok(Chunk::Bytes { bytes: piece, _charge: None })))
            }
            Content::Sealed(kept) => Poll::Ready((!kept.range.is_empty()).then(|| Ok(kept.next()))),
            Content::Archive(archive) => {
                let piece = archive.poll(cx).map_ok(|bytes| Chunk::Bytes { bytes, _charge: None });
                if let Poll::Ready(Some(Err(failure))) = &piece {
                    self.account.report(ErrorCategory::Files, || archive.failure(*failure));
                }
                piece
            }
            Content::File(reader) => {
                let room = if has_begun { Poll::Ready(usize::MAX) } else { self.send_budget.poll_room(cx) };
                match room {
                    Poll::Ready(room) => {
                        let max_bytes = room.min(max_bytes);
                        poll_file(
                            reader,
                            max_bytes,
                            &mut self.pending,
                            &mut self.ticket,
                            &mut self.account,
                            cx,
                        )
                    }
                    Poll::Pending => Poll::Pending,
                }
            }
        };
        match &chunk {
            Poll::Ready(Some(Ok(_))) if is_long => self.account.body_queue().use_slot(),
            Poll::Pending if is_long => self.account.body_queue().pass_slot(),
            _ => {}
        }
        chunk
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if self.ticket.is_some() {
            self.account.body_queue().cancel(self.ticket);
        }
    }
}

fn poll_file(
    reader: &mut FileBody,
    max_bytes: usize,
    pending: &mut Option<PendingRead>,
    ticket: &mut Ticket,
    account: &mut RequestAccount,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Chunk, FileError>>> {
    while reader.left() > 0 {
        if let Some(pending) = pending {
            ready!(pending.poll(cx));
        }
        if let Some(PendingRead { result: Some(arrived), source, charge, .. }) = pending.take()
            && let Err(failure) = arrived.and_then(|bytes| reader.complete(bytes, source, charge))
        {
            return Poll::Ready(Some(Err(failure)));
        }
        match reader.step(max_bytes) {
            Ok(FileBodyStep::Ready(chunk, source)) => {
                account.record_source(source);
                return Poll::Ready(Some(Ok(chunk)));
            }
            Ok(FileBodyStep::Partial) => {
                account.body_queue().requeue(ticket, cx);
                return Poll::Pending;
            }
            Ok(FileBodyStep::Pending(future, source, charge)) => {
                *pending = Some(PendingRead::new(future, source, charge))
            }
            Err(failure) => return Poll::Ready(Some(Err(failure))),
        }
    }
    Poll::Ready(None)
}

/// A read that has to wait for the disk or the pool.
struct PendingRead {
    future: RangeReadFuture,
    source: BodySource,
    charge: SendCharge,
    /// The result of the read, until the reader takes it.
    result: Option<Result<Bytes, FileError>>,
}

impl PendingRead {
    fn new(future: RangeReadFuture, source: BodySource, charge: SendCharge) -> Self {
        Self { future, source, charge, result: None }
    }

    /// Returns `Ready` when the read has completed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.result.is_none() {
            self.result = Some(ready!(self.future.as_mut().poll(cx)));
        }
        Poll::Ready(())
    }
}

impl http_body::Body for Body {
    type Data = Chunk;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, io::Error>>> {
        let this = self.get_mut();
        let chunk = match this.first_chunk.take() {
            None => ready!(this.poll(usize::MAX, cx)),
            first => first,
        };
        let Some(chunk) = chunk else { return Poll::Ready(None) };
        let chunk = chunk.map_err(|_failure| broken())?;
        this.account.record_sent(&chunk);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        // A failure is still to be told: without it, the response would be complete.
        self.remaining_bytes() == 0 && !matches!(self.first_chunk, Some(Err(_)))
    }

    fn size_hint(&self) -> SizeHint {
        match self.content {
            Content::Archive(_) => SizeHint::default(),
            _ => SizeHint::with_exact(self.remaining_bytes()),
        }
    }
}

/// Returns the error that makes hyper close the connection: the promised length cannot be kept.
fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file changed while it was sent")
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::conn::deadlines::ConnectionState;

    fn content(body: &SmallBody, queue: Option<&SendfileQueue>, range: Range<u64>) -> Content {
        RangeSource::Memory(body.clone(), queue.cloned()).only(range)
    }

    #[test]
    fn a_long_range_of_a_cached_body_is_not_copied() {
        let bytes = Bytes::from(vec![1; SEGMENT_BYTES + 10]);
        let (sealed, plain) = (SmallBody::sealed(bytes.clone()), SmallBody::from(bytes.clone()));
        let queue = SendfileQueue::new(ConnectionState::new(fathom_io::Clock::default()), Rc::default());
        let Content::Sealed(mut kept) = content(&sealed, Some(&queue), 5..bytes.len() as u64) else {
            panic!("it is copied");
        };
        let first = kept.next();
        assert!(matches!(first, Chunk::Sendfile(_)) && first.remaining() == SEGMENT_BYTES);
        assert_eq!((kept.range.len(), kept.next().remaining(), kept.range.len()), (5, 5, 0));
        for (body, queue, range) in [
            (&sealed, Some(&queue), 0..SENDFILE_BYTES_MIN - 1),
            (&sealed, None, 0..SENDFILE_BYTES_MIN),
            (&plain, Some(&queue), 0..SENDFILE_BYTES_MIN),
        ] {
            let Content::Bytes(copied) = content(body, queue, range.clone()) else {
                panic!("{range:?} is not")
            };
            assert_eq!(copied.len() as u64, range.end);
        }
    }
}
