//! Responses for regular files: content coding, preconditions, ranges.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use fathom_files::pool::Resource;
use fathom_files::{FileError, OpenFile, RangeReader};
use fathom_io::FileType;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::{Answer, RequestContext, is_unservable};
use crate::body::{Content, FileBody, MultipartBody, RangeSource};
use crate::cache::{CacheEntry, SmallBody};
use crate::compress::{self, coder};
use crate::conditional::{PreconditionOutcome, evaluate, ranges_apply};
use crate::log::{BodySource, ErrorCategory};
use crate::multipart::Multipart;
use crate::negotiate::{AcceptedCodings, Coding};
use crate::range::{self, Selection, content_range, unsatisfied};
use crate::representation::{FileRepresentations, RepresentationHead, Variant};

type CachedEntry = Rc<CacheEntry<FileRepresentations>>;

/// The selected representation of a file (RFC 9110, section 3.2).
struct SelectedRepresentation {
    entry: CachedEntry,
    head: Rc<RepresentationHead>,
    /// The compressed bytes, if they are in memory.
    compressed: Option<Bytes>,
}

impl RequestContext<'_> {
    /// Returns the response for the file `path` with the cache entry `entry`. `status` applies if
    /// all of the file is sent.
    pub(super) async fn file(&self, path: &[u8], entry: &CachedEntry, status: StatusCode) -> Answer {
        match self.attempt(path, entry, status).await {
            Ok(answer) => answer,
            Err(FileError::Changed) => Box::pin(self.retry_changed(path, status)).await,
            Err(failure) => Box::pin(self.failed(failure)).await,
        }
    }

    async fn attempt(
        &self,
        path: &[u8],
        entry: &CachedEntry,
        status: StatusCode,
    ) -> Result<Answer, FileError> {
        let selected = self.select(path, entry).await?;
        self.send(&selected, status).await
    }

    /// Responds with a file that was changed or replaced while it was read: looks it up again,
    /// once.
    async fn retry_changed(&self, path: &[u8], status: StatusCode) -> Answer {
        let entry = match self.worker.look_up_uncached(self.site, path, self.peer.client).await {
            Ok(entry) => entry,
            Err(failure) => return self.failed(failure).await,
        };
        match &entry.result {
            Ok(opened) if opened.kind() == FileType::Regular => {
                match self.attempt(path, &entry, status).await {
                    Ok(answer) => answer,
                    Err(failure) => self.failed(failure).await,
                }
            }
            other if is_unservable(other) => self.error(StatusCode::FORBIDDEN).await,
            Ok(_) | Err(_) => self.error(StatusCode::NOT_FOUND).await,
        }
    }

    async fn select(&self, path: &[u8], entry: &CachedEntry) -> Result<SelectedRepresentation, FileError> {
        let opened = entry.result.as_ref().map_err(|errno| *errno)?;
        let accepted = self.site.has_codings().then_some(self.headers.accept_encoding.as_deref()).flatten();
        if let Some(accepted) = accepted.map(|header| AcceptedCodings::parse(Some(header))) {
            if let Some(selected) = Box::pin(self.select_precompressed(path, &accepted)).await? {
                return Ok(selected);
            }
            if let Some(selected) = Box::pin(self.select_compressed(path, entry, opened, &accepted)).await? {
                return Ok(selected);
            }
        }
        let head = entry.made.head(self.site, path, opened, entry.seen(), Variant::Identity);
        Ok(SelectedRepresentation { entry: Rc::clone(entry), head, compressed: None })
    }

    /// Selects the precompressed file beside `path` whose coding the client prefers.
    async fn select_precompressed(
        &self,
        path: &[u8],
        accepted: &AcceptedCodings,
    ) -> Result<Option<SelectedRepresentation>, FileError> {
        if !self.site.precompressed {
            return Ok(None);
        }
        let mut codings = Coding::ALL.to_vec();
        while let Some(coding) = accepted.best(&codings) {
            let beside = [path, coding.suffix().as_bytes()].concat();
            let entry = self.worker.look_up(self.site, &beside, self.peer.client).await?;
            if let Ok(opened) = &entry.result
                && opened.kind() == FileType::Regular
            {
                let head =
                    entry.made.head(self.site, path, opened, entry.seen(), Variant::Precompressed(coding));
                return Ok(Some(SelectedRepresentation { entry, head, compressed: None }));
            }
            codings.retain(|other| *other != coding);
        }
        Ok(None)
    }

    /// Selects the file compressed while serving, by this request or a previous one. A range
    /// request gets the identity coding: a range is not worth compressing the whole file.
    async fn select_compressed(
        &self,
        path: &[u8],
        entry: &CachedEntry,
        opened: &OpenFile,
        accepted: &AcceptedCodings,
    ) -> Result<Option<SelectedRepresentation>, FileError> {
        let site = self.site;
        let fits = opened.len() >= site.compress.min_bytes;
        let Some(coding) = accepted.best(&site.codings).filter(|_| fits && self.headers.range.is_none())
        else {
            return Ok(None);
        };
        let plain = entry.made.head(site, path, opened, entry.seen(), Variant::Identity);
        if !site.types.is_compressible(&plain.content_type) {
            return Ok(None);
        }
        if opened.len() > site.compress.max_bytes {
            self.report_too_large(path, opened.len());
            return Ok(None);
        }
        let compressed =
            entry.made.compressed[coding as usize].get_or_try_init(|| self.compress(entry, coding)).await?;
        Ok(compressed.clone().map(|compressed| {
            let head = entry.made.head(site, path, opened, entry.seen(), Variant::Compressed(coding));
            SelectedRepresentation { entry: Rc::clone(entry), head, compressed: Some(compressed) }
        }))
    }

    fn report_too_large(&self, path: &[u8], bytes: u64) {
        // Relaxed suffices: the flag guards no data, and a repeated message would do no harm.
        if !self.site.reported_too_large.swap(true, Ordering::Relaxed) {
            let (path, most) = (self.site.below_base(path), self.site.compress.max_bytes);
            let message = || {
                let path = path.escape_ascii();
                format!(
                    "'{path}' has {bytes} bytes and is sent uncompressed, as all files above {most} bytes ('--compress-max')"
                )
            };
            self.worker.report(ErrorCategory::Compress, message);
        }
    }

    async fn compress(&self, entry: &CachedEntry, coding: Coding) -> Result<Option<Bytes>, FileError> {
        let worker = self.worker;
        let (body, _) = worker.cache.body(entry, &worker.files, self.peer.client).await?;
        let encode = move || compress::smaller(coder(coding), &body.bytes);
        let compressed = worker.files.pool().run(self.peer.client, Resource::Cpu, encode).await?;
        // A body that compression does not shorten is sent as it is.
        let compressed = compressed.ok().flatten().map(Bytes::from);
        worker.cache.charge(entry, compressed.as_ref().map_or(0, Bytes::len));
        Ok(compressed)
    }

    async fn send(&self, selected: &SelectedRepresentation, status: StatusCode) -> Result<Answer, FileError> {
        let (method, conditions, validators) =
            (&self.request.method, self.headers.conditions(), selected.head.validators());
        match evaluate(method, &conditions, &validators) {
            PreconditionOutcome::Proceed => {}
            PreconditionOutcome::NotModified => return Ok(not_modified(&selected.head)),
            PreconditionOutcome::PreconditionFailed => {
                return Ok(Box::pin(self.error(StatusCode::PRECONDITION_FAILED)).await);
            }
        }
        let (from, size, source) = self.body(selected).await?;
        let range = self.headers.range.filter(|_| ranges_apply(method, &conditions, &validators));
        let limit = self.plan.limits.ranges;
        let selection =
            match range.map_or(Selection::Whole, |value| range::select(value.as_bytes(), size, limit)) {
                // The framing of several ranges would have to be inside the coding.
                Selection::Many(_) if selected.head.is_coded => Selection::Whole,
                selection => selection,
            };
        let mut answer = Answer { fields: fields(&selected.head), source, ..Answer::empty(status) };
        match selection {
            Selection::Whole => answer.content = from.only(0..size),
            Selection::One(range) => single_range(&mut answer, from, range, size),
            Selection::Many(ranges) => multipart(&mut answer, from, ranges, size, &selected.head),
            Selection::Unsatisfiable => {
                let answer = Box::pin(self.error(StatusCode::RANGE_NOT_SATISFIABLE)).await;
                return Ok(answer.with(header::CONTENT_RANGE, unsatisfied(size)));
            }
        }
        Ok(answer)
    }

    /// Returns the source of the bytes, their number, and the source for the log.
    async fn body(
        &self,
        selected: &SelectedRepresentation,
    ) -> Result<(RangeSource, u64, BodySource), FileError> {
        let (worker, entry) = (self.worker, &selected.entry);
        if let Some(compressed) = &selected.compressed {
            return Ok((self.short(compressed.clone().into()), compressed.len() as u64, BodySource::Cache));
        }
        let opened = entry.result.as_ref().map_err(|errno| *errno)?;
        let head_only = self.request.method == Method::HEAD;
        if let Some(body) = entry.body.get().cloned() {
            let source = if entry.was_cached() { BodySource::Cache } else { BodySource::Pool };
            let size = body.bytes.len() as u64;
            return Ok((self.short(body), size, source));
        }
        if worker.cache.admits_body(entry, opened.len()) && !head_only {
            let (body, source) = worker.cache.body(entry, &worker.files, self.peer.client).await?;
            let size = body.bytes.len() as u64;
            return Ok((self.short(body), size, source));
        }
        let peer = self.peer;
        let body = FileBody::new(
            RangeReader::new(&worker.files, opened, peer.client),
            peer.sendfile_queue.clone().filter(|_| peer.may_sendfile_files),
            Rc::clone(&worker.send_costs),
            peer.send_budget.clone(),
        );
        Ok((RangeSource::File(Box::new(body)), opened.len(), BodySource::Other))
    }

    fn short(&self, body: SmallBody) -> RangeSource {
        RangeSource::Memory(body, self.peer.sendfile_queue.clone())
    }
}

