//! Fault injection between a caller and any metadata model, for tests.
//!
//! A seed decides every fault, together with the device and inode number of the directory, the name
//! of the entry and the kind of fault. So the same tree fails in the same places with any model,
//! order, number of threads and batch size. Owns the faults and the count of calls. Does not own
//! the calls, which the inner model makes.

use std::collections::HashMap;
use std::ffi::CStr;
use std::future::Future;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::random::mix;
use crate::sys::{self, CWD};
use crate::{Dir, Errno, Fields, FileType, Follow, Meta, MetadataModel, Names};

/// The rates of the faults, from 0 (never) to 1 (always).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Directories that cannot be opened: EACCES.
    pub open_eacces: f64,
    /// Directories whose first [`Rates::emfile_tries`] opens fail with EMFILE, and no later one.
    pub open_emfile: f64,
    /// How many opens of such a directory fail.
    pub emfile_tries: u32,
    /// Directories whose every read fails with EIO.
    pub read_eio: f64,
    /// Directories in which a read fails with EIO at one entry, always the same. Later entries are
    /// not returned.
    pub read_part: f64,
    /// Directories whose entries have no type (`DT_UNKNOWN`).
    pub unknown_type: f64,
    /// Directories whose reads return fewer names than possible, down to one.
    pub short_read: f64,
    /// Entries whose stat fails with ENOENT. Names relative to the working directory are exempt.
    pub stat_enoent: f64,
    /// Entries whose stat fails with EIO. Names relative to the working directory are exempt.
    pub stat_eio: f64,
    /// Calls that take up to [`Rates::slow_us`] longer.
    pub slow: f64,
    /// Maximum delay of a slow call, in microseconds.
    pub slow_us: u64,
    /// Whether the filesystem hides its magic number, so that it could be a network filesystem.
    pub no_magic: bool,
}

/// Numbers of calls made, including failed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Opens of directories.
    pub open: u64,
    /// Reads of names.
    pub read: u64,
    /// Stats of entries.
    pub stat: u64,
    /// Stats of open directories.
    pub stat_dir: u64,
    /// Calls that failed because of an injected fault.
    pub failed: u64,
}

/// The faults of a run. Clones, such as those for the models of several workers, share the counts
/// and the remaining failures of [`Rates::open_emfile`].
///
/// ```
/// use fathom_io::blocking::Blocking;
/// use fathom_io::sim::{Faults, Rates};
/// use fathom_io::{Errno, Follow, MetadataModel, sys};
///
/// let faults = Faults::new(1, Rates { open_eacces: 1.0, ..Rates::default() });
/// let model = faults.over(Blocking);
/// let opened = model.run(model.open(sys::CWD, c".", Follow::No));
/// assert_eq!(opened.err(), Some(Errno::ACCESS));
/// assert_eq!(faults.counts().failed, 1);
/// ```
#[derive(Clone, Debug)]
pub struct Faults {
    seed: u64,
    rates: Rates,
    state: Arc<FaultState>,
}

/// A metadata model with injected faults. [`Faults::over`] creates it.
#[derive(Debug)]
pub struct Sim<M> {
    model: M,
    faults: Faults,
}

#[derive(Debug, Default)]
struct FaultState {
    open: AtomicU64,
    read: AtomicU64,
    stat: AtomicU64,
    stat_dir: AtomicU64,
    failed: AtomicU64,
    /// Number of opens of each directory with [`FaultKind::OpenEmfile`].
    tries: Mutex<HashMap<(u64, u64), u32>>,
}

/// The kinds of faults. Each is drawn separately, so the faults of a directory are independent.
#[derive(Clone, Copy)]
enum FaultKind {
    OpenEacces,
    OpenEmfile,
    ReadEio,
    ReadPart,
    UnknownType,
    ShortRead,
    StatEnoent,
    StatEio,
    Slow,
}

impl Faults {
    /// Creates faults with `rates` from `seed`.
    #[must_use]
    pub fn new(seed: u64, rates: Rates) -> Self {
        Self { seed, rates, state: Arc::default() }
    }

    /// Returns `model` with these faults.
    #[must_use]
    pub fn over<M: MetadataModel>(&self, model: M) -> Sim<M> {
        Sim { model, faults: self.clone() }
    }

