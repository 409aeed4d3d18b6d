//! One request of HTTP/3 and its response: a piece of the body is read when the send budget of the
//! connection has room for it, and then waits for the window of the stream.
//!
//! Owns: how much is read ahead, and how long a client may take nothing. Does not own: the content
//! of responses.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use fathom_files::POOL_READ_BYTES;
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::{Request, Response, request};
use http_body::Body as _;
use tokio::time::timeout;

use super::quic::QuicConnection;
use super::streams::{QuicBidiStream, QuicSendStream};
use crate::body::Body;
use crate::conn::chunk::Chunk;
use crate::conn::deadlines::{ConnectionState, RequestGuard};
use crate::conn::send_budget::{SMALL_BYTES, StreamCharge};
use crate::conn::stall::StreamStall;
use crate::conn::unacked::UnacknowledgedBytes;
use crate::log::ErrorCategory;
use crate::state::{Peer, Worker};
use crate::worker::connection::respond;
use crate::worker::http2::complete_headers;

/// The largest piece of a body that a stream reads.
const AHEAD_BYTES: usize = POOL_READ_BYTES as usize;
/// The size of the slices of a frame. The memory of a slice is freed when the client has
/// acknowledged all of it.
const SLICE_BYTES: usize = 4 << 10;
/// The type of a DATA frame (RFC 9114, section 7.2.1).
const DATA: u8 = 0;

/// The state that the streams of a connection share.
pub(super) struct StreamContext {
    pub(super) worker: Rc<Worker>,
    pub(super) peer: Rc<Peer>,
    pub(super) state: Rc<ConnectionState>,
}

impl StreamContext {
    fn unacked(&self) -> &UnacknowledgedBytes {
        self.peer.send_budget.unacked()
    }
}

/// A future that completes when the client has acknowledged everything, wants nothing more, or is
/// gone.
type ResponseEnd = Pin<Box<dyn Future<Output = ()>>>;

/// Serves the request that `resolver` reads, and sends the response on `send`.
pub(super) async fn serve_request(
    shared: Rc<StreamContext>,
    resolver: RequestResolver<QuicConnection, Bytes>,
    send: QuicSendStream,
) {
    // Boxed and freed before the body is sent: it is much larger than the state that sending needs.
    let Some((request, mut unread)) = Box::pin(resolve(&shared, resolver, &send)).await else { return };
    // The second guard keeps the connection busy until the client has acknowledged the response.
    let (request_guard, until_acknowledged) = (shared.state.begin_request(), shared.state.begin_request());
    let worker = Rc::clone(&shared.worker);
    let mut sender = ResponseSender {
        wait: SendWait { stall: None, charge: None, released: 0 },
        response_end: Box::pin(send.ended()),
        shared,
        send,
    };
    let sent = sender.answer(request, request_guard, &mut unread).await;
    drop(until_acknowledged);
    match sent {
        Ok(()) => Box::pin(finish(unread, &worker)).await,
        Err(error) => sender.send.abort(error),
    }
}

/// Discards the rest of the request body until it ends or the deadline passes. Some clients take a
/// stopped request for a failure although they have the response.
async fn finish(mut unread: RequestStream<QuicBidiStream, Bytes>, worker: &Worker) {
    let discard = async { while let Ok(Some(_)) = unread.recv_data().await {} };
    let _ended = timeout(worker.plan().deadlines.headers, discard).await;
    // The response does not depend on the rest (RFC 9114, section 4.1).
    unread.stop_sending(Code::H3_NO_ERROR);
}

/// Reads the headers of a request. Logs and counts a request that is malformed or too slow.
async fn resolve(
    shared: &StreamContext,
    resolver: RequestResolver<QuicConnection, Bytes>,
    send: &QuicSendStream,
) -> Option<(request::Parts, RequestStream<QuicBidiStream, Bytes>)> {
    let time = shared.worker.plan().deadlines.headers;
    let refused = |status| shared.worker.record_refused(&shared.peer, b"", status);
    match timeout(time, resolver.resolve_request()).await {
        Ok(Ok((request, unread))) => return Some((Request::into_parts(request).0, unread)),
        // The library has sent the response 431.
        Ok(Err(StreamError::HeaderTooBig { .. })) => {
            refused(431);
            send.finish();
        }
        Ok(Err(StreamError::StreamError { code, .. })) => {
            refused(400);
            send.abort(code);
        }
        // The client has cancelled the request, or the connection ends.
        Ok(Err(_)) => send.abort(Code::H3_REQUEST_CANCELLED),
        Err(_) => {
            refused(408);
            send.abort(Code::H3_REQUEST_INCOMPLETE);
        }
    }
    None
}

