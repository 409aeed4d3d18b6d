//! Responses with an archive of a directory: whether the site offers archives, the limit on
//! concurrent archives, the headers.

use std::sync::Arc;

use fathom_files::FileError;
use fathom_files::pool::Resource;
use fathom_io::FileType;
use http::{HeaderValue, Method, StatusCode, header};
use percent_encoding::percent_encode;

use super::directory::root_or_path;
use super::{Answer, RequestContext, plain};
use crate::archive::{Archive, ArchiveFormat, ArchiveSource};
use crate::body::{ArchiveBody, ArchivePool, Content};
use crate::cache::is_forbidden;
use crate::path::NAME;
use crate::places::PlaceRefusal;

/// The name of the top directory in an archive of a site's root. In an archive of a mount it is the
/// last name of the mount's path.
const ROOT_NAME: &[u8] = b"files";

impl RequestContext<'_> {
    /// Returns whether the query asks a site that offers archives for one that it does not offer.
    pub(super) fn asks_for_no_archive(&self) -> bool {
        let query = self.request.uri.query().unwrap_or_default();
        let asks =
            query.split('&').any(|pair| pair.split_once('=').is_some_and(|(name, _)| name == "archive"));
        asks && !self.site.archives.is_empty() && self.archive_format().is_none()
    }

    /// Returns the archive format in the query, if the site offers it.
    pub(super) fn archive_format(&self) -> Option<ArchiveFormat> {
        if self.site.archives.is_empty() {
            return None;
        }
        let pairs = self.request.uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
        let format = pairs
            .filter(|(name, _)| *name == "archive")
            .find_map(|(_, value)| ArchiveFormat::parse(value))?;
        self.site.archives.contains(&format).then_some(format)
    }

    /// Returns the response with the directory `path` as an archive.
    pub(super) async fn archive(&self, path: &[u8], format: ArchiveFormat) -> Answer {
        match self.begin_archive(path, format).await {
            Ok(Some(answer)) => answer,
            Ok(None) => self.not_found(path).await,
            Err(failure) => self.failed(failure).await,
        }
    }

    async fn begin_archive(&self, path: &[u8], format: ArchiveFormat) -> Result<Option<Answer>, FileError> {
        let root = self.worker.root(&self.site.root, self.peer.client, self.worker.now()).await?;
        let entry = self.worker.look_up(self.site, root_or_path(path), self.peer.client).await?;
        let opened = match &entry.result {
            Ok(opened) if opened.kind() == FileType::Directory => opened.clone(),
            Err(errno) if is_forbidden(*errno) => return Err((*errno).into()),
            Ok(_) | Err(_) => return Ok(None),
        };
        let mut names =
            self.site.mount_path.split(|byte| *byte == b'/').chain(path.split(|byte| *byte == b'/'));
        let name = names.rfind(|name| !name.is_empty()).unwrap_or(ROOT_NAME);
        let mut answer = Answer::empty(StatusCode::OK)
            .with(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()))
            .with(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))
            .with(header::CONTENT_DISPOSITION, disposition(name, format));
        answer.has_unknown_length = true;
        if self.request.method == Method::GET {
            let (shared, limits) = (&self.worker.shared, &self.plan.limits);
            let slot = shared.archives.enter(self.peer.place_client(), limits.archives, self.worker.now());
            let slot = match slot {
                Ok(slot) => slot,
                Err(PlaceRefusal::Full) => return Err(FileError::Busy),
                Err(PlaceRefusal::ClientFull) => return Ok(Some(self.refuse_client(path))),
            };
            let charge = shared.listings.budget().charge(limits.listing_bytes);
            let site = self.site;
            let source = ArchiveSource {
                beneath: Arc::clone(&root.beneath),
                links: site.links,
                dotfiles: site.dotfiles,
                filter: site.entry_filter(self.user.get().map(|user| &**user)),
            };
            let (dir, prefix) = (path.to_vec(), name.to_vec());
            let begin = move || Archive::new(source, &dir, &opened, prefix, format, charge);
            let (pool, on) = (self.worker.files.pool().clone(), Resource::Listing(root.dev));
            let pool = ArchivePool { pool, client: self.peer.client, on };
            let archive = pool.pool.run(pool.client, on, begin).await??;
            slot.keep(Box::new(archive), 0, shared.clock.now());
            let path = self.site.below_base(path);
            let body = ArchiveBody::begin(pool, slot, path, shared.clock.clone()).await?;
            answer.content = Content::Archive(Box::new(body));
        }
        Ok(Some(self.with_site_headers(answer, path)))
    }
}

impl RequestContext<'_> {
    /// Returns the response to a client that has as many places as one may have.
    pub(super) fn refuse_client(&self, path: &[u8]) -> Answer {
        let after = HeaderValue::from_static("1");
        let answer = plain(StatusCode::TOO_MANY_REQUESTS).with(header::RETRY_AFTER, after);
        self.with_site_headers(answer, path)
    }
}

/// Returns the `Content-Disposition` that makes browsers save the archive of the directory `name`
/// (RFC 6266).
fn disposition(name: &[u8], format: ArchiveFormat) -> HeaderValue {
    let plain = |byte: &u8| match byte {
        b'-' | b'.' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(*byte),
        _ => '_',
    };
    let (ascii, extension) = (name.iter().map(plain).collect::<String>(), format.extension());
    let encoded = percent_encode(name, NAME);
    let text =
        format!("attachment; filename=\"{ascii}.{extension}\"; filename*=UTF-8''{encoded}.{extension}");
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_bytes_is_a_header() {
        let table: [(&[u8], &str); 3] = [
            (b"a-b.c", "attachment; filename=\"a-b.c.zip\"; filename*=UTF-8''a-b.c.zip"),
            (b"\"a\r\nb\\", "attachment; filename=\"_a__b_.zip\"; filename*=UTF-8''%22a%0D%0Ab%5C.zip"),
            (b"\xff\xc3\xa9", "attachment; filename=\"___.zip\"; filename*=UTF-8''%FF%C3%A9.zip"),
        ];
        for (name, expected) in table {
            assert_eq!(disposition(name, ArchiveFormat::Zip), expected);
        }
    }
}