    /// Returns the numbers of calls through all models with these faults.
    #[must_use]
    pub fn counts(&self) -> CallCounts {
        let FaultState { open, read, stat, stat_dir, failed, tries: _ } = &*self.state;
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CallCounts {
            open: of(open),
            read: of(read),
            stat: of(stat),
            stat_dir: of(stat_dir),
            failed: of(failed),
        }
    }

    fn draw(&self, fault: FaultKind, dir: (u64, u64), name: &CStr) -> u64 {
        let words = [fault as u64, dir.0, dir.1];
        let hash = words.into_iter().fold(mix(self.seed), |hash, word| mix(hash ^ word));
        name.to_bytes().iter().fold(hash, |hash, byte| mix(hash ^ u64::from(*byte)))
    }

    fn strikes(&self, rate: f64, fault: FaultKind, dir: (u64, u64), name: &CStr) -> bool {
        // An f64 represents 53 bits exactly.
        let unit = (self.draw(fault, dir, name) >> 11) as f64 / (1_u64 << 53) as f64;
        unit < rate
    }

    fn fail<T>(&self, errno: Errno) -> Result<T, Errno> {
        self.state.failed.fetch_add(1, Ordering::Relaxed);
        Err(errno)
    }

    fn delay(&self, dir: (u64, u64), name: &CStr) {
        if self.strikes(self.rates.slow, FaultKind::Slow, dir, name) {
            let us = mix(self.draw(FaultKind::Slow, dir, name)) % self.rates.slow_us.max(1);
            std::thread::sleep(Duration::from_micros(us + 1));
        }
    }

    /// Injects the delay and the faults of a stat of `name` in the directory `dir`.
    fn strike_stat(&self, dir: (u64, u64), name: &CStr) -> Result<(), Errno> {
        self.delay(dir, name);
        if self.strikes(self.rates.stat_enoent, FaultKind::StatEnoent, dir, name) {
            return self.fail(Errno::NOENT);
        }
        if self.strikes(self.rates.stat_eio, FaultKind::StatEio, dir, name) {
            return self.fail(Errno::IO);
        }
        Ok(())
    }

    /// Returns whether this open fails with EMFILE.
    fn lacks_descriptors(&self, dir: (u64, u64)) -> bool {
        if !self.strikes(self.rates.open_emfile, FaultKind::OpenEmfile, dir, c"") {
            return false;
        }
        let mut tries = self.state.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let tried = tries.entry(dir).or_default();
        *tried += 1;
        *tried <= self.rates.emfile_tries
    }

    /// Returns the number of names that a read of at most `count` names returns.
    fn begin_read(&self, id: (u64, u64), count: usize) -> Result<usize, Errno> {
        self.state.read.fetch_add(1, Ordering::Relaxed);
        self.delay(id, c"/read");
        if self.strikes(self.rates.read_eio, FaultKind::ReadEio, id, c"") {
            return self.fail(Errno::IO);
        }
        if self.strikes(self.rates.short_read, FaultKind::ShortRead, id, c"") {
            let names = self.draw(FaultKind::ShortRead, id, c"room").to_le_bytes()[0] % 8;
            return Ok(count.min(1 + usize::from(names)));
        }
        Ok(count)
    }

    /// Moves `batch` to the end of `names`, up to the first fault.
    fn deliver(&self, dir: (u64, u64), batch: &Names, names: &mut Names) -> Result<(), Errno> {
        let breaks = self.strikes(self.rates.read_part, FaultKind::ReadPart, dir, c"");
        let untyped = self.strikes(self.rates.unknown_type, FaultKind::UnknownType, dir, c"");
        for entry in batch.iter() {
            if breaks && self.draw(FaultKind::ReadPart, dir, entry.name).is_multiple_of(4) {
                return self.fail(Errno::IO);
            }
            names.push(entry.name, entry.ino, if untyped { FileType::Unknown } else { entry.file_type })?;
        }
        names.cookie = batch.cookie;
        Ok(())
    }
}

/// Returns device and inode number of an open directory. This call is exempt from faults.
fn id_of(dir: &Dir) -> Result<(u64, u64), Errno> {
    sys::stat_dir(dir, Fields::IDENTITY).map(|meta| meta.id())
}

impl<M: MetadataModel> MetadataModel for Sim<M> {
    const WIDTH: usize = M::WIDTH;
    const BATCH: usize = M::BATCH;