/// A response under way.
struct ResponseSender {
    shared: Rc<StreamContext>,
    send: QuicSendStream,
    wait: SendWait,
    response_end: ResponseEnd,
}

impl ResponseSender {
    /// Responds to `request`.
    ///
    /// # Errors
    /// The code with which the stream is to be reset.
    async fn answer(
        &mut self,
        request: request::Parts,
        request_guard: RequestGuard,
        stream: &mut RequestStream<QuicBidiStream, Bytes>,
    ) -> Result<(), Code> {
        let StreamContext { worker, peer, .. } = &*self.shared;
        let response = Box::pin(respond(Rc::clone(worker), Rc::clone(peer), request_guard, request, false));
        let Some(Ok(response)) = unless_response_ended(&mut self.response_end, response).await else {
            return Err(Code::H3_REQUEST_CANCELLED);
        };
        let (mut head, mut body) = response.into_parts();
        complete_headers(&mut head.headers, &body, worker);
        self.send_head(stream, Response::from_parts(head, ()), &body).await?;
        self.send_body(&mut body).await?;
        self.send.finish();
        // End the request for the access log.
        drop(body);
        self.acknowledged().await
    }

    async fn send_head(
        &mut self,
        stream: &mut RequestStream<QuicBidiStream, Bytes>,
        head: Response<()>,
        body: &Body,
    ) -> Result<(), Code> {
        let mut sent = pin!(stream.send_response(head));
        let wait = &mut self.wait;
        let sent = poll_fn(|cx| match sent.as_mut().poll(cx) {
            Poll::Ready(sent) => Poll::Ready(Ok(sent)),
            Poll::Pending => wait.poll_window(&self.shared, body, cx).map(Err),
        });
        sent.await?.map_err(|_error| Code::H3_REQUEST_CANCELLED)
    }

    async fn send_body(&mut self, body: &mut Body) -> Result<(), Code> {
        // Begin with small pieces: the client has opened no window yet, as far as is known.
        let mut max_bytes = SMALL_BYTES;
        while !body.is_end_stream() {
            let Some(piece) = self.piece(body, max_bytes).await? else { continue };
            let waited = self.send_piece(piece, body).await?;
            max_bytes = if waited { SMALL_BYTES } else { AHEAD_BYTES };
        }
        Ok(())
    }

    /// Reads the next piece of `body`. Returns `None` if a body of unknown length has ended.
    async fn piece(&mut self, body: &mut Body, max_bytes: usize) -> Result<Option<Chunk>, Code> {
        let (shared, wait) = (&self.shared, &mut self.wait);
        wait.released = shared.unacked().released();
        let piece = poll_fn(|cx| {
            let room = match body.has_begun_piece() {
                true => usize::MAX,
                false => match body.send_budget().poll_room(cx) {
                    Poll::Ready(room) => room,
                    Poll::Pending => return wait.poll_room(shared, body, cx).map(Err),
                },
            };
            wait.end(0);
            body.poll_piece(room.min(max_bytes), cx).map(Ok)
        });
        let piece = unless_response_ended(&mut self.response_end, piece).await;
        let piece = piece.ok_or(Code::H3_REQUEST_CANCELLED)??;
        match piece {
            Some(Ok(chunk)) => Ok(Some(chunk)),
            None if body.is_end_stream() => Ok(None),
            Some(Err(_)) | None => Err(Code::H3_INTERNAL_ERROR),
        }
    }

    /// Sends `piece` as a DATA frame. Returns whether the client's window had to be waited for.
    async fn send_piece(&mut self, piece: Chunk, body: &Body) -> Result<bool, Code> {
        let mut frame = frame(piece, self.shared.unacked());
        let (mut first, mut waited) = (0, false);
        let (send, shared, wait) = (&self.send, &self.shared, &mut self.wait);
        poll_fn(|cx| {
            while let Some(pieces) = frame.get_mut(first..).filter(|pieces| !pieces.is_empty()) {
                match send.poll_write(pieces, cx) {
                    Poll::Ready(Ok(bytes)) => wait.end(bytes),
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Code::H3_REQUEST_CANCELLED)),
                    Poll::Pending => {
                        waited = true;
                        return wait.poll_window(shared, body, cx).map(Err);
                    }
                }
                first += pieces.iter().take_while(|piece| piece.is_empty()).count();
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        Ok(waited)
    }

    /// Waits until the client has acknowledged everything. The client may be slow as long as it
    /// acknowledges something.
    async fn acknowledged(&mut self) -> Result<(), Code> {
        let (shared, wait, ended) = (&self.shared, &mut self.wait, &mut self.response_end);
        wait.released = shared.unacked().released();
        poll_fn(|cx| match ended.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => wait.poll_release(shared, cx).map(Err),
        })
        .await
    }
}

