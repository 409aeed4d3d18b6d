//! A QUIC connection (`quinn`) as the HTTP/3 library (`h3`) asks for one, with a limit on all that
//! the client can make it keep: the library collects a frame until it is complete, however long it
//! claims to be.
//!
//! Owns: how many streams there are, and how much of each is read. Does not own: the streams
//! ([`super::exchange`]), frames.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, OpenStreams, StreamErrorIncoming};
use quinn::ConnectionError;

use super::exchange::{Exchange, Inlet, Outlet, code, lost, lost_stream};

/// Most bytes of a stream in one direction, over its life: control frames are few and small.
/// Clients that send a priority with each request reach it after a few thousand of them.
const CONTROL_BYTES: usize = 64 << 10;
/// Most pieces in which these arrive; each takes memory besides its bytes.
const CONTROL_PIECES: usize = 8 << 10;
/// Bytes of unknown frames that a request may have besides its headers.
const SLACK_BYTES: usize = 4 << 10;
/// Most pieces in which a request arrives. 16 KiB come in 14 packets.
const REQUEST_PIECES: usize = 128;
/// Most streams in one direction that a connection may open, over its life: three are needed.
const CONTROL_STREAMS: usize = 16;

type Opening<T> = Pin<Box<dyn Future<Output = Result<T, ConnectionError>>>>;

/// A connection, in the form that the library polls.
pub(super) struct Quic {
    connection: quinn::Connection,
    header_bytes: usize,
    requests: Option<Opening<(quinn::SendStream, quinn::RecvStream)>>,
    controls: Option<Opening<quinn::RecvStream>>,
    controls_left: usize,
    opening: Option<Opening<quinn::SendStream>>,
}

impl Quic {
    /// `header_bytes`: most bytes of the headers of a request.
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

impl h3::quic::Connection<Bytes> for Quic {
    type RecvStream = Inlet;
    type OpenStreams = Opener;

    fn poll_accept_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Inlet, ConnectionErrorIncoming>> {
        loop {
            let mut stream = ready!(self.poll_control(cx)).map_err(lost)?;
            match self.controls_left.checked_sub(1) {
                Some(left) => {
                    self.controls_left = left;
                    let limits = (CONTROL_BYTES, CONTROL_PIECES);
                    return Poll::Ready(Ok(Inlet::new(stream, limits, Rc::default())));
                }
                // It may have ended by itself.
                None => drop(stream.stop(code(Code::H3_STREAM_CREATION_ERROR))),
            }
        }
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Exchange, ConnectionErrorIncoming>> {
        let connection = &self.connection;
        let next = self.requests.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.accept_bi().await })
        });
        let stream = ready!(next.as_mut().poll(cx));
        self.requests = None;
        let (send, receive) = stream.map_err(lost)?;
        let limits = (self.header_bytes.saturating_add(SLACK_BYTES), REQUEST_PIECES);
        Poll::Ready(Ok(Exchange::new(send, receive, limits)))
    }

    fn opener(&self) -> Opener {
        Opener(Quic::new(self.connection.clone(), self.header_bytes))
    }
}

impl OpenStreams<Bytes> for Quic {
    type BidiStream = Exchange;
    type SendStream = Outlet;

    /// Servers open no such streams (RFC 9114, section 6.1).
    fn poll_open_bidi(&mut self, _cx: &mut Context<'_>) -> Poll<Result<Exchange, StreamErrorIncoming>> {
        Poll::Ready(Err(StreamErrorIncoming::Unknown("a server makes no requests".into())))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outlet, StreamErrorIncoming>> {
        let connection = &self.connection;
        let next = self.opening.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.open_uni().await })
        });
        let stream = ready!(next.as_mut().poll(cx));
        self.opening = None;
        Poll::Ready(stream.map(Outlet::new).map_err(|error| lost_stream(error.into())))
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        self.connection.close(code(error), reason);
    }
}

/// Another opener of streams. The library requires the type and does not use it.
pub(super) struct Opener(Quic);

impl OpenStreams<Bytes> for Opener {
    type BidiStream = Exchange;
    type SendStream = Outlet;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Exchange, StreamErrorIncoming>> {
        self.0.poll_open_bidi(cx)
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outlet, StreamErrorIncoming>> {
        self.0.poll_open_send(cx)
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        OpenStreams::close(&mut self.0, error, reason);
    }
}
