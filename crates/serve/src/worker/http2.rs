//! A connection of HTTP/2: each stream reads no more of its file than its flow-control window and
//! the send budget of the connection allow. So a stream whose client opens no window holds no
//! buffer, and its wait is bounded.
//!
//! Owns: streams and their windows. Does not own: frames (`h2`), the content of responses.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fathom_files::POOL_READ_BYTES;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body::Body as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::connection::{respond, unless_draining};
use crate::body::Body;
use crate::config::Limits;
use crate::conn::chunk::Chunk;
use crate::conn::deadlines::{ConnectionCommand, ConnectionState, RequestGuard};
use crate::conn::send_budget::StreamCharge;
use crate::conn::stall::StreamStall;
use crate::log::ErrorCategory;
use crate::state::{Peer, Worker};

/// The most bytes that a stream reads ahead of the socket.
const AHEAD_BYTES: usize = POOL_READ_BYTES as usize;
/// Connection-specific headers, which a response of HTTP/2 must not have (RFC 9113, section 8.2.2).
const CONNECTION_HEADERS: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Serves a connection of HTTP/2 to its end.
pub(super) async fn serve<I>(worker: Rc<Worker>, io: I, peer: Rc<Peer>, state: Rc<ConnectionState>)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let handshake = builder(&worker.plan().limits).handshake::<_, Chunk>(io);
    let Some(Ok(mut connection)) = unless_draining(&state, handshake).await else { return };
    state.set_multiplexed();
    let mut is_draining = false;
    poll_fn(|cx| {
        match state.command(cx.waker()) {
            ConnectionCommand::Serve => {}
            ConnectionCommand::Park => state.set_parked(),
            ConnectionCommand::Drain if is_draining => {}
            ConnectionCommand::Drain => {
                is_draining = true;
                connection.graceful_shutdown();
            }
            ConnectionCommand::Close => return Poll::Ready(()),
        }
        // A connection error comes from the client and ends the loop without a report.
        while let Some(Ok((request, responder))) = ready!(connection.poll_accept(cx)) {
            let (peer, request_guard) = (Rc::clone(&peer), state.begin_request());
            let stream =
                serve_stream(Rc::clone(&worker), peer, Rc::clone(&state), request_guard, request, responder);
            let state = Rc::clone(&state);
            spawn_local(worker.contain("a connection", stream, move || state.close()));
        }
        Poll::Ready(())
    })
    .await;
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(limits.streams);
    builder.max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
    builder.max_send_buffer_size(AHEAD_BYTES);
    builder
}

/// Serves one request.
async fn serve_stream(
    worker: Rc<Worker>,
    peer: Rc<Peer>,
    state: Rc<ConnectionState>,
    request_guard: RequestGuard,
    request: Request<RecvStream>,
    mut responder: SendResponse<Chunk>,
) {
    let (request, unread) = request.into_parts();
    // Boxed and freed before the body is sent: it is much larger than the state that sending needs.
    let response = Box::pin(respond(Rc::clone(&worker), peer, request_guard, request, false));
    let Some(Ok(response)) = unless_reset(|cx| responder.poll_reset(cx), response).await else { return };
    let (mut head, mut body) = response.into_parts();
    complete_headers(&mut head.headers, &body, &worker);
    let ends = body.is_end_stream();
    match responder.send_response(Response::from_parts(head, ()), ends) {
        Ok(send) if ends => finish(send, unread, &worker).await,
        Ok(mut send) => {
            let mut window = StreamWindow { state, stall: None, charge: None };
            match send_body(&mut send, &mut body, &mut window, &worker).await {
                Ok(()) => {
                    // End the request for the access log and the connection state.
                    drop((body, window));
                    finish(send, unread, &worker).await;
                }
                Err(reason) => send.send_reset(reason),
            }
        }
        Err(_) => responder.send_reset(Reason::INTERNAL_ERROR),
    }
}

/// Discards the rest of the request body until it ends or the deadline passes. A stream that ends
/// before that is reset, and some clients take a reset for a failure although they have the
/// response.
async fn finish(_send: SendStream<Chunk>, unread: RecvStream, worker: &Worker) {
    if !unread.is_end_stream() {
        let time = worker.plan().deadlines.headers;
        // Boxed: few requests have a body.
        let _ended = Box::pin(timeout(time, discard(unread))).await;
    }
}