/// Returns a DATA frame with `piece`, in slices that count toward `unacked`.
fn frame(piece: Chunk, unacked: &UnacknowledgedBytes) -> Vec<Bytes> {
    let piece = match piece {
        Chunk::Bytes { bytes, .. } => bytes,
        // Copy the bytes, so the pooled buffer is free for the next read.
        piece => Bytes::copy_from_slice(bytes::Buf::chunk(&piece)),
    };
    let mut frame = vec![header(piece.len())];
    frame.extend((0..piece.len()).step_by(SLICE_BYTES).map(|start| {
        let end = piece.len().min(start + SLICE_BYTES);
        unacked.count(piece.slice(start..end))
    }));
    frame
}

/// Returns the type and the length of a DATA frame. The length takes four bytes, which suffice for
/// all pieces (RFC 9000, section 16).
fn header(bytes: usize) -> Bytes {
    let mut header = BytesMut::with_capacity(5);
    header.put_u8(DATA);
    header.put_u32(0b10 << 30 | u32::try_from(bytes).unwrap_or(0));
    header.freeze()
}

/// Runs `future`; returns `None` if the response ends first: the client does not want it or is
/// gone.
async fn unless_response_ended<F: Future>(ended: &mut ResponseEnd, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match ended.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(cx).map(Some),
    })
    .await
}

/// The wait of one stream for its client.
struct SendWait {
    /// The stall clock, from the first wait on.
    stall: Option<Rc<StreamStall>>,
    /// The charge of the stalled stream while it waits with a response body.
    charge: Option<StreamCharge>,
    /// The bytes that the connection had released at the last poll.
    released: usize,
}

impl SendWait {
    /// Ends the wait: the client has taken `bytes`.
    fn end(&mut self, bytes: usize) {
        self.charge = None;
        if let Some(stall) = &self.stall {
            stall.record_opened(bytes);
        }
    }

    /// Waits for the window of the stream. Returns `Ready` with the code to reset the stream with.
    fn poll_window(&mut self, shared: &StreamContext, body: &Body, cx: &mut Context<'_>) -> Poll<Code> {
        if self.is_too_long(shared, false, cx) {
            return Poll::Ready(Code::H3_REQUEST_CANCELLED);
        }
        self.poll_charge(shared, body)
    }

    /// Waits for room in the send budget of the connection. Returns `Ready` with the code to reset
    /// the stream with.
    fn poll_room(&mut self, shared: &StreamContext, body: &Body, cx: &mut Context<'_>) -> Poll<Code> {
        match self.poll_release(shared, cx) {
            Poll::Ready(code) => Poll::Ready(code),
            Poll::Pending => self.poll_charge(shared, body),
        }
    }

    /// Waits for the client to acknowledge bytes of any stream of the connection. Returns `Ready`
    /// with the code to reset the stream with.
    fn poll_release(&mut self, shared: &StreamContext, cx: &mut Context<'_>) -> Poll<Code> {
        let released = shared.unacked().released();
        let taken = released.wrapping_sub(std::mem::replace(&mut self.released, released));
        if let Some(stall) = self.stall.as_ref().filter(|_| taken > 0) {
            stall.record_opened(taken);
        }
        shared.unacked().wake_on_release(cx);
        match self.is_too_long(shared, true, cx) {
            true => Poll::Ready(Code::H3_REQUEST_CANCELLED),
            false => Poll::Pending,
        }
    }

    fn is_too_long(
        &mut self,
        shared: &StreamContext,
        waits_for_connection: bool,
        cx: &mut Context<'_>,
    ) -> bool {
        let stall = self.stall.get_or_insert_with(|| shared.state.new_stall());
        stall.set_waits_for_connection(waits_for_connection);
        if !stall.is_expired() {
            stall.begin_wait(cx.waker());
        }
        stall.is_expired()
    }

    /// Charges the stalled stream to the send budget, or gives the stream up if the budget is
    /// exhausted.
    fn poll_charge(&mut self, shared: &StreamContext, body: &Body) -> Poll<Code> {
        if self.charge.is_none() {
            self.charge = body.send_budget().charge_stalled(body.own_bytes());
        }
        match self.charge {
            Some(_) => Poll::Pending,
            None => {
                shared
                    .worker
                    .report(ErrorCategory::Buffers, || "the buffers for slow clients are full".to_owned());
                Poll::Ready(Code::H3_EXCESSIVE_LOAD)
            }
        }
    }
}
