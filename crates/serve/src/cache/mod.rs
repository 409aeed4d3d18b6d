//! The file cache of a worker: open files and the content of small ones, from the second request
//! for a path until the entry is evicted.
//!
//! An entry that is older than the configured age is revalidated before it is used: the file may
//! have been replaced, changed or removed. A body is cached with the version it belongs to, and is
//! dropped with it. Lookup errors are cached as well.

mod admission;
mod small_body;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use fathom_files::{FetchedFile, FileChange, FileError, FileIo, OpenFile, Root, SETTLING, WorkerBuffer};
use fathom_io::{Clock, Errno};

use crate::config;
use crate::log::BodySource;
use admission::AdmissionFilter;

pub(crate) use small_body::SmallBody;

/// The cached result of a lookup: the open file or the error, and the values of type `T` derived
/// from it.
#[derive(Debug)]
pub(crate) struct CacheEntry<T> {
    pub(crate) result: Result<OpenFile, Errno>,
    /// The content of a small file.
    pub(crate) body: OnceCell<SmallBody>,
    /// Derived values: headers, compressed bodies.
    pub(crate) made: T,
    checked: Cell<Instant>,
    /// The clock just before the file was last looked up.
    seen: Cell<SystemTime>,
    used: Cell<bool>,
    /// Whether the entry is in the cache.
    cached: Cell<bool>,
    cost: Cell<usize>,
}

impl<T: Default> CacheEntry<T> {
    fn new(result: Result<FetchedFile, Errno>, seen: SystemTime, now: Instant) -> Self {
        let (result, body) = match result {
            Ok(fetched) => (Ok(fetched.opened), fetched.body),
            Err(errno) => (Err(errno), None),
        };
        let body = body.map_or_else(OnceCell::new, |bytes| OnceCell::from(SmallBody::from(bytes)));
        let (checked, used) = (Cell::new(now), Cell::new(false));
        let (seen, cached, cost) = (Cell::new(seen), Cell::new(false), Cell::new(0));
        Self { result, body, made: T::default(), checked, seen, used, cached, cost }
    }

    /// Moves a body that came with the file to memory that is suited for a cached body.
    fn for_caching(mut self) -> Self {
        let body = self.body.take().map(|body| SmallBody::for_caching(body.bytes));
        self.body = body.map_or_else(OnceCell::new, OnceCell::from);
        self
    }

    /// Returns the clock just before the file was last looked up.
    pub(crate) fn seen(&self) -> SystemTime {
        self.seen.get()
    }

    /// Returns whether the entry was in the cache before this request.
    pub(crate) fn was_cached(&self) -> bool {
        self.used.get()
    }

    /// Returns whether a change after the last lookup would show in the metadata ([`SETTLING`]):
    /// only then may content be cached.
    pub(crate) fn is_settled(&self) -> bool {
        self.result.as_ref().is_ok_and(|opened| opened.is_settled(self.seen.get(), SETTLING))
    }

    /// Returns whether the open file is unchanged. Required before its content is read, as the
    /// entry may be older.
    fn is_unchanged(&self) -> Result<bool, Errno> {
        match &self.result {
            Ok(opened) => Ok(opened.change()? == FileChange::Unchanged),
            Err(_) => Ok(true),
        }
    }
}

type PathEntries<T> = HashMap<Rc<[u8]>, Rc<CacheEntry<T>>>;

/// The file cache of one worker.
#[derive(Debug)]
pub(crate) struct FileCache<T> {
    /// Entries by root number and path.
    entries: RefCell<HashMap<usize, PathEntries<T>>>,
    /// All keys in the order of eviction (second chance): an entry that was used since it was
    /// queued goes to the back.
    eviction_order: RefCell<VecDeque<(usize, Rc<[u8]>)>>,
    admission: AdmissionFilter,
    bytes: Cell<usize>,
    limits: config::CacheConfig,
    age: Duration,
    /// The clock of the time of day.
    clock: Clock,
}

impl<T: Default> FileCache<T> {
    /// Creates a cache with one part of `workers` of the `limits`.
    pub(crate) fn new(limits: &config::CacheConfig, workers: usize, clock: Clock) -> Self {
        let mut limits = limits.clone();
        limits.files = limits.files.div_ceil(workers.max(1));
        limits.bytes /= workers.max(1);
        let age = Duration::from_millis(limits.age_ms);
        let (admission, bytes) = (AdmissionFilter::new(limits.files), Cell::new(0));
        Self {
            entries: RefCell::default(),
            eviction_order: RefCell::default(),
            admission,
            bytes,
            limits,
            age,
            clock,
        }
    }

