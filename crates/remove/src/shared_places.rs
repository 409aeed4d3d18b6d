//! Entries that several targets name, as a directory and a file in it do, or one path twice. A dry
//! run counts each of them once, whichever target it meets first.

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_io::{FileType, Follow, beneath, sys};

use crate::identity::Identity;
use crate::removal::FIELDS;
use crate::target::{Location, Target};

/// The places of targets that may be removed: of each directory that has some the names, and
/// whether one was met.
#[derive(Debug, Default)]
pub(crate) struct SharedPlaces(HashMap<Identity, HashMap<Box<CStr>, AtomicBool>>);

impl SharedPlaces {
    /// Collects the places of targets. One that cannot be removed has none: what is there may still
    /// be counted as a part of another one.
    pub(crate) fn of(targets: &[Target]) -> Self {
        let mut places = Self::default();
        if targets.len() < 2 {
            return places;
        }
        let mut last: Option<(Location, Directory)> = None;
        for target in targets {
            let Ok(location) = target.split() else { continue };
            let known = last.take().filter(|(last, _)| last.is_beside(&location)).map(|(_, parent)| parent);
            let Some(parent) = known.or_else(|| Directory::open(&location)) else { continue };
            if may_be_removed(target, &location, &parent.handle) {
                let names = places.0.entry(parent.identity).or_default();
                names.insert(location.name.clone().into(), AtomicBool::new(false));
            }
            last = Some((location, parent));
        }
        places
    }

    /// Returns false for a target whose place has been met before.
    pub(crate) fn meet_target(
        &self,
        target: &Target,
        location: &Location,
        parent: &OwnedFd,
        id: (u64, u64),
    ) -> bool {
        // One that cannot be removed, such as an earlier inode, leaves the place to others.
        self.0.is_empty() || !may_be_removed(target, location, parent) || self.meet(id, &location.name)
    }

    /// Returns false for the place of a target that has been met before.
    pub(crate) fn meet(&self, dir: (u64, u64), name: &CStr) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let names = self.0.get(&Identity { dev: dir.0, ino: dir.1 });
        names.and_then(|names| names.get(name)).is_none_or(|met| !met.swap(true, Ordering::Relaxed))
    }
}

/// The directory of some targets.
struct Directory {
    handle: OwnedFd,
    identity: Identity,
}

impl Directory {
    fn open(location: &Location) -> Option<Self> {
        let handle = location.open().ok()?;
        let (dev, ino) = beneath::stat(handle.as_fd()).ok()?.id();
        Some(Self { handle, identity: Identity { dev, ino } })
    }
}

fn may_be_removed(target: &Target, location: &Location, parent: &OwnedFd) -> bool {
    let found = sys::stat(parent.as_fd(), &location.name, Follow::No, FIELDS);
    found.is_ok_and(|meta| {
        let is_directory = meta.file_type() == FileType::Directory;
        target.is_shown(&meta) && (is_directory || !location.is_directory)
    })
}
