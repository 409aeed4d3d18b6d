//! From a request to its response.
//!
//! ```text
//! host ─> site ─> limits, health ─> CORS, address, rate ─> maintenance ─> users, denied paths
//!      ─> redirects, rewrites ─> file | directory | not found
//! ```
//! Owns: the order of these steps, and the status that each leads to. Does not own: the meaning of
//! headers (`conditional`, `range`, ...), rules, reading files.

mod access;
mod archive;
mod clean_urls;
mod directory;
mod file;
mod generated;
mod not_found;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use fathom_files::{FileError, OpenFile};
use fathom_io::{Errno, FileType};
use http::uri::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header, request};

use crate::body::Content;
use crate::cache::is_forbidden;
use crate::error::reason;
use crate::log::{BodySource, ErrorCategory};
use crate::metrics;
use crate::path::{PathError, RequestTarget, is_below, is_hidden};
use crate::plan::{Plan, SitePlan};
use crate::representation;
use crate::request_headers::RequestHeaders;
use crate::rules::maintenance::FLAG_AGE;
use crate::state::{Peer, Worker};

/// The methods that the server supports.
const ALLOW: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// A response before its body is attached to a connection.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) content: Content,
    pub(crate) source: BodySource,
    /// Whether the content is generated while it is sent, so that not even HEAD can have its
    /// length.
    pub(crate) has_unknown_length: bool,
}

impl Answer {
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self {
            status,
            fields: HeaderMap::new(),
            content: Content::Empty,
            source: BodySource::Other,
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

    /// Adds `Vary: Accept` (RFC 9110, section 12.5.5).
    fn vary_by_accept(mut self) -> Self {
        let accept = HeaderValue::from_static("accept");
        if !self.fields.get_all(header::VARY).iter().any(|value| *value == accept) {
            self.fields.append(header::VARY, accept);
        }
        self
    }
}

/// A request with everything that its processing refers to.
pub(crate) struct RequestContext<'a> {
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) peer: &'a Peer,
    pub(crate) plan: &'a Plan,
    /// The site that the host selects, with its mounts.
    host: &'a SitePlan,
    /// The site itself, or its mount that the path selects.
    pub(crate) site: &'a SitePlan,
    site_path: SitePath<'a>,
    pub(crate) request: &'a request::Parts,
    pub(crate) headers: &'a RequestHeaders<'a>,
    /// The authenticated user.
    user: &'a OnceCell<Rc<str>>,
}

/// The path of the request below the root of its site or mount.
#[derive(Clone, Copy)]
enum SitePath<'a> {
    /// The decoded path of the request without this many bytes at its beginning.
    Below(usize),
    /// No path: the request is not below the base of the site.
    Outside,
    /// The path in the mount that a rewrite has led to.
    Rewritten(&'a [u8]),
}

