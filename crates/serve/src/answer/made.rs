//! What is made of a file once and sent many times: its header fields, its validators, its compressed bodies.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tokio::sync::OnceCell;

use crate::conditional::Validators;
use crate::date;
use crate::etag::{Stamp, Strength, is_dated};
use crate::files::Opened;
use crate::negotiate::Coding;
use crate::plan::Site;

/// What has been made of one file.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// Of the file as it is, and in each coding.
    heads: [RefCell<Option<Rc<Head>>>; 4],
    /// Compressed bodies by [`Coding`]; `None` where that does not pay.
    pub(crate) packed: [OnceCell<Option<Bytes>>; 3],
}

/// The bytes that a file is sent as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Its own.
    Plain,
    /// Those of a file beside it, in a coding.
    Stored(Coding),
    /// Compressed while serving.
    Packed(Coding),
}

impl Form {
    fn coding(self) -> Option<Coding> {
        match self {
            Self::Plain => None,
            Self::Stored(coding) | Self::Packed(coding) => Some(coding),
        }
    }
}

/// A response's header fields, and what conditions are compared with.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content_type: HeaderValue,
    etag: HeaderValue,
    last_modified_s: Option<u64>,
    settled: bool,
    has_codings: bool,
    pub(crate) is_coded: bool,
}

impl Head {
    /// Builds the header fields of `opened`, the file of `site` at `path` as last observed at
    /// `seen`, for a body in `form`.
    fn new(site: &Site, path: &[u8], opened: &Opened, seen: SystemTime, form: Form) -> Self {
        let meta = &opened.meta;
        let time = if is_dated(meta.modified.sec) { meta.modified } else { meta.changed };
        let mut stamp = Stamp { mtime_s: time.sec, mtime_ns: time.nsec, size: opened.len(), inode: None };
        let settled = stamp.settled(seen);
        // As long as a time may be that of two states, the inode tells at least those that were put
        // in each other's place.
        stamp.inode = (site.etag_has_inode || !settled).then_some(meta.ino);
        let strength = match form {
            _ if !settled => Strength::New,
            Form::Packed(_) => Strength::Weak,
            Form::Plain | Form::Stored(_) => Strength::Strong,
        };
        let since = seen.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let last_modified_s = date::last_modified(meta.modified.sec, since);
        let (coding, content_type) = (form.coding(), site.types.of(path));
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

    fn fill(&mut self, site: &Site, path: &[u8], coding: Option<Coding>) {
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
        apply(site, path, &mut fields);
        if self.has_codings {
            fields.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        self.fields = fields.iter().map(|(name, value)| (name.clone(), own(value))).collect();
    }

    /// What conditions are compared with.
    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators {
            etag: Some(self.etag.as_bytes()),
            last_modified_s: self.last_modified_s,
            date_is_strong: self.settled && !self.has_codings,
        }
    }
}

/// A copy: values of the site are counted by all threads, for each response, and would be fought for.
fn own(value: &HeaderValue) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone())
}

/// Sets and removes what the site's rules say for `path`.
pub(crate) fn apply(site: &Site, path: &[u8], fields: &mut HeaderMap) {
    if site.rules.headers.is_empty() {
        return;
    }
    let resolved = site.rules.headers.resolve(&site.below_base(path));
    resolved.remove.iter().for_each(|name| drop(fields.remove(name)));
    resolved.set.into_iter().for_each(|(name, value)| drop(fields.insert(name, value)));
}

impl Made {
    /// The head of `opened`, made now unless it is known. One that was made before the file had settled is made again.
    pub(crate) fn head(
        &self,
        site: &Site,
        path: &[u8],
        (opened, seen): (&Opened, SystemTime),
        form: Form,
    ) -> Rc<Head> {
        let mut slot = self.heads[form.coding().map_or(0, |coding| 1 + coding as usize)].borrow_mut();
        match &*slot {
            Some(head) if head.settled => Rc::clone(head),
            _ => {
                let head = Rc::new(Head::new(site, path, opened, seen, form));
                *slot = Some(Rc::clone(&head));
                head
            }
        }
    }
}
