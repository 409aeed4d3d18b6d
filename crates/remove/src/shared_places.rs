//! Entries that several targets name, as a directory and a file in it do, or one path twice. A dry
//! run counts each of them once, whichever target it meets first.

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_io::beneath;

use crate::identity::Identity;
use crate::target::{Location, Target};

/// The places of targets: of each directory that has some the names, and whether one was met.
#[derive(Debug, Default)]
pub(crate) struct SharedPlaces(HashMap<Identity, HashMap<Box<CStr>, AtomicBool>>);

impl SharedPlaces {
    /// Collects the places of targets. One whose directory cannot be opened has none.
    pub(crate) fn of(targets: &[Target]) -> Self {
        let mut places = Self::default();
        if targets.len() < 2 {
            return places;
        }
        let mut last: Option<(Location, Identity)> = None;
        for location in targets.iter().filter_map(|target| target.split().ok()) {
            let known = last.as_ref().filter(|(last, _)| last.is_beside(&location)).map(|(_, id)| *id);
            let opened = || location.open().ok().and_then(|parent| identity(&parent));
            let Some(parent) = known.or_else(opened) else { continue };
            places.0.entry(parent).or_default().insert(location.name.clone().into(), AtomicBool::new(false));
            last = Some((location, parent));
        }
        places
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

fn identity(dir: &OwnedFd) -> Option<Identity> {
    let (dev, ino) = beneath::stat(dir.as_fd()).ok()?.id();
    Some(Identity { dev, ino })
}