/// Returns the response to `request`, and sets `user` once the user is authenticated.
pub(crate) async fn answer(
    worker: &Rc<Worker>,
    peer: &Peer,
    plan: &Plan,
    request: &request::Parts,
    user: &OnceCell<Rc<str>>,
) -> Answer {
    let headers = RequestHeaders::new(&request.headers);
    // Metrics cover every site, so the default site's users guard them, whatever host was
    // requested.
    let is_metrics = plan.metrics.as_deref() == Some(request.uri.path());
    let site = site(plan, request, &headers)
        .and_then(|site| if is_metrics { plan.default_site() } else { Some(site) });
    let Some(host) = site else { return plain(StatusCode::BAD_REQUEST) };
    let (site, below) = if host.has_single_root() || is_metrics {
        (host, Some(0))
    } else {
        host.resolve_request(request.uri.path().as_bytes())
    };
    let site_path = below.map_or(SitePath::Outside, SitePath::Below);
    let context =
        RequestContext { worker, peer, plan, host, site, site_path, request, headers: &headers, user };
    let mut answer = context.answer().await;
    if let Some(cors) = &site.rules.cors {
        cors.evaluate(&request.method, &request.headers, &mut answer.fields);
    }
    if answer.status.is_client_error() || answer.status.is_server_error() {
        // A cache may keep a 404 otherwise (RFC 9111, section 4.2.2), and the file may come.
        let no_store = HeaderValue::from_static("no-store");
        answer.fields.entry(header::CACHE_CONTROL).or_insert(no_store);
    }
    if request.method == Method::HEAD {
        // The `Content-Length` of a 304 would have to equal the length of the 200 (RFC 9110,
        // section 8.6).
        if answer.status != StatusCode::NOT_MODIFIED && !answer.has_unknown_length {
            answer.fields.insert(header::CONTENT_LENGTH, answer.content.len().into());
        }
        answer.content = Content::Empty;
    }
    // An intermediary may see another end of such a body, and take the rest for another request
    // (RFC 9112, section 6.1).
    if request.headers.contains_key(header::TRANSFER_ENCODING) {
        answer.fields.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Returns the site of the request. HTTP/1.0 need not name a host, HTTP/1.1 must (RFC 9112, section
/// 3.2). Returns `None` if the host is missing or ambiguous, or the scheme is neither `http` nor
/// `https`.
fn site<'p>(plan: &'p Plan, request: &request::Parts, headers: &RequestHeaders<'_>) -> Option<&'p SitePlan> {
    let is_ours = request.uri.scheme().is_none_or(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme));
    if headers.host_is_ambiguous || !is_ours {
        return None;
    }
    match host(request, headers) {
        Some(host) => plan.site(host),
        None if request.version == Version::HTTP_11 => None,
        None => plan.default_site(),
    }
}

/// Returns the host of a request, with its port.
fn host<'r>(request: &'r request::Parts, headers: &RequestHeaders<'r>) -> Option<&'r [u8]> {
    let authority = request.uri.authority().map(|authority| authority.as_str().as_bytes());
    authority.or(headers.host.map(HeaderValue::as_bytes))
}

/// Returns a status with a plain-text body, for requests that are refused before a site's pages
/// apply.
fn plain(status: StatusCode) -> Answer {
    let text = format!("{}\n", status.canonical_reason().unwrap_or("Error"));
    Answer::bytes(status, HeaderValue::from_static("text/plain; charset=utf-8"), text)
}

/// Rounds up to whole seconds.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl RequestContext<'_> {
    async fn answer(&self) -> Answer {
        if let Some(answer) = self.respond_before_authentication() {
            return self.with_site_headers(answer, &self.path());
        }
        if self.is_misdirected() {
            let text = "421 Misdirected Request: this server does not answer for this host name\n";
            let plain_text = HeaderValue::from_static("text/plain; charset=utf-8");
            return Answer::bytes(StatusCode::MISDIRECTED_REQUEST, plain_text, text);
        }
        if self.is_in_maintenance() {
            return Box::pin(self.maintenance()).await;
        }
        if self.needs_authorization()
            && let Err(refusal) = Box::pin(self.authorize(&self.path())).await
        {
            return refusal;
        }
        if self.plan.metrics.as_deref() == Some(self.request.uri.path()) {
            return Box::pin(self.metrics()).await;
        }
        self.resource().await
    }

    /// Returns whether the site has no directory, or does not answer for the host that was asked.
    fn is_misdirected(&self) -> bool {
        let is_metrics = self.plan.metrics.as_deref() == Some(self.request.uri.path());
        let is_asked = host(self.request, self.headers).is_none_or(|host| self.host.answers(host));
        !is_asked || (!self.host.has_root && !is_metrics)
    }

    /// Returns the metrics. They cover every site, so a rule that makes their path public does not
    /// apply.
    async fn metrics(&self) -> Answer {
        if let Some(authenticator) = &self.site.auth
            && let Err(refusal) = self.authenticate(authenticator).await
        {
            return refusal;
        }
        let text = self.worker.metrics();
        let answer = Answer::bytes(StatusCode::OK, HeaderValue::from_static(metrics::CONTENT_TYPE), text);
        self.with_site_headers(answer, &self.path())
    }

    /// Returns the responses that do not depend on the user.
    fn respond_before_authentication(&self) -> Option<Answer> {
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
        if let Some(refusal) = self.refuse_address().filter(|_| !is_health) {
            return Some(refusal);
        }
        match *method {
            Method::GET | Method::HEAD => is_health.then(|| self.health()),
            Method::OPTIONS => Some(Answer::empty(StatusCode::NO_CONTENT).with(header::ALLOW, ALLOW)),
            _ => Some(plain(StatusCode::METHOD_NOT_ALLOWED).with(header::ALLOW, ALLOW)),
        }
    }

    /// Returns the refusal of a client whose address the site does not admit, or whose request rate
    /// is too high.
    fn refuse_address(&self) -> Option<Answer> {
        if !self.is_admitted() {
            return Some(plain(StatusCode::FORBIDDEN));
        }
        let (rate, address) = (self.plan.rate?, self.peer.address?.ip());
        let early = self.worker.shared.buckets.take(address, rate, self.worker.now()).err()?;
        let after = HeaderValue::from(whole_seconds(early));
        Some(plain(StatusCode::TOO_MANY_REQUESTS).with(header::RETRY_AFTER, after))
    }

    fn is_admitted(&self) -> bool {
        self.site.rules.access.admits(self.peer.address.map(|address| address.ip()))
    }

    /// Returns the declared length of the request body. A body of unknown length counts as empty:
    /// the connection closes after the response.
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
        let flagged = maintenance
            .flag_file()
            .is_some_and(|file| self.worker.flag_files.exists(file, FLAG_AGE, self.worker.now()));
        maintenance.is_on(flagged)
    }

    async fn resource(&self) -> Answer {
        let target = match RequestTarget::parse(self.request.uri.path().as_bytes()) {
            Ok(target) => target,
            Err(PathError::BadRequest) => return Box::pin(self.error(StatusCode::BAD_REQUEST)).await,
            Err(PathError::NotFound) => return Box::pin(self.error(StatusCode::NOT_FOUND)).await,
        };
        let SitePath::Below(bytes) = self.site_path else {
            return Box::pin(self.error(StatusCode::NOT_FOUND)).await;
        };
        let target = target.skip(bytes);
        match self.route(&target) {
            Some(RouteOutcome::Redirect(status, location)) => {
                self.with_site_headers(Answer::empty(status).with(header::LOCATION, location), &target.path)
            }
            Some(RouteOutcome::Rewritten(path, is_dir)) if is_below(&path) => {
                Box::pin(self.rewritten(&path, is_dir)).await
            }
            Some(RouteOutcome::Gone) => Box::pin(self.error(StatusCode::GONE)).await,
            Some(RouteOutcome::Rewritten(..)) => Box::pin(self.error(StatusCode::NOT_FOUND)).await,
            None => self.target(&target.path, target.is_dir).await,
        }
    }

    /// Returns the response for `path` below the base, which a rewrite has substituted for the path
    /// of the request. If it leads into another mount, the rules of that mount apply.
    async fn rewritten(&self, path: &[u8], is_dir: bool) -> Answer {
        let (site, skip) = self.host.resolve_path(path);
        let path = path.get(skip..).unwrap_or_default();
        let own = OnceCell::new();
        let mut context = RequestContext { user: self.user, ..*self };
        if !std::ptr::eq(site, self.site) {
            // A user verified by other passwords is not authenticated here.
            let is_known = self.user.get().is_some() && !shares_users(site, self.site);
            let user = if is_known { &own } else { self.user };
            context = RequestContext { site, site_path: SitePath::Rewritten(path), user, ..context };
            if !context.is_admitted() {
                return context.with_site_headers(plain(StatusCode::FORBIDDEN), path);
            }
            if context.is_in_maintenance() {
                return context.maintenance().await;
            }
        }
        match context.authorize(path).await {
            Ok(()) => context.target(path, is_dir).await,
            Err(refusal) => refusal,
        }
    }

    /// Applies the redirects and rewrites of the site.
    fn route(&self, target: &RequestTarget<'_>) -> Option<RouteOutcome> {
        let rules = &self.site.rules;
        if rules.redirects.is_empty() && rules.rewrites.is_empty() {
            return None;
        }
        let slash: &[u8] = if target.is_dir && !target.path.is_empty() { b"/" } else { b"" };
        let path = [&self.site.below_base(&target.path), slash].concat();
        if let Some((status, location)) = rules.redirects.find(&path, self.request.uri.query()) {
            return Some(
                location.map_or(RouteOutcome::Gone, |location| RouteOutcome::Redirect(status, location)),
            );
        }
        let path = rules.rewrites.find(&path)?;
        let path = path.strip_prefix(b"/").unwrap_or(&path);
        let file = path.strip_suffix(b"/");
        Some(RouteOutcome::Rewritten(file.unwrap_or(path).to_vec(), file.is_some() || path.is_empty()))
    }

    async fn target(&self, path: &[u8], is_dir: bool) -> Answer {
        if let Some(root) = &self.site.explored {
            return Box::pin(self.generated(root, path, is_dir)).await;
        }
        if let Some(only) = &self.site.single_file {
            if path.is_empty() {
                // Redirect temporarily: another start may serve another file.
                return self.redirect(StatusCode::TEMPORARY_REDIRECT, path, only);
            }
            if path != only || is_dir {
                return Box::pin(self.not_found(path)).await;
            }
        } else if !self.site.dotfiles && is_hidden(path) {
            return Box::pin(self.not_found(path)).await;
        } else if is_dir {
            return Box::pin(self.directory(path)).await;
        } else if path.is_empty() {
            return self.redirect_to_directory(path);
        }
        let entry = match self.worker.look_up(self.site, path, self.peer.client).await {
            Ok(entry) => entry,
            Err(failure) => return Box::pin(self.failed(failure)).await,
        };
        match &entry.result {
            Ok(opened) => match opened.kind() {
                FileType::Regular => {
                    if self.site.clean.redirects
                        && let Some(redirect) = Box::pin(self.redirect_to_clean(path)).await
                    {
                        return redirect;
                    }
                    self.file(path, &entry, StatusCode::OK).await
                }
                FileType::Directory if self.site.single_file.is_none() => {
                    Box::pin(self.directory_without_slash(path)).await
                }
                FileType::Directory => Box::pin(self.not_found(path)).await,
                _ => Box::pin(self.error(StatusCode::FORBIDDEN)).await,
            },
            Err(_) if is_unservable(&entry.result) => Box::pin(self.error(StatusCode::FORBIDDEN)).await,
            Err(_) => Box::pin(self.missing_file(path)).await,
        }
    }

    /// Returns the response for a directory whose address was requested without its slash.
    async fn directory_without_slash(&self, path: &[u8]) -> Answer {
        match self.respond_with_suffix(path).await {
            Some(answer) => answer,
            None => self.redirect_to_directory(path),
        }
    }

    /// Returns the response for a path that names nothing.
    async fn missing_file(&self, path: &[u8]) -> Answer {
        match self.respond_with_suffix(path).await {
            Some(answer) => answer,
            None => self.not_found(path).await,
        }
    }

    /// Returns the response for a file that cannot be read for a reason outside the request.
    pub(crate) async fn failed(&self, failure: FileError) -> Answer {
        self.report(failure);
        match status(failure) {
            StatusCode::SERVICE_UNAVAILABLE => {
                let soon = HeaderValue::from_static("1");
                let busy = plain(StatusCode::SERVICE_UNAVAILABLE).with(header::RETRY_AFTER, soon);
                self.with_site_headers(busy, &self.path())
            }
            StatusCode::NOT_IMPLEMENTED => {
                let text = format!("The directory is {}.\n", reason(failure));
                let plain_text = HeaderValue::from_static("text/plain; charset=utf-8");
                let answer = Answer::bytes(StatusCode::NOT_IMPLEMENTED, plain_text, text);
                self.with_site_headers(answer, &self.path())
            }
            status => Box::pin(self.error(status)).await,
        }
    }

    /// Reports `failure` in the error log, unless it is expected in normal operation.
    fn report(&self, failure: FileError) {
        let trouble = match failure {
            // `SiteRoot::report` logs a root directory when it disappears and when it returns, and
            // `PanicReporter` a panic.
            FileError::Changed
            | FileError::NoRoot
            | FileError::Panicked
            | FileError::System(Errno::AGAIN) => {
                return;
            }
            FileError::System(errno) if is_forbidden(errno) => return,
            FileError::Busy => ErrorCategory::Pool,
            FileError::System(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => ErrorCategory::Descriptors,
            _ => ErrorCategory::Files,
        };
        self.worker.report(trouble, || {
            let path = self.site.below_base(&self.path());
            let path = String::from_utf8_lossy(path.strip_prefix(b"/").unwrap_or(&path)).into_owned();
            format!("cannot read '{path}': {}", reason(failure))
        });
    }

    /// Applies the header rules of the site for `path` to `answer`.
    pub(crate) fn with_site_headers(&self, mut answer: Answer, path: &[u8]) -> Answer {
        // Generated pages carry names that others chose, and no rule is as strict as the policy
        // that such a page needs. A health response must never come from a cache.
        let is_own = |name: &HeaderName, value: &HeaderValue| {
            *name == header::CONTENT_SECURITY_POLICY
                || (*name == header::CACHE_CONTROL && *value == "no-store")
        };
        let own = answer.fields.iter().filter(|(name, value)| is_own(name, value));
        let own: Vec<_> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        representation::apply(self.site, path, answer.status, &mut answer.fields);
        own.into_iter().for_each(|(name, value)| drop(answer.fields.insert(name, value)));
        answer
    }

    /// Returns the decoded path of the request below the root of its site or mount, as far as it
    /// can be decoded.
    pub(crate) fn path(&self) -> Cow<'_, [u8]> {
        let parse =
            |bytes| Some(RequestTarget::parse(self.request.uri.path().as_bytes()).ok()?.skip(bytes).path);
        match self.site_path {
            SitePath::Below(bytes) => parse(bytes).unwrap_or_default(),
            SitePath::Outside => Cow::Borrowed(b""),
            SitePath::Rewritten(path) => Cow::Borrowed(path),
        }
    }
}