async fn discard(mut body: RecvStream) {
    while let Some(Ok(bytes)) = body.data().await {
        // A closed connection has no window to release.
        let _gone = body.flow_control().release_capacity(bytes.len());
    }
}

/// Adds the headers that the HTTP/2 and HTTP/3 libraries leave to the server, and removes
/// connection-specific ones.
pub(super) fn complete_headers(fields: &mut HeaderMap, body: &Body, worker: &Worker) {
    for name in CONNECTION_HEADERS {
        fields.remove(name);
    }
    if let Some(date) = worker.date.now() {
        fields.entry(header::DATE).or_insert(date);
    }
    if let Some(len) = body.size_hint().exact().filter(|_| !body.is_end_stream()) {
        fields.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(len));
    }
}

/// Runs `future`; returns `None` if the client resets the stream first.
async fn unless_reset<F: Future>(
    mut poll_reset: impl FnMut(&mut Context<'_>) -> Poll<Result<Reason, h2::Error>>,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match poll_reset(cx) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(cx).map(Some),
    })
    .await
}

/// Sends all of `body`.
///
/// # Errors
/// The reason with which the stream is to be reset.
async fn send_body(
    send: &mut SendStream<Chunk>,
    body: &mut Body,
    window: &mut StreamWindow,
    worker: &Worker,
) -> Result<(), Reason> {
    loop {
        let left = usize::try_from(body.remaining_bytes()).unwrap_or(usize::MAX);
        send.reserve_capacity(left.min(AHEAD_BYTES));
        let open = window.open(send, body, worker).await?;
        let piece = poll_fn(|cx| body.poll_piece(open, cx));
        let piece = unless_reset(|cx| send.poll_reset(cx), piece).await.flatten();
        let chunk = match piece {
            Some(Ok(chunk)) => chunk,
            // A body of unknown length has ended: an empty DATA frame carries END_STREAM.
            None if body.is_end_stream() => Chunk::Bytes { bytes: Bytes::new(), _charge: None },
            Some(Err(_)) | None => return Err(Reason::INTERNAL_ERROR),
        };
        let ends = body.is_end_stream();
        send.send_data(chunk, ends).map_err(|_closed| Reason::CANCEL)?;
        if ends {
            return Ok(());
        }
    }
}

/// The flow control of one response.
struct StreamWindow {
    state: Rc<ConnectionState>,
    /// The stall clock, from the first wait on.
    stall: Option<Rc<StreamStall>>,
    /// The charge of the stalled stream while it waits.
    charge: Option<StreamCharge>,
}

impl StreamWindow {
    /// Waits until the windows of stream and connection are open, and returns the bytes that they
    /// take.
    async fn open(
        &mut self,
        send: &mut SendStream<Chunk>,
        body: &Body,
        worker: &Worker,
    ) -> Result<usize, Reason> {
        let open = poll_fn(|cx| self.poll(send, body, worker, cx)).await;
        self.charge = None;
        if let (Ok(bytes), Some(stall)) = (&open, &self.stall) {
            stall.record_opened(*bytes);
        }
        open
    }

    fn poll(
        &mut self,
        send: &mut SendStream<Chunk>,
        body: &Body,
        worker: &Worker,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Reason>> {
        if send.poll_reset(cx).is_ready() || self.stall.as_ref().is_some_and(|stall| stall.is_expired()) {
            return Poll::Ready(Err(Reason::CANCEL));
        }
        // `poll_capacity` reports only new capacity, not capacity that is already assigned.
        let open = match send.capacity() {
            0 => send.poll_capacity(cx),
            open => Poll::Ready(Some(Ok(open))),
        };
        match open {
            Poll::Ready(Some(Ok(open))) => Poll::Ready(Ok(open)),
            Poll::Ready(_) => Poll::Ready(Err(Reason::CANCEL)),
            Poll::Pending => self.wait(body, worker, cx),
        }
    }

    fn wait(&mut self, body: &Body, worker: &Worker, cx: &mut Context<'_>) -> Poll<Result<usize, Reason>> {
        self.stall.get_or_insert_with(|| self.state.new_stall()).begin_wait(cx.waker());
        if self.charge.is_none() {
            self.charge = body.send_budget().charge_stalled(body.own_bytes());
        }
        match self.charge {
            Some(_) => Poll::Pending,
            None => {
                worker.report(ErrorCategory::Buffers, || "the buffers for slow clients are full".to_owned());
                Poll::Ready(Err(Reason::ENHANCE_YOUR_CALM))
            }
        }
    }
}
