//! The targets that are being removed, and the supply of them to the walk.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fathom_io::{Errno, beneath, sys};
use fathom_walk::{NextRoot, RootSource};

use crate::failure::{RemovalCause, RemovalFailure, RemovalOperation};
use crate::removal::Removal;
use crate::target::{Location, Target};

/// Walks of a target in which a directory was not empty although everything that was found in it
/// had been removed. A server may leave out entries of a directory that changes while it is read.
const ATTEMPTS_MAX: u32 = 4;
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
    attempts: AtomicU32,
    /// The first directory that was not empty in the end.
    pub(crate) left: Mutex<Option<Vec<u8>>>,
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
        if running.attempts.fetch_add(1, Ordering::Relaxed) + 1 < ATTEMPTS_MAX {
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
    /// The next target, if too many parent directories were open for it.
    held: Option<Target>,
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
        Self { targets, removal, held: None, roots: 0, last: None, parents: Vec::new(), parents_max }
    }

    /// Opens the parent directory of a target, and supplies the target as a root.
    fn start(
        &mut self,
        target: &Target,
        again: Option<Arc<RunningTarget>>,
    ) -> Result<NextRoot, RemovalCause> {
        let location = target.split()?;
        let parent = match &self.last {
            Some((last, parent)) if last.is_beside(&location) => parent.clone(),
            _ => Arc::new(location.open()?),
        };
        let (name, is_directory) = (location.name.clone(), location.is_directory);
        let running = match again {
            Some(again) => again,
            None => Arc::new(RunningTarget {
                target: target.clone(),
                path: without_slashes(target.path_bytes()),
                dev: beneath::stat(parent.as_fd())?.dev,
                is_directory,
                attempts: AtomicU32::new(0),
                left: Mutex::new(None),
            }),
        };
        self.removal.targets.lock().by_root.insert(self.roots, running);
        self.roots += 1;
        if self.last.as_ref().is_none_or(|(_, last)| !Arc::ptr_eq(last, &parent)) {
            self.parents.push(Arc::downgrade(&parent));
        }
        self.last = Some((location, parent.clone()));
        Ok(NextRoot::At(parent, name))
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
                None => self.held.take().or_else(|| self.targets.next()),
            };
            // While anything is removed, it may have to be walked again.
            let Some(target) = target else { return if wait { NextRoot::End } else { NextRoot::NotNow } };
            match self.start(&target, again) {
                Ok(root) => return root,
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
