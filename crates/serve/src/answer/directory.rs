//! Directories: the file that stands for one, the list of what is in it, the way to its own address.

use std::time::Instant;

use bytes::Bytes;
use fathom_io::FileType;
use http::{HeaderValue, StatusCode, header};

use super::listings::{Form, FormatPage, Means, ReadDirectory};
use super::{Answer, Asking, Shown, is_unservable};
use crate::body::Content;
use crate::files::{Failure, is_forbidden};
use crate::listing::View;
use crate::negotiate::{Accepted, Coding, prefers_html, prefers_json};
use crate::pages;
use crate::path::{Target, location};

impl Asking<'_> {
    /// The directory `path`: its index, the list of it, or its archive if the query asks for that.
    pub(super) async fn directory(&self, path: &[u8]) -> Answer {
        if let Some(format) = self.archive_format() {
            return self.archive(path, format).await;
        }
        for index in &self.site.index {
            let file = below(path, index);
            if self.site.rules.access.hides(&file) {
                continue;
            }
            match self.worker.look_up(self.site, &file, self.peer.client).await {
                Ok(entry) => match &entry.result {
                    Ok(opened) if opened.kind() == FileType::Regular => {
                        if let Err(refusal) = self.guard(&file).await {
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
            && let Some(way) = self.without_slash(path).await
        {
            return way;
        }
        if !self.site.listing {
            return self.unlisted(path).await;
        }
        match self.listing(path).await {
            Ok(Some(answer)) => answer,
            Ok(None) => self.nothing(path).await,
            Err(failure) => self.failed(failure).await,
        }
    }

    /// The response for a directory without an index where lists are off. Somebody who looks at it
    /// in a browser is told how to turn them on, unless the site has a page of its own for that.
    async fn unlisted(&self, path: &[u8]) -> Answer {
        let has_page = self.site.fallback.is_some() || self.site.error_page(StatusCode::NOT_FOUND).is_some();
        if has_page || !prefers_html(self.asked.accept.as_deref()) {
            return self.nothing(path).await;
        }
        match self.worker.look_up(self.site, or_dot(path), self.peer.client).await {
            Ok(entry) if entry.result.as_ref().is_ok_and(|opened| opened.kind() == FileType::Directory) => {
                let page = pages::unlisted(&self.site.index);
                let content_type = HeaderValue::from_static("text/html; charset=utf-8");
                let answer = Answer::bytes(StatusCode::NOT_FOUND, content_type, page)
                    .with(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(pages::CSP));
                self.dressed(answer, path).by_accept()
            }
            Ok(_) => self.nothing(path).await,
            Err(failure) => self.failed(failure).await,
        }
    }

    /// The way to a directory that was asked for without its slash, from which the links in it would lead elsewhere.
    pub(super) fn to_directory(&self, path: &[u8]) -> Answer {
        let to = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
        self.elsewhere(StatusCode::MOVED_PERMANENTLY, path, &to)
    }

    /// The way to `to`, another path below the root, from the request's, which came to mean `path`,
    /// with headers as for `path`.
    pub(super) fn elsewhere(&self, status: StatusCode, path: &[u8], to: &[u8]) -> Answer {
        let uri = &self.request.uri;
        let name = |path: &[u8]| path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let requested = Target::parse(uri.path().as_bytes()).map(|target| target.path).unwrap_or_default();
        let mut own = self.site.requested(path);
        own.truncate(own.strip_suffix(b"/").map_or(own.len(), <[u8]>::len));
        // Under the same name a relative way is right wherever a rewrite has found the directory.
        let is_same = requested.get(name(&requested)..) == own.get(name(&own)..);
        let mut from = if is_same { own } else { requested.into_owned() };
        if uri.path().ends_with('/') {
            from.push(b'/');
        }
        let to = self.site.requested(to);
        match HeaderValue::try_from(location(&from, &to, uri.query().map(str::as_bytes))) {
            Ok(location) => self.dressed(Answer::empty(status).with(header::LOCATION, location), path),
            Err(_) => Answer::empty(StatusCode::BAD_REQUEST),
        }
    }

    /// The list of the directory `path`; `None` if it is none, or has no such page.
    async fn listing(&self, path: &[u8]) -> Result<Option<Answer>, Failure> {
        // Before the directory: a list that is kept under a root's number must not be of one before
        // it.
        let root = self.worker.root(&self.site.root, self.peer.client, Instant::now()).await?;
        let entry = self.worker.look_up(self.site, or_dot(path), self.peer.client).await?;
        let opened = match &entry.result {
            Ok(opened) if opened.kind() == FileType::Directory => opened.clone(),
            Err(errno) if is_forbidden(*errno) => return Err((*errno).into()),
            Ok(_) | Err(_) => return Ok(None),
        };
        let (pool, limit) = (self.worker.files.pool.clone(), self.plan.limits.listing_bytes);
        let (listings, means) =
            (&self.worker.shared.listings, Means { pool, client: self.peer.client, limit });
        let job = ReadDirectory {
            root: (*root).clone(),
            path: path.into(),
            opened,
            dotfiles: self.site.dotfiles,
            links: self.site.links,
            shown: Shown::new(self.site, None),
            age: self.worker.cache.age().filter(|_| entry.is_settled()),
        };
        let directory = listings.directory(&means, job).await?;
        let accepted = Accepted::parse(self.asked.accept_encoding.as_deref());
        let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
        let job = FormatPage {
            shown: [&self.site.below_base(path), slash].concat().into(),
            archives: self.site.archives.clone(),
            view: View::from_query(self.request.uri.query().unwrap_or_default()),
            form: if prefers_json(self.asked.accept.as_deref()) { Form::Json } else { Form::Html },
            coding: accepted.best(&self.site.codings),
            compress_min_bytes: self.site.compress.min_bytes,
        };
        let form = job.form;
        let page = listings.page(&means, directory, job).await?;
        Ok(page.body.map(|body| self.listed(path, body, form, page.coding)))
    }

    fn listed(&self, path: &[u8], body: Bytes, form: Form, coding: Option<Coding>) -> Answer {
        let content_type = match form {
            Form::Html => "text/html; charset=utf-8",
            Form::Json => "application/json",
        };
        let mut answer = Answer { content: Content::Long(body), ..Answer::empty(StatusCode::OK) }
            .with(header::CONTENT_TYPE, HeaderValue::from_static(content_type))
            .with(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if form == Form::Html {
            let policy = HeaderValue::from_static(pages::CSP_FORM);
            answer.fields.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        if let Some(coding) = coding {
            answer.fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
        }
        let mut answer = self.dressed(answer, path).by_accept();
        if !self.site.codings.is_empty() {
            answer.fields.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        answer
    }
}

/// The path of a directory below the root, by which it can be opened.
pub(super) fn or_dot(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

/// `name` in the directory `path`, which may be the root.
pub(super) fn below(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}
