//! Responses for directories: the index file, the listing, the redirect to the address with a
//! slash.

use bytes::Bytes;
use fathom_files::FileError;
use fathom_io::FileType;
use http::{HeaderValue, StatusCode, header};

use super::{Answer, RequestContext, is_unservable};
use crate::body::Content;
use crate::cache::is_forbidden;
use crate::listing::ListingView;
use crate::listings::{FormatPage, JobContext, ListingFormat, ReadDirectory};
use crate::negotiate::{AcceptedCodings, Coding, prefers_html, prefers_json};
use crate::pages;
use crate::path::{RequestTarget, join, location};

impl RequestContext<'_> {
    /// Returns the response for the directory `path`: its archive if the query asks for one, else
    /// its index, else its listing.
    pub(super) async fn directory(&self, path: &[u8]) -> Answer {
        if let Some(format) = self.archive_format() {
            return self.archive(path, format).await;
        }
        for index in &self.site.index {
            let file = join(path, index);
            if self.site.rules.access.hides(&file) {
                continue;
            }
            match self.worker.look_up(self.site, &file, self.peer.client).await {
                Ok(entry) => match &entry.result {
                    Ok(opened) if opened.kind() == FileType::Regular => {
                        if let Err(refusal) = self.authorize(&file).await {
                            return refusal;
                        }
                        return self.file(&file, &entry, StatusCode::OK).await;
                    }
                    other if is_unservable(other) => return self.error(StatusCode::FORBIDDEN).await,
                    Ok(_) | Err(_) => {}
                },
                Err(failure) => return self.failed(failure).await,
            }
        }
        if self.site.clean.redirects
            && let Some(redirect) = self.redirect_without_slash(path).await
        {
            return redirect;
        }
        if !self.site.listing {
            return self.unlisted(path).await;
        }
        if self.asks_for_no_archive() {
            // The listing would be saved under the name of an archive.
            return self.error(StatusCode::NOT_FOUND).await;
        }
        match self.listing(path).await {
            Ok(Some(answer)) => answer,
            Ok(None) => self.not_found(path).await,
            Err(failure) => self.failed(failure).await,
        }
    }

    /// Returns the response for a directory without an index when listings are off. A browser gets
    /// a page that says how to turn them on, unless the site has a fallback or an error page of its
    /// own.
    async fn unlisted(&self, path: &[u8]) -> Answer {
        let has_page = self.site.fallback.is_some() || self.site.error_page(StatusCode::NOT_FOUND).is_some();
        if has_page || !prefers_html(self.headers.accept.as_deref()) {
            return self.not_found(path).await;
        }
        match self.worker.look_up(self.site, root_or_path(path), self.peer.client).await {
            Ok(entry) if entry.result.as_ref().is_ok_and(|opened| opened.kind() == FileType::Directory) => {
                let page = pages::unlisted(&self.site.index);
                let content_type = HeaderValue::from_static("text/html; charset=utf-8");
                let answer = Answer::bytes(StatusCode::NOT_FOUND, content_type, page)
                    .with(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(pages::CSP));
                self.with_site_headers(answer, path).vary_by_accept()
            }
            Ok(_) => self.not_found(path).await,
            Err(failure) => self.failed(failure).await,
        }
    }

    /// Returns the redirect from the address of a directory without its slash, where relative links
    /// would be wrong, to the address with the slash.
    pub(super) fn redirect_to_directory(&self, path: &[u8]) -> Answer {
        let to = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
        self.redirect(StatusCode::MOVED_PERMANENTLY, path, &to)
    }

    /// Returns a redirect from the address of the request to `to`, another path below the root.
    /// `path` is the path that the request was resolved to; its header rules apply.
    pub(super) fn redirect(&self, status: StatusCode, path: &[u8], to: &[u8]) -> Answer {
        let uri = &self.request.uri;
        let name = |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let requested =
            RequestTarget::parse(uri.path().as_bytes()).map(|target| target.path).unwrap_or_default();
        let mut own = self.site.request_path(path);
        own.truncate(own.strip_suffix(b"/").map_or(own.len(), <[u8]>::len));
        // If both paths end in the same name, a relative location is right wherever a rewrite has
        // found the directory.
        let is_same = requested.get(name(&requested)..) == own.get(name(&own)..);
        let mut from = if is_same { own } else { requested.into_owned() };
        if uri.path().ends_with('/') {
            from.push(b'/');
        }
        let to = self.site.request_path(to);
        match HeaderValue::try_from(location(&from, &to, uri.query().map(str::as_bytes))) {
            Ok(location) => {
                self.with_site_headers(Answer::empty(status).with(header::LOCATION, location), path)
            }
            Err(_) => Answer::empty(StatusCode::BAD_REQUEST),
        }
    }

    /// Returns the listing of the directory `path`; `None` if `path` is no directory or the listing
    /// has no such page.
    async fn listing(&self, path: &[u8]) -> Result<Option<Answer>, FileError> {
        // Get the root before the directory: a listing is cached under the number of its root, and
        // must not be of an older root.
        let root = self.worker.root(&self.site.root, self.peer.client, self.worker.now()).await?;
        let entry = self.worker.look_up(self.site, root_or_path(path), self.peer.client).await?;
        let opened = match &entry.result {
            Ok(opened) if opened.kind() == FileType::Directory => opened.clone(),
            Err(errno) if is_forbidden(*errno) => return Err((*errno).into()),
            Ok(_) | Err(_) => return Ok(None),
        };
        let (pool, limit) = (self.worker.files.pool().clone(), self.plan.limits.listing_bytes);
        let (listings, clock) = (&self.worker.shared.listings, self.worker.shared.clock.clone());
        let context = JobContext { pool, client: self.peer.client, limit, clock };
        let view = ListingView::from_query(self.request.uri.query().unwrap_or_default());
        let job = |view| ReadDirectory {
            root: (*root).clone(),
            path: path.into(),
            opened: opened.clone(),
            dotfiles: self.site.dotfiles,
            view,
            links: self.site.links,
            filter: self.site.entry_filter(None),
            age: self.worker.cache.age().filter(|_| entry.is_settled()),
        };
        let mut directory = listings.directory(&context, job(ListingView::default())).await?;
        if !directory.is_complete() && !view.filter.is_empty() {
            // A name that it lacks may pass the filter: it is read again, for the names that do.
            directory = listings.directory(&context, job(view.clone())).await?;
        }
        let accepted = AcceptedCodings::parse(self.headers.accept_encoding.as_deref());
        let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
        let job = FormatPage {
            path: [&self.site.below_base(path), slash].concat().into(),
            archives: self.site.archives.clone(),
            view,
            format: if prefers_json(self.headers.accept.as_deref()) {
                ListingFormat::Json
            } else {
                ListingFormat::Html
            },
            coding: accepted.best(&self.site.codings),
            compress_min_bytes: self.site.compress.min_bytes,
        };
        let format = job.format;
        let page = listings.page(&context, directory, job).await?;
        Ok(page.body.map(|body| self.listed(path, body, format, page.coding)))
    }

    fn listed(&self, path: &[u8], body: Bytes, format: ListingFormat, coding: Option<Coding>) -> Answer {
        let content_type = match format {
            ListingFormat::Html => "text/html; charset=utf-8",
            ListingFormat::Json => "application/json",
        };
        let mut answer = Answer { content: Content::Long(body), ..Answer::empty(StatusCode::OK) }
            .with(header::CONTENT_TYPE, HeaderValue::from_static(content_type))
            .with(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if format == ListingFormat::Html {
            let policy = HeaderValue::from_static(pages::CSP_FORM);
            answer.fields.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        if let Some(coding) = coding {
            answer.fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
        }
        let mut answer = self.with_site_headers(answer, path).vary_by_accept();
        if !self.site.codings.is_empty() {
            answer.fields.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        answer
    }
}

/// Returns `path`, or `.` for the root itself.
pub(super) fn root_or_path(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}
