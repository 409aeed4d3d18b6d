//! A response's body as hyper takes it, piece by piece.

use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use fathom_io::sys::Sealed;
use http_body::{Frame, SizeHint};

use crate::answer::ArchiveBody;
use crate::conn::chunk::{Chunk, Origin, PART_BYTES, Part, Parts};
use crate::conn::outbox::{Load, Outbox};
use crate::conn::turns::Told;
use crate::conn::way::Way;
use crate::files::{Failure, Reader, SEND_BYTES, Short, Source, Step};
use crate::multipart::{Multipart, Piece};
use crate::worker::Tally;

type Waiting = Pin<Box<dyn Future<Output = Result<Bytes, Failure>>>>;

/// Most bytes of a long body in memory that are handed to a connection before others have their
/// turn.
const PIECE_BYTES: usize = 64 << 10;

/// What a body consists of.
pub(crate) enum Content {
    /// Nothing.
    Empty,
    /// Bytes in memory.
    Bytes(Bytes),
    /// Bytes in memory that are sent in pieces of [`PIECE_BYTES`].
    Long(Bytes),
    /// A range of a body that is kept.
    Kept(Kept),
    /// A range of a file.
    File(Box<Reader>),
    /// Several ranges, in their frame.
    Pieces(Box<Pieces>),
    /// A directory, as long as it turns out to be.
    Archive(Box<ArchiveBody>),
}

impl Content {
    /// Whether it takes turns with others. What is kept does so if it is never copied: whether a short body is copied changes nothing else.
    fn is_long(&self) -> bool {
        match self {
            Self::Kept(kept) => kept.range.len() > Way::KEPT_BYTES_MAX,
            Self::File(reader) => reader.left() >= SEND_BYTES,
            Self::Long(bytes) => bytes.len() > PIECE_BYTES,
            Self::Empty | Self::Bytes(_) | Self::Pieces(_) | Self::Archive(_) => false,
        }
    }

    /// Bytes that are in memory for this body alone.
    fn own_bytes(&self) -> usize {
        match self {
            Self::Bytes(bytes) if bytes.is_unique() => bytes.len(),
            Self::Pieces(pieces) => match &pieces.from {
                From::Short(body, _) => body.bytes.len(),
                From::File(_) => 0,
            },
            _ => 0,
        }
    }

    /// Bytes to come; at least 1 of an archive that is not over.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Bytes(bytes) | Self::Long(bytes) => bytes.len() as u64,
            Self::Kept(kept) => kept.range.len() as u64,
            Self::File(reader) => reader.left(),
            Self::Pieces(pieces) => pieces.left(),
            Self::Archive(archive) => u64::from(!archive.is_over()),
        }
    }
}

/// Where ranges are taken from.
pub(crate) enum From {
    /// A body in memory, which the connection may be able to send itself.
    Short(Short, Option<Parts>),
    /// A file.
    File(Box<Reader>),
}

impl From {
    /// One of several ranges, which must not end after the whole.
    fn range(&self, range: Range<u64>, is_first: bool) -> Content {
        match self {
            Self::Short(body, parts) => short(body, parts.as_ref(), range),
            Self::File(reader) => Content::File(Box::new(reader.range(range, is_first))),
        }
    }

    /// The only range.
    pub(crate) fn only(self, range: Range<u64>) -> Content {
        match self {
            Self::Short(body, parts) => short(&body, parts.as_ref(), range),
            Self::File(mut reader) => {
                (reader.at, reader.end) = (range.start, range.end);
                Content::File(reader)
            }
        }
    }
}

fn short(body: &Short, parts: Option<&Parts>, range: Range<u64>) -> Content {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(body.bytes.len());
    let range = at(range.start)..at(range.end);
    match (&body.sealed, parts) {
        (Some(sealed), Some(parts))
            if range.len() as u64 >= SEND_BYTES && parts.are_for_kept(range.len()) =>
        {
            Content::Kept(Kept { sealed: Arc::clone(sealed), parts: parts.clone(), range })
        }
        _ => Content::Bytes(body.bytes.slice(range)),
    }
}

/// A range of a body that is kept, sent without being copied.
pub(crate) struct Kept {
    sealed: Arc<Sealed>,
    parts: Parts,
    range: Range<usize>,
}

