//! One connection of HTTP/3: its streams, and its end.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use h3::error::Code;
use h3::frame::FrameStream;
use h3::server;
use h3::stream::BufRecvStream;
use tokio::task::spawn_local;

use super::exchange::{Exchange, code};
use super::quic::Quic;
use super::stream::{Shared, stream};
use crate::conn::pulse::{Order, Pulse};
use crate::conn::unacked::Unacked;
use crate::worker::connection::{unless_ended, until_closed};
use crate::worker::{Peer, Worker};

/// Requests on a connection, over its life: then its client makes another connection. The library
/// keeps a little for each stream that ends without a request.
const REQUESTS_MAX: usize = 1000;

/// The next event of a connection.
enum Next {
    /// A client's stream.
    Request(Box<Exchange>),
    /// To take no more of them.
    Drain,
    /// It is over.
    End,
}

/// Serves `connection` to its end.
pub(super) async fn serve(
    worker: Rc<Worker>,
    connection: quinn::Connection,
    peer: Rc<Peer>,
    pulse: Rc<Pulse>,
) {
    let header_bytes = worker.plan().limits.header_bytes;
    let mut builder = server::builder();
    builder.max_field_section_size(header_bytes as u64).send_grease(false);
    let quic = Quic::new(connection.clone(), header_bytes);
    if let Some(Ok(requests)) = unless_ended(&pulse, builder.build(quic)).await {
        pulse.multiplexes();
        let unacked = Unacked::new(Arc::clone(&worker.shared.send_budget));
        take_requests(requests, Rc::new(Shared { worker, peer, pulse, unacked })).await;
    }
    // Streams that are under way end with it.
    connection.close(code(Code::H3_NO_ERROR), b"");
}

async fn take_requests(mut requests: server::Connection<Quic, Bytes>, shared: Rc<Shared>) {
    let (mut left, mut drains) = (REQUESTS_MAX, false);
    loop {
        match next(&mut requests, &shared.pulse, left == 0 && !drains, drains).await {
            Next::Request(exchange) => {
                left = left.saturating_sub(1);
                let outlet = exchange.outlet();
                let resolver = requests.create_resolver(FrameStream::new(BufRecvStream::new(*exchange)));
                spawn_local(stream(Rc::clone(&shared), resolver, outlet));
            }
            Next::Drain => {
                drains = true;
                // GOAWAY has the first stream that is not served (RFC 9114, section 5.2): one after
                // the last, as the library counts from that.
                if !matches!(until_closed(&shared.pulse, requests.shutdown(1)).await, Some(Ok(()))) {
                    return;
                }
            }
            Next::End => return,
        }
    }
}

/// Waits for the next event. `is_full`: it has had all of its requests.
async fn next(
    requests: &mut server::Connection<Quic, Bytes>,
    pulse: &Pulse,
    is_full: bool,
    drains: bool,
) -> Next {
    poll_fn(|cx| {
        match pulse.order(cx.waker()) {
            Order::Serve => {}
            Order::Park => pulse.parked(),
            Order::Drain if drains => {}
            Order::Drain => return Poll::Ready(Next::Drain),
            Order::Close => return Poll::Ready(Next::End),
        }
        if is_full {
            return Poll::Ready(Next::Drain);
        }
        match requests.poll_accept_request_stream(cx) {
            Poll::Ready(Ok(Some(exchange))) => Poll::Ready(Next::Request(Box::new(exchange))),
            // The client makes no more requests. It may not have the last responses yet: it closes
            // the connection, or is closed when it has been idle.
            Poll::Ready(Ok(None)) | Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(Next::End),
        }
    })
    .await
}
