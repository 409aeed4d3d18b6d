//! The representations of a file (RFC 9110, section 3.2), made once and sent many times: headers,
//! validators, compressed bodies.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::SystemTime;

use bytes::Bytes;
use fathom_files::OpenFile;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use tokio::sync::OnceCell;

use crate::conditional::Validators;
use crate::date;
use crate::etag::{FileStamp, TagStrength, is_dated};
use crate::negotiate::Coding;
use crate::plan::SitePlan;

/// The representations of one file.
#[derive(Debug, Default)]
pub(crate) struct FileRepresentations {
    /// The heads: identity first, then by [`Coding`].
    heads: [RefCell<Option<Rc<RepresentationHead>>>; 4],
    /// The compressed bodies by [`Coding`]; `None` where compression does not pay.
    pub(crate) compressed: [OnceCell<Option<Bytes>>; 3],
}

/// The origin of the bytes of a representation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Variant {
    /// The file itself, without a coding.
    Identity,
    /// A file beside it, compressed in advance.
    Precompressed(Coding),
    /// Compressed while serving.
    Compressed(Coding),
}

impl Variant {
    fn coding(self) -> Option<Coding> {
        match self {
            Self::Identity => None,
            Self::Precompressed(coding) | Self::Compressed(coding) => Some(coding),
        }
    }
}

/// The headers and validators of one representation.
#[derive(Debug)]
pub(crate) struct RepresentationHead {
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content_type: HeaderValue,
    etag: HeaderValue,
    last_modified_s: Option<u64>,
    settled: bool,
    has_codings: bool,
    pub(crate) is_coded: bool,
}

impl RepresentationHead {
    /// Builds the header fields of `opened`, the file of `site` at `path` as last observed at
    /// `seen`, for a body in `variant`.
    fn new(site: &SitePlan, path: &[u8], opened: &OpenFile, seen: SystemTime, variant: Variant) -> Self {
        let meta = &opened.meta;
        let time = if is_dated(meta.mtime.sec) { meta.mtime } else { meta.ctime };
        let mut stamp = FileStamp { mtime_s: time.sec, mtime_ns: time.nsec, size: opened.len(), inode: None };
        let settled = stamp.settled(seen);
        // While two states of the file may have the same time, the inode at least distinguishes
        // files that replaced each other.
        stamp.inode = (site.etag_has_inode || !settled).then_some(meta.ino);
        let strength = match variant {
            _ if !settled => TagStrength::Unsettled,
            Variant::Compressed(_) => TagStrength::Weak,
            Variant::Identity | Variant::Precompressed(_) => TagStrength::Strong,
        };
        let since = seen.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let last_modified_s = date::last_modified(meta.mtime.sec, since);
        let (coding, content_type) = (variant.coding(), site.types.of(path));
        let has_codings = coding.is_some()
            || site.precompressed
            || (!site.codings.is_empty() && site.types.is_compressible(&content_type));
        let etag = stamp.tag(coding, strength);
        let mut head = Self {
            fields: Vec::new(),
            content_type,
            etag,
            last_modified_s,
            settled,
            has_codings,
            is_coded: coding.is_some(),
        };
        head.fill(site, path, coding);
        head
    }

    fn fill(&mut self, site: &SitePlan, path: &[u8], coding: Option<Coding>) {
        let mut fields = HeaderMap::with_capacity(8);
        fields.insert(header::CONTENT_TYPE, self.content_type.clone());
        fields.insert(header::ETAG, self.etag.clone());
        fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        if let Some(date) = self.last_modified_s.and_then(date::value) {
            fields.insert(header::LAST_MODIFIED, date);
        }
        if let Some(coding) = coding {
            fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.token()));
        }
        apply(site, path, StatusCode::OK, &mut fields);
        if self.has_codings {
            fields.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        self.fields = fields.iter().map(|(name, value)| (name.clone(), unshared(value))).collect();
    }

    /// Returns the validators with which preconditions are compared.
    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators {
            etag: Some(self.etag.as_bytes()),
            last_modified_s: self.last_modified_s,
            date_is_strong: self.settled && !self.has_codings,
        }
    }
}

/// Copies the bytes of `value`. The values of the site are reference-counted, and a count that all
/// threads change for each response would be contended.
fn unshared(value: &HeaderValue) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone())
}

/// Applies the header rules of `site` for responses of `path` with `status`.
pub(crate) fn apply(site: &SitePlan, path: &[u8], status: StatusCode, fields: &mut HeaderMap) {
    if site.rules.headers.is_empty() {
        return;
    }
    let (rules, path) = (&site.rules.headers, site.below_base(path));
    let is_error = status.is_client_error() || status.is_server_error();
    let resolved = if is_error { rules.resolve_error(&path) } else { rules.resolve(&path) };
    resolved.remove.iter().for_each(|name| drop(fields.remove(name)));
    resolved.set.into_iter().for_each(|(name, value)| drop(fields.insert(name, value)));
}

impl FileRepresentations {
    /// Returns the head of `opened`, made now unless it is known. A head made before the file had
    /// settled is made again.
    pub(crate) fn head(
        &self,
        site: &SitePlan,
        path: &[u8],
        opened: &OpenFile,
        seen: SystemTime,
        variant: Variant,
    ) -> Rc<RepresentationHead> {
        let mut slot = self.heads[variant.coding().map_or(0, |coding| 1 + coding as usize)].borrow_mut();
        match &*slot {
            Some(head) if head.settled => Rc::clone(head),
            _ => {
                let head = Rc::new(RepresentationHead::new(site, path, opened, seen, variant));
                *slot = Some(Rc::clone(&head));
                head
            }
        }
    }
}
