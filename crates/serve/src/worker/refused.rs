//! Requests that never reach the service: requests that hyper's parser refuses, and unencrypted
//! requests on an encrypted port. They are logged and counted like all others.

use std::rc::Rc;
use std::time::{Duration, SystemTime};

use http::Method;
use tokio::io::AsyncWriteExt;

use super::connection::{linger, unless_closed};
use crate::conn::deadlines::ConnectionState;
use crate::conn::transport::Transport;
use crate::log::{AccessRecord, BodySource};
use crate::state::{Peer, Worker};

/// The most bytes of a word of the request line that are logged.
const WORD_BYTES_MAX: usize = 1 << 10;
/// The response body for an unencrypted request on an encrypted port.
const PLAINTEXT_REFUSAL: &str = "This port requires TLS: use https.\n";

impl Worker {
    /// Logs and counts a request that was answered with `status` and of which only `head` is known.
    pub(super) fn record_refused(&self, peer: &Peer, head: &[u8], status: u16) {
        let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).find(|line| !line.is_empty());
        let mut words = line.unwrap_or_default().splitn(3, |byte| *byte == b' ').map(truncated);
        let [method, target, version] = [(); 3].map(|()| words.next().filter(|word| !word.is_empty()));
        let method = method.unwrap_or(b"-");
        if let Some(counters) = self.counters() {
            let method = Method::from_bytes(method).unwrap_or(Method::CONNECT);
            counters.record_request(&method, status, BodySource::Other, 0, Duration::ZERO);
        }
        let record = AccessRecord {
            time: SystemTime::now(),
            peer: peer.address,
            user: None,
            method,
            target: target.unwrap_or(b"-"),
            version: version.and_then(|word| std::str::from_utf8(word).ok()).unwrap_or("-"),
            host: None,
            status,
            bytes: 0,
            duration: Duration::ZERO,
            referer: None,
            agent: None,
            source: BodySource::Other,
            tls: peer.tls,
        };
        if let Some(logger) = &mut *self.logger.borrow_mut() {
            logger.log(&record, self.now());
        }
    }
}

fn truncated(word: &[u8]) -> &[u8] {
    word.get(..WORD_BYTES_MAX).unwrap_or(word)
}

/// Answers an unencrypted request on an encrypted port. Without a response, the browser would only
/// report a broken connection.
pub(super) async fn refuse_plaintext(
    worker: Rc<Worker>,
    mut transport: Transport,
    peer: &Peer,
    state: &ConnectionState,
) {
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        PLAINTEXT_REFUSAL.len()
    );
    worker.record_refused(peer, transport.read_ahead(), 400);
    let answer = [head.as_bytes(), PLAINTEXT_REFUSAL.as_bytes()].concat();
    let sent = async {
        transport.write_all(&answer).await?;
        transport.shutdown().await
    };
    if let Some(Ok(())) = unless_closed(state, sent).await {
        linger(transport, state).await;
    }
}
