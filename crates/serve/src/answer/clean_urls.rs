//! Clean URLs: files that are found without the suffix of their names, and the redirects to the one
//! clean address of each.

use std::rc::Rc;

use fathom_files::FileError;
use fathom_io::{Errno, FileType};
use http::StatusCode;

use super::{Answer, RequestContext, is_unservable};
use crate::cache::CacheEntry;
use crate::path::is_below;
use crate::representation::FileRepresentations;

type SuffixMatch = (Vec<u8>, Rc<CacheEntry<FileRepresentations>>);

impl RequestContext<'_> {
    /// Returns the response for `path`, which names no file, from the first suffix with which it
    /// names one.
    pub(super) async fn respond_with_suffix(&self, path: &[u8]) -> Option<Answer> {
        let (file, entry) = match self.try_suffixes(path).await {
            Ok(found) => found?,
            Err(failure) => return Some(self.failed(failure).await),
        };
        // Links in a directory's index are relative to the directory, so its address has to end in
        // a slash.
        let dir = file.iter().rposition(|byte| *byte == b'/').and_then(|slash| file.get(..=slash));
        match dir.filter(|dir| self.site.clean.redirects && dir.len() > path.len()) {
            Some(dir) => Some(self.redirect(StatusCode::MOVED_PERMANENTLY, path, dir)),
            None => match self.authorize(&file).await {
                Ok(()) => Some(self.file(&file, &entry, StatusCode::OK).await),
                Err(refusal) => Some(refusal),
            },
        }
    }

    /// Returns the redirect from the file `path` to its clean address, if the clean address leads
    /// to this file.
    pub(super) async fn redirect_to_clean(&self, path: &[u8]) -> Option<Answer> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if self.site.index.first().is_some_and(|index| index == name) {
            let dir = path.get(..path.len() - name.len()).unwrap_or_default();
            return Some(self.redirect(StatusCode::MOVED_PERMANENTLY, path, dir));
        }
        let suffixes = self.site.clean.suffixes.iter().filter(|suffix| !suffix.starts_with(b"/"));
        for clean in suffixes.filter_map(|suffix| path.strip_suffix(&suffix[..])) {
            if !clean.is_empty() && !clean.ends_with(b"/") && self.resolves_to(clean, path).await {
                return Some(self.redirect(StatusCode::MOVED_PERMANENTLY, path, clean));
            }
        }
        None
    }

    /// Returns the redirect from the directory address `path`, where no directory exists, to the
    /// file with that clean address.
    pub(super) async fn redirect_without_slash(&self, path: &[u8]) -> Option<Answer> {
        let is_none = |found: Option<SuffixMatch>| {
            found.filter(|(file, _)| !file.get(path.len()..).unwrap_or_default().starts_with(b"/"))
        };
        is_none(self.try_suffixes(path).await.ok()?)?;
        Some(self.redirect(StatusCode::MOVED_PERMANENTLY, path, path))
    }

    async fn resolves_to(&self, clean: &[u8], file: &[u8]) -> bool {
        let own = self.worker.look_up(self.site, clean, self.peer.client).await;
        let has_own = own.is_ok_and(|entry| is_file(&entry));
        !has_own && matches!(self.try_suffixes(clean).await, Ok(Some((found, _))) if found == file)
    }

    async fn try_suffixes(&self, path: &[u8]) -> Result<Option<SuffixMatch>, FileError> {
        for suffix in self.site.clean.suffixes.iter().filter(|_| !path.is_empty()) {
            let file = [path, suffix].concat();
            if !is_below(&file) || self.site.rules.access.hides(&file) {
                continue;
            }
            let entry = self.worker.look_up(self.site, &file, self.peer.client).await?;
            match &entry.result {
                Ok(_) if is_file(&entry) => return Ok(Some((file, entry))),
                found if is_unservable(found) => return Err(Errno::ACCESS.into()),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(None)
    }
}

fn is_file(entry: &CacheEntry<FileRepresentations>) -> bool {
    entry.result.as_ref().is_ok_and(|opened| opened.kind() == FileType::Regular)
}
