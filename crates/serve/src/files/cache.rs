//! Files that a worker keeps open, and short bodies it keeps, from the second time they are asked for until they are too old or too many.
//!
//! What is kept is looked at again before it is used once it is older than the configured age: by then it may have been replaced,
//! changed or taken away. A body is kept together with the version it is of, and goes with it. What was not found is kept, too.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use fathom_io::Errno;

use super::door::Door;
use super::opened::Change;
use super::{Failure, Fetched, Files, Opened, Root, Short, Source, is_forbidden};
use crate::config;
use crate::conn::chunk::Buffers;
use crate::etag::SETTLING;

/// What is known of a path: the file that was opened, or why there is none; with what others, `T`, have made of it.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) result: Result<Opened, Errno>,
    /// All bytes of a short file.
    pub(crate) body: OnceCell<Short>,
    /// What was made of it: headers, compressed bodies.
    pub(crate) made: T,
    checked: Cell<Instant>,
    /// The clock before the file was last looked at.
    seen: Cell<SystemTime>,
    used: Cell<bool>,
    /// Whether it is among those that are kept.
    kept: Cell<bool>,
    cost: Cell<usize>,
}

impl<T: Default> Entry<T> {
    fn new(result: Result<Fetched, Errno>, seen: SystemTime) -> Self {
        let (result, body) = match result {
            Ok(fetched) => (Ok(fetched.opened), fetched.body),
            Err(errno) => (Err(errno), None),
        };
        let body = body.map_or_else(OnceCell::new, |bytes| OnceCell::from(Short::from(bytes)));
        let (checked, used) = (Cell::new(Instant::now()), Cell::new(false));
        let (seen, kept, cost) = (Cell::new(seen), Cell::new(false), Cell::new(0));
        Self { result, body, made: T::default(), checked, seen, used, kept, cost }
    }

    /// The same with a body that came with the file as one that is kept.
    fn for_keeping(mut self) -> Self {
        let body = self.body.take().map(|body| Short::kept(body.bytes));
        self.body = body.map_or_else(OnceCell::new, OnceCell::from);
        self
    }

    /// The clock before the file was last looked at.
    pub(crate) fn seen(&self) -> SystemTime {
        self.seen.get()
    }

    /// Whether it was known before this request.
    pub(crate) fn was_kept(&self) -> bool {
        self.used.get()
    }

    /// Whether a change since it was looked at would show ([`SETTLING`]): only then is what was read kept.
    pub(crate) fn is_settled(&self) -> bool {
        self.result.as_ref().is_ok_and(|opened| opened.is_settled(self.seen.get(), SETTLING))
    }

    /// Whether what is known of an open file is still so: what is not in memory would be read now.
    fn is_as_opened(&self) -> Result<bool, Errno> {
        match &self.result {
            Ok(opened) => Ok(opened.change()? == Change::None),
            Err(_) => Ok(true),
        }
    }
}

type Paths<T> = HashMap<Rc<[u8]>, Rc<Entry<T>>>;

/// What one worker keeps.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    /// By root.
    entries: RefCell<HashMap<usize, Paths<T>>>,
    /// All keys, in the order in which they are looked at when there is no room: one that was used since gets another turn.
    turns: RefCell<VecDeque<(usize, Rc<[u8]>)>>,
    door: Door,
    bytes: Cell<usize>,
    limits: config::Cache,
    age: Duration,
}

impl<T: Default> Cache<T> {
    /// Within `limits`, of which this worker gets one part of `workers`.
    pub(crate) fn new(limits: &config::Cache, workers: usize) -> Self {
        let mut limits = limits.clone();
        limits.files = limits.files.div_ceil(workers.max(1));
        limits.bytes /= workers.max(1);
        let age = Duration::from_millis(limits.age_ms);
        let (door, bytes) = (Door::new(limits.files), Cell::new(0));
        Self { entries: RefCell::default(), turns: RefCell::default(), door, bytes, limits, age }
    }

    /// Whether the body of `entry`, which has `len` bytes, is read as a whole, to be kept if `entry` is: none that would have most others go.
    pub(crate) fn takes(&self, entry: &Entry<T>, len: u64) -> bool {
        let most = self.limits.body_bytes.min(self.limits.bytes / 4) as u64;
        self.limits.files > 0 && len <= most && (len <= Buffers::BYTES as u64 || entry.kept.get())
    }

    /// Returns for how long what is known is used without another look; none if nothing is kept.
    pub(crate) fn age(&self) -> Option<Duration> {
        Some(self.age).filter(|age| self.limits.files > 0 && !age.is_zero())
    }

    /// Drops everything.
    pub(crate) fn clear(&self) {
        for entry in self.entries.borrow_mut().drain().flat_map(|(_, entries)| entries.into_values()) {
            entry.kept.set(false);
        }
        self.turns.borrow_mut().clear();
        self.bytes.set(0);
    }

    /// How old what is known may be, also where nothing is kept.
    pub(crate) fn age_limit(&self) -> Duration {
        self.age
    }

    /// Returns the entry of `path` below `root`. If the entry is missing or too old at `now`, the
    /// path is looked up, in the fair queue as a job of `client`.
    pub(crate) async fn look_up(
        &self,
        files: &Rc<Files>,
        root: &Root,
        path: &[u8],
        client: u64,
        now: Instant,
    ) -> Result<Rc<Entry<T>>, Failure> {
        if let Some(entry) = self.get(root.number, path)
            && (self.is_fresh(&entry, now)?
                || Box::pin(self.is_right(&entry, files, root, path, client)).await?)
        {
            entry.used.set(true);
            return Ok(entry);
        }
        let seen = SystemTime::now();
        let entry = Entry::new(lasting(Box::pin(self.fetch(files, root, path, client)).await)?, seen);
        let lasts = entry.result.is_err() || entry.is_settled();
        if !(self.limits.files > 0 && lasts && self.door.knows(root.number, path)) {
            return Ok(Rc::new(entry));
        }
        let entry = Rc::new(entry.for_keeping());
        self.insert(root.number, path, &entry);
        Ok(entry)
    }