    /// Returns whether the body of `entry`, of `len` bytes, is read completely so that it can be
    /// cached. A body of more than a quarter of the cache is never, as it would evict most others.
    /// A body longer than a pooled buffer is read completely only if the entry is cached already.
    pub(crate) fn admits_body(&self, entry: &CacheEntry<T>, len: u64) -> bool {
        let most = self.limits.body_bytes.min(self.limits.bytes / 4) as u64;
        self.limits.files > 0 && len <= most && (len <= WorkerBuffer::BYTES as u64 || entry.cached.get())
    }

    /// Returns how long an entry is used without revalidation; `None` if nothing is cached.
    pub(crate) fn age(&self) -> Option<Duration> {
        Some(self.age).filter(|age| self.limits.files > 0 && !age.is_zero())
    }

    /// Drops all entries.
    pub(crate) fn clear(&self) {
        for entry in self.entries.borrow_mut().drain().flat_map(|(_, entries)| entries.into_values()) {
            entry.cached.set(false);
        }
        self.eviction_order.borrow_mut().clear();
        self.bytes.set(0);
    }

    /// Returns the maximum age of an entry, even if nothing is cached.
    pub(crate) fn age_limit(&self) -> Duration {
        self.age
    }

    /// Returns the entry of `path` below `root`. If the entry is missing or too old at `now`, the
    /// path is looked up, in the fair queue as a job of `client`.
    pub(crate) async fn look_up(
        &self,
        files: &Rc<FileIo>,
        root: &Root,
        path: &[u8],
        client: u64,
        now: Instant,
    ) -> Result<Rc<CacheEntry<T>>, FileError> {
        if let Some(entry) = self.get(root.number, path)
            && (self.is_fresh(&entry, now)?
                || Box::pin(self.revalidate(&entry, files, root, path, client, now)).await?)
        {
            entry.used.set(true);
            return Ok(entry);
        }
        let seen = self.clock.wall_now();
        let entry =
            CacheEntry::new(cacheable(Box::pin(self.fetch(files, root, path, client)).await)?, seen, now);
        let lasts = entry.result.is_err() || entry.is_settled();
        if !(self.limits.files > 0 && lasts && self.admission.admit(root.number, path)) {
            return Ok(Rc::new(entry));
        }
        let entry = Rc::new(entry.for_caching());
        self.insert(root.number, path, &entry);
        Ok(entry)
    }

    /// Fetches the file. If the process is out of descriptors, drops the cache and tries again.
    async fn fetch(
        &self,
        files: &Rc<FileIo>,
        root: &Root,
        path: &[u8],
        client: u64,
    ) -> Result<FetchedFile, FileError> {
        match files.fetch(root, path, client).await {
            Err(FileError::System(Errno::MFILE | Errno::NFILE))
                if !self.eviction_order.borrow().is_empty() =>
            {
                self.clear();
                files.fetch(root, path, client).await
            }
            fetched => fetched,
        }
    }

    /// Returns whether the entry is young enough and, if its content has yet to be read, whether
    /// the open file is unchanged.
    fn is_fresh(&self, entry: &CacheEntry<T>, now: Instant) -> Result<bool, Errno> {
        Ok(now.saturating_duration_since(entry.checked.get()) < self.age
            && (entry.body.get().is_some() || entry.is_unchanged()?))
    }

    async fn revalidate(
        &self,
        entry: &CacheEntry<T>,
        files: &Rc<FileIo>,
        root: &Root,
        path: &[u8],
        client: u64,
        now: Instant,
    ) -> Result<bool, FileError> {
        // Mark the entry as checked first: concurrent requests then do not look the path up as
        // well.
        entry.checked.set(now);
        let seen = self.clock.wall_now();
        let version = cacheable(files.version(root, path, client).await);
        let right = version
            .is_ok_and(|version| version == entry.result.as_ref().map(OpenFile::version).map_err(|e| *e));
        if right {
            entry.seen.set(seen);
        } else {
            self.remove(root.number, path);
        }
        Ok(right)
    }

