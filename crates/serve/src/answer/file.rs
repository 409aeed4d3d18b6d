//! A regular file: in which coding, under which conditions, which bytes of it.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use fathom_io::FileType;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::made::{Form, Head, Made};
use super::{Answer, Asking, is_unservable};
use crate::body::{Content, From, Pieces};
use crate::compress;
use crate::conditional::{Outcome, evaluate, ranges_apply};
use crate::files::cache::Entry;
use crate::files::pool::Resource;
use crate::files::{Failure, Opened, Reader, Short, Source, Tail};
use crate::log::Trouble;
use crate::multipart::Multipart;
use crate::negotiate::{Accepted, Coding};
use crate::range::{Selection, content_range, select, unsatisfied};

type Kept = Rc<Entry<Made>>;

/// What represents a file for this request.
struct Chosen {
    entry: Kept,
    head: Rc<Head>,
    /// In memory already, because it was compressed just now.
    packed: Option<Bytes>,
}

impl Asking<'_> {
    /// The response with the file `path`, which `entry` is about, and `status` if all of it is sent.
    pub(super) async fn file(&self, path: &[u8], entry: &Kept, status: StatusCode) -> Answer {
        match self.attempt(path, entry, status).await {
            Ok(answer) => answer,
            Err(Failure::Changed) => Box::pin(self.again(path, status)).await,
            Err(failure) => Box::pin(self.failed(failure)).await,
        }
    }

    async fn attempt(&self, path: &[u8], entry: &Kept, status: StatusCode) -> Result<Answer, Failure> {
        let chosen = self.choose(path, entry).await?;
        self.send(&chosen, status).await
    }

    /// The file `path` that was changed or replaced while it was read: what is there now is as good an answer, if it stays.
    async fn again(&self, path: &[u8], status: StatusCode) -> Answer {
        let entry = match self.worker.look_up_anew(self.site, path, self.peer.client).await {
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

    async fn choose(&self, path: &[u8], entry: &Kept) -> Result<Chosen, Failure> {
        let opened = entry.result.as_ref().map_err(|errno| *errno)?;
        let accepted = self.site.has_codings().then_some(self.asked.accept_encoding.as_deref()).flatten();
        if let Some(accepted) = accepted.map(|header| Accepted::parse(Some(header))) {
            if let Some(chosen) = Box::pin(self.precompressed(path, &accepted)).await? {
                return Ok(chosen);
            }
            if let Some(chosen) = Box::pin(self.compressed(path, entry, opened, &accepted)).await? {
                return Ok(chosen);
            }
        }
        let head = entry.made.head(self.site, path, (opened, entry.seen()), Form::Plain);
        Ok(Chosen { entry: Rc::clone(entry), head, packed: None })
    }

    /// A file beside it that has been compressed before, the one the client likes best.
    async fn precompressed(&self, path: &[u8], accepted: &Accepted) -> Result<Option<Chosen>, Failure> {
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
                let head = entry.made.head(self.site, path, (opened, entry.seen()), Form::Stored(coding));
                return Ok(Some(Chosen { entry, head, packed: None }));
            }
            codings.retain(|other| *other != coding);
        }
        Ok(None)
    }

    /// The file compressed now, or a moment ago for somebody else. A range is of the file as it is: it is not worth compressing all.
    async fn compressed(
        &self,
        path: &[u8],
        entry: &Kept,
        opened: &Opened,
        accepted: &Accepted,
    ) -> Result<Option<Chosen>, Failure> {
        let site = self.site;
        let fits = opened.len() >= site.compress.min_bytes;
        let Some(coding) = accepted.best(&site.codings).filter(|_| fits && self.asked.range.is_none()) else {
            return Ok(None);
        };
        let plain = entry.made.head(site, path, (opened, entry.seen()), Form::Plain);
        if !site.types.is_compressible(&plain.content_type) {
            return Ok(None);
        }
        if opened.len() > site.compress.max_bytes {
            self.say_too_large(path, opened.len());
            return Ok(None);
        }
        let packed = entry.made.packed[coding as usize].get_or_try_init(|| self.pack(entry, coding)).await?;
        Ok(packed.clone().map(|packed| {
            let head = entry.made.head(site, path, (opened, entry.seen()), Form::Packed(coding));
            Chosen { entry: Rc::clone(entry), head, packed: Some(packed) }
        }))
    }

    fn say_too_large(&self, path: &[u8], bytes: u64) {
        // Relaxed: a second line would do no harm.
        if !self.site.said_too_large.swap(true, Ordering::Relaxed) {
            let (path, most) = (self.site.below_base(path), self.site.compress.max_bytes);
            let message = || {
                let path = path.escape_ascii();
                format!(
                    "'{path}' has {bytes} bytes and is sent uncompressed, as all files above {most} bytes ('--compress-max')"
                )
            };
            self.worker.report(Trouble::Compress, message);
        }
    }

    async fn pack(&self, entry: &Kept, coding: Coding) -> Result<Option<Bytes>, Failure> {
        let worker = self.worker;
        let (body, _) = worker.cache.body(entry, &worker.files, self.peer.client).await?;
        let pack = move || compress::smaller(coder(coding), &body.bytes);
        let packed = worker.files.pool.run(self.peer.client, Resource::Cpu, pack).await?;
        // What cannot be compressed is sent as it is.
        let packed = packed.ok().flatten().map(Bytes::from);
        worker.cache.charge(entry, packed.as_ref().map_or(0, Bytes::len));
        Ok(packed)
    }

    async fn send(&self, chosen: &Chosen, status: StatusCode) -> Result<Answer, Failure> {
        let (method, conditions, validators) =
            (&self.request.method, self.asked.conditions(), chosen.head.validators());
        match evaluate(method, &conditions, &validators) {
            Outcome::Proceed => {}
            Outcome::NotModified => return Ok(not_modified(&chosen.head)),
            Outcome::PreconditionFailed => {
                return Ok(Box::pin(self.error(StatusCode::PRECONDITION_FAILED)).await);
            }
        }
        let (from, size, source) = self.body(chosen).await?;
        let range = self.asked.range.filter(|_| ranges_apply(method, &conditions, &validators));
        let limit = self.plan.limits.ranges;
        let selection = match range.map_or(Selection::Whole, |range| select(range.as_bytes(), size, limit)) {
            // The frame of several ranges would be in the coding, too.
            Selection::Many(_) if chosen.head.is_coded => Selection::Whole,
            selection => selection,
        };
        let mut answer = Answer { fields: fields(&chosen.head), source, ..Answer::empty(status) };
        match selection {
            Selection::Whole => answer.content = from.only(0..size),
            Selection::One(range) => partial(&mut answer, from, range, size),
            Selection::Many(ranges) => several(&mut answer, from, ranges, size, &chosen.head),
            Selection::Unsatisfiable => {
                let answer = Box::pin(self.error(StatusCode::RANGE_NOT_SATISFIABLE)).await;
                return Ok(answer.with(header::CONTENT_RANGE, unsatisfied(size)));
            }
        }
        Ok(answer)
    }

    /// The bytes, or how to get at them, and how many they are.
    async fn body(&self, chosen: &Chosen) -> Result<(From, u64, Source), Failure> {
        let (worker, entry) = (self.worker, &chosen.entry);
        if let Some(packed) = &chosen.packed {
            return Ok((self.short(packed.clone().into()), packed.len() as u64, Source::Cache));
        }
        let opened = entry.result.as_ref().map_err(|errno| *errno)?;
        let head_only = self.request.method == Method::HEAD;
        if let Some(body) = entry.body.get().cloned() {
            let source = if entry.was_kept() { Source::Cache } else { Source::Pool };
            let size = body.bytes.len() as u64;
            return Ok((self.short(body), size, source));
        }
        if worker.cache.takes(entry, opened.len()) && !head_only {
            let (body, source) = worker.cache.body(entry, &worker.files, self.peer.client).await?;
            let size = body.bytes.len() as u64;
            return Ok((self.short(body), size, source));
        }
        let reader = Reader {
            files: Rc::clone(&worker.files),
            opened: opened.clone(),
            at: 0,
            end: opened.len(),
            parts: self.peer.parts.clone().filter(|_| self.peer.may_share),
            client: self.peer.client,
            has_sent: false,
            is_first: true,
            tail: Tail::default(),
            begun: None,
            arrived: None,
            outbox: self.peer.outbox.clone(),
            most: usize::MAX,
        };
        Ok((From::File(Box::new(reader)), opened.len(), Source::Other))
    }

    fn short(&self, body: Short) -> From {
        From::Short(body, self.peer.parts.clone())
    }
}

