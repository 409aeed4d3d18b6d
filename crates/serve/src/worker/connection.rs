//! One connection of HTTP/1.1: hyper over a transport, ended in order when the server ends, and at
//! once when it takes too long.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use http::{Request, Response, request};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio_rustls::server::TlsStream;

use super::redirect::to_https;
use super::{Peer, Tally, Worker};
use crate::answer::answer;
use crate::body::Body;
use crate::conn::pulse::{Busy, Order, Pulse};
use crate::conn::transport::Transport;

/// hyper's own minimum is 8 KiB; for bodies it is what is gathered before it is written.
const BUFFER_BYTES_MIN: usize = 64 << 10;

/// Why a connection is not run any more.
enum Ended<T> {
    /// It was told to be put away, and can be.
    Parked,
    /// It was told to end at once.
    Closed,
    /// It is over.
    Done(T),
}

/// Runs `connection` as its pulse is told. `drain` tells it to end after what is under way.
async fn supervise<C: Future + Unpin>(
    connection: &mut C,
    pulse: &Pulse,
    drain: fn(Pin<&mut C>),
) -> Ended<C::Output> {
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
            Order::Close => return Poll::Ready(Ended::Closed),
        }
        if let Poll::Ready(done) = Pin::new(&mut *connection).poll(cx) {
            return Poll::Ready(Ended::Done(done));
        }
        if order == Order::Park && pulse.is_idle() { Poll::Ready(Ended::Parked) } else { Poll::Pending }
    })
    .await
}

/// Runs `future`; returns `None` if the connection is ordered to drain or to close first.
pub(super) async fn unless_ended<F: Future>(pulse: &Pulse, future: F) -> Option<F::Output> {
    unless(pulse, Order::Drain, future).await
}

/// Runs `future`; returns `None` if the connection is ordered to close first.
pub(super) async fn until_closed<F: Future>(pulse: &Pulse, future: F) -> Option<F::Output> {
    unless(pulse, Order::Close, future).await
}

/// Runs `future`; returns `None` if the connection receives `order` or a stronger order first.
async fn unless<F: Future>(pulse: &Pulse, order: Order, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| match pulse.order(cx.waker()) >= order {
        true => Poll::Ready(None),
        false => future.as_mut().poll(cx).map(Some),
    })
    .await
}

/// How hyper gets at the worker for each request of a connection.
macro_rules! service {
    ($worker:expr, $peer:expr, $pulse:expr) => {{
        let (worker, peer, pulse) = (Rc::clone(&$worker), Rc::clone(&$peer), Rc::clone(&$pulse));
        service_fn(move |request: Request<Incoming>| {
            pulse.set_body(!request.body().is_end_stream());
            reply(Rc::clone(&worker), Rc::clone(&peer), pulse.request(), request.into_parts().0, true)
        })
    }};
}

fn http1(worker: &Worker) -> http1::Builder {
    let limits = &worker.plan().limits;
    let mut builder = http1::Builder::new();
    builder.max_headers(limits.headers).max_header_size(limits.header_bytes);
    builder.max_buf_size(limits.header_bytes.max(BUFFER_BYTES_MIN));
    // Who has sent all requests may say so, and still wants the responses.
    builder.half_close(true);
    // Clients that compare the case of names, which they must not, expect the usual one.
    builder.title_case_headers(true);
    builder
}

/// Serves an unencrypted connection of HTTP/1.1 to its end. While it is idle, hyper and its
/// buffers, which are most of what a connection takes, are put away.
pub(super) async fn serve(worker: Rc<Worker>, mut transport: Transport, peer: Rc<Peer>, pulse: Rc<Pulse>) {
    loop {
        let service = service!(worker, peer, pulse);
        let mut connection = Box::new(http1(&worker).serve_connection(TokioIo::new(transport), service));
        let ended = supervise(&mut *connection, &pulse, |connection| connection.graceful_shutdown()).await;
        let parts = connection.into_parts();
        transport = parts.io.into_inner();
        match ended {
            Ended::Closed => return,
            Ended::Done(done) => {
                let unread = (&parts.read_buf[..], transport);
                return Box::pin(finish(&worker, &peer, &pulse, done, unread)).await;
            }
            Ended::Parked => {}
        }
        pulse.parked();
        transport.put_back(parts.read_buf);
        if !matches!(unless_ended(&pulse, transport.readable()).await, Some(Ok(()))) {
            return;
        }
    }
}

/// Serves an encrypted connection of HTTP/1.1 to its end.
pub(super) async fn serve_encrypted(
    worker: Rc<Worker>,
    stream: TlsStream<Transport>,
    peer: Rc<Peer>,
    pulse: Rc<Pulse>,
) {
    let service = service!(worker, peer, pulse);
    let mut connection = Box::new(http1(&worker).serve_connection(TokioIo::new(stream), service));
    let done = loop {
        match supervise(&mut *connection, &pulse, |connection| connection.graceful_shutdown()).await {
            Ended::Parked => pulse.parked(),
            Ended::Closed => return,
            Ended::Done(done) => break done,
        }
    };
    let parts = connection.into_parts();
    let (transport, _) = parts.io.into_inner().into_inner();
    finish(&worker, &peer, &pulse, done, (&parts.read_buf, transport)).await;
}

/// Does what is left to do when hyper is done with a connection: it does not tell anybody which
/// requests it refused, and leaves to others what a client still sends.
async fn finish(
    worker: &Worker,
    peer: &Peer,
    pulse: &Pulse,
    done: hyper::Result<()>,
    (head, transport): (&[u8], Transport),
) {
    let refused = done.err().filter(hyper::Error::is_parse);
    if let Some(error) = &refused {
        worker.refused(peer, head, if error.is_parse_too_large() { 431 } else { 400 });
    }
    if refused.is_some() || pulse.has_body() {
        linger(transport, pulse).await;
    }
}

/// Throws away what the client still sends, until it ends or has had its time: a socket that is
/// closed with unread bytes resets the connection, and a reset may reach the client before it has
/// read the response.
pub(super) async fn linger(transport: Transport, pulse: &Pulse) {
    pulse.lingers();
    until_closed(pulse, transport.discard()).await;
}

/// The response to `request`, which is logged and counted when its body has been sent. The body of
/// it that the client sends is not read. `reads_first`: it has the first piece of its own body.
pub(super) async fn reply(
    worker: Rc<Worker>,
    peer: Rc<Peer>,
    busy: Busy,
    request: request::Parts,
    reads_first: bool,
) -> Result<Response<Body>, Infallible> {
    let mut tally = Tally::new(&worker, &request.method, busy);
    let peer = worker.peer_of(peer, &request.headers);
    let (plan, user) = (worker.plan(), OnceCell::new());
    let answer = match peer.redirect {
        Some(port) => to_https(&request.uri, &request.headers, port),
        None => answer(&worker, &peer, &plan, &request, &user).await,
    };
    let user = user.into_inner().or_else(|| peer.name.clone());
    tally.answered((answer.status, answer.source), &peer, || request, user);
    let mut response = Response::new(Body::new(answer.content, peer.outbox.clone(), tally));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.fields;
    #[cfg(feature = "http3")]
    if let Some(service) = &peer.alt_svc {
        // The site's own rule comes first: behind a mapping of ports the port is another.
        response.headers_mut().entry(http::header::ALT_SVC).or_insert_with(|| service.clone());
    }
    if reads_first {
        response.body_mut().begin().await;
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
        let bytes = bytes_of(reply);
        assert!(bytes <= 2336, "{bytes} bytes, of which each connection has one");
    }
}
