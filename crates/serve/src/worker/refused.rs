//! Requests that never become one: what hyper's parser refuses, and plain requests where encrypted
//! ones are expected. They are logged and counted as others are.

use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use http::Method;
use tokio::io::AsyncWriteExt;

use super::connection::{linger, until_closed};
use super::{Peer, Worker};
use crate::conn::pulse::Pulse;
use crate::conn::transport::Transport;
use crate::log::{Record, Source};

/// Most bytes of a word that are logged.
const WORD_BYTES: usize = 1 << 10;
/// The response body for an unencrypted request on an encrypted port.
const PLAIN: &str = "This port takes encrypted requests only: use https.\n";

impl Worker {
    /// Logs and counts a request of which only `head` is known, and that was answered with
    /// `status`.
    pub(super) fn refused(&self, peer: &Peer, head: &[u8], status: u16) {
        let line = head.split(|byte| matches!(byte, b'\r' | b'\n')).find(|line| !line.is_empty());
        let mut words = line.unwrap_or_default().splitn(3, |byte| *byte == b' ').map(shortened);
        let [method, target, version] = [(); 3].map(|()| words.next().filter(|word| !word.is_empty()));
        let method = method.unwrap_or(b"-");
        if let Some(counters) = self.counters() {
            let method = Method::from_bytes(method).unwrap_or(Method::CONNECT);
            counters.request(&method, status, Source::Other, 0, Duration::ZERO);
        }
        let record = Record {
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
            source: Source::Other,
            tls: peer.tls,
        };
        if let Some(logger) = &mut *self.logger.borrow_mut() {
            logger.log(&record, Instant::now());
        }
    }
}

fn shortened(word: &[u8]) -> &[u8] {
    word.get(..WORD_BYTES).unwrap_or(word)
}

/// Answers a plain request on an encrypted port: a client that is told nothing shows its user a
/// broken connection.
pub(super) async fn answer_plain(worker: Rc<Worker>, mut transport: Transport, peer: &Peer, pulse: &Pulse) {
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        PLAIN.len()
    );
    worker.refused(peer, transport.seen(), 400);
    let answer = [head.as_bytes(), PLAIN.as_bytes()].concat();
    let sent = async {
        transport.write_all(&answer).await?;
        transport.shutdown().await
    };
    if let Some(Ok(())) = until_closed(pulse, sent).await {
        linger(transport, pulse).await;
    }
}
