//! The directory of a store: its lock, and the inventories in it.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::name;
use crate::scan::{Lock, directory_mode, has_journal, split_parents};
use fathom_inventory::store::{Error, Manifest, Op};

const DAY_SEC: i64 = 86_400;

/// A store of dated inventories.
///
/// ```
/// use fathom_scans::history::{History, newest};
/// use fathom_scans::scan::{Scan, scan};
///
/// let temp = tempfile::tempdir()?;
/// let history = History::create(&temp.path().join("store"), None)?;
/// let lock = history.lock(&mut |_warning| ())?;
/// let out = history.free_path(1_795_705_200);
/// assert!(out.ends_with("2026-11-26T15-00-00Z.inv"));
/// scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let kept = history.snapshots()?;
/// assert_eq!(newest(&kept).map(|snapshot| &snapshot.path), Some(&out));
/// lock.release()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct History {
    directory: PathBuf,
}

/// The lock of a store, which keeps other processes from adding inventories to it and from removing
/// some. It is released however the process ends.
#[derive(Debug)]
pub struct HistoryLock {
    lock: Lock,
    directory: PathBuf,
}

impl HistoryLock {
    /// Releases the lock and removes its file.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn release(self) -> Result<(), Error> {
        self.lock.remove(&self.directory)
    }
}

/// A dated inventory.
#[derive(Debug)]
pub struct Snapshot {
    /// The path of its directory.
    pub path: PathBuf,
    /// The time of its name, at which its scan began, in seconds since 1970.
    pub time: i64,
    /// How far its scan came.
    pub state: SnapshotState,
}

/// How far a scan came.
#[derive(Debug)]
#[non_exhaustive]
pub enum SnapshotState {
    /// It came to its end. Some directories may still be missing, as its completeness says.
    Ended(Box<Manifest>),
    /// It was stopped. The inventory has what was found until then.
    Stopped(Box<Manifest>),
    /// It is running, or was killed and can be resumed.
    Unfinished,
    /// The manifest cannot be read.
    Unreadable(Error),
}

impl Snapshot {
    /// Returns the manifest, unless the scan is unfinished or the manifest cannot be read.
    #[must_use]
    pub fn manifest(&self) -> Option<&Manifest> {
        match &self.state {
            SnapshotState::Ended(manifest) | SnapshotState::Stopped(manifest) => Some(manifest),
            SnapshotState::Unfinished | SnapshotState::Unreadable(_) => None,
        }
    }

    /// Returns the manifest if the scan came to its end.
    #[must_use]
    pub fn ended(&self) -> Option<&Manifest> {
        match &self.state {
            SnapshotState::Ended(manifest) => Some(manifest),
            _ => None,
        }
    }

    /// Returns the path without `.part`, which the inventory has once its scan has ended.
    #[must_use]
    pub fn final_path(&self) -> PathBuf {
        match self.state {
            SnapshotState::Unfinished => self.path.with_extension(""),
            _ => self.path.clone(),
        }
    }
}

impl History {
    /// Opens the store in an existing directory.
    ///
    /// # Errors
    /// If there is no such directory.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::new(Op::Read, directory, error);
        fs::read_dir(directory).map_err(failed)?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// Opens the store in `directory`, which is created if it does not exist. Those who may read
    /// files of the permission bits `mode` may enter a new directory, else only its owner.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn create(directory: &Path, mode: Option<u32>) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::new(Op::Create, directory, error);
        let is_new = !directory.exists();
        // A directory of which only the parent is meant is not made.
        let (above, _) = split_parents(directory);
        if !above.as_os_str().is_empty() {
            above.metadata().map_err(failed)?;
        }
        let mode = mode.map(directory_mode);
        DirBuilder::new().recursive(true).mode(mode.unwrap_or(0o700)).create(directory).map_err(failed)?;
        if let Some(mode) = mode.filter(|_| is_new) {
            // As for the files, whatever the umask is.
            fs::set_permissions(directory, Permissions::from_mode(mode)).map_err(failed)?;
        }
        Ok(Self { directory: directory.to_owned() })
    }

    /// Returns the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Takes the lock. `warn` is called with a warning if the filesystem has no locks.
    ///
    /// # Errors
    /// If another process has the lock.
    pub fn lock(&self, warn: &mut dyn FnMut(&[u8])) -> Result<HistoryLock, Error> {
        let lock = Lock::take(&self.directory, warn)?;
        Ok(HistoryLock { lock, directory: self.directory.clone() })
    }

    /// Returns the path of a new inventory whose scan begins at the time `now`, in seconds since
    /// 1970. If there are some of that second or of the day after it, it is named by the second
    /// after the last of them: a clock that was set back does not make a scan older than those
    /// before it.
    #[must_use]
    pub fn free_path(&self, now: i64) -> PathBuf {
        // An error of making the inventory is returned as well.
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let times = entries.filter_map(|entry| Some(name::time_of(&entry.file_name())?.0));
        let times: BTreeSet<i64> = times.collect();
        let last = times.range(now..now.saturating_add(DAY_SEC)).next_back();
        let mut free = last.map_or(now, |last| last + 1)..;
        let free = free.find(|sec| !times.contains(sec));
        self.directory.join(name::of_time(free.expect("the range of seconds has no end")))
    }

    /// Returns the inventories of the store, the oldest first.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        let failed = |error: std::io::Error| Error::new(Op::Read, &self.directory, error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Some((time, is_part)) = name::time_of(&entry.file_name()) else { continue };
            if entry.file_type().map_err(failed)?.is_dir() {
                let path = entry.path();
                let state = if is_part { SnapshotState::Unfinished } else { state(&path) };
                found.push(Snapshot { path, time, state });
            }
        }
        found.sort_by(|one, two| one.path.cmp(&two.path));
        Ok(found)
    }
}

/// Reads the state of an inventory that has its final name.
fn state(path: &Path) -> SnapshotState {
    match Manifest::read(path) {
        Err(error) => SnapshotState::Unreadable(error),
        Ok(manifest) if manifest.completeness.stopped.is_some() => SnapshotState::Stopped(Box::new(manifest)),
        Ok(manifest) => SnapshotState::Ended(Box::new(manifest)),
    }
}

/// Returns whether the scan of a snapshot can be resumed.
pub(super) fn is_resumable(snapshot: &Snapshot) -> bool {
    match &snapshot.state {
        SnapshotState::Unfinished => true,
        SnapshotState::Stopped(_) => has_journal(&snapshot.path),
        _ => false,
    }
}
