//! The entries that were deleted after the scan. The inventory does not change: rows are hidden,
//! and sums reduced, when they are read.

use std::collections::{BTreeMap, HashMap, HashSet};

use fathom_inventory::store::BrowseKey;

use crate::listing::is_linked;
use crate::source::{Amount, Place, Row};
use crate::sources::joined;

/// The entries that were removed.
#[derive(Clone, Debug, Default)]
pub(super) struct RemovedEntries {
    /// By place, each with what it takes out of the sums of all directories above.
    entries: HashMap<Place, Amount<u64>>,
    /// The first and the last number of the directories in each removed tree. No tree is in
    /// another.
    trees: BTreeMap<i64, i64>,
    /// The other entries, by the number of their directory.
    files: HashMap<i64, HashSet<Box<[u8]>>>,
}

impl RemovedEntries {
    /// Returns how often entries were removed.
    pub(super) fn count(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns whether an entry that is no directory is gone.
    pub(super) fn has(&self, dir_id: i64, name: &[u8]) -> bool {
        let tree = self.trees.range(..=dir_id).next_back();
        tree.is_some_and(|(_, last)| *last >= dir_id)
            || self.files.get(&dir_id).is_some_and(|names| names.contains(name))
    }

    /// Notes that a directory is gone, with everything below it.
    pub(super) fn add_tree(&mut self, key: BrowseKey) {
        let (first, last) = key.numbers();
        self.trees.retain(|within, _| !(first..=last).contains(within));
        self.trees.insert(first, last);
    }

    /// Notes that an entry of a directory is gone.
    pub(super) fn add_file(&mut self, dir: BrowseKey, name: &[u8]) {
        self.files.entry(dir.numbers().0).or_default().insert(name.into());
    }

    /// Adds an entry. A file with several names takes its size out of no sum, because another name
    /// may be left below the same directory.
    pub(super) fn add(&mut self, place: &Place, row: &Row) {
        let amount = if is_linked(row) { Amount::default() } else { row.amount };
        let below = joined(&place.below, &row.name);
        self.entries.insert(Place { root: place.root, below }, amount.with_itself());
    }

    /// Returns what is gone below a directory.
    pub(super) fn below(&self, top: &Place) -> Amount<u64> {
        let mut sums = Amount::default();
        let is_below = |place: &Place| place.root == top.root && rest(&top.below, &place.below).is_some();
        self.entries.iter().filter(|(place, _)| is_below(place)).for_each(|(_, amount)| sums.add(amount));
        sums
    }

    /// Takes the removed entries out of the rows of a directory.
    pub(super) fn apply(&self, place: &Place, rows: &mut Vec<Row>) {
        let mut changes: HashMap<&[u8], (bool, Amount<u64>)> = HashMap::new();
        for (removed, amount) in self.entries.iter().filter(|(removed, _)| removed.root == place.root) {
            let Some(below) = rest(&place.below, &removed.below) else { continue };
            let slash = below.iter().position(|byte| *byte == b'/');
            let (is_gone, sums) = changes.entry(&below[..slash.unwrap_or(below.len())]).or_default();
            *is_gone |= slash.is_none();
            sums.add(amount);
        }
        if changes.is_empty() {
            return;
        }
        rows.retain(|row| !changes.get(&row.name[..]).is_some_and(|(is_gone, _)| *is_gone));
        for row in rows {
            if let Some((_, sums)) = changes.get(&row.name[..]) {
                row.amount.subtract(sums);
            }
        }
    }
}

/// Returns the part of a path below the directory `top`.
fn rest<'a>(top: &[u8], path: &'a [u8]) -> Option<&'a [u8]> {
    if top.is_empty() { Some(path) } else { path.strip_prefix(top)?.strip_prefix(b"/") }
}
