//! What is counted and logged of a request, which is known when its body ends.

use std::rc::Rc;
use std::time::{Instant, SystemTime};

use bytes::Buf;
use http::{HeaderValue, Method, StatusCode, Version, header, request};

use super::{Peer, Worker};
use crate::conn::chunk::Chunk;
use crate::conn::pulse::Busy;
use crate::conn::turns::Turns;
use crate::log::{Record, Source};

/// One request, from its headers to the end of its response. When it is dropped, the request is counted and logged.
pub(crate) struct Tally {
    worker: Rc<Worker>,
    start: Instant,
    method: Method,
    status: StatusCode,
    source: Source,
    sent: u64,
    line: Option<Box<Line>>,
    /// Ends with the request, as the connection's clock sees it.
    _busy: Busy,
}

/// What only the log wants to know.
struct Line {
    time: SystemTime,
    peer: Rc<Peer>,
    request: request::Parts,
    user: Option<Rc<str>>,
}

impl Tally {
    /// A request begins.
    pub(crate) fn new(worker: &Rc<Worker>, method: &Method, busy: Busy) -> Self {
        worker.load.begin();
        Self {
            worker: Rc::clone(worker),
            start: Instant::now(),
            method: method.clone(),
            status: StatusCode::OK,
            source: Source::Other,
            sent: 0,
            line: None,
            _busy: busy,
        }
    }

    /// What is answered, and to whom.
    pub(crate) fn answered(
        &mut self,
        (status, source): (StatusCode, Source),
        peer: &Rc<Peer>,
        request: impl FnOnce() -> request::Parts,
        user: Option<Rc<str>>,
    ) {
        (self.status, self.source) = (status, source);
        if self.worker.logger.borrow().is_some() {
            let time = SystemTime::now() - self.start.elapsed();
            self.line = Some(Box::new(Line { time, peer: Rc::clone(peer), request: request(), user }));
        }
    }

    /// Bytes of the body came from `source`.
    pub(crate) fn came_from(&mut self, source: Source) {
        self.source = match (self.source, source) {
            (Source::Other, source) => source,
            (Source::Hit | Source::Sendfile, Source::Pool)
            | (Source::Pool, Source::Hit | Source::Sendfile) => Source::Partial,
            (before, _) => before,
        };
    }

    /// When its worker lets long bodies go on.
    pub(crate) fn turns(&self) -> &Turns {
        &self.worker.turns
    }

    /// `chunk` is on its way.
    pub(crate) fn sends(&mut self, chunk: &Chunk) {
        self.sent += chunk.remaining() as u64;
    }

    fn log(&self, line: &Line) {
        let Line { time, peer, request, user } = line;
        let field = |name| request.headers.get(name).map(HeaderValue::as_bytes);
        let target = request.uri.path_and_query().map_or("*", |target| target.as_str());
        let authority = request.uri.authority().map(|authority| authority.as_str().as_bytes());
        let record = Record {
            time: *time,
            peer: peer.address,
            user: user.as_deref(),
            method: self.method.as_str().as_bytes(),
            target: target.as_bytes(),
            version: version(request.version),
            host: authority.or(field(header::HOST)),
            status: self.status.as_u16(),
            bytes: self.sent,
            duration: self.start.elapsed(),
            referer: field(header::REFERER),
            agent: field(header::USER_AGENT),
            source: self.source,
            tls: peer.tls,
        };
        if let Some(logger) = &mut *self.worker.logger.borrow_mut() {
            logger.log(&record, Instant::now());
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

impl Drop for Tally {
    fn drop(&mut self) {
        self.worker.load.end();
        if let Some(counters) = self.worker.counters() {
            let (status, took) = (self.status.as_u16(), self.start.elapsed());
            counters.request(&self.method, status, self.source, self.sent, took);
        }
        if let Some(line) = self.line.take() {
            self.log(&line);
        }
    }
}
