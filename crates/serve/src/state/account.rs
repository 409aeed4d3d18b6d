//! Accounting of requests: metrics and access log, written when the response body ends.

use std::rc::Rc;
use std::time::{Instant, SystemTime};

use bytes::Buf;
use http::{HeaderValue, Method, StatusCode, Version, header, request};

use super::peer::Peer;
use super::worker::Worker;
use crate::conn::body_queue::BodyQueue;
use crate::conn::chunk::Chunk;
use crate::conn::deadlines::RequestGuard;
use crate::log::{AccessRecord, BodySource, ErrorCategory};

/// One request from its headers to the end of its response. When it is dropped, the request is
/// counted and logged.
pub(crate) struct RequestAccount {
    worker: Rc<Worker>,
    start: Instant,
    method: Method,
    /// The status of the response, once there is one.
    status: Option<StatusCode>,
    source: BodySource,
    sent: u64,
    line: Option<Box<LoggedRequest>>,
    /// Ends the request in the connection state when this account is dropped.
    _request_guard: RequestGuard,
}

/// The part of a request that the access log alone needs.
struct LoggedRequest {
    peer: Rc<Peer>,
    request: request::Parts,
    user: Option<Rc<str>>,
}

impl RequestAccount {
    /// Begins a request.
    pub(crate) fn new(worker: &Rc<Worker>, method: &Method, request_guard: RequestGuard) -> Self {
        worker.burst.begin();
        Self {
            worker: Rc::clone(worker),
            start: Instant::now(),
            method: method.clone(),
            status: None,
            source: BodySource::Other,
            sent: 0,
            line: None,
            _request_guard: request_guard,
        }
    }

    /// Records the response and the peer it goes to.
    pub(crate) fn set_response(
        &mut self,
        status: StatusCode,
        source: BodySource,
        peer: &Rc<Peer>,
        request: impl FnOnce() -> request::Parts,
        user: Option<Rc<str>>,
    ) {
        (self.status, self.source) = (Some(status), source);
        if self.worker.logger.borrow().is_some() {
            self.line = Some(Box::new(LoggedRequest { peer: Rc::clone(peer), request: request(), user }));
        }
    }

    /// Records that bytes of the body came from `source`.
    pub(crate) fn record_source(&mut self, source: BodySource) {
        self.source = match (self.source, source) {
            (BodySource::Other, source) => source,
            (BodySource::Hit | BodySource::Sendfile, BodySource::Pool)
            | (BodySource::Pool, BodySource::Hit | BodySource::Sendfile) => BodySource::Partial,
            (before, _) => before,
        };
    }

    /// Reports `trouble` in the error log.
    pub(crate) fn report(&self, trouble: ErrorCategory, message: impl FnOnce() -> String) {
        self.worker.report(trouble, message);
    }

    /// Returns the body queue of the worker.
    pub(crate) fn body_queue(&self) -> &BodyQueue {
        &self.worker.body_queue
    }

    /// Counts the bytes of `chunk`, which is about to be sent.
    pub(crate) fn record_sent(&mut self, chunk: &Chunk) {
        self.sent += chunk.remaining() as u64;
    }

    /// Returns the status to count. Without a response, the client has gone, or a panic ends the
    /// request.
    fn status(&self) -> StatusCode {
        match self.status {
            Some(status) => status,
            None if std::thread::panicking() => StatusCode::INTERNAL_SERVER_ERROR,
            None => StatusCode::OK,
        }
    }

    fn log(&self, line: &LoggedRequest) {
        let LoggedRequest { peer, request, user } = line;
        let field = |name| request.headers.get(name).map(HeaderValue::as_bytes);
        let target = request.uri.path_and_query().map_or("*", |target| target.as_str());
        let authority = request.uri.authority().map(|authority| authority.as_str().as_bytes());
        let record = AccessRecord {
            time: SystemTime::now(),
            peer: peer.address,
            user: user.as_deref(),
            method: self.method.as_str().as_bytes(),
            target: target.as_bytes(),
            version: version(request.version),
            host: authority.or(field(header::HOST)),
            status: self.status().as_u16(),
            bytes: self.sent,
            duration: self.start.elapsed(),
            referer: field(header::REFERER),
            agent: field(header::USER_AGENT),
            source: self.source,
            tls: peer.tls,
        };
        if let Some(logger) = &mut *self.worker.logger.borrow_mut() {
            logger.log(&record, self.worker.now());
        }
    }
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

impl Drop for RequestAccount {
    fn drop(&mut self) {
        self.worker.burst.end();
        if let Some(counters) = self.worker.counters() {
            let (status, took) = (self.status().as_u16(), self.start.elapsed());
            counters.record_request(&self.method, status, self.source, self.sent, took);
        }
        if let Some(line) = self.line.take() {
            self.log(&line);
        }
    }
}
