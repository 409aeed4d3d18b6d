//! One connection: hyper over a transport, ended in order when the server ends, and at once when it takes too long.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;

use super::redirect::to_https;
use super::{Peer, Tally, Worker};
use crate::answer::answer;
use crate::body::Body;
use crate::conn::pulse::{Busy, Order, Pulse};
use crate::conn::transport::Transport;

/// hyper's own minimum is 8 KiB; for bodies it is what is gathered before it is written.
const BUFFER_BYTES_MIN: usize = 64 << 10;

/// Protocols a client may have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// hyper's tasks are those of this thread.
#[derive(Clone, Copy, Debug)]
struct Here;

impl<F: Future<Output = ()> + 'static> Executor<F> for Here {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}

/// Runs `connection` as its pulse is told. `drain` tells it to end after what is under way. When it is to be parked and can be, it
/// is left as it is; whether that was so.
async fn supervise<C: Future + Unpin>(connection: &mut C, pulse: &Pulse, drain: fn(Pin<&mut C>)) -> bool {
    let mut drain = Some(drain);
    poll_fn(|cx| {
        let order = pulse.order(cx.waker());
        match order {
            Order::Serve | Order::Park => {}
            Order::Drain => {
                if let Some(drain) = drain.take() {
                    drain(Pin::new(connection));
                }
            }
            Order::Close => return Poll::Ready(false),
        }
        // What ended it is the client's affair: there is nobody to tell.
        if Pin::new(&mut *connection).poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        if order == Order::Park && pulse.is_idle() { Poll::Ready(true) } else { Poll::Pending }
    })
    .await
}

/// What comes of `future`, unless the connection is told to end before.
pub(super) async fn unless_ended<F: Future>(pulse: &Pulse, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match pulse.order(cx.waker()) {
        Order::Serve | Order::Park => future.as_mut().poll(cx).map(Some),
        Order::Drain | Order::Close => Poll::Ready(None),
    })
    .await
}

/// How hyper gets at the worker for each request of a connection.
macro_rules! service {
    ($worker:expr, $peer:expr, $pulse:expr) => {{
        let (worker, peer, pulse) = (Rc::clone(&$worker), Rc::clone(&$peer), Rc::clone(&$pulse));
        service_fn(move |request| respond(Rc::clone(&worker), Rc::clone(&peer), pulse.request(), request))
    }};
}

fn http1(worker: &Worker) -> http1::Builder {
    let limits = &worker.plan().limits;
    let mut builder = http1::Builder::new();
    builder.max_headers(limits.headers).max_header_size(limits.header_bytes);
    builder.max_buf_size(limits.header_bytes.max(BUFFER_BYTES_MIN));
    // Who has sent all requests may say so, and still wants the responses.
    builder.half_close(true);
    builder
}

/// Serves an unencrypted connection to its end. While it is idle, hyper and its buffers, which are most of what a connection takes,
/// are put away.
pub(super) async fn serve(worker: Rc<Worker>, mut transport: Transport, peer: Peer, pulse: Rc<Pulse>) {
    let peer = Rc::new(peer);
    loop {
        let service = service!(worker, peer, pulse);
        let mut connection = Box::new(http1(&worker).serve_connection(TokioIo::new(transport), service));
        if !supervise(&mut *connection, &pulse, |connection| connection.graceful_shutdown()).await {
            return;
        }
        pulse.parked();
        let parts = connection.into_parts();
        transport = parts.io.into_inner();
        transport.put_back(parts.read_buf);
        if !matches!(unless_ended(&pulse, transport.readable()).await, Some(Ok(()))) {
            return;
        }
    }
}

/// Serves an encrypted connection to its end.
pub(super) async fn serve_encrypted<I>(
    worker: Rc<Worker>,
    io: I,
    peer: Peer,
    pulse: Rc<Pulse>,
    protocol: Protocol,
) where
    I: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let (peer, io) = (Rc::new(peer), TokioIo::new(io));
    let service = service!(worker, peer, pulse);
    match protocol {
        Protocol::Http1 => {
            let mut connection = Box::new(http1(&worker).serve_connection(io, service));
            while supervise(&mut *connection, &pulse, |connection| connection.graceful_shutdown()).await {
                pulse.parked();
            }
        }
        Protocol::Http2 => {
            let limits = worker.plan().limits.clone();
            let mut builder = http2::Builder::new(Here);
            builder.max_concurrent_streams(limits.streams);
            builder.max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX));
            let mut connection = Box::new(builder.serve_connection(io, service));
            while supervise(&mut *connection, &pulse, |connection| connection.graceful_shutdown()).await {
                pulse.parked();
            }
        }
    }
}

async fn respond(
    worker: Rc<Worker>,
    peer: Rc<Peer>,
    busy: Busy,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    // What a client sends along is not read.
    let (request, _body) = request.into_parts();
    let mut tally = Tally::new(&worker, &request.method, busy);
    let (plan, mut user) = (worker.plan(), None);
    let answer = match peer.redirect {
        Some(port) => to_https(&request.uri, &request.headers, port),
        None => answer(&worker, &peer, &plan, &request, &mut user).await,
    };
    tally.answered((answer.status, answer.source), &peer, || request, user);
    let mut response = Response::new(Body::new(answer.content, tally));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.fields;
    response.body_mut().begin().await;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of<A, B, C, D, R>(_future: impl Fn(A, B, C, D) -> R) -> usize {
        size_of::<R>()
    }

    #[test]
    fn a_request_takes_little_memory() {
        let bytes = bytes_of(respond);
        assert!(bytes <= 2336, "{bytes} bytes, of which each connection has one");
    }
}
