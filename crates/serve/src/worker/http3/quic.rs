//! An adapter from a QUIC connection (`quinn`) to the traits of the HTTP/3 library (`h3`), with
//! limits on the memory that a client can make the server keep: the library buffers a frame until
//! it is complete, whatever length the frame claims.
//!
//! Owns: how many streams a client opens, and how much of each is read. Does not own: the streams
//! ([`super::streams`]), frames.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, OpenStreams, StreamErrorIncoming};
use quinn::ConnectionError;

use super::streams::{
    QuicBidiStream, QuicReceiveStream, QuicSendStream, StreamLimits, code, lost, lost_stream,
};

/// The most bytes of a unidirectional stream over its life: control frames are few and small. A
/// client that sends a priority with each request reaches the limit after a few thousand requests.
const CONTROL_BYTES: usize = 64 << 10;
/// The most pieces in which those bytes arrive; each piece takes memory besides its bytes.
const CONTROL_PIECES: usize = 8 << 10;
/// The bytes of unknown frames that a request may have besides its headers.
const SLACK_BYTES: usize = 4 << 10;
/// The most pieces in which a request arrives. 16 KiB arrive in 14 packets.
const REQUEST_PIECES: usize = 128;
/// The most unidirectional streams of a connection over its life: a client needs three.
const CONTROL_STREAMS: usize = 16;

type StreamFuture<T> = Pin<Box<dyn Future<Output = Result<T, ConnectionError>>>>;

/// A QUIC connection in the form that the library polls.
pub(super) struct QuicConnection {
    connection: quinn::Connection,
    header_bytes: usize,
    requests: Option<StreamFuture<(quinn::SendStream, quinn::RecvStream)>>,
    controls: Option<StreamFuture<quinn::RecvStream>>,
    controls_left: usize,
    opening: Option<StreamFuture<quinn::SendStream>>,
}

impl QuicConnection {
    /// Creates the adapter. `header_bytes`: the most bytes of the headers of a request.
    pub(super) fn new(connection: quinn::Connection, header_bytes: usize) -> Self {
        Self {
            connection,
            header_bytes,
            requests: None,
            controls: None,
            controls_left: CONTROL_STREAMS,
            opening: None,
        }
    }

    fn poll_control(&mut self, cx: &mut Context<'_>) -> Poll<Result<quinn::RecvStream, ConnectionError>> {
        let connection = &self.connection;
        let next = self.controls.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_uni().await })
        });
        let stream = ready!(next.as_mut().poll(cx));
        self.controls = None;
        Poll::Ready(stream)
    }
}

impl h3::quic::Connection<Bytes> for QuicConnection {
    type RecvStream = QuicReceiveStream;
    type OpenStreams = StreamOpener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<QuicReceiveStream, ConnectionErrorIncoming>> {
        loop {
            let mut stream = ready!(self.poll_control(cx)).map_err(lost)?;
            match self.controls_left.checked_sub(1) {
                Some(left) => {
                    self.controls_left = left;
                    let limits = StreamLimits { bytes: CONTROL_BYTES, pieces: CONTROL_PIECES };
                    return Poll::Ready(Ok(QuicReceiveStream::new(stream, limits, Rc::default())));
                }
                // The error means that the client has ended the stream.
                None => drop(stream.stop(code(Code::H3_STREAM_CREATION_ERROR))),
            }
        }
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<QuicBidiStream, ConnectionErrorIncoming>> {
        let connection = &self.connection;
        let next = self.requests.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_bi().await })
        });
        let stream = ready!(next.as_mut().poll(cx));
        self.requests = None;
        let (send, receive) = stream.map_err(lost)?;
        let bytes = self.header_bytes.saturating_add(SLACK_BYTES);
        let limits = StreamLimits { bytes, pieces: REQUEST_PIECES };
        Poll::Ready(Ok(QuicBidiStream::new(send, receive, limits)))
    }

    fn opener(&self) -> StreamOpener {
        StreamOpener(QuicConnection::new(self.connection.clone(), self.header_bytes))
    }
}

impl OpenStreams<Bytes> for QuicConnection {
    type BidiStream = QuicBidiStream;
    type SendStream = QuicSendStream;

    /// Fails: a server opens no bidirectional streams (RFC 9114, section 6.1).
    fn poll_open_bidi(&mut self, _cx: &mut Context<'_>) -> Poll<Result<QuicBidiStream, StreamErrorIncoming>> {
        Poll::Ready(Err(StreamErrorIncoming::Unknown("a server makes no requests".into())))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<QuicSendStream, StreamErrorIncoming>> {
        let connection = &self.connection;
        let next = self.opening.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.open_uni().await })
        });
        let stream = ready!(next.as_mut().poll(cx));
        self.opening = None;
        Poll::Ready(stream.map(QuicSendStream::new).map_err(|error| lost_stream(error.into())))
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        self.connection.close(code(error), reason);
    }
}

/// A second opener of streams. The library requires the type and does not use it.
pub(super) struct StreamOpener(QuicConnection);

impl OpenStreams<Bytes> for StreamOpener {
    type BidiStream = QuicBidiStream;
    type SendStream = QuicSendStream;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<QuicBidiStream, StreamErrorIncoming>> {
        self.0.poll_open_bidi(cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<QuicSendStream, StreamErrorIncoming>> {
        self.0.poll_open_send(cx)
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        OpenStreams::close(&mut self.0, error, reason);
    }
}
