//! Listings shared between requests: a directory is read once, and each page of it formatted once,
//! for all requests that arrive meanwhile.
//!
//! ```text
//! request ─> look_up ─> directory ────────────> page ──────────────────> pieces of one body
//!                       read by the pool,       formatted and compressed
//!                       coalesced by path       by the pool, coalesced by
//!                                               directory, view and coding
//! ```
//! A worker only waits and sends. Entries and pages are charged to one budget for as long as they
//! are referenced.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fathom_files::pool::{Resource, ThreadPool, TimeSlice};
use fathom_files::{FileError, FileVersion, OpenFile, Root};
use fathom_io::beneath::{Links, LookupMode, stat};
use fathom_io::{Clock, FileType};

use crate::archive::format::ArchiveFormat;
use crate::budget::Budget;
use crate::coalesce::{Coalescer, Fresh};
use crate::compress::{self, coder};
use crate::listing::{Listing, ListingView, Readme, html, json, read};
use crate::metrics::ListingGauges;
use crate::negotiate::Coding;
use crate::path::join;
use crate::rules::entry_filter::EntryFilter;

/// The listings that all workers share.
#[derive(Debug, Default)]
pub(crate) struct ListingCache {
    directories: Coalescer<DirectoryKey, Arc<DirectorySnapshot>>,
    pages: Coalescer<PageKey, FormattedPage>,
    budget: Budget,
    reads: Arc<ReadCounts>,
}

/// The number of a root, a path below it, and the filter of the names that were read.
type DirectoryKey = (usize, Box<[u8]>, String);

/// Counts of the directories read for listings.
#[derive(Debug, Default)]
struct ReadCounts {
    started: AtomicU64,
    ended: AtomicU64,
}

/// The entries of a directory at the time it was read.
#[derive(Debug)]
pub(crate) struct DirectorySnapshot {
    listing: Listing,
    readme: Option<Readme>,
    version: FileVersion,
    /// A number that no other snapshot of any directory has.
    number: u64,
    freshness: Freshness,
    _charge: crate::budget::Charge,
    pool: ThreadPool,
}

impl DirectorySnapshot {
    /// Returns whether it has all entries of the directory.
    pub(crate) fn is_complete(&self) -> bool {
        self.listing.complete
    }
}

impl Drop for DirectorySnapshot {
    /// Frees the entries on the pool: 100,000 names take milliseconds, and the last reference is
    /// mostly dropped by a worker.
    fn drop(&mut self) {
        let entries = std::mem::take(&mut self.listing.entries);
        self.pool.spawn(Resource::Cpu, move || drop(entries));
    }
}

impl Fresh for Arc<DirectorySnapshot> {
    fn is_fresh(&self) -> bool {
        self.freshness.lasts()
    }
}

/// A formatted page.
#[derive(Clone, Debug)]
pub(crate) struct FormattedPage {
    /// The body; `None` if the listing has no such page.
    pub(crate) body: Option<Bytes>,
    /// The content coding of the body.
    pub(crate) coding: Option<Coding>,
    freshness: Freshness,
}

impl Fresh for FormattedPage {
    fn is_fresh(&self) -> bool {
        self.freshness.lasts()
    }
}

/// The time until which something may be used again, if it may be at all.
#[derive(Clone, Debug)]
struct Freshness {
    until: Option<Instant>,
    clock: Clock,
}

