//! Directories: the file that stands for one, the list of what is in it, the way to its own address.

use std::ffi::CStr;
use std::os::fd::AsFd;
use std::sync::Arc;

use fathom_io::beneath::{Links, Patience};
use fathom_io::{Errno, FileType};
use http::{HeaderValue, StatusCode, header};

use super::{Answer, Asking};
use crate::files::pool::Resource;
use crate::files::{Failure, Opened};
use crate::listing::{Listing, Order, html, json, read};
use crate::negotiate::prefers_json;
use crate::pages;
use crate::path::dir_location;

impl Asking<'_> {
    /// The directory `path`: its index, or the list of it.
    pub(super) async fn directory(&self, path: &[u8]) -> Answer {
        for index in &self.site.index {
            let file = below(path, index);
            match self.worker.look_up(self.site, &file, self.peer.client).await {
                Ok(entry) => match &entry.result {
                    Ok(opened) if opened.kind() == FileType::Regular => {
                        return self.file(&file, &entry, StatusCode::OK).await;
                    }
                    Err(Errno::ACCESS) => return self.error(StatusCode::FORBIDDEN).await,
                    Ok(_) | Err(_) => {}
                },
                Err(failure) => return self.failed(failure).await,
            }
        }
        if !self.site.listing {
            return self.nothing(path).await;
        }
        match self.listing(path).await {
            Ok(Some(listing)) => self.listed(path, listing),
            Ok(None) => self.nothing(path).await,
            Err(Failure::System(Errno::ACCESS)) => self.error(StatusCode::FORBIDDEN).await,
            Err(failure) => self.failed(failure).await,
        }
    }

    /// The way to a directory that was asked for without its slash, from which the links in it would lead elsewhere.
    pub(super) fn to_directory(&self, path: &[u8]) -> Answer {
        let query = self.request.uri.query().map(str::as_bytes);
        match HeaderValue::try_from(dir_location(path, query)) {
            Ok(location) => {
                let answer = Answer::empty(StatusCode::MOVED_PERMANENTLY).with(header::LOCATION, location);
                self.dressed(answer, path)
            }
            Err(_) => Answer::empty(StatusCode::BAD_REQUEST),
        }
    }

    /// What is in the directory `path`; `None` if it is none.
    async fn listing(&self, path: &[u8]) -> Result<Option<Listing>, Failure> {
        let path = if path.is_empty() { b"." } else { path };
        let entry = self.worker.look_up(self.site, path, self.peer.client).await?;
        let opened = match &entry.result {
            Ok(opened) if opened.kind() == FileType::Directory => opened.clone(),
            Err(Errno::ACCESS) => return Err(Errno::ACCESS.into()),
            Ok(_) | Err(_) => return Ok(None),
        };
        let (root, path) = (self.site.root.clone(), path.to_vec());
        let (dotfiles, links) = (self.site.dotfiles, self.site.links);
        let list = move || {
            let beneath = Arc::clone(&root.beneath);
            let link = |name: &CStr| match links {
                Links::Never => None,
                Links::Within | Links::Follow => {
                    beneath.stat(&below(&path, name.to_bytes()), Patience::Wait).ok().flatten()
                }
            };
            list(&opened, dotfiles, link)
        };
        let on = Resource::Device(self.site.root.dev);
        Ok(Some(self.worker.files.pool.run(self.peer.client, on, list).await??))
    }

    fn listed(&self, path: &[u8], mut listing: Listing) -> Answer {
        let order = Order::from_query(self.request.uri.query().unwrap_or_default());
        listing.sort(order);
        let json_wanted = prefers_json(self.asked.accept.as_deref());
        let shown = if path.is_empty() { b"/".to_vec() } else { [b"/", path, b"/"].concat() };
        let mut answer = if json_wanted {
            match json(&shown, &listing) {
                Ok(text) => Answer::bytes(StatusCode::OK, HeaderValue::from_static("application/json"), text),
                Err(_) => return Answer::empty(StatusCode::INTERNAL_SERVER_ERROR),
            }
        } else {
            let page = html(&shown, &listing, order);
            Answer::bytes(StatusCode::OK, HeaderValue::from_static("text/html; charset=utf-8"), page)
                .with(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(pages::CSP))
        };
        answer.fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        self.dressed(answer, path).by_accept()
    }
}

fn list(
    opened: &Opened,
    dotfiles: bool,
    link: impl Fn(&CStr) -> Option<fathom_io::Meta>,
) -> Result<Listing, Errno> {
    read(opened.fd()?.as_fd(), dotfiles, link)
}

/// `name` in the directory `path`, which may be the root.
fn below(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() }
}
