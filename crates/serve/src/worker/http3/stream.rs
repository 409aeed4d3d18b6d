//! One request of HTTP/3 and its response: pieces of the body are read when the connection has room
//! for them, and wait for the stream's window one at a time.
//!
//! Owns: what is read ahead, and how long a client may take nothing. Does not own: what is answered.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::{Request, Response, request};
use http_body::Body as _;
use tokio::time::timeout;

use super::exchange::{Exchange, Outlet};
use super::quic::Quic;
use crate::body::Body;
use crate::conn::chunk::Chunk;
use crate::conn::outbox::{Hold, SMALL_BYTES};
use crate::conn::pulse::{Busy, Pulse};
use crate::conn::stall::Stall;
use crate::conn::unacked::Unacked;
use crate::files::POOL_BYTES;
use crate::log::Trouble;
use crate::worker::connection::reply;
use crate::worker::http2::dress;
use crate::worker::{Peer, Worker};

/// Most bytes that a stream reads before the client has taken those before.
const AHEAD_BYTES: usize = POOL_BYTES as usize;
/// Bytes that are dropped together when the client has acknowledged all of them.
const SLICE_BYTES: usize = 4 << 10;
/// The type of a DATA frame (RFC 9114, section 7.2.1).
const DATA: u8 = 0;

/// State that the streams of a connection share.
pub(super) struct Shared {
    pub(super) worker: Rc<Worker>,
    pub(super) peer: Rc<Peer>,
    pub(super) pulse: Rc<Pulse>,
    pub(super) unacked: Unacked,
}

/// Ends when the client has everything, wants nothing more, or is gone.
type Ended = Pin<Box<dyn Future<Output = ()>>>;

/// Serves the request that `resolver` reads, and answers it on `outlet`.
pub(super) async fn stream(shared: Rc<Shared>, resolver: RequestResolver<Quic, Bytes>, outlet: Outlet) {
    // On the heap, and given back before the body is sent: it is much larger than what sending
    // takes.
    let Some((request, mut unread)) = Box::pin(resolve(&shared, resolver, &outlet)).await else { return };
    // The connection is busy until the client has acknowledged the response.
    let (busy, until_acknowledged) = (shared.pulse.request(), shared.pulse.request());
    let worker = Rc::clone(&shared.worker);
    let mut sending = Sending {
        wait: Wait { stall: None, hold: None, released: 0 },
        ended: Box::pin(outlet.ended()),
        shared,
        outlet,
    };
    let sent = sending.answer(request, busy, &mut unread).await;
    drop(until_acknowledged);
    match sent {
        Ok(()) => Box::pin(finish(unread, &worker)).await,
        Err(error) => sending.outlet.give_up(error),
    }
}

/// Throws away what the client still sends with its request, until it ends or has had its time:
/// some clients take a request that is stopped for a failure though they have the response.
async fn finish(mut unread: RequestStream<Exchange, Bytes>, worker: &Worker) {
    let discard = async { while let Ok(Some(_)) = unread.recv_data().await {} };
    let _ended = timeout(worker.plan().deadlines.headers, discard).await;
    // The response does not depend on the rest (RFC 9114, section 4.1).
    unread.stop_sending(Code::H3_NO_ERROR);
}

/// Reads the headers of a request. One that cannot be read is logged and counted.
async fn resolve(
    shared: &Shared,
    resolver: RequestResolver<Quic, Bytes>,
    outlet: &Outlet,
) -> Option<(request::Parts, RequestStream<Exchange, Bytes>)> {
    let time = shared.worker.plan().deadlines.headers;
    let refused = |status| shared.worker.refused(&shared.peer, b"", status);
    match timeout(time, resolver.resolve_request()).await {
        Ok(Ok((request, unread))) => return Some((Request::into_parts(request).0, unread)),
        // The library has answered it.
        Ok(Err(StreamError::HeaderTooBig { .. })) => {
            refused(431);
            outlet.finish();
        }
        Ok(Err(StreamError::StreamError { code, .. })) => {
            refused(400);
            outlet.give_up(code);
        }
        // The client has given it up, or the connection ends.
        Ok(Err(_)) => outlet.give_up(Code::H3_REQUEST_CANCELLED),
        Err(_) => {
            refused(408);
            outlet.give_up(Code::H3_REQUEST_INCOMPLETE);
        }
    }
    None
}