    async fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        let faults = &self.faults;
        faults.state.open.fetch_add(1, Ordering::Relaxed);
        // The draw depends on the inode, not on the path, so the directory is opened first.
        let dir = self.model.open(at, name, follow).await?;
        let id = id_of(&dir)?;
        faults.delay(id, c"");
        if faults.strikes(faults.rates.open_eacces, FaultKind::OpenEacces, id, c"") {
            return faults.fail(Errno::ACCESS);
        }
        if faults.lacks_descriptors(id) {
            return faults.fail(Errno::MFILE);
        }
        Ok(dir)
    }

    async fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        let id = id_of(dir)?;
        let count = self.faults.begin_read(id, limit.saturating_sub(names.len()))?;
        let mut batch = Names::new();
        let more = self.model.read(dir, &mut batch, count).await;
        self.faults.deliver(id, &batch, names).and(more)
    }

    async fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        let id = id_of(dir)?;
        let count = self.faults.begin_read(id, limit.saturating_sub(names.len()))?;
        let mut batch = Names::new();
        let more = self.model.read_some(dir, &mut batch, count).await;
        self.faults.deliver(id, &batch, names).and(more)
    }

    async fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        self.faults.state.stat_dir.fetch_add(1, Ordering::Relaxed);
        let meta = self.model.stat_dir(dir, fields).await?;
        self.faults.delay(meta.id(), c"/stat");
        Ok(meta)
    }

    async fn stat(
        &self,
        at: BorrowedFd<'_>,
        names: &Names,
        range: Range<usize>,
        follow: Follow,
        fields: Fields,
        out: &mut Vec<Option<Result<Meta, Errno>>>,
    ) {
        self.model.stat(at, names, range.clone(), follow, fields, out).await;
        self.faults.state.stat.fetch_add(names.count_stat(range.clone()) as u64, Ordering::Relaxed);
        if at.as_raw_fd() == CWD.as_raw_fd() {
            return;
        }
        let dir = sys::stat(at, c".", Follow::No, Fields::IDENTITY).map(|meta| meta.id());
        for (name, result) in names.range(range).zip(out).filter(|(name, _)| name.stat) {
            if let Err(errno) = dir.and_then(|dir| self.faults.strike_stat(dir, name.name)) {
                *result = Some(Err(errno));
            }
        }
    }

    fn magic(&self, dir: &Dir) -> Option<i64> {
        if self.faults.rates.no_magic { None } else { self.model.magic(dir) }
    }

    async fn close(&self, dir: Dir) {
        self.model.close(dir).await;
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.model.run(future)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::blocking::Blocking;

    fn sim(seed: u64, rates: Rates) -> Sim<Blocking> {
        Faults::new(seed, rates).over(Blocking)
    }

    fn open(sim: &Sim<Blocking>, at: &Dir, name: &CStr) -> Result<Dir, Errno> {
        sim.run(sim.open(at.as_fd(), name, Follow::No))
    }

    /// A directory with `count` files and `count` directories.
    fn tree(count: usize) -> (tempfile::TempDir, Dir) {
        let temp = tempfile::tempdir().unwrap();
        for index in 0..count {
            std::fs::write(temp.path().join(format!("f{index}")), b"x").unwrap();
            std::fs::create_dir(temp.path().join(format!("d{index}"))).unwrap();
        }
        let dir = Dir::from_fd(std::fs::File::open(temp.path()).unwrap().into());
        (temp, dir)
    }

    fn reopen(dir: &Dir) -> Dir {
        sys::open_dir(dir.as_fd(), c".", Follow::No).unwrap()
    }

    /// Reads the metadata of the files `f0` to `f{count - 1}`.
    fn stat(sim: &Sim<Blocking>, dir: &Dir, count: usize) -> Vec<Result<Meta, Errno>> {
        let (mut names, mut out) = (Names::new(), Vec::new());
        for index in 0..count {
            let name = std::ffi::CString::new(format!("f{index}")).unwrap();
            names.push(&name, 0, FileType::Regular).unwrap();
        }
        sim.run(sim.stat(dir.as_fd(), &names, 0..count, Follow::No, Fields::ALL, &mut out));
        out.into_iter().flatten().collect()
    }

    /// Lists `dir` in batches of `limit`, up to the first error.
    fn list(sim: &Sim<Blocking>, dir: &Dir, limit: usize) -> (Vec<(String, FileType)>, Option<Errno>) {
        let (dir, mut all) = (reopen(dir), Vec::new());
        loop {
            let mut names = Names::new();
            let more = sim.run(sim.read(&dir, &mut names, limit));
            assert!(names.len() <= limit);
            all.extend(names.iter().map(|name| (name.name.to_str().unwrap().to_string(), name.file_type)));
            match more {
                Ok(true) => {}
                Ok(false) => return (all, None),
                Err(errno) => return (all, Some(errno)),
            }
        }
    }

    #[test]
    fn without_rates_results_are_unchanged() {
        let (_temp, dir) = tree(5);
        let sim = sim(1, Rates::default());
        let mut names = Names::new();
        assert_eq!(sys::read_names(&reopen(&dir), &mut names, 100), Ok(false));
        let plain: Vec<_> =
            names.iter().map(|name| (name.name.to_str().unwrap().to_string(), name.file_type)).collect();
        assert_eq!(list(&sim, &dir, 100), (plain.clone(), None));
        assert_eq!(list(&sim, &dir, 3), (plain, None));
        assert_eq!(sim.faults.counts().failed, 0);
    }

    #[test]
    fn a_read_breaks_at_the_same_entry_for_any_batch() {
        let (_temp, dir) = tree(50);
        let sim = sim(7, Rates { read_part: 1.0, ..Rates::default() });
        let whole = list(&sim, &dir, usize::MAX);
        assert_eq!(whole.1, Some(Errno::IO));
        assert!(whole.0.len() < 100);
        for limit in [1, 2, 7, 50] {
            assert_eq!(list(&sim, &dir, limit), whole, "{limit}");
        }
    }

    #[test]
    fn short_reads_lose_nothing_and_types_can_be_unknown() {
        let (_temp, dir) = tree(50);
        let sim = sim(3, Rates { short_read: 1.0, unknown_type: 1.0, ..Rates::default() });
        let (entries, error) = list(&sim, &dir, usize::MAX);
        assert_eq!((entries.len(), error), (100, None));
        assert!(entries.iter().all(|(_, file_type)| *file_type == FileType::Unknown));
        assert!(sim.faults.counts().read > 100 / 8);
    }

    #[test]
    fn opens_succeed_after_emfile_tries() {
        let (_temp, dir) = tree(1);
        let sim = sim(3, Rates { open_emfile: 1.0, emfile_tries: 2, ..Rates::default() });
        let tries: Vec<_> = (0..4).map(|_| open(&sim, &dir, c"d0").err()).collect();
        assert_eq!(tries, [Some(Errno::MFILE), Some(Errno::MFILE), None, None]);
        assert_eq!(sim.faults.counts(), CallCounts { open: 4, failed: 2, ..CallCounts::default() });
    }

    #[test]
    fn faults_have_their_rate_and_depend_on_the_seed() {
        let (_temp, dir) = tree(200);
        let failing = |seed, rates| {
            let sim = sim(seed, rates);
            stat(&sim, &dir, 200).into_iter().map(Result::err).collect::<Vec<_>>()
        };
        let rates = Rates { stat_enoent: 0.5, ..Rates::default() };
        let (first, again, other) = (failing(1, rates), failing(1, rates), failing(2, rates));
        assert_eq!(first, again);
        assert_ne!(first, other);
        let gone = first.iter().filter(|errno| **errno == Some(Errno::NOENT)).count();
        assert!((60..140).contains(&gone), "{gone} of 200");
        let all = failing(1, Rates { stat_eio: 1.0, ..Rates::default() });
        assert!(all.iter().all(|errno| *errno == Some(Errno::IO)));
    }

    #[test]
    fn opens_and_reads_fail_with_the_injected_errors() {
        let (_temp, dir) = tree(1);
        let denied = sim(1, Rates { open_eacces: 1.0, ..Rates::default() });
        assert_eq!(open(&denied, &dir, c"d0").err(), Some(Errno::ACCESS));
        assert_eq!(open(&denied, &dir, c"none").err(), Some(Errno::NOENT));
        let broken = sim(1, Rates { read_eio: 1.0, ..Rates::default() });
        assert_eq!(list(&broken, &dir, 10), (Vec::new(), Some(Errno::IO)));
    }

    #[test]
    fn a_slow_call_is_delayed() {
        let (_temp, dir) = tree(1);
        let sim = sim(1, Rates { slow: 1.0, slow_us: 1, ..Rates::default() });
        let start = std::time::Instant::now();
        for _ in 0..10 {
            assert!(stat(&sim, &dir, 1)[0].is_ok());
        }
        assert!(start.elapsed() >= Duration::from_micros(10));
    }
}
