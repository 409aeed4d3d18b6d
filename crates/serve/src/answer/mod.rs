//! From a request to its response.
//!
//! ```text
//! host ─> site ─> limits, health ─> CORS, address, rate ─> maintenance ─> users, denied paths ─> redirects, rewrites ─> file | directory | nothing
//! ```
//! Owns: the order of these steps, and which status comes of them. Does not own: what headers mean (`conditional`, `range`, ...), rules,
//! how files are read.

mod archive;
mod clean;
mod directory;
mod file;
mod listings;
pub(crate) mod made;
mod nothing;
mod shown;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use fathom_io::{Errno, FileType};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header, request};

use crate::asked::Asked;
use crate::auth::{Checker, Verdict};
use crate::body::Content;
use crate::error::cause;
use crate::files::pool::Resource;
use crate::files::{Failure, Opened, Source, is_forbidden};
use crate::log::Trouble;
use crate::metrics;
use crate::path::{Refusal, Target, hidden, is_below};
use crate::plan::{Plan, Site};
use crate::rules::maintenance::FLAG_AGE;
use crate::worker::{Peer, Worker};

pub(crate) use archive::ArchiveBody;
pub(crate) use clean::Clean;
pub(crate) use listings::Listings;
pub(crate) use made::Made;
pub(crate) use shown::Shown;

/// The methods there are.
const ALLOW: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// What is answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) content: Content,
    pub(crate) source: Source,
    /// Whether the content is made while it is sent, so that HEAD cannot tell its length either.
    pub(crate) has_unknown_length: bool,
}

impl Answer {
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self {
            status,
            fields: HeaderMap::new(),
            content: Content::Empty,
            source: Source::Other,
            has_unknown_length: false,
        }
    }

    pub(crate) fn bytes(status: StatusCode, content_type: HeaderValue, bytes: impl Into<Bytes>) -> Self {
        let mut answer = Self { content: Content::Bytes(bytes.into()), ..Self::empty(status) };
        answer.fields.insert(header::CONTENT_TYPE, content_type);
        answer
    }

    fn with(mut self, name: header::HeaderName, value: HeaderValue) -> Self {
        self.fields.insert(name, value);
        self
    }

    /// The same, said to depend on what the client can read (RFC 9110, section 12.5.5).
    fn by_accept(mut self) -> Self {
        let accept = HeaderValue::from_static("accept");
        if !self.fields.get_all(header::VARY).iter().any(|value| *value == accept) {
            self.fields.append(header::VARY, accept);
        }
        self
    }
}

/// A request, as the steps see it.
pub(crate) struct Asking<'a> {
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) peer: &'a Peer,
    pub(crate) plan: &'a Plan,
    /// The site, with its mounts.
    host: &'a Site,
    /// The site, or the mount of it that has the path.
    pub(crate) site: &'a Site,
    place: Place<'a>,
    pub(crate) request: &'a request::Parts,
    pub(crate) asked: &'a Asked<'a>,
    /// The authenticated user.
    user: &'a OnceCell<Rc<str>>,
}

/// What of the request's path is below the root of its site or mount.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// The decoded path without so many bytes.
    Below(usize),
    /// Nothing: the path is not below the base.
    Outside,
    /// A rewrite has led into another mount: this path.
    Rewritten(&'a [u8]),
}

