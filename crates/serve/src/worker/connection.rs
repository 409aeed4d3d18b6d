//! One connection of HTTP/1.1: hyper over a transport, drained when the server ends, and closed
//! when it is past a deadline.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use fathom_io::fault::point;
use http::{Request, Response, request};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio_rustls::server::TlsStream;

use super::redirect::to_https;
use crate::answer::answer;
use crate::body::Body;
use crate::conn::deadlines::{ConnectionCommand, ConnectionState, RequestGuard};
use crate::conn::transport::Transport;
use crate::state::{Peer, RequestAccount, Worker};

/// The least buffer size: hyper requires 8 KiB, and gathers body bytes up to this size before a
/// write.
const BUFFER_BYTES_MIN: usize = 64 << 10;

/// The reason that a connection is no longer polled.
enum ConnectionEnd<T> {
    /// The connection was commanded to park and is idle.
    Parked,
    /// The connection was commanded to close.
    Closed,
    /// hyper has completed the connection.
    Done(T),
}

/// Polls `connection` and follows the commands of its state. `drain` makes the connection end after
/// the requests under way.
async fn supervise<C: Future + Unpin>(
    connection: &mut C,
    state: &ConnectionState,
    drain: fn(Pin<&mut C>),
) -> ConnectionEnd<C::Output> {
    let mut drain = Some(drain);
    poll_fn(|cx| {
        let order = state.command(cx.waker());
        match order {
            ConnectionCommand::Serve | ConnectionCommand::Park => {}
            ConnectionCommand::Drain => {
                if let Some(drain) = drain.take() {
                    drain(Pin::new(connection));
                }
            }
            ConnectionCommand::Close => return Poll::Ready(ConnectionEnd::Closed),
        }
        if let Poll::Ready(done) = Pin::new(&mut *connection).poll(cx) {
            return Poll::Ready(ConnectionEnd::Done(done));
        }
        if order == ConnectionCommand::Park && state.is_idle() {
            Poll::Ready(ConnectionEnd::Parked)
        } else {
            Poll::Pending
        }
    })
    .await
}

/// Runs `future`; returns `None` if the connection is commanded to drain or to close first.
pub(super) async fn unless_draining<F: Future>(state: &ConnectionState, future: F) -> Option<F::Output> {
    unless(state, ConnectionCommand::Drain, future).await
}

/// Runs `future`; returns `None` if the connection is commanded to close first.
pub(super) async fn unless_closed<F: Future>(state: &ConnectionState, future: F) -> Option<F::Output> {
    unless(state, ConnectionCommand::Close, future).await
}

/// Runs `future`; returns `None` if the connection receives `command` or a stronger command first.
async fn unless<F: Future>(
    state: &ConnectionState,
    command: ConnectionCommand,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match state.command(cx.waker()) >= command {
        true => Poll::Ready(None),
        false => future.as_mut().poll(cx).map(Some),
    })
    .await
}

/// The hyper service of a connection: a call of [`respond`] for each request.
macro_rules! service {
    ($worker:expr, $peer:expr, $state:expr) => {{
        let (worker, peer, state) = (Rc::clone(&$worker), Rc::clone(&$peer), Rc::clone(&$state));
        service_fn(move |request: Request<Incoming>| {
            state.set_body(!request.body().is_end_stream());
            respond(Rc::clone(&worker), Rc::clone(&peer), state.begin_request(), request.into_parts().0, true)
        })
    }};
}

fn http1(worker: &Worker) -> http1::Builder {
    let limits = &worker.plan().limits;
    let mut builder = http1::Builder::new();
    builder.max_headers(limits.headers).max_header_size(limits.header_bytes);
    builder.max_buf_size(limits.header_bytes.max(BUFFER_BYTES_MIN));
    // A client may shut down its sending side after the last request, and still wants the
    // responses.
    builder.half_close(true);
    // Some clients compare header names case-sensitively, against RFC 9110, and expect the usual
    // case.
    builder.title_case_headers(true);
    builder
}

