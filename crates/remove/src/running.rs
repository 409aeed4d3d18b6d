//! The targets that are being removed, and the supply of them to the walk.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fathom_io::{Errno, beneath, sys};
use fathom_walk::{NextRoot, RootSource};

use crate::failure::{RemovalCause, RemovalFailure, RemovalOperation};
use crate::removal::Removal;
use crate::target::{Location, Target};

/// Walks of a target in which nothing was removed, but a directory was not empty although
/// everything that was found in it was gone. A server may leave out entries of a directory that
/// changes while it is read.
const FUTILE_WALKS_MAX: u32 = 4;
/// All walks of a target: another process may fill a directory for ever.
const WALKS_MAX: u32 = 100;
/// The maximum number of open parent directories, and the divisor of the limit of descriptors.
const PARENTS_MAX: usize = 128;
const PARENTS_SHARE: usize = 8;

/// A target that is being removed.
#[derive(Debug)]
pub(crate) struct RunningTarget {
    pub(crate) target: Target,
    /// The path for messages, without slashes at its end.
    pub(crate) path: Vec<u8>,
    /// The device of the parent directory.
    pub(crate) dev: u64,
    /// Whether the path ends in a slash.
    pub(crate) is_directory: bool,
    walks: AtomicU32,
    futile_walks: AtomicU32,
    /// Whether this walk has removed anything.
    pub(crate) has_removed: AtomicBool,
    /// The mount points that have been reported: each walk finds them again.
    mount_points: Mutex<HashSet<Vec<u8>>>,
    /// The first directory that was not empty in the end.
    pub(crate) left: Mutex<Option<Vec<u8>>>,
}

impl RunningTarget {
    /// Counts a walk that has left something. Returns whether another one may follow.
    fn may_walk_again(&self) -> bool {
        // Each walk of a target begins after the one before.
        let is_futile = !self.has_removed.swap(false, Ordering::Relaxed);
        let futile =
            self.futile_walks.fetch_add(u32::from(is_futile), Ordering::Relaxed) + u32::from(is_futile);
        self.walks.fetch_add(1, Ordering::Relaxed) + 1 < WALKS_MAX && futile < FUTILE_WALKS_MAX
    }

    /// Returns whether a failure has not been reported yet, as far as that is known.
    pub(crate) fn is_new(&self, path: &[u8], cause: RemovalCause) -> bool {
        let points = || self.mount_points.lock().unwrap_or_else(PoisonError::into_inner);
        cause != RemovalCause::MountPoint || points().insert(path.to_vec())
    }
}

/// The targets by index of their root in the walk, and those that are walked again.
#[derive(Debug, Default)]
pub(crate) struct RunningTargets {
    state: Mutex<RunningState>,
}

#[derive(Debug, Default)]
struct RunningState {
    by_root: HashMap<usize, Arc<RunningTarget>>,
    again: VecDeque<Arc<RunningTarget>>,
}

impl RunningTargets {
    fn lock(&self) -> MutexGuard<'_, RunningState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the target of a root of the walk.
    pub(crate) fn of_root(&self, root: usize) -> Option<Arc<RunningTarget>> {
        self.lock().by_root.get(&root).cloned()
    }

    /// Ends the walk of a root. Returns the directory that was not empty, if the target is not
    /// walked again because of it.
    pub(crate) fn end(&self, root: usize) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let running = state.by_root.remove(&root)?;
        let left = running.left.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        if running.may_walk_again() {
            state.again.push_back(running);
            return None;
        }
        Some(left)
    }
}

/// The supply of targets to the walk.
pub(crate) struct TargetSource<'r, I> {
    targets: I,
    removal: &'r Removal,
    /// Number of roots supplied so far.
    roots: usize,
    /// The directory of the last target: neighbours in a list often share theirs.
    last: Option<(Location, Arc<OwnedFd>)>,
    parents: Vec<Weak<OwnedFd>>,
    parents_max: usize,
}

impl<'r, I: Iterator<Item = Target>> TargetSource<'r, I> {
    pub(crate) fn new(targets: I, removal: &'r Removal) -> Self {
        let parents_max = parents_max();
        Self { targets, removal, roots: 0, last: None, parents: Vec::new(), parents_max }
    }

    /// Opens the parent directory of a target, and supplies the target as a root; `None` if a dry
    /// run has counted it already.
    fn start(
        &mut self,
        target: &Target,
        again: Option<Arc<RunningTarget>>,
    ) -> Result<Option<NextRoot>, RemovalCause> {
        let location = target.split()?;
        let parent = match &self.last {
            Some((last, parent)) if last.is_beside(&location) => parent.clone(),
            _ => Arc::new(location.open()?),
        };
        let (name, is_directory) = (location.name.clone(), location.is_directory);
        let found = beneath::stat(parent.as_fd())?;
        let places = &self.removal.places;
        if again.is_none() && !places.meet_target(target, &location, &parent, found.id()) {
            return Ok(None);
        }
        let running = match again {
            Some(again) => again,
            None => Arc::new(RunningTarget {
                target: target.clone(),
                path: without_slashes(target.path_bytes()),
                dev: found.dev,
                is_directory,
                walks: AtomicU32::new(0),
                futile_walks: AtomicU32::new(0),
                has_removed: AtomicBool::new(false),
                mount_points: Mutex::default(),
                left: Mutex::new(None),
            }),
        };
        self.removal.targets.lock().by_root.insert(self.roots, running);
        self.roots += 1;
        if self.last.as_ref().is_none_or(|(_, last)| !Arc::ptr_eq(last, &parent)) {
            self.parents.push(Arc::downgrade(&parent));
        }
        self.last = Some((location, parent.clone()));
        Ok(Some(NextRoot::At(parent, name)))
    }