/// Returns whether users of `one` are users of `other`.
fn shares_users(one: &SitePlan, other: &SitePlan) -> bool {
    one.auth.as_ref().zip(other.auth.as_ref()).is_some_and(|(one, other)| one.shares_users(other))
}

/// Returns whether a path leads to a file that exists and is never served: an unreadable file, or a
/// device, a pipe or a socket. Special files are refused whatever the server's user, so a server
/// that runs as root responds like a server that may not open them.
fn is_unservable(found: &Result<OpenFile, Errno>) -> bool {
    match found {
        Ok(opened) => !matches!(opened.kind(), FileType::Regular | FileType::Directory),
        Err(errno) => is_forbidden(*errno),
    }
}

/// Returns the status of a response to a request whose file cannot be had.
fn status(failure: FileError) -> StatusCode {
    match failure {
        FileError::Busy
        | FileError::Changed
        | FileError::NoRoot
        | FileError::System(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        FileError::System(errno) if is_forbidden(errno) => StatusCode::FORBIDDEN,
        // It would be as large the next time.
        FileError::System(Errno::TOOBIG) => StatusCode::NOT_IMPLEMENTED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The result of the redirects and rewrites of a site.
enum RouteOutcome {
    Redirect(StatusCode, HeaderValue),
    /// The answer is 410.
    Gone,
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