/// Answers `request`. `user` is told who it is, once that is known.
pub(crate) async fn answer(
    worker: &Rc<Worker>,
    peer: &Peer,
    plan: &Plan,
    request: &request::Parts,
    user: &OnceCell<Rc<str>>,
) -> Answer {
    let asked = Asked::new(&request.headers);
    // The metrics are of all sites: another one's users, or its want of them, do not open them.
    let of_all = plan.metrics.as_deref() == Some(request.uri.path());
    let site =
        site(plan, request, &asked).and_then(|site| if of_all { plan.default_site() } else { Some(site) });
    let Some(host) = site else { return plain(StatusCode::BAD_REQUEST) };
    let (site, below) = if host.is_whole() || of_all {
        (host, Some(0))
    } else {
        host.of_request(request.uri.path().as_bytes())
    };
    let place = below.map_or(Place::Outside, Place::Below);
    let asking = Asking { worker, peer, plan, host, site, place, request, asked: &asked, user };
    let mut answer = asking.answer().await;
    if let Some(cors) = &site.rules.cors {
        cors.evaluate(&request.method, &request.headers, &mut answer.fields);
    }
    if request.method == Method::HEAD {
        // That of a 304 would have to be that of the 200 (RFC 9110, section 8.6).
        if answer.status != StatusCode::NOT_MODIFIED && !answer.has_unknown_length {
            answer.fields.insert(header::CONTENT_LENGTH, answer.content.len().into());
        }
        answer.content = Content::Empty;
    }
    // Others may see another end of such a body, and what follows as another request (RFC 9112, section 6.1).
    if request.headers.contains_key(header::TRANSFER_ENCODING) {
        answer.fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// The site of the request: HTTP/1.0 need not say which, HTTP/1.1 must (RFC 9112, section 3.2). None for other schemes' addresses.
fn site<'p>(plan: &'p Plan, request: &request::Parts, asked: &Asked<'_>) -> Option<&'p Site> {
    let is_ours = request.uri.scheme().is_none_or(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme));
    if asked.host_is_ambiguous || !is_ours {
        return None;
    }
    let authority = request.uri.authority().map(|authority| authority.as_str().as_bytes());
    match authority.or(asked.host.map(HeaderValue::as_bytes)) {
        Some(host) => plan.site(host),
        None if request.version == Version::HTTP_11 => None,
        None => plan.default_site(),
    }
}

/// A status without a page, for what is no request.
fn plain(status: StatusCode) -> Answer {
    let text = format!("{}\n", status.canonical_reason().unwrap_or("Error"));
    Answer::bytes(status, HeaderValue::from_static("text/plain; charset=utf-8"), text)
}

impl Asking<'_> {
    async fn answer(&self) -> Answer {
        if let Some(answer) = self.before_users() {
            return self.dressed(answer, &self.path());
        }
        if self.is_in_maintenance() {
            return Box::pin(self.maintenance()).await;
        }
        if self.is_guarded()
            && let Err(refusal) = Box::pin(self.guard(&self.path())).await
        {
            return refusal;
        }
        if self.plan.metrics.as_deref() == Some(self.request.uri.path()) {
            return Box::pin(self.metrics()).await;
        }
        self.resource().await
    }

    /// The metrics are of all sites: a path without a password does not open them.
    async fn metrics(&self) -> Answer {
        if let Some(checker) = &self.site.auth
            && let Err(refusal) = self.user(checker).await
        {
            return refusal;
        }
        let text = self.worker.metrics();
        let answer = Answer::bytes(StatusCode::OK, HeaderValue::from_static(metrics::CONTENT_TYPE), text);
        self.dressed(answer, &self.path())
    }

    /// Whether the client may have `path`, as far as the site's rules say: a refusal if not. Asked
    /// for the request's path, and again for each other path that a rewrite, an index or a suffix
    /// makes of it.
    pub(super) async fn guard(&self, path: &[u8]) -> Result<(), Answer> {
        if let Some(checker) = &self.site.auth {
            let who = checker.who(path);
            if !who.is_everybody() {
                let user = Box::pin(self.user(checker)).await?;
                if !who.includes(&user) {
                    return Err(Box::pin(self.error(StatusCode::FORBIDDEN)).await);
                }
            }
        }
        let access = &self.site.rules.access;
        if access.denies(path) {
            return Err(Box::pin(self.error(StatusCode::FORBIDDEN)).await);
        }
        if access.hides(path) {
            return Err(Box::pin(self.nothing(path)).await);
        }
        Ok(())
    }

    /// Whether [`Asking::guard`] refuses any path: most sites are open, and every request asks.
    fn is_guarded(&self) -> bool {
        self.site.auth.is_some() || !self.site.rules.access.is_open()
    }

    /// What is the same for everybody.
    fn before_users(&self) -> Option<Answer> {
        let (method, limits) = (&self.request.method, &self.plan.limits);
        let target = self.request.uri.path_and_query().map_or(0, |target| target.as_str().len());
        if target > limits.target_bytes {
            return Some(plain(StatusCode::URI_TOO_LONG));
        }
        if self.body_bytes() > limits.body_bytes {
            let close = HeaderValue::from_static("close");
            return Some(plain(StatusCode::PAYLOAD_TOO_LARGE).with(header::CONNECTION, close));
        }
        let is_health = self.plan.health.as_deref() == Some(self.request.uri.path());
        if let Some(refusal) = self.by_address().filter(|_| !is_health) {
            return Some(refusal);
        }
        match *method {
            Method::GET | Method::HEAD => is_health.then(|| self.health()),
            Method::OPTIONS => Some(Answer::empty(StatusCode::NO_CONTENT).with(header::ALLOW, ALLOW)),
            _ => Some(plain(StatusCode::METHOD_NOT_ALLOWED).with(header::ALLOW, ALLOW)),
        }
    }

    /// The refusal of a client whose address the site does not admit, or whose requests come too
    /// fast.
    fn by_address(&self) -> Option<Answer> {
        if !self.is_admitted() {
            return Some(plain(StatusCode::FORBIDDEN));
        }
        let (rate, address) = (self.plan.rate?, self.peer.address?.ip());
        let early = self.worker.shared.buckets.take(address, rate, Instant::now()).err()?;
        let after = HeaderValue::from(early.as_secs() + u64::from(early.subsec_nanos() > 0));
        Some(plain(StatusCode::TOO_MANY_REQUESTS).with(header::RETRY_AFTER, after))
    }

    fn is_admitted(&self) -> bool {
        self.site.rules.access.admits(self.peer.address.map(|address| address.ip()))
    }

    /// What the request says of its own body. One of unknown length ends with the connection.
    fn body_bytes(&self) -> u64 {
        let length = self.request.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        length.map_or(0, |length| length.parse().unwrap_or(u64::MAX))
    }

    fn health(&self) -> Answer {
        let status = if self.worker.is_leaving() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        plain(status).with(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))
    }

    fn is_in_maintenance(&self) -> bool {
        let maintenance = &self.site.rules.maintenance;
        let flagged = maintenance.flag_file().is_some_and(|file| self.worker.flags.is_there(file, FLAG_AGE));
        maintenance.is_on(flagged)
    }

    /// The authenticated user, or the response to a client that is not one.
    async fn user(&self, checker: &Checker) -> Result<Rc<str>, Answer> {
        if let Some(user) = self.user.get() {
            return Ok(Rc::clone(user));
        }
        let authorization = self.asked.authorization.map(HeaderValue::as_bytes);
        let user = match checker.begin(authorization) {
            Verdict::Known(user) => Some(user),
            Verdict::Missing | Verdict::Refused => None,
            Verdict::Verify(job) => {
                let verified = self.worker.files.pool.run(self.peer.client, Resource::Cpu, || job.run());
                match verified.await {
                    Ok(user) => user,
                    Err(busy) => return Err(self.failed(busy.into()).await),
                }
            }
        };
        match user {
            Some(user) => Ok(Rc::clone(self.user.get_or_init(|| Rc::from(&*user)))),
            None => {
                let challenge = checker.challenge().clone();
                let page = self.error(StatusCode::UNAUTHORIZED).await;
                Err(page.with(header::WWW_AUTHENTICATE, challenge))
            }
        }
    }

    async fn resource(&self) -> Answer {
        let target = match Target::parse(self.request.uri.path().as_bytes()) {
            Ok(target) => target,
            Err(Refusal::BadRequest) => return Box::pin(self.error(StatusCode::BAD_REQUEST)).await,
            Err(Refusal::NotFound) => return Box::pin(self.error(StatusCode::NOT_FOUND)).await,
        };
        let Place::Below(bytes) = self.place else {
            return Box::pin(self.error(StatusCode::NOT_FOUND)).await;
        };
        let target = target.skip(bytes);
        match self.route(&target) {
            Some(Routed::Elsewhere(status, location)) => {
                self.dressed(Answer::empty(status).with(header::LOCATION, location), &target.path)
            }
            Some(Routed::Rewritten(path, is_dir)) if is_below(&path) => {
                Box::pin(self.rewritten(&path, is_dir)).await
            }
            Some(Routed::Rewritten(..)) => Box::pin(self.error(StatusCode::NOT_FOUND)).await,
            None => self.target(&target.path, target.is_dir).await,
        }
    }

    /// The response for `path` below the base, which a rewrite has put in the place of the request's.
    /// The rules of a mount that it leads into are asked like those of the request's.
    async fn rewritten(&self, path: &[u8], is_dir: bool) -> Answer {
        let (site, skip) = self.host.of_path(path);
        let path = path.get(skip..).unwrap_or_default();
        let own = OnceCell::new();
        let mut asking = Asking { user: self.user, ..*self };
        if !std::ptr::eq(site, self.site) {
            // A user that other users' passwords have verified is nobody here.
            let is_known = self.user.get().is_some() && !shares_users(site, self.site);
            let user = if is_known { &own } else { self.user };
            asking = Asking { site, place: Place::Rewritten(path), user, ..asking };
            if !asking.is_admitted() {
                return asking.dressed(plain(StatusCode::FORBIDDEN), path);
            }
            if asking.is_in_maintenance() {
                return asking.maintenance().await;
            }
        }
        match asking.guard(path).await {
            Ok(()) => asking.target(path, is_dir).await,
            Err(refusal) => refusal,
        }
    }

    /// Where the site's rules send the request.
    fn route(&self, target: &Target<'_>) -> Option<Routed> {
        let rules = &self.site.rules;
        if rules.redirects.is_empty() && rules.rewrites.is_empty() {
            return None;
        }
        let slash: &[u8] = if target.is_dir && !target.path.is_empty() { b"/" } else { b"" };
        let path = [&self.site.below_base(&target.path), slash].concat();
        if let Some((status, location)) = rules.redirects.find(&path, self.request.uri.query()) {
            return Some(Routed::Elsewhere(status, location));
        }
        let path = rules.rewrites.find(&path)?;
        let path = path.strip_prefix(b"/").unwrap_or(&path);
        let file = path.strip_suffix(b"/");
        Some(Routed::Rewritten(file.unwrap_or(path).to_vec(), file.is_some() || path.is_empty()))
    }

    async fn target(&self, path: &[u8], is_dir: bool) -> Answer {
        if let Some(only) = &self.site.only {
            if path.is_empty() {
                // Another start may serve another file.
                return self.elsewhere(StatusCode::TEMPORARY_REDIRECT, path, only);
            }
            if path != only || is_dir {
                return Box::pin(self.nothing(path)).await;
            }
        } else if !self.site.dotfiles && hidden(path) {
            return Box::pin(self.nothing(path)).await;
        } else if is_dir {
            return Box::pin(self.directory(path)).await;
        } else if path.is_empty() {
            return self.to_directory(path);
        }
        let entry = match self.worker.look_up(self.site, path, self.peer.client).await {
            Ok(entry) => entry,
            Err(failure) => return Box::pin(self.failed(failure)).await,
        };
        match &entry.result {
            Ok(opened) => match opened.kind() {
                FileType::Regular => {
                    if self.site.clean.redirects
                        && let Some(way) = Box::pin(self.cleaned(path)).await
                    {
                        return way;
                    }
                    self.file(path, &entry, StatusCode::OK).await
                }
                FileType::Directory if self.site.only.is_none() => Box::pin(self.unslashed(path)).await,
                FileType::Directory => Box::pin(self.nothing(path)).await,
                _ => Box::pin(self.error(StatusCode::FORBIDDEN)).await,
            },
            Err(_) if is_unservable(&entry.result) => Box::pin(self.error(StatusCode::FORBIDDEN)).await,
            Err(_) => Box::pin(self.missing(path)).await,
        }
    }

    /// The response for a directory that was asked for without its slash.
    async fn unslashed(&self, path: &[u8]) -> Answer {
        match self.tried(path).await {
            Some(answer) => answer,
            None => self.to_directory(path),
        }
    }

    /// The response for a path that names nothing.
    async fn missing(&self, path: &[u8]) -> Answer {
        match self.tried(path).await {
            Some(answer) => answer,
            None => self.nothing(path).await,
        }
    }

    /// The response where a file cannot be had for a reason that is not the request's.
    pub(crate) async fn failed(&self, failure: Failure) -> Answer {
        self.report(failure);
        match status(failure) {
            StatusCode::SERVICE_UNAVAILABLE => {
                let soon = HeaderValue::from_static("1");
                let busy = plain(StatusCode::SERVICE_UNAVAILABLE).with(header::RETRY_AFTER, soon);
                self.dressed(busy, &self.path())
            }
            status => Box::pin(self.error(status)).await,
        }
    }

    /// Tells the error log of `failure`, unless it is part of everyday life.
    fn report(&self, failure: Failure) {
        let trouble = match failure {
            // `Followed::report` logs a root directory when it disappears and when it returns.
            Failure::Changed | Failure::NoRoot | Failure::System(Errno::AGAIN) => return,
            Failure::System(errno) if is_forbidden(errno) => return,
            Failure::Busy => Trouble::Pool,
            Failure::System(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => Trouble::Descriptors,
            Failure::System(_) => Trouble::Files,
        };
        self.worker.report(trouble, || {
            let path = self.site.below_base(&self.path());
            let path = String::from_utf8_lossy(path.strip_prefix(b"/").unwrap_or(&path)).into_owned();
            let cause = match failure {
                Failure::System(errno) => cause(&errno.into()),
                _ => "too much waits for the pool".to_owned(),
            };
            format!("cannot read '{path}': {cause}")
        });
    }

    /// `answer` with what the site's rules say for `path`.
    pub(crate) fn dressed(&self, mut answer: Answer, path: &[u8]) -> Answer {
        // Pages of our own have names on them that others chose: no rule is as strict as what they
        // need. The health check must never be answered by a cache.
        let is_own = |name: &HeaderName, value: &HeaderValue| {
            *name == header::CONTENT_SECURITY_POLICY
                || (*name == header::CACHE_CONTROL && *value == "no-store")
        };
        let own = answer.fields.iter().filter(|(name, value)| is_own(name, value));
        let own: Vec<_> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        made::apply(self.site, path, &mut answer.fields);
        own.into_iter().for_each(|(name, value)| drop(answer.fields.insert(name, value)));
        answer
    }

    /// The path of the request below the root of its site or mount, decoded as far as that goes.
    pub(crate) fn path(&self) -> Cow<'_, [u8]> {
        let parse = |bytes| Some(Target::parse(self.request.uri.path().as_bytes()).ok()?.skip(bytes).path);
        match self.place {
            Place::Below(bytes) => parse(bytes).unwrap_or_default(),
            Place::Outside => Cow::Borrowed(b""),
            Place::Rewritten(path) => Cow::Borrowed(path),
        }
    }
}