/// A response under way.
struct Sending {
    shared: Rc<Shared>,
    outlet: Outlet,
    wait: Wait,
    ended: Ended,
}

impl Sending {
    /// Answers `request`, or fails with the reason that is to be told.
    async fn answer(
        &mut self,
        request: request::Parts,
        busy: Busy,
        stream: &mut RequestStream<Exchange, Bytes>,
    ) -> Result<(), Code> {
        let Shared { worker, peer, .. } = &*self.shared;
        let response = Box::pin(reply(Rc::clone(worker), Rc::clone(peer), busy, request, false));
        let Some(Ok(response)) = unless_ended(&mut self.ended, response).await else {
            return Err(Code::H3_REQUEST_CANCELLED);
        };
        let (mut head, mut body) = response.into_parts();
        dress(&mut head.headers, &body, worker);
        self.send_head(stream, Response::from_parts(head, ()), &body).await?;
        self.send_body(&mut body).await?;
        self.outlet.finish();
        // The request has ended, as the log sees it.
        drop(body);
        self.acknowledged().await
    }

    async fn send_head(
        &mut self,
        stream: &mut RequestStream<Exchange, Bytes>,
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
        // A client that has taken nothing gets little.
        let mut most = SMALL_BYTES;
        while !body.is_end_stream() {
            let Some(piece) = self.piece(body, most).await? else { continue };
            let waited = self.send_piece(piece, body).await?;
            most = if waited { SMALL_BYTES } else { AHEAD_BYTES };
        }
        Ok(())
    }

    /// The next piece of `body`; `None` if a body of unknown length has ended.
    async fn piece(&mut self, body: &mut Body, most: usize) -> Result<Option<Chunk>, Code> {
        let (shared, wait) = (&self.shared, &mut self.wait);
        wait.released = shared.unacked.released();
        let room = poll_fn(|cx| match shared.unacked.poll_room(cx) {
            Poll::Ready(room) => Poll::Ready(Ok(room)),
            Poll::Pending => wait.poll_room(shared, body, cx).map(Err),
        });
        let room = unless_ended(&mut self.ended, room).await.ok_or(Code::H3_REQUEST_CANCELLED)??;
        wait.over(0);
        let piece = poll_fn(|cx| body.poll_piece(room.min(most), cx));
        let piece = unless_ended(&mut self.ended, piece).await.ok_or(Code::H3_REQUEST_CANCELLED)?;
        match piece {
            Some(Ok(chunk)) => Ok(Some(chunk)),
            None if body.is_end_stream() => Ok(None),
            Some(Err(_)) | None => Err(Code::H3_INTERNAL_ERROR),
        }
    }