    /// Returns whether no further parent directory may be opened now.
    fn is_full(&mut self) -> bool {
        if self.parents.len() < self.parents_max {
            return false;
        }
        self.parents.retain(|parent| parent.strong_count() > 0);
        self.parents.len() >= self.parents_max
    }
}

impl<I: Iterator<Item = Target>> RootSource for TargetSource<'_, I> {
    fn next_root(&mut self, wait: bool) -> NextRoot {
        loop {
            if self.is_full() && !wait {
                return NextRoot::NotNow;
            }
            let again = self.removal.targets.lock().again.pop_front();
            let target = match &again {
                Some(again) => Some(again.target.clone()),
                None => self.targets.next(),
            };
            // While anything is removed, it may have to be walked again.
            let Some(target) = target else { return if wait { NextRoot::End } else { NextRoot::NotNow } };
            match self.start(&target, again) {
                Ok(Some(root)) => return root,
                Ok(None) => {}
                Err(cause) => self.removal.target_failed(&target, RemovalOperation::Remove, cause),
            }
        }
    }

    fn stopped(&mut self) -> bool {
        self.removal.is_stopped()
    }
}

/// Returns the maximum number of open parent directories.
pub(crate) fn parents_max() -> usize {
    (sys::fd_limit() / PARENTS_SHARE).clamp(2, PARENTS_MAX)
}

fn without_slashes(mut path: Vec<u8>) -> Vec<u8> {
    while path.len() > 1 && path.last() == Some(&b'/') {
        path.pop();
    }
    path
}

/// Returns whether a cause says that the target does not exist.
pub(crate) fn is_missing(cause: RemovalCause) -> bool {
    matches!(cause, RemovalCause::Os(Errno::NOENT | Errno::NOTDIR))
}

impl Removal {
    /// Reports that nothing was done for a target.
    pub(crate) fn target_failed(&self, target: &Target, operation: RemovalOperation, cause: RemovalCause) {
        if !(self.ignore_missing && is_missing(cause)) {
            self.failed(RemovalFailure { path: target.path_bytes(), operation, cause });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RemovalOptions;

    fn running() -> RunningTarget {
        RunningTarget {
            target: Target::path("a"),
            path: b"a".to_vec(),
            dev: 1,
            is_directory: false,
            walks: AtomicU32::new(0),
            futile_walks: AtomicU32::new(0),
            has_removed: AtomicBool::new(false),
            mount_points: Mutex::default(),
            left: Mutex::new(None),
        }
    }

    #[test]
    fn walks_that_remove_nothing_end_sooner_than_others() {
        let futile = running();
        assert_eq!((0..9).take_while(|_| futile.may_walk_again()).count(), 3);
        let fruitful = running();
        let walk = |_: &i32| {
            fruitful.has_removed.store(true, Ordering::Relaxed);
            fruitful.may_walk_again()
        };
        assert_eq!((0..999).take_while(walk).count(), 99);
    }

    #[test]
    fn a_mount_point_is_reported_once() {
        let running = running();
        let is_new = |path: &[u8], cause| running.is_new(path, cause);
        assert!(is_new(b"a/m", RemovalCause::MountPoint) && is_new(b"a/n", RemovalCause::MountPoint));
        assert!(!is_new(b"a/m", RemovalCause::MountPoint));
        assert!(is_new(b"a/m", Errno::IO.into()) && is_new(b"a/m", Errno::IO.into()));
    }

    #[test]
    fn few_parent_directories_are_open_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let count = parents_max() + 20;
        for number in 0..count {
            std::fs::create_dir_all(temp.path().join(format!("{number}/d"))).unwrap();
        }
        let removal = Removal::new(&RemovalOptions::default(), Arc::new(()));
        let targets = (0..count).map(|number| Target::below(temp.path(), format!("{number}/d")));
        let mut source = TargetSource::new(targets, &removal);
        let mut supply = || match source.next_root(false) {
            NextRoot::At(parent, _) => Some(parent),
            _ => None,
        };
        let mut open: Vec<_> = std::iter::from_fn(&mut supply).collect();
        assert_eq!(open.len(), parents_max());
        // One that is closed is replaced by another.
        open.remove(0);
        assert_eq!(std::iter::from_fn(&mut supply).count(), 1);
    }
}