/// Whether a user of the one is one of the other.
fn shares_users(one: &Site, other: &Site) -> bool {
    one.auth.as_ref().zip(other.auth.as_ref()).is_some_and(|(one, other)| one.shares_users(other))
}

/// Returns whether a path leads to a file that exists and is never served: an unreadable file, or a
/// device, a pipe or a socket. Special files are refused whatever the server's user, so a server
/// that runs as root responds like a server that may not open them.
fn is_unservable(found: &Result<Opened, Errno>) -> bool {
    match found {
        Ok(opened) => !matches!(opened.kind(), FileType::Regular | FileType::Directory),
        Err(errno) => is_forbidden(*errno),
    }
}

/// Returns the status of a response to a request whose file cannot be had.
fn status(failure: Failure) -> StatusCode {
    match failure {
        Failure::Busy
        | Failure::Changed
        | Failure::NoRoot
        | Failure::System(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Failure::System(errno) if is_forbidden(errno) => StatusCode::FORBIDDEN,
        Failure::System(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Where rules send a request.
enum Routed {
    Elsewhere(StatusCode, HeaderValue),
    Rewritten(Vec<u8>, bool),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `EPERM` is the error of a device that a control group withholds.
    #[test]
    fn every_error_of_a_file_that_may_not_be_served_is_403() {
        for errno in [Errno::ACCESS, Errno::PERM, Errno::NXIO, Errno::NODEV] {
            assert!(is_unservable(&Err(errno)), "{errno}");
            assert_eq!(status(errno.into()), StatusCode::FORBIDDEN, "{errno}");
        }
        assert!(!is_unservable(&Err(Errno::NOENT)));
        assert_eq!(status(Errno::IO.into()), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(status(Errno::MFILE.into()), StatusCode::SERVICE_UNAVAILABLE);
    }
}