    /// Sends `piece` as a frame. Returns whether the client was waited for.
    async fn send_piece(&mut self, piece: Chunk, body: &Body) -> Result<bool, Code> {
        let mut frame = frame(piece, &self.shared.unacked);
        let (mut first, mut waited) = (0, false);
        let (outlet, shared, wait) = (&self.outlet, &self.shared, &mut self.wait);
        poll_fn(|cx| {
            while let Some(pieces) = frame.get_mut(first..).filter(|pieces| !pieces.is_empty()) {
                match outlet.poll_write(pieces, cx) {
                    Poll::Ready(Ok(bytes)) => wait.over(bytes),
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

    /// Waits until the client has acknowledged everything. It may be slow, as long as there is
    /// something that it acknowledges.
    async fn acknowledged(&mut self) -> Result<(), Code> {
        let (shared, wait, ended) = (&self.shared, &mut self.wait, &mut self.ended);
        wait.released = shared.unacked.released();
        poll_fn(|cx| match ended.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => wait.poll_release(shared, cx).map(Err),
        })
        .await
    }
}

/// A DATA frame with `piece`, in slices that count for `unacked`.
fn frame(piece: Chunk, unacked: &Unacked) -> Vec<Bytes> {
    let piece = match piece {
        Chunk::Bytes { bytes, .. } => bytes,
        // Copied, so that the buffer can be used again.
        piece => Bytes::copy_from_slice(bytes::Buf::chunk(&piece)),
    };
    let mut frame = vec![header(piece.len())];
    frame.extend((0..piece.len()).step_by(SLICE_BYTES).map(|start| {
        let end = piece.len().min(start + SLICE_BYTES);
        unacked.count(piece.slice(start..end))
    }));
    frame
}

/// The type and length of a DATA frame, in the widest form of a length that pieces need (RFC 9000,
/// section 16).
fn header(bytes: usize) -> Bytes {
    let mut header = BytesMut::with_capacity(5);
    header.put_u8(DATA);
    header.put_u32(0b10 << 30 | u32::try_from(bytes).unwrap_or(0));
    header.freeze()
}

/// Runs `future`; returns `None` if the client does not want the response any more.
async fn unless_ended<F: Future>(ended: &mut Ended, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match ended.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(cx).map(Some),
    })
    .await
}

/// The state of a stream that waits for its client.
struct Wait {
    /// From the first wait on.
    stall: Option<Rc<Stall>>,
    /// While it waits, and has the response in hand.
    hold: Option<Hold>,
    /// Bytes that the connection had released at the last look.
    released: usize,
}

impl Wait {
    /// The client has taken `bytes`, and the wait is over.
    fn over(&mut self, bytes: usize) {
        self.hold = None;
        if let Some(stall) = &self.stall {
            stall.opened(bytes);
        }
    }

    /// Waits for the window of the stream. Ready with the reason to give the stream up.
    fn poll_window(&mut self, shared: &Shared, body: &Body, cx: &mut Context<'_>) -> Poll<Code> {
        if self.is_too_long(shared, false, cx) {
            return Poll::Ready(Code::H3_REQUEST_CANCELLED);
        }
        self.poll_hold(shared, body)
    }

    /// Waits for room on the connection.
    fn poll_room(&mut self, shared: &Shared, body: &Body, cx: &mut Context<'_>) -> Poll<Code> {
        match self.poll_release(shared, cx) {
            Poll::Ready(code) => Poll::Ready(code),
            Poll::Pending => self.poll_hold(shared, body),
        }
    }

    /// Waits for the client to acknowledge something on any stream of the connection.
    fn poll_release(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Poll<Code> {
        let released = shared.unacked.released();
        let taken = released.wrapping_sub(std::mem::replace(&mut self.released, released));
        if let Some(stall) = self.stall.as_ref().filter(|_| taken > 0) {
            stall.opened(taken);
        }
        shared.unacked.wake_on_release(cx);
        match self.is_too_long(shared, true, cx) {
            true => Poll::Ready(Code::H3_REQUEST_CANCELLED),
            false => Poll::Pending,
        }
    }

    fn is_too_long(&mut self, shared: &Shared, of_connection: bool, cx: &mut Context<'_>) -> bool {
        let stall = self.stall.get_or_insert_with(|| shared.pulse.stall());
        stall.set_of_connection(of_connection);
        if !stall.is_over() {
            stall.waits(cx.waker());
        }
        stall.is_over()
    }

    /// Counts the stream among those that wait, or gives it up when memory is short.
    fn poll_hold(&mut self, shared: &Shared, body: &Body) -> Poll<Code> {
        if self.hold.is_none() {
            self.hold = body.outbox().hold(body.own_bytes());
        }
        match self.hold {
            Some(_) => Poll::Pending,
            None => {
                shared.worker.report(Trouble::Buffers, || {
                    "more responses wait for their clients than buffers hold".to_owned()
                });
                Poll::Ready(Code::H3_EXCESSIVE_LOAD)
            }
        }
    }
}