fn fields(head: &Head) -> HeaderMap {
    // Date, and what others may add.
    let mut fields = HeaderMap::with_capacity(head.fields.len() + 4);
    for (name, value) in &head.fields {
        fields.append(name.clone(), value.clone());
    }
    fields
}

/// Without what is about a content there is none of (RFC 9110, section 15.4.5).
fn not_modified(head: &Head) -> Answer {
    let mut answer = Answer { fields: fields(head), ..Answer::empty(StatusCode::NOT_MODIFIED) };
    for name in [header::CONTENT_TYPE, header::CONTENT_ENCODING, header::ACCEPT_RANGES] {
        answer.fields.remove(name);
    }
    answer
}

fn partial(answer: &mut Answer, from: From, range: Range<u64>, size: u64) {
    answer.status = StatusCode::PARTIAL_CONTENT;
    answer.fields.insert(header::CONTENT_RANGE, content_range(&range, size));
    answer.content = from.only(range);
}

fn several(answer: &mut Answer, from: From, ranges: Vec<Range<u64>>, size: u64, head: &Head) {
    let random = RandomState::new().hash_one(&ranges);
    let content_type: Option<HeaderValue> = Some(head.content_type.clone());
    let parts = Multipart::new(ranges, size, content_type, random);
    answer.status = StatusCode::PARTIAL_CONTENT;
    answer.fields.insert(header::CONTENT_TYPE, parts.content_type());
    answer.content = Content::Pieces(Box::new(Pieces::new(parts, from)));
}

pub(super) fn coder(coding: Coding) -> compress::Coder {
    match coding {
        Coding::Br => compress::br,
        Coding::Zstd => compress::zstd,
        Coding::Gzip => compress::gzip,
    }
}
