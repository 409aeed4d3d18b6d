//! Listings that requests share: a directory is read once, and each page of it formatted once, for all who ask meanwhile.
//!
//! ```text
//! request ─> look_up ─> directory: read by the pool ─> page: formatted and compressed by the pool ─> pieces of one body
//!                       └ coalesced by path             └ coalesced by directory, view and coding
//! ```
//! A worker only waits and sends. Entries and pages are charged to one budget for as long as anything holds them.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fathom_io::FileType;
use fathom_io::beneath::{Links, Patience, stat};

use super::Shown;
use super::directory::below;
use super::file::coder;
use crate::archive::Format;
use crate::budget::Budget;
use crate::coalesce::{Coalescer, Fresh};
use crate::compress;
use crate::files::pool::{Pace, Pool, Resource};
use crate::files::{Failure, Opened, Root, Version};
use crate::listing::{Listing, Readme, View, html, json, read};
use crate::metrics::ListingLoad;
use crate::negotiate::Coding;

/// The state of listings that all workers share.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    directories: Coalescer<(usize, Box<[u8]>), Arc<Directory>>,
    pages: Coalescer<PageKey, Formatted>,
    budget: Budget,
    reads: Arc<Reads>,
}

/// Counts of directories that are read for listings.
#[derive(Debug, Default)]
struct Reads {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// The entries of a directory as they were read.
#[derive(Debug)]
pub(crate) struct Directory {
    listing: Listing,
    readme: Option<Readme>,
    version: Version,
    /// Tells this reading of a directory from all others.
    number: u64,
    fresh_until: Option<Instant>,
    _charge: crate::budget::Charge,
    pool: Pool,
}

impl Drop for Directory {
    /// Freeing 100,000 names takes milliseconds, and the last to hold them is mostly a worker: the
    /// pool frees them.
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.listing.entries);
        self.pool.spawn(Resource::Cpu, move || drop(entries));
    }
}

impl Fresh for Arc<Directory> {
    fn is_fresh(&self) -> bool {
        is_fresh(self.fresh_until)
    }
}

/// A page as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Formatted {
    /// The body; none if there is no such page.
    pub(crate) body: Option<Bytes>,
    /// The body's coding.
    pub(crate) coding: Option<Coding>,
    fresh_until: Option<Instant>,
}

impl Fresh for Formatted {
    fn is_fresh(&self) -> bool {
        is_fresh(self.fresh_until)
    }
}

fn is_fresh(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() < until)
}

/// A form of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    Html,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PageKey {
    directory: u64,
    view: View,
    form: Form,
    coding: Option<Coding>,
}

/// A directory to be read: what that takes on a thread of the pool.
pub(crate) struct ReadDirectory {
    pub(crate) root: Root,
    /// Below the root; empty for the root itself.
    pub(crate) path: Box<[u8]>,
    pub(crate) opened: Opened,
    pub(crate) dotfiles: bool,
    pub(crate) links: Links,
    /// The access rules that filter the entries, the same for every client.
    pub(crate) shown: Shown,
    /// How long it may be used again, if what it took to read is no longer; none if it must not.
    pub(crate) age: Option<Duration>,
}

/// A page to be formatted.
pub(crate) struct FormatPage {
    /// The directory's path below the base, with a slash at both ends.
    pub(crate) shown: Box<[u8]>,
    /// Formats that the page offers.
    pub(crate) archives: Vec<Format>,
    pub(crate) view: View,
    pub(crate) form: Form,
    pub(crate) coding: Option<Coding>,
    /// A shorter page is not compressed.
    pub(crate) compress_min_bytes: u64,
}

/// Where the work of a listing is done, for whom, and how much memory all of them may take.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) pool: Pool,
    pub(crate) client: u64,
    pub(crate) limit: usize,
}

impl Listings {
    /// Returns the entries of a directory, read now or a moment ago.
    pub(crate) async fn directory(
        &self,
        means: &Means,
        job: ReadDirectory,
    ) -> Result<Arc<Directory>, Failure> {
        let key = (job.root.number, job.path.clone());
        let version = job.opened.version();
        let start = || {
            self.make_room(means.limit);
            let (means, budget, reads) = (means.clone(), self.budget.clone(), Arc::clone(&self.reads));
            async move {
                let on = Resource::Listing(job.root.dev);
                let (pool, limit) = (means.pool.clone(), means.limit);
                let run = move || reads.count(|number| job.run(number, &budget, limit, pool));
                means.pool.run(means.client, on, run).await?
            }
        };
        self.directories.get(&key, |known| known.version == version, start).await
    }

    /// Returns a page of `directory`.
    pub(crate) async fn page(
        &self,
        means: &Means,
        directory: Arc<Directory>,
        job: FormatPage,
    ) -> Result<Formatted, Failure> {
        let (view, form, coding) = (job.view.clone(), job.form, job.coding);
        let key = PageKey { directory: directory.number, view, form, coding };
        let start = || {
            self.make_room(means.limit);
            let (means, budget) = (means.clone(), self.budget.clone());
            async move {
                let run = move || job.run(&directory, &budget, means.limit);
                means.pool.run(means.client, Resource::Cpu, run).await?
            }
        };
        self.pages.get(&key, |_| true, start).await
    }