impl Kept {
    fn next(&mut self) -> Chunk {
        let (start, bytes) = (self.range.start, self.range.len().min(PART_BYTES));
        self.range.start += bytes;
        let from = Origin::Kept(Arc::clone(&self.sealed));
        self.parts.hand_out(Part { from, offset: start as u64, bytes })
    }
}

/// Several ranges of one file, in their frame.
pub(crate) struct Pieces {
    parts: Multipart,
    from: From,
    now: Content,
    has_begun: bool,
}

impl Pieces {
    pub(crate) fn new(parts: Multipart, from: From) -> Self {
        Self { parts, from, now: Content::Empty, has_begun: false }
    }

    fn left(&self) -> u64 {
        self.now.len().saturating_add(self.parts.remaining_bytes().unwrap_or(u64::MAX))
    }

    /// What is to be sent now; empty at the end.
    fn next(&mut self) -> &mut Content {
        if self.now.len() == 0 {
            self.now = match self.parts.next() {
                None => Content::Empty,
                Some(Piece::Head(bytes) | Piece::End(bytes)) => Content::Bytes(bytes),
                Some(Piece::Range(range)) => {
                    let is_first = !std::mem::replace(&mut self.has_begun, true);
                    self.from.range(range, is_first)
                }
            };
        }
        &mut self.now
    }
}

/// A response's body, and what ends with it.
pub(crate) struct Body {
    content: Content,
    later: Option<Later>,
    told: Told,
    /// The first piece, which was waited for before the head is sent.
    first: Option<Result<Chunk, Failure>>,
    outbox: Outbox,
    tally: Tally,
}

impl Body {
    pub(crate) fn new(content: Content, outbox: Outbox, tally: Tally) -> Self {
        Self { content, later: None, told: None, first: None, outbox, tally }
    }

    /// Returns the outbox of the connection, which counts its unsent bytes.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Bytes that are in memory for this body alone.
    pub(crate) fn own_bytes(&self) -> usize {
        self.content.own_bytes()
    }

    /// Returns when there is something to send: hyper would send the head by itself meanwhile, in a packet of its own.
    pub(crate) async fn begin(&mut self) {
        if matches!(
            self.content,
            Content::Long(_) | Content::Kept(_) | Content::File(_) | Content::Archive(_)
        ) {
            self.first = poll_fn(|cx| self.poll(usize::MAX, cx)).await;
        }
    }

    /// Bytes to come.
    pub(crate) fn left(&self) -> u64 {
        let first = self.first.as_ref().and_then(|first| first.as_ref().ok());
        self.content.len() + first.map_or(0, |chunk| chunk.remaining() as u64)
    }

    /// The next piece, of at most `most` bytes.
    pub(crate) fn poll_piece(
        &mut self,
        most: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, Failure>>> {
        let piece = ready!(self.poll(most, cx));
        if let Some(Ok(chunk)) = &piece {
            self.tally.sends(chunk);
        }
        Poll::Ready(piece)
    }

    /// The next piece, of at most `most` bytes and of those that the connection has room for.
    fn poll(&mut self, most: usize, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Failure>>> {
        let content = match &mut self.content {
            Content::Pieces(pieces) => pieces.next(),
            content => content,
        };
        // Who waits for a file takes nobody's turn.
        if let Some(later) = &mut self.later {
            ready!(later.poll(cx));
        }
        let is_long = content.is_long();
        if is_long {
            ready!(self.tally.turns().poll(&mut self.told, cx));
        }
        let chunk = match content {
            Content::Empty | Content::Pieces(_) => Poll::Ready(None),
            Content::Bytes(bytes) => {
                let bytes = bytes.split_to(most.min(bytes.len()));
                Poll::Ready((!bytes.is_empty()).then_some(Ok(Chunk::Bytes { bytes, _load: None })))
            }
            Content::Long(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE_BYTES).min(most));
                Poll::Ready((!piece.is_empty()).then_some(Ok(Chunk::Bytes { bytes: piece, _load: None })))
            }
            Content::Kept(kept) => Poll::Ready((!kept.range.is_empty()).then(|| Ok(kept.next()))),
            Content::Archive(archive) => archive.poll(cx).map_ok(|bytes| Chunk::Bytes { bytes, _load: None }),
            Content::File(reader) => {
                let has_begun = reader.has_begun() || self.later.is_some();
                let room = if has_begun { Poll::Ready(usize::MAX) } else { self.outbox.poll_room(cx) };
                match room {
                    Poll::Ready(room) => {
                        let most = room.min(most);
                        poll_file(reader, most, &mut self.later, &mut self.told, &mut self.tally, cx)
                    }
                    Poll::Pending => Poll::Pending,
                }
            }
        };
        match &chunk {
            Poll::Ready(Some(Ok(_))) if is_long => self.tally.turns().had(),
            Poll::Pending if is_long => self.tally.turns().pass(),
            _ => {}
        }
        chunk
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if self.told.is_some() {
            self.tally.turns().leave(self.told);
        }
    }
}

