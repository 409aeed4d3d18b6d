//! Adapters from the streams of a QUIC connection (`quinn`) to the traits of the HTTP/3 library
//! (`h3`).
//!
//! Owns: the limits on the bytes and pieces read from a stream. Response bodies bypass the library
//! ([`QuicSendStream::poll_write`]), so that their memory is counted.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, RecvStream, SendStream, StreamErrorIncoming, StreamId, WriteBuf};
use quinn::{ConnectionError, ReadError, VarInt, WriteError};

/// The bytes and the pieces that may still arrive on a stream.
#[derive(Clone, Copy)]
pub(super) struct StreamLimits {
    pub(super) bytes: usize,
    pub(super) pieces: usize,
}

/// The receiving half of a stream.
pub(super) struct QuicReceiveStream {
    stream: quinn::RecvStream,
    left: StreamLimits,
    /// Whether the response is complete. The client may then send more, which the server does not
    /// read.
    is_answered: Rc<Cell<bool>>,
}

impl QuicReceiveStream {
    /// Creates the half.
    pub(super) fn new(stream: quinn::RecvStream, left: StreamLimits, is_answered: Rc<Cell<bool>>) -> Self {
        Self { stream, left, is_answered }
    }

    /// Counts a piece of `bytes`; returns `None` if that exceeds a limit.
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.left.bytes = self.left.bytes.checked_sub(bytes)?;
        self.left.pieces = self.left.pieces.checked_sub(1)?;
        Some(())
    }
}

impl RecvStream for QuicReceiveStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        // The future holds nothing between polls: the stream keeps the waker.
        let chunk = ready!(pin!(self.stream.read_chunk(usize::MAX, true)).poll(cx));
        let Some(chunk) = chunk.map_err(unread)? else { return Poll::Ready(Ok(None)) };
        if self.take(chunk.bytes.len()).is_none() {
            let is_answered = self.is_answered.get();
            let code = if is_answered { Code::H3_NO_ERROR } else { Code::H3_EXCESSIVE_LOAD };
            self.stop_sending(code.value());
            return Poll::Ready(Err(StreamErrorIncoming::Unknown("more than a request has".into())));
        }
        // Copy the bytes: a slice of a packet would keep the memory of the whole packet.
        Poll::Ready(Ok(Some(Bytes::copy_from_slice(&chunk.bytes))))
    }

    fn stop_sending(&mut self, error: u64) {
        // An error means that the stream has ended.
        drop(self.stream.stop(VarInt::from_u64(error).unwrap_or(VarInt::MAX)));
    }

    fn recv_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

/// The sending half of a stream. Clones share it.
#[derive(Clone)]
pub(super) struct QuicSendStream {
    stream: Rc<RefCell<quinn::SendStream>>,
    /// The frame that the library is writing.
    frame: Rc<RefCell<Option<WriteBuf<Bytes>>>>,
    is_finished: Rc<Cell<bool>>,
}

impl QuicSendStream {
    pub(super) fn new(stream: quinn::SendStream) -> Self {
        let (frame, is_finished) = (Rc::default(), Rc::default());
        Self { stream: Rc::new(RefCell::new(stream)), frame, is_finished }
    }

    /// Writes as much of `pieces` as the stream takes, without a copy, and removes it from
    /// `pieces`. Returns `Ready` with the number of bytes.
    pub(super) fn poll_write(
        &self,
        pieces: &mut [Bytes],
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, WriteError>> {
        let mut stream = self.stream.borrow_mut();
        // The future holds nothing between polls: the connection keeps the waker.
        let written = ready!(pin!(stream.write_chunks(pieces)).poll(cx))?;
        Poll::Ready(Ok(written.bytes))
    }

    /// Ends the stream after the bytes written so far.
    pub(super) fn finish(&self) {
        // An error means that the client has reset the stream, which `ended` reports as well.
        drop(self.stream.borrow_mut().finish());
        self.is_finished.set(true);
    }

    /// Resets the stream. Bytes that were written and not acknowledged are dropped.
    pub(super) fn abort(&self, error: Code) {
        drop(self.stream.borrow_mut().reset(code(error)));
    }

    /// Completes when the client has acknowledged everything, does not want the rest, or is gone.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + 'static {
        let stopped = self.stream.borrow().stopped();
        async move { drop(stopped.await) }
    }
}

impl SendStream<Bytes> for QuicSendStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let mut frame = self.frame.borrow_mut();
        if let Some(frame) = &mut *frame {
            let mut stream = self.stream.borrow_mut();
            while frame.has_remaining() {
                let written = ready!(pin!(stream.write(frame.chunk())).poll(cx)).map_err(lost_stream)?;
                frame.advance(written);
            }
        }
        *frame = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        match self.frame.borrow_mut().replace(data.into()) {
            None => Ok(()),
            Some(_) => Err(StreamErrorIncoming::Unknown("a frame is not written yet".into())),
        }
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.finish();
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, error: u64) {
        drop(self.stream.borrow_mut().reset(VarInt::from_u64(error).unwrap_or(VarInt::MAX)));
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.borrow().id())
    }
}

/// A bidirectional stream with a request and its response.
pub(super) struct QuicBidiStream {
    send: QuicSendStream,
    receive: QuicReceiveStream,
}

impl QuicBidiStream {
    /// Creates the stream. `limits` apply to a request.
    pub(super) fn new(send: quinn::SendStream, receive: quinn::RecvStream, limits: StreamLimits) -> Self {
        let send = QuicSendStream::new(send);
        let receive = QuicReceiveStream::new(receive, limits, Rc::clone(&send.is_finished));
        Self { send, receive }
    }

    /// Returns the sending half.
    pub(super) fn send_half(&self) -> QuicSendStream {
        self.send.clone()
    }
}

impl RecvStream for QuicBidiStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, error: u64) {
        self.receive.stop_sending(error);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl SendStream<Bytes> for QuicBidiStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, error: u64) {
        self.send.reset(error);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

/// Converts an HTTP/3 error code to the integer of QUIC. All codes of HTTP/3 are small.
pub(super) fn code(error: Code) -> VarInt {
    VarInt::from_u64(error.value()).unwrap_or(VarInt::MAX)
}

fn id(stream: quinn::StreamId) -> StreamId {
    StreamId::try_from(u64::from(stream)).expect("both are integers of 62 bits")
}

pub(super) fn lost(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

pub(super) fn lost_stream(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(error) => StreamErrorIncoming::StreamTerminated { error_code: error.into() },
        WriteError::ConnectionLost(error) => {
            StreamErrorIncoming::ConnectionErrorIncoming { connection_error: lost(error) }
        }
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

fn unread(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(error) => StreamErrorIncoming::StreamTerminated { error_code: error.into() },
        ReadError::ConnectionLost(error) => {
            StreamErrorIncoming::ConnectionErrorIncoming { connection_error: lost(error) }
        }
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}
