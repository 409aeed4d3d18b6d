//! Responses for paths without a file: the fallback page of a single-page application, error pages,
//! maintenance.

use fathom_io::FileType;
use http::{HeaderValue, StatusCode, header};

use super::{Answer, RequestContext};
use crate::negotiate::prefers_html;
use crate::pages;

/// The largest error page that is read into memory, in bytes.
const PAGE_BYTES: u64 = 1 << 20;

impl RequestContext<'_> {
    /// Returns the response for a `path` that leads to nothing the client may have.
    pub(super) async fn not_found(&self, path: &[u8]) -> Answer {
        match self.site.fallback.as_deref() {
            // Routes of a single-page application have no extension. A missing script or picture
            // gets a 404, unless a browser navigates to it.
            Some(fallback) if has_extension(path) => {
                let is_page = prefers_html(self.headers.accept.as_deref());
                self.fall_back(Some(fallback).filter(|_| is_page)).await.vary_by_accept()
            }
            fallback => self.fall_back(fallback).await,
        }
    }

    async fn fall_back(&self, fallback: Option<&[u8]>) -> Answer {
        if let Some(fallback) = fallback {
            let entry = match self.worker.look_up(self.site, fallback, self.peer.client).await {
                Ok(entry) => entry,
                Err(failure) => return self.failed(failure).await,
            };
            if entry.result.as_ref().is_ok_and(|opened| opened.kind() == FileType::Regular) {
                return self.file(fallback, &entry, StatusCode::OK).await;
            }
        }
        self.error(StatusCode::NOT_FOUND).await
    }

    /// Returns the response while the site is under maintenance.
    pub(super) async fn maintenance(&self) -> Answer {
        let maintenance = &self.site.rules.maintenance;
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let page = maintenance.page().map(|page| page.trim_start_matches('/').as_bytes());
        let mut answer = match page {
            Some(page) => self.page(page, status).await,
            None => None,
        };
        if answer.is_none() {
            answer = Some(self.error(status).await);
        }
        let mut answer = answer.unwrap_or_else(|| Answer::empty(status));
        if let Some(after) = maintenance.retry_after() {
            answer.fields.insert(header::RETRY_AFTER, after.clone());
        }
        answer
    }

    /// Returns the response with `status`, with the site's page or the built-in one.
    pub(crate) async fn error(&self, status: StatusCode) -> Answer {
        let own = match self.site.error_page(status) {
            Some(page) => self.page(page, status).await,
            None => None,
        };
        match own {
            Some(own) => self.with_site_headers(own, &self.path()),
            None => self.with_site_headers(self.built_in(status), &self.path()).vary_by_accept(),
        }
    }

    fn built_in(&self, status: StatusCode) -> Answer {
        if prefers_html(self.headers.accept.as_deref()) {
            return Answer::bytes(
                status,
                HeaderValue::from_static("text/html; charset=utf-8"),
                pages::html(status),
            )
            .with(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(pages::CSP));
        }
        Answer::bytes(status, HeaderValue::from_static("text/plain; charset=utf-8"), pages::text(status))
    }

    /// Returns the file `path` as the page of `status`. It has no validators, which would belong to
    /// another address.
    async fn page(&self, path: &[u8], status: StatusCode) -> Option<Answer> {
        let entry = self.worker.look_up(self.site, path, self.peer.client).await.ok()?;
        let opened = entry.result.as_ref().ok()?;
        if opened.kind() != FileType::Regular || opened.len() > PAGE_BYTES {
            return None;
        }
        let (body, source) =
            self.worker.cache.body(&entry, &self.worker.files, self.peer.client).await.ok()?;
        let mut answer = Answer::bytes(status, self.site.types.of(path), body.bytes);
        answer.source = source;
        Some(answer)
    }
}

fn has_extension(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.contains(&b'.'))
}