/// Serves an unencrypted connection of HTTP/1.1 to its end. While the connection is parked, hyper
/// and its buffers, which are most of its memory, are freed.
pub(super) async fn serve(
    worker: Rc<Worker>,
    mut transport: Transport,
    peer: Rc<Peer>,
    state: Rc<ConnectionState>,
) {
    loop {
        // The box ends with this block. It lies between hyper's buffers: parked connections would
        // keep the pages of the buffers in use.
        let (ended, unread) = {
            let service = service!(worker, peer, state);
            let mut connection = Box::new(http1(&worker).serve_connection(TokioIo::new(transport), service));
            let ended =
                supervise(&mut *connection, &state, |connection| connection.graceful_shutdown()).await;
            let parts = connection.into_parts();
            transport = parts.io.into_inner();
            (ended, parts.read_buf)
        };
        match ended {
            ConnectionEnd::Closed => return,
            ConnectionEnd::Done(done) => {
                return Box::pin(finish(&worker, &peer, &state, done, &unread, transport)).await;
            }
            ConnectionEnd::Parked => {}
        }
        state.set_parked();
        transport.unread(unread);
        if !matches!(unless_draining(&state, transport.readable()).await, Some(Ok(()))) {
            return;
        }
    }
}

/// Serves an encrypted connection of HTTP/1.1 to its end.
pub(super) async fn serve_encrypted(
    worker: Rc<Worker>,
    stream: TlsStream<Transport>,
    peer: Rc<Peer>,
    state: Rc<ConnectionState>,
) {
    let service = service!(worker, peer, state);
    let mut connection = Box::new(http1(&worker).serve_connection(TokioIo::new(stream), service));
    let done = loop {
        match supervise(&mut *connection, &state, |connection| connection.graceful_shutdown()).await {
            ConnectionEnd::Parked => state.set_parked(),
            ConnectionEnd::Closed => return,
            ConnectionEnd::Done(done) => break done,
        }
    };
    let parts = connection.into_parts();
    let (transport, _) = parts.io.into_inner().into_inner();
    finish(&worker, &peer, &state, done, &parts.read_buf, transport).await;
}

/// Finishes a connection that hyper has completed: logs a request that hyper's parser refused, and
/// lingers if the client may still be sending.
async fn finish(
    worker: &Worker,
    peer: &Peer,
    state: &ConnectionState,
    done: hyper::Result<()>,
    head: &[u8],
    transport: Transport,
) {
    let refused = done.err().filter(hyper::Error::is_parse);
    if let Some(error) = &refused {
        worker.record_refused(peer, head, if error.is_parse_too_large() { 431 } else { 400 });
    }
    if refused.is_some() || state.has_body() {
        linger(transport, state).await;
    }
}

/// Discards input until the client ends it or the deadline passes. A socket that is closed with
/// unread input resets the connection, and the reset may reach the client before it has read the
/// response.
pub(super) async fn linger(transport: Transport, state: &ConnectionState) {
    state.begin_linger();
    unless_closed(state, transport.discard()).await;
}

/// Responds to `request`. The request is logged and counted when the response body has been sent.
/// The request body is not read. `prefetch`: wait for the first chunk of the response body.
pub(super) async fn respond(
    worker: Rc<Worker>,
    peer: Rc<Peer>,
    request_guard: RequestGuard,
    request: request::Parts,
    prefetch: bool,
) -> Result<Response<Body>, Infallible> {
    let mut account = RequestAccount::new(&worker, &request.method, request_guard);
    point("serve-answer");
    let peer = worker.peer_for_request(peer, &request.headers);
    let (plan, user) = (worker.plan(), OnceCell::new());
    let answer = match peer.redirect_port {
        Some(port) => to_https(&request.uri, &request.headers, port),
        None => answer(&worker, &peer, &plan, &request, &user).await,
    };
    let user = user.into_inner().or_else(|| peer.certificate_name.clone());
    account.set_response(answer.status, answer.source, &peer, || request, user);
    let mut response = Response::new(Body::new(answer.content, peer.send_budget.clone(), account));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.fields;
    #[cfg(feature = "http3")]
    if let Some(service) = &peer.alt_svc {
        // A rule of the site takes precedence: behind a port mapping the public port differs.
        response.headers_mut().entry(http::header::ALT_SVC).or_insert_with(|| service.clone());
    }
    if prefetch {
        response.body_mut().prefetch().await;
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of<A, B, C, D, E, R>(_future: impl Fn(A, B, C, D, E) -> R) -> usize {
        size_of::<R>()
    }

    #[test]
    fn a_request_takes_little_memory() {
        let bytes = bytes_of(respond);
        assert!(bytes <= 2336, "{bytes} bytes, of which each connection has one");
    }
}