    /// Returns the memory that listings and archives share.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Drops what is kept and too old.
    pub(crate) fn sweep(&self) {
        self.pages.sweep(false);
        self.directories.sweep(false);
    }

    /// Returns what metrics say.
    pub(crate) fn load(&self) -> ListingLoad {
        // Ends first: none may have ended that has not begun.
        let ended = self.reads.ended.load(Ordering::Acquire);
        let reads = self.reads.begun.load(Ordering::Relaxed);
        ListingLoad { reads, reading: reads.saturating_sub(ended), bytes: self.budget.used() as u64 }
    }

    /// Drops what is only kept before it takes more than half of the memory: what is under way must
    /// find room.
    fn make_room(&self, limit: usize) {
        let all = self.budget.used() > limit / 2;
        self.pages.sweep(all);
        self.directories.sweep(all);
    }
}

impl Reads {
    /// Counts `read` and gives it its number.
    fn count<T>(&self, read: impl FnOnce(u64) -> T) -> T {
        let result = read(self.begun.fetch_add(1, Ordering::Relaxed));
        // Release pairs with the Acquire load in `Listings::load`: a thread that observes the end
        // of a read also observes its beginning, so `begun` never appears smaller than `ended`.
        self.ended.fetch_add(1, Ordering::Release);
        result
    }
}

impl ReadDirectory {
    fn run(self, number: u64, budget: &Budget, limit: usize, pool: Pool) -> Result<Arc<Directory>, Failure> {
        let (start, mut pace, mut charge) = (Instant::now(), Pace::new(), budget.charge(limit));
        let mut tick = |held| {
            pace.step();
            charge.grow_to(held)
        };
        let mut listing =
            read(self.opened.fd()?.as_fd(), self.dotfiles, |name| self.target(name), &mut tick)?;
        listing.entries.retain(|entry| self.shown.lists(&below(&self.path, &entry.name)));
        let readme = listing.readme().and_then(|name| self.readme(name));
        let memory = listing.memory() + readme.as_ref().map_or(0, |readme| readme.text.capacity());
        charge.grow_to(memory)?;
        charge.shrink_to(memory);
        let now = Instant::now();
        // A listing stays fresh for at least the time its read took, so that reading uses at most
        // half of one processor.
        let fresh_until = self.age.map(|age| now + age.max(now - start));
        Ok(Arc::new(Directory {
            listing,
            readme,
            version: self.opened.version(),
            number,
            fresh_until,
            _charge: charge,
            pool,
        }))
    }

    /// Reads the README `name`, which requests could have; nothing if that fails.
    fn readme(&self, name: &[u8]) -> Option<Readme> {
        let path = below(&self.path, name);
        if !self.shown.includes(&path, &self.path) {
            return None;
        }
        let file = self.root.beneath.open(&path, Patience::Wait).ok().flatten()?;
        if stat(file.as_fd()).ok()?.file_type() != FileType::Regular {
            return None;
        }
        let mut bytes = Vec::new();
        File::from(file).take(Readme::BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
        Readme::new(name, bytes)
    }

    /// Returns the metadata of the target of the link `name`, if requests could have it.
    fn target(&self, name: &CStr) -> Option<fathom_io::Meta> {
        match self.links {
            Links::Never => None,
            Links::Within | Links::Follow => {
                self.root.beneath.stat(&below(&self.path, name.to_bytes()), Patience::Wait).ok().flatten()
            }
        }
    }
}

impl FormatPage {
    fn run(self, directory: &Directory, budget: &Budget, limit: usize) -> Result<Formatted, Failure> {
        let (mut pace, mut charge) = (Pace::new(), budget.charge(limit));
        let mut tick = |held| {
            pace.step();
            charge.grow_to(held)
        };
        let fresh_until = directory.fresh_until;
        let Some(page) = directory.listing.page(&self.shown, &self.view, &mut tick)? else {
            return Ok(Formatted { body: None, coding: None, fresh_until });
        };
        let text = match self.form {
            Form::Html => html(&page, directory.readme.as_ref(), &self.archives, &mut tick)?.into_bytes(),
            Form::Json => json(&page, &mut tick)?,
        };
        drop(page);
        let coding = self.coding.filter(|_| text.len() as u64 >= self.compress_min_bytes);
        let coded = coding.and_then(|coding| Some((compress::smaller(coder(coding), &text).ok()??, coding)));
        let (body, coding) = coded.map_or((text, None), |(coded, coding)| (coded, Some(coding)));
        charge.grow_to(body.capacity())?;
        Ok(Formatted { body: Some(charge.attach(body)), coding, fresh_until })
    }
}

#[cfg(test)]
mod tests;