fn fields(head: &RepresentationHead) -> HeaderMap {
    // Leave room for `Date` and for headers that are added later.
    let mut fields = HeaderMap::with_capacity(head.fields.len() + 4);
    for (name, value) in &head.fields {
        fields.append(name.clone(), value.clone());
    }
    fields
}

/// Returns a 304 response. It has no content, so it carries no representation headers about the
/// content (RFC 9110, section 15.4.5).
fn not_modified(head: &RepresentationHead) -> Answer {
    let mut answer = Answer { fields: fields(head), ..Answer::empty(StatusCode::NOT_MODIFIED) };
    for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::ACCEPT_RANGES] {
        answer.fields.remove(name);
    }
    answer
}

fn single_range(answer: &mut Answer, from: RangeSource, range: Range<u64>, size: u64) {
    answer.status = StatusCode::PARTIAL_CONTENT;
    answer.fields.insert(header::CONTENT_RANGE, content_range(&range, size));
    answer.content = from.only(range);
}

fn multipart(
    answer: &mut Answer,
    from: RangeSource,
    ranges: Vec<Range<u64>>,
    size: u64,
    head: &RepresentationHead,
) {
    let random = RandomState::new().hash_one(&ranges);
    let content_type: Option<HeaderValue> = Some(head.content_type.clone());
    let parts = Multipart::new(ranges, size, content_type, random);
    answer.status = StatusCode::PARTIAL_CONTENT;
    answer.fields.insert(header::CONTENT_TYPE, parts.content_type());
    answer.content = Content::Multipart(Box::new(MultipartBody::new(parts, from)));
}
