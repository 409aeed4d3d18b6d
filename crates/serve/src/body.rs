//! A response's body as hyper takes it, piece by piece.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::conn::chunk::Chunk;
use crate::files::{Failure, Reader, Source, Step};
use crate::multipart::{Multipart, Piece};
use crate::worker::Tally;

type Waiting = Pin<Box<dyn Future<Output = Result<Bytes, Failure>>>>;

/// What a body consists of.
pub(crate) enum Content {
    /// Nothing.
    Empty,
    /// Bytes in memory.
    Bytes(Bytes),
    /// A range of a file.
    File(Box<Reader>),
    /// Several ranges, in their frame.
    Pieces(Box<Pieces>),
}

impl Content {
    /// Bytes to come.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(reader) => reader.left(),
            Self::Pieces(pieces) => pieces.left(),
        }
    }
}

/// Where ranges are taken from.
pub(crate) enum From {
    /// A body in memory.
    Bytes(Bytes),
    /// A file.
    File(Box<Reader>),
}

impl From {
    /// One of several ranges, which must not end after the whole.
    fn range(&self, range: Range<u64>) -> Content {
        match self {
            Self::Bytes(bytes) => Content::Bytes(slice(bytes, range)),
            Self::File(reader) => Content::File(Box::new(reader.range(range))),
        }
    }

    /// The only range.
    pub(crate) fn only(self, range: Range<u64>) -> Content {
        match self {
            Self::Bytes(bytes) => Content::Bytes(slice(&bytes, range)),
            Self::File(mut reader) => {
                (reader.at, reader.end) = (range.start, range.end);
                Content::File(reader)
            }
        }
    }
}

fn slice(bytes: &Bytes, range: Range<u64>) -> Bytes {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(at(range.start)..at(range.end))
}

/// Several ranges of one file, in their frame.
pub(crate) struct Pieces {
    parts: Multipart,
    from: From,
    now: Content,
}

impl Pieces {
    pub(crate) fn new(parts: Multipart, from: From) -> Self {
        Self { parts, from, now: Content::Empty }
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
                Some(Piece::Range(range)) => self.from.range(range),
            };
        }
        &mut self.now
    }
}

/// A response's body, and what ends with it.
pub(crate) struct Body {
    content: Content,
    /// What is waited for, and where it comes from.
    waiting: Option<(Waiting, Source)>,
    tally: Tally,
}

impl Body {
    pub(crate) fn new(content: Content, tally: Tally) -> Self {
        Self { content, waiting: None, tally }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Failure>>> {
        let content = match &mut self.content {
            Content::Pieces(pieces) => pieces.next(),
            content => content,
        };
        match content {
            Content::Empty | Content::Pieces(_) => Poll::Ready(None),
            Content::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then_some(Ok(Chunk::Bytes(bytes))))
            }
            Content::File(reader) => poll_file(reader, &mut self.waiting, &mut self.tally, cx),
        }
    }
}

fn poll_file(
    reader: &mut Reader,
    waiting: &mut Option<(Waiting, Source)>,
    tally: &mut Tally,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Chunk, Failure>>> {
    if reader.left() == 0 {
        return Poll::Ready(None);
    }
    if waiting.is_none() {
        match reader.step() {
            Ok(Step::Now(chunk, source)) => {
                tally.came_from(source);
                return Poll::Ready(Some(Ok(chunk)));
            }
            Ok(Step::Later(later, source)) => *waiting = Some((later, source)),
            Err(failure) => return Poll::Ready(Some(Err(failure))),
        }
    }
    let Some((later, source)) = waiting else { return Poll::Ready(None) };
    let arrived = ready!(later.as_mut().poll(cx));
    tally.came_from(*source);
    *waiting = None;
    Poll::Ready(Some(arrived.and_then(|bytes| reader.arrived(bytes)).map(Chunk::Bytes)))
}

impl http_body::Body for Body {
    type Data = Chunk;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, io::Error>>> {
        let this = self.get_mut();
        let Some(chunk) = ready!(this.poll(cx)) else { return Poll::Ready(None) };
        let chunk = chunk.map_err(|_failure| broken())?;
        this.tally.sends(&chunk);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.content.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content.len())
    }
}

/// hyper ends the connection for it: the length that was promised cannot be kept.
fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file changed while it was sent")
}
