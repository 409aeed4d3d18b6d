//! HTTP/2 on a connection: each stream reads as much of its file as its window and the connection
//! take, and no more. So a stream whose client opens no window holds no buffer, and its wait has an
//! end.
//!
//! Owns: streams and their windows. Does not own: frames (`h2`), what is answered.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body::Body as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::connection::{reply, unless_ended};
use super::{Peer, Worker};
use crate::body::Body;
use crate::config::Limits;
use crate::conn::chunk::Chunk;
use crate::conn::outbox::Hold;
use crate::conn::pulse::{Busy, Order, Pulse};
use crate::conn::stall::Stall;
use crate::files::POOL_BYTES;
use crate::log::Trouble;

/// Most bytes that a stream reads ahead of the socket.
const AHEAD_BYTES: usize = POOL_BYTES as usize;
/// Headers about the connection, which a response of HTTP/2 must not have (RFC 9113, section
/// 8.2.2).
const OF_CONNECTIONS: [HeaderName; 6] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Serves a connection of HTTP/2 to its end.
pub(super) async fn serve<I>(worker: Rc<Worker>, io: I, peer: Rc<Peer>, pulse: Rc<Pulse>)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let handshake = builder(&worker.plan().limits).handshake::<_, Chunk>(io);
    let Some(Ok(mut connection)) = unless_ended(&pulse, handshake).await else { return };
    pulse.multiplexes();
    let mut drains = false;
    poll_fn(|cx| {
        match pulse.order(cx.waker()) {
            Order::Serve => {}
            Order::Park => pulse.parked(),
            Order::Drain if drains => {}
            Order::Drain => {
                drains = true;
                connection.graceful_shutdown();
            }
            Order::Close => return Poll::Ready(()),
        }
        // A connection error comes from the client and ends the loop without a report.
        while let Some(Ok((request, reply))) = ready!(connection.poll_accept(cx)) {
            let (worker, peer, busy) = (Rc::clone(&worker), Rc::clone(&peer), pulse.request());
            spawn_local(stream(worker, peer, Rc::clone(&pulse), busy, request, reply));
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

/// One request and its response.
async fn stream(
    worker: Rc<Worker>,
    peer: Rc<Peer>,
    pulse: Rc<Pulse>,
    busy: Busy,
    request: Request<RecvStream>,
    mut respond: SendResponse<Chunk>,
) {
    let (request, unread) = request.into_parts();
    // On the heap, and given back before the body is sent: it is much larger than what sending
    // takes.
    let response = Box::pin(reply(Rc::clone(&worker), peer, busy, request, false));
    let Some(Ok(response)) = unless_reset(|cx| respond.poll_reset(cx), response).await else { return };
    let (mut head, mut body) = response.into_parts();
    dress(&mut head.headers, &body, &worker);
    let ends = body.is_end_stream();
    match respond.send_response(Response::from_parts(head, ()), ends) {
        Ok(send) if ends => finish(send, unread, &worker).await,
        Ok(mut send) => {
            let mut window = Window { pulse, stall: None, hold: None };
            match send_body(&mut send, &mut body, &mut window, &worker).await {
                Ok(()) => {
                    // The request has ended, as the log and the connection's clock see it.
                    drop((body, window));
                    finish(send, unread, &worker).await;
                }
                Err(reason) => send.send_reset(reason),
            }
        }
        Err(_) => respond.send_reset(Reason::INTERNAL_ERROR),
    }
}

/// Throws away what the client still sends with its request, until it ends or has had its time: a
/// stream that is given up before that is reset, which some clients take for a failure though they
/// have the response.
async fn finish(_send: SendStream<Chunk>, unread: RecvStream, worker: &Worker) {
    if !unread.is_end_stream() {
        let time = worker.plan().deadlines.headers;
        // Boxed: few requests have a body.
        let _ended = Box::pin(timeout(time, discard(unread))).await;
    }
}

async fn discard(mut body: RecvStream) {
    while let Some(Ok(bytes)) = body.data().await {
        // A connection that is gone has no window.
        let _gone = body.flow_control().release_capacity(bytes.len());
    }
}

/// Adds the headers that HTTP/2 and HTTP/3 leave to the server, and removes those that they do not
/// have.
pub(super) fn dress(fields: &mut HeaderMap, body: &Body, worker: &Worker) {
    for name in OF_CONNECTIONS {
        fields.remove(name);
    }
    if let Some(date) = worker.clock.now() {
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

/// Sends all of `body`, or fails with the reason that is to be told.
async fn send_body(
    send: &mut SendStream<Chunk>,
    body: &mut Body,
    window: &mut Window,
    worker: &Worker,
) -> Result<(), Reason> {
    loop {
        let left = usize::try_from(body.left()).unwrap_or(usize::MAX);
        send.reserve_capacity(left.min(AHEAD_BYTES));
        let open = window.open(send, body, worker).await?;
        let piece = poll_fn(|cx| body.poll_piece(open, cx));
        let piece = unless_reset(|cx| send.poll_reset(cx), piece).await.flatten();
        let chunk = match piece {
            Some(Ok(chunk)) => chunk,
            // A body of unknown length has ended: an empty DATA frame carries END_STREAM.
            None if body.is_end_stream() => Chunk::Bytes { bytes: Bytes::new(), _load: None },
            Some(Err(_)) | None => return Err(Reason::INTERNAL_ERROR),
        };
        let ends = body.is_end_stream();
        send.send_data(chunk, ends).map_err(|_closed| Reason::CANCEL)?;
        if ends {
            return Ok(());
        }
    }
}

/// The state of a stream that sends within its flow-control window.
struct Window {
    pulse: Rc<Pulse>,
    /// From the first wait on.
    stall: Option<Rc<Stall>>,
    /// While it waits.
    hold: Option<Hold>,
}

impl Window {
    /// Bytes that the windows of stream and connection take now.
    async fn open(
        &mut self,
        send: &mut SendStream<Chunk>,
        body: &Body,
        worker: &Worker,
    ) -> Result<usize, Reason> {
        let open = poll_fn(|cx| self.poll(send, body, worker, cx)).await;
        self.hold = None;
        if let (Ok(bytes), Some(stall)) = (&open, &self.stall) {
            stall.opened(*bytes);
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
        if send.poll_reset(cx).is_ready() || self.stall.as_ref().is_some_and(|stall| stall.is_over()) {
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
        self.stall.get_or_insert_with(|| self.pulse.stall()).waits(cx.waker());
        if self.hold.is_none() {
            self.hold = body.outbox().hold(body.own_bytes());
        }
        match self.hold {
            Some(_) => Poll::Pending,
            None => {
                worker.report(Trouble::Buffers, || {
                    "more responses wait for their clients than buffers hold".to_owned()
                });
                Poll::Ready(Err(Reason::ENHANCE_YOUR_CALM))
            }
        }
    }
}
