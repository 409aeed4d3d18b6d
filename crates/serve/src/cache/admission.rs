//! The admission filter of the file cache: a path is cached from its second request on, because an
//! entry that is used once would only evict others.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Fingerprints of the paths that were requested most recently (the doorkeeper of TinyLFU). Two
/// paths have the same slot and fingerprint once in billions of times; then a path is admitted on
/// its first request.
#[derive(Debug)]
pub(super) struct AdmissionFilter {
    /// Indexed by the lower bits of a path's hash; the value is the upper bits. 0 marks an empty
    /// slot.
    fingerprints: Box<[Cell<u32>]>,
    hasher: RandomState,
}

/// Slots for each cached path. With eight, paths that are requested alternately seldom evict each
/// other's fingerprint.
const SLOTS_PER_FILE: usize = 8;
/// The minimum and maximum number of slots.
const SLOTS: [usize; 2] = [256, 1 << 16];

impl AdmissionFilter {
    /// Creates a filter for a cache of `files` paths.
    pub(super) fn new(files: usize) -> Self {
        let [least, most] = SLOTS;
        let slots = files.saturating_mul(SLOTS_PER_FILE).clamp(least, most).next_power_of_two();
        Self { fingerprints: vec![Cell::new(0); slots].into(), hasher: RandomState::new() }
    }

    /// Records a request for `path` below the root number `root`. Returns whether the path was
    /// requested before and its fingerprint has not been overwritten since.
    pub(super) fn admit(&self, root: usize, path: &[u8]) -> bool {
        let hash = self.hasher.hash_one((root, path));
        let slot = hash as usize & (self.fingerprints.len() - 1);
        let fingerprint = (hash >> 32) as u32 | 1;
        self.fingerprints.get(slot).is_some_and(|known| known.replace(fingerprint) == fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_admitted_on_its_second_request() {
        let filter = AdmissionFilter::new(0);
        assert!(!filter.admit(0, b"a"));
        assert!(filter.admit(0, b"a"));
        assert!(!filter.admit(1, b"a"), "another root");
    }

    #[test]
    fn a_path_is_forgotten_after_many_others() {
        let filter = AdmissionFilter::new(32);
        let known = |name: u32| filter.admit(0, &name.to_be_bytes());
        assert!((0..100_000).all(|name| !known(name)));
        let again = (0..100_000).filter(|name| known(*name)).count();
        assert!(again < 256, "{again}");
    }
}
