//! A connection of HTTP/3: its request streams and its end.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use h3::error::Code;
use h3::frame::FrameStream;
use h3::server;
use h3::stream::BufRecvStream;
use tokio::task::spawn_local;

use super::quic::QuicConnection;
use super::request::{StreamContext, serve_request};
use super::streams::{QuicBidiStream, code};
use crate::conn::deadlines::{ConnectionCommand, ConnectionState};
use crate::state::{Peer, Worker};
use crate::worker::connection::{unless_closed, unless_draining};

/// The most requests of one connection over its life; the connection then drains and the client
/// opens another. The library keeps a little memory for each stream that ends without a request.
const REQUESTS_MAX: usize = 1000;

/// The next event of a connection.
enum ConnectionEvent {
    /// A request stream of the client.
    Request(Box<QuicBidiStream>),
    /// The connection is to accept no more requests.
    Drain,
    /// The connection has ended or is to close.
    End,
}

/// Serves `connection` to its end.
pub(super) async fn serve(
    worker: Rc<Worker>,
    connection: quinn::Connection,
    peer: Rc<Peer>,
    state: Rc<ConnectionState>,
) {
    let header_bytes = worker.plan().limits.header_bytes;
    let mut builder = server::builder();
    builder.max_field_section_size(header_bytes as u64).send_grease(false);
    let quic = QuicConnection::new(connection.clone(), header_bytes);
    if let Some(Ok(requests)) = unless_draining(&state, builder.build(quic)).await {
        state.set_multiplexed();
        take_requests(requests, Rc::new(StreamContext { worker, peer, state })).await;
    }
    // This ends the streams under way as well.
    connection.close(code(Code::H3_NO_ERROR), b"");
}

async fn take_requests(mut requests: server::Connection<QuicConnection, Bytes>, shared: Rc<StreamContext>) {
    let (mut left, mut is_draining) = (REQUESTS_MAX, false);
    loop {
        match next(&mut requests, &shared.state, left == 0 && !is_draining, is_draining).await {
            ConnectionEvent::Request(stream) => {
                left = left.saturating_sub(1);
                let send = stream.send_half();
                let resolver = requests.create_resolver(FrameStream::new(BufRecvStream::new(*stream)));
                let request = serve_request(Rc::clone(&shared), resolver, send);
                let state = Rc::clone(&shared.state);
                spawn_local(shared.worker.contain("a connection", request, move || state.close()));
            }
            ConnectionEvent::Drain => {
                is_draining = true;
                // GOAWAY carries the first stream that is not served (RFC 9114, section 5.2). The
                // library counts from the last accepted stream, so this is the next one.
                if !matches!(unless_closed(&shared.state, requests.shutdown(1)).await, Some(Ok(()))) {
                    return;
                }
            }
            ConnectionEvent::End => return,
        }
    }
}

/// Waits for the next event. `is_full`: the connection has had [`REQUESTS_MAX`] requests.
async fn next(
    requests: &mut server::Connection<QuicConnection, Bytes>,
    state: &ConnectionState,
    is_full: bool,
    is_draining: bool,
) -> ConnectionEvent {
    poll_fn(|cx| {
        match state.command(cx.waker()) {
            ConnectionCommand::Serve => {}
            ConnectionCommand::Park => state.set_parked(),
            ConnectionCommand::Drain if is_draining => {}
            ConnectionCommand::Drain => return Poll::Ready(ConnectionEvent::Drain),
            ConnectionCommand::Close => return Poll::Ready(ConnectionEvent::End),
        }
        if is_full {
            return Poll::Ready(ConnectionEvent::Drain);
        }
        match requests.poll_accept_request_stream(cx) {
            Poll::Ready(Ok(Some(stream))) => Poll::Ready(ConnectionEvent::Request(Box::new(stream))),
            // The client makes no more requests, but may not have the last responses yet. Either
            // the client closes the connection, or the idle timeout does.
            Poll::Ready(Ok(None)) | Poll::Pending => Poll::Pending,
            Poll::Ready(Err(_)) => Poll::Ready(ConnectionEvent::End),
        }
    })
    .await
}