    /// Returns the content of the small file of `entry` and its source, and caches it if there is
    /// room.
    pub(crate) async fn body(
        &self,
        entry: &CacheEntry<T>,
        files: &Rc<FileIo>,
        client: u64,
    ) -> Result<(SmallBody, BodySource), FileError> {
        if let Some(body) = entry.body.get() {
            return Ok((body.clone(), BodySource::Cache));
        }
        let opened = entry.result.as_ref().map_err(|errno| *errno)?;
        let (bytes, source) = match files.read_small_nowait(opened)? {
            Some(bytes) => (bytes, BodySource::Hit),
            None => (Box::pin(files.read_small_by_pool(opened, client)).await?, BodySource::Pool),
        };
        if !self.admits_body(entry, opened.len()) || !entry.cached.get() {
            return Ok((bytes.into(), source));
        }
        let body = SmallBody::for_caching(bytes);
        if entry.body.set(body.clone()).is_ok() {
            self.charge(entry, body.bytes.len());
        }
        Ok((body, source))
    }

    fn get(&self, root: usize, path: &[u8]) -> Option<Rc<CacheEntry<T>>> {
        self.entries.borrow().get(&root)?.get(path).cloned()
    }

    /// Drops the entry of `path` below the root number `root`.
    pub(crate) fn remove(&self, root: usize, path: &[u8]) {
        let removed = self.entries.borrow_mut().get_mut(&root).and_then(|entries| entries.remove(path));
        if let Some(entry) = removed {
            entry.cached.set(false);
            self.bytes.set(self.bytes.get().saturating_sub(entry.cost.replace(0)));
        }
    }

    /// Drops all entries below the root number `root`.
    pub(crate) fn forget_root(&self, root: usize) {
        let removed = self.entries.borrow_mut().remove(&root).unwrap_or_default();
        for entry in removed.into_values() {
            entry.cached.set(false);
            self.bytes.set(self.bytes.get().saturating_sub(entry.cost.replace(0)));
        }
        self.eviction_order.borrow_mut().retain(|(of, _)| *of != root);
    }

    fn insert(&self, root: usize, path: &[u8], entry: &Rc<CacheEntry<T>>) {
        self.remove(root, path);
        entry.cached.set(true);
        let path: Rc<[u8]> = Rc::from(path);
        self.entries.borrow_mut().entry(root).or_default().insert(Rc::clone(&path), Rc::clone(entry));
        self.eviction_order.borrow_mut().push_back((root, path));
        // The content that came with the file counts as well.
        self.charge(entry, entry.body.get().map_or(0, |body| body.bytes.len()));
    }

    /// Adds `bytes` to the cost of `entry`, and evicts entries if the cache is full. An entry that
    /// has been evicted has no cost.
    pub(crate) fn charge(&self, entry: &CacheEntry<T>, bytes: usize) {
        if !entry.cached.get() {
            return;
        }
        entry.cost.set(entry.cost.get() + bytes);
        self.bytes.set(self.bytes.get() + bytes);
        self.make_room();
    }

    fn make_room(&self) {
        let mut chances = self.eviction_order.borrow().len() * 2;
        while chances > 0 && self.is_over() {
            chances -= 1;
            let Some((root, path)) = self.eviction_order.borrow_mut().pop_front() else { return };
            match self.get(root, &path) {
                Some(entry) if entry.used.replace(false) => {
                    self.eviction_order.borrow_mut().push_back((root, path))
                }
                Some(_) => self.remove(root, &path),
                None => {}
            }
        }
    }

    fn is_over(&self) -> bool {
        self.eviction_order.borrow().len() > self.limits.files || self.bytes.get() > self.limits.bytes
    }
}

/// Returns the inner result if it may be cached; an error of the moment, not of the path, is the
/// outer error.
fn cacheable<T>(result: Result<T, FileError>) -> Result<Result<T, Errno>, FileError> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(FileError::System(
            errno @ (Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP | Errno::NAMETOOLONG),
        )) => Ok(Err(errno)),
        Err(FileError::System(errno)) if is_forbidden(errno) => Ok(Err(errno)),
        Err(failure) => Err(failure),
    }
}

/// Returns whether an error means that a file exists and may not be served. The file may not be
/// opened (`EPERM` is the error of a security module, or of a device that a control group
/// withholds), it is a socket, or it is a device without a driver.
pub(crate) fn is_forbidden(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM | Errno::NXIO | Errno::NODEV)
}