impl Freshness {
    fn lasts(&self) -> bool {
        self.until.is_some_and(|until| self.clock.now() < until)
    }
}

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ListingFormat {
    Html,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PageKey {
    directory: u64,
    view: ListingView,
    format: ListingFormat,
    coding: Option<Coding>,
}

/// A job for the pool: read a directory.
pub(crate) struct ReadDirectory {
    pub(crate) root: Root,
    /// The path below the root; empty for the root itself.
    pub(crate) path: Box<[u8]>,
    pub(crate) opened: OpenFile,
    pub(crate) dotfiles: bool,
    /// Only names that pass its filter are read.
    pub(crate) view: ListingView,
    pub(crate) links: Links,
    /// The access rules that filter the entries, the same for every client.
    pub(crate) filter: EntryFilter,
    /// How long the snapshot may be used again, or longer if reading takes longer; `None` if it
    /// must not be used again.
    pub(crate) age: Option<Duration>,
}

/// A job for the pool: format a page.
pub(crate) struct FormatPage {
    /// The directory's path below the base, with a slash at both ends.
    pub(crate) path: Box<[u8]>,
    /// The archive formats that the page offers.
    pub(crate) archives: Vec<ArchiveFormat>,
    pub(crate) view: ListingView,
    pub(crate) format: ListingFormat,
    pub(crate) coding: Option<Coding>,
    /// The least size that is compressed, in bytes.
    pub(crate) compress_min_bytes: u64,
}

/// The pool and the client of a listing's jobs, and the memory limit of all listings.
#[derive(Clone)]
pub(crate) struct JobContext {
    pub(crate) pool: ThreadPool,
    pub(crate) client: u64,
    pub(crate) limit: usize,
    /// The clock of the ages.
    pub(crate) clock: Clock,
}

impl ListingCache {
    /// Returns the snapshot of a directory: a fresh one, or one read now.
    ///
    /// # Errors
    /// The errors of the read; `Busy` if the pool's queue is full.
    pub(crate) async fn directory(
        &self,
        context: &JobContext,
        job: ReadDirectory,
    ) -> Result<Arc<DirectorySnapshot>, FileError> {
        let key = (job.root.number, job.path.clone(), job.view.filter.to_lowercase());
        let version = job.opened.version();
        let start = || {
            self.make_room(context.limit);
            let (context, budget, reads) = (context.clone(), self.budget.clone(), Arc::clone(&self.reads));
            async move {
                let on = Resource::Listing(job.root.dev);
                let (pool, client) = (context.pool.clone(), context.client);
                let run = move || reads.count(|number| job.run(number, &budget, context));
                pool.run(client, on, run).await?
            }
        };
        self.directories.get(&key, |known| known.version == version, start).await
    }

    /// Returns a page of `directory`.
    ///
    /// # Errors
    /// `NOMEM` if the memory limit would be exceeded; `Busy` if the pool's queue is full.
    pub(crate) async fn page(
        &self,
        context: &JobContext,
        directory: Arc<DirectorySnapshot>,
        job: FormatPage,
    ) -> Result<FormattedPage, FileError> {
        let (view, format, coding) = (job.view.clone(), job.format, job.coding);
        let key = PageKey { directory: directory.number, view, format, coding };
        let start = || {
            self.make_room(context.limit);
            let (context, budget) = (context.clone(), self.budget.clone());
            async move {
                let run = move || job.run(&directory, &budget, context.limit);
                context.pool.run(context.client, Resource::Cpu, run).await?
            }
        };
        self.pages.get(&key, |_| true, start).await
    }

    /// Returns the memory that listings and archives share.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Drops the snapshots and pages that are no longer fresh.
    pub(crate) fn sweep(&self) {
        self.pages.sweep(false);
        self.directories.sweep(false);
    }

    /// Returns the gauges for the metrics.
    pub(crate) fn load(&self) -> ListingGauges {
        // Load `ended` first. Acquire pairs with the Release in `ReadCounts::count`: every read
        // counted in `ended` is then counted in `started` as well. Without it, `reading` could miss
        // reads under way.
        let ended = self.reads.ended.load(Ordering::Acquire);
        let reads = self.reads.started.load(Ordering::Relaxed);
        ListingGauges { reads, reading: reads.saturating_sub(ended), bytes: self.budget.used() as u64 }
    }

    /// Drops unused snapshots and pages once more than half of the memory is taken: jobs under way
    /// must find room.
    fn make_room(&self, limit: usize) {
        let all = self.budget.used() > limit / 2;
        self.pages.sweep(all);
        self.directories.sweep(all);
    }
}

impl ReadCounts {
    /// Counts `read` and passes it its number.
    fn count<T>(&self, read: impl FnOnce(u64) -> T) -> T {
        let result = read(self.started.fetch_add(1, Ordering::Relaxed));
        // Release pairs with the Acquire load in `ListingCache::load`: a thread that observes the
        // end of a read also observes its beginning, so `started` never appears smaller than
        // `ended`.
        self.ended.fetch_add(1, Ordering::Release);
        result
    }
}

impl ReadDirectory {
    fn run(
        self,
        number: u64,
        budget: &Budget,
        context: JobContext,
    ) -> Result<Arc<DirectorySnapshot>, FileError> {
        let JobContext { pool, limit, clock, .. } = context;
        let (start, mut pace, mut charge) = (clock.now(), TimeSlice::start(), budget.charge(limit));
        let mut tick = |held| {
            pace.check();
            charge.grow_to(held)
        };
        let mut listing = read(
            self.opened.fd()?.as_fd(),
            self.dotfiles,
            self.view.passes(),
            |name| self.target(name),
            &mut tick,
        )?;
        listing.entries.retain(|entry| self.filter.lists(&join(&self.path, &entry.name)));
        let readme = listing.readme().and_then(|name| self.readme(name));
        let memory = listing.memory() + readme.as_ref().map_or(0, |readme| readme.text.capacity());
        charge.grow_to(memory)?;
        charge.shrink_to(memory);
        let now = clock.now();
        // A listing stays fresh for at least the time its read took, so that reading uses at most
        // half of one processor.
        let until = self.age.map(|age| now + age.max(now - start));
        Ok(Arc::new(DirectorySnapshot {
            listing,
            readme,
            version: self.opened.version(),
            number,
            freshness: Freshness { until, clock },
            _charge: charge,
            pool,
        }))
    }

    /// Reads the README `name`, if requests with access to the directory may read it; `None` if
    /// that fails.
    fn readme(&self, name: &[u8]) -> Option<Readme> {
        let path = join(&self.path, name);
        if !self.filter.includes(&path, &self.path) {
            return None;
        }
        let file = self.root.beneath.open(&path, LookupMode::Blocking).ok().flatten()?;
        if stat(file.as_fd()).ok()?.file_type() != FileType::Regular {
            return None;
        }
        let mut bytes = Vec::new();
        File::from(file).take(Readme::BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
        Readme::new(name, bytes)
    }

    /// Returns the metadata of the target of the link `name`, if requests may read it.
    fn target(&self, name: &CStr) -> Option<fathom_io::Meta> {
        match self.links {
            Links::Within | Links::Follow => self
                .root
                .beneath
                .stat(&join(&self.path, name.to_bytes()), LookupMode::Blocking)
                .ok()
                .flatten(),
            _ => None,
        }
    }
}

impl FormatPage {
    fn run(
        self,
        directory: &DirectorySnapshot,
        budget: &Budget,
        limit: usize,
    ) -> Result<FormattedPage, FileError> {
        let (mut pace, mut charge) = (TimeSlice::start(), budget.charge(limit));
        let mut tick = |held| {
            pace.check();
            charge.grow_to(held)
        };
        let freshness = directory.freshness.clone();
        let Some(page) = directory.listing.page(&self.path, &self.view, &mut tick)? else {
            return Ok(FormattedPage { body: None, coding: None, freshness });
        };
        let text = match self.format {
            ListingFormat::Html => {
                html(&page, directory.readme.as_ref(), &self.archives, &mut tick)?.into_bytes()
            }
            ListingFormat::Json => json(&page, &mut tick)?,
        };
        drop(page);
        let coding = self.coding.filter(|_| text.len() as u64 >= self.compress_min_bytes);
        let coded = coding.and_then(|coding| Some((compress::smaller(coder(coding), &text).ok()??, coding)));
        let (body, coding) = coded.map_or((text, None), |(coded, coding)| (coded, Some(coding)));
        charge.grow_to(body.capacity())?;
        Ok(FormattedPage { body: Some(charge.attach(body)), coding, freshness })
    }
}

#[cfg(test)]
mod tests;
