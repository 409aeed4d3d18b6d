//! The entries that were deleted after the scan. The inventory does not change: rows are hidden,
//! and sums reduced, when they are read.

use std::collections::{BTreeMap, HashMap, HashSet};

use fathom_questions::browse::BrowseKey;

use crate::listing::is_linked;
use crate::source::{Amount, Place, Row};

/// The entries that were removed.
#[derive(Clone, Debug, Default)]
pub(super) struct RemovedEntries {
    /// By place, each with what it takes out of the sums of all directories above, the size of an
    /// inode for each of its names. No place is in another.
    entries: HashMap<Place, Amount<u64>>,
    /// How often entries were removed.
    count: u64,
    /// The first and the last number of the directories in each removed tree. No tree is in
    /// another.
    trees: BTreeMap<i64, i64>,
    /// The other entries, by the number of their directory.
    files: HashMap<i64, HashSet<Box<[u8]>>>,
    /// How many of them are names of an inode with several names, by the number of their directory.
    links: HashMap<(i64, (u64, u64)), u64>,
}

impl RemovedEntries {
    /// Returns how often entries were removed.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether an entry that is no directory is gone.
    pub(super) fn has(&self, dir_id: i64, name: &[u8]) -> bool {
        self.has_dir(dir_id) || self.files.get(&dir_id).is_some_and(|names| names.contains(name))
    }

    fn has_dir(&self, dir_id: i64) -> bool {
        self.trees.range(..=dir_id).next_back().is_some_and(|(_, last)| *last >= dir_id)
    }

    /// Returns a function that tells of each name of an inode with several names, by the number of
    /// its directory, whether it is left. Names of an inode in one directory are alike.
    pub(super) fn links_left(&self) -> impl FnMut(i64, (u64, u64)) -> bool {
        let mut links = self.links.clone();
        move |dir_id, inode| {
            let count = links.get_mut(&(dir_id, inode)).filter(|count| **count > 0);
            let is_gone = count.map(|count| *count -= 1).is_some();
            !is_gone && !self.has_dir(dir_id)
        }
    }

    /// Notes that a directory is gone, with everything below it and what was removed there before.
    pub(super) fn add_tree(&mut self, key: BrowseKey, place: &Place) {
        let is_within =
            |within: &Place| within.root == place.root && rest(&place.below, &within.below).is_some();
        self.entries.retain(|within, _| !is_within(within));
        let (first, last) = key.numbers();
        self.trees.retain(|within, _| !(first..=last).contains(within));
        self.trees.insert(first, last);
    }

    /// Notes that an entry of a directory is gone.
    pub(super) fn add_file(&mut self, dir: BrowseKey, row: &Row) {
        let dir_id = dir.numbers().0;
        if self.files.entry(dir_id).or_default().insert(row.name.clone()) && is_linked(row) {
            *self.links.entry((dir_id, (row.identity.dev, row.identity.ino))).or_default() += 1;
        }
    }

    /// Adds an entry, which takes `amount` out of sums.
    pub(super) fn add(&mut self, place: Place, amount: Amount<u64>) {
        self.entries.insert(place, amount.with_itself());
        self.count += 1;
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
