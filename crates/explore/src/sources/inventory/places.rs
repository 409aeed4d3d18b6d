//! The directories that were found last, so that a directory is not searched for in its parent
//! after it has just been listed there.

use std::collections::HashMap;

use fathom_questions::browse::BrowseKey;

use crate::source::Place;

/// Most places that are kept.
const PLACES_MAX: usize = 50_000;

/// A bounded map from places to directories.
#[derive(Debug, Default)]
pub(super) struct DirPlaces(HashMap<Place, BrowseKey>);

impl DirPlaces {
    pub(super) fn get(&self, place: &Place) -> Option<BrowseKey> {
        self.0.get(place).copied()
    }

    /// Keeps a place. If there are too many, all others are dropped: they can be found again.
    pub(super) fn insert(&mut self, place: Place, key: BrowseKey) {
        if self.0.len() >= PLACES_MAX {
            self.0.clear();
        }
        self.0.insert(place, key);
    }

    /// Keeps the places of `other`.
    pub(super) fn extend(&mut self, other: &mut Self) {
        other.0.drain().for_each(|(place, key)| self.insert(place, key));
    }
}