fn poll_file(
    reader: &mut Reader,
    most: usize,
    later: &mut Option<Later>,
    told: &mut Told,
    tally: &mut Tally,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Chunk, Failure>>> {
    while reader.left() > 0 {
        if let Some(later) = later {
            ready!(later.poll(cx));
        }
        if let Some(Later { arrived: Some(arrived), source, load, .. }) = later.take()
            && let Err(failure) = arrived.and_then(|bytes| reader.arrived(bytes, source, load))
        {
            return Poll::Ready(Some(Err(failure)));
        }
        match reader.step(most) {
            Ok(Step::Now(chunk, source)) => {
                tally.came_from(source);
                return Poll::Ready(Some(Ok(chunk)));
            }
            Ok(Step::More) => {
                tally.turns().again(told, cx);
                return Poll::Pending;
            }
            Ok(Step::Later(waiting, source, load)) => *later = Some(Later::new(waiting, source, load)),
            Err(failure) => return Poll::Ready(Some(Err(failure))),
        }
    }
    Poll::Ready(None)
}

/// Bytes that had to be waited for.
struct Later {
    waiting: Waiting,
    source: Source,
    load: Load,
    /// What came of it.
    arrived: Option<Result<Bytes, Failure>>,
}

impl Later {
    fn new(waiting: Waiting, source: Source, load: Load) -> Self {
        Self { waiting, source, load, arrived: None }
    }

    /// Ready when they have arrived.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.arrived.is_none() {
            self.arrived = Some(ready!(self.waiting.as_mut().poll(cx)));
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
        let chunk = match this.first.take() {
            None => ready!(this.poll(usize::MAX, cx)),
            first => first,
        };
        let Some(chunk) = chunk else { return Poll::Ready(None) };
        let chunk = chunk.map_err(|_failure| broken())?;
        this.tally.sends(&chunk);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        match self.content {
            Content::Archive(_) => SizeHint::default(),
            _ => SizeHint::with_exact(self.left()),
        }
    }
}

/// hyper ends the connection for it: the length that was promised cannot be kept.
fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file changed while it was sent")
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::conn::pulse::Pulse;

    fn content(body: &Short, parts: Option<&Parts>, range: Range<u64>) -> Content {
        From::Short(body.clone(), parts.cloned()).only(range)
    }

    #[test]
    fn a_long_range_of_a_body_that_is_kept_is_not_copied() {
        let bytes = Bytes::from(vec![1; PART_BYTES + 10]);
        let (sealed, plain) = (Short::sealed(bytes.clone()), Short::from(bytes.clone()));
        let parts = Parts::new(Pulse::new(), Rc::default());
        let Content::Kept(mut kept) = content(&sealed, Some(&parts), 5..bytes.len() as u64) else {
            panic!("it is copied");
        };
        assert!(matches!(kept.next(), Chunk::Part(PART_BYTES)));
        assert_eq!((kept.range.len(), kept.next().remaining(), kept.range.len()), (5, 5, 0));
        for (body, parts, range) in [
            (&sealed, Some(&parts), 0..SEND_BYTES - 1),
            (&sealed, None, 0..SEND_BYTES),
            (&plain, Some(&parts), 0..SEND_BYTES),
        ] {
            let Content::Bytes(copied) = content(body, parts, range.clone()) else {
                panic!("{range:?} is not")
            };
            assert_eq!(copied.len() as u64, range.end);
        }
    }
}