    /// With all descriptors taken, the ones that are only kept are given up.
    async fn fetch(
        &self,
        files: &Rc<Files>,
        root: &Root,
        path: &[u8],
        client: u64,
    ) -> Result<Fetched, Failure> {
        match files.fetch(root, path, client).await {
            Err(Failure::System(Errno::MFILE | Errno::NFILE)) if !self.turns.borrow().is_empty() => {
                self.clear();
                files.fetch(root, path, client).await
            }
            fetched => fetched,
        }
    }

    /// Whether what is known is young enough, and what would have to be read still there.
    fn is_fresh(&self, entry: &Entry<T>, now: Instant) -> Result<bool, Errno> {
        Ok(now.saturating_duration_since(entry.checked.get()) < self.age
            && (entry.body.get().is_some() || entry.is_as_opened()?))
    }

    async fn is_right(
        &self,
        entry: &Entry<T>,
        files: &Rc<Files>,
        root: &Root,
        path: &[u8],
        client: u64,
    ) -> Result<bool, Failure> {
        // Whoever asks meanwhile does not ask the disk as well.
        entry.checked.set(Instant::now());
        let seen = SystemTime::now();
        let version = lasting(files.version(root, path, client).await);
        let right = version
            .is_ok_and(|version| version == entry.result.as_ref().map(Opened::version).map_err(|e| *e));
        if right {
            entry.seen.set(seen);
        } else {
            self.remove(root.number, path);
        }
        Ok(right)
    }

    /// All bytes of the short file that `entry` is about, kept from now on if there is room; and where they came from.
    pub(crate) async fn body(
        &self,
        entry: &Entry<T>,
        files: &Rc<Files>,
        client: u64,
    ) -> Result<(Short, Source), Failure> {
        if let Some(body) = entry.body.get() {
            return Ok((body.clone(), Source::Cache));
        }
        let opened = entry.result.as_ref().map_err(|errno| *errno)?;
        let (bytes, source) = Box::pin(files.read_short(opened, client)).await?;
        if !self.takes(entry, opened.len()) || !entry.kept.get() {
            return Ok((bytes.into(), source));
        }
        let body = Short::kept(bytes);
        if entry.body.set(body.clone()).is_ok() {
            self.charge(entry, body.bytes.len());
        }
        Ok((body, source))
    }

    fn get(&self, root: usize, path: &[u8]) -> Option<Rc<Entry<T>>> {
        self.entries.borrow().get(&root)?.get(path).cloned()
    }

    /// Forgets what is known of `path` below the root number `root`.
    pub(crate) fn remove(&self, root: usize, path: &[u8]) {
        let removed = self.entries.borrow_mut().get_mut(&root).and_then(|entries| entries.remove(path));
        if let Some(entry) = removed {
            entry.kept.set(false);
            self.bytes.set(self.bytes.get().saturating_sub(entry.cost.replace(0)));
        }
    }

    /// Forgets all that is known of what is below the root number `root`.
    pub(crate) fn forget_root(&self, root: usize) {
        let removed = self.entries.borrow_mut().remove(&root).unwrap_or_default();
        for entry in removed.into_values() {
            entry.kept.set(false);
            self.bytes.set(self.bytes.get().saturating_sub(entry.cost.replace(0)));
        }
        self.turns.borrow_mut().retain(|(of, _)| *of != root);
    }

    fn insert(&self, root: usize, path: &[u8], entry: &Rc<Entry<T>>) {
        self.remove(root, path);
        entry.kept.set(true);
        let path: Rc<[u8]> = Rc::from(path);
        self.entries.borrow_mut().entry(root).or_default().insert(Rc::clone(&path), Rc::clone(entry));
        self.turns.borrow_mut().push_back((root, path));
        // What came with the file counts, too.
        self.charge(entry, entry.body.get().map_or(0, |body| body.bytes.len()));
    }

    /// `entry` has come to hold `bytes` more. One that others have made room for already counts no more.
    pub(crate) fn charge(&self, entry: &Entry<T>, bytes: usize) {
        if !entry.kept.get() {
            return;
        }
        entry.cost.set(entry.cost.get() + bytes);
        self.bytes.set(self.bytes.get() + bytes);
        self.make_room();
    }

    fn make_room(&self) {
        let mut chances = self.turns.borrow().len() * 2;
        while chances > 0 && self.is_over() {
            chances -= 1;
            let Some((root, path)) = self.turns.borrow_mut().pop_front() else { return };
            match self.get(root, &path) {
                Some(entry) if entry.used.replace(false) => self.turns.borrow_mut().push_back((root, path)),
                Some(_) => self.remove(root, &path),
                None => {}
            }
        }
    }

    fn is_over(&self) -> bool {
        self.turns.borrow().len() > self.limits.files || self.bytes.get() > self.limits.bytes
    }
}

/// A result that is worth keeping, or the failure that is not: it is this moment's and not the path's.
fn lasting<T>(result: Result<T, Failure>) -> Result<Result<T, Errno>, Failure> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Failure::System(
            errno @ (Errno::NOENT | Errno::NOTDIR | Errno::XDEV | Errno::LOOP | Errno::NAMETOOLONG),
        )) => Ok(Err(errno)),
        Err(Failure::System(errno)) if is_forbidden(errno) => Ok(Err(errno)),
        Err(failure) => Err(failure),
    }
}
