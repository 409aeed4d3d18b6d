//! The entries that were deleted after the scan. The inventory does not change: rows are hidden,
//! and sums reduced, when they are read.

use std::collections::{BTreeMap, HashMap, HashSet};

use fathom_inventory::store::BrowseKey;
use fathom_io::FileType;

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

    /// Adds an entry. A file with several names takes nothing out of the sums, because another name
    /// may be left, and only the scan knows which of them counts.
    pub(super) fn add(&mut self, place: &Place, row: &Row) {
        let is_linked = row.links > 1 && row.file_type != FileType::Directory;
        let amount = if is_linked { Amount::default() } else { row.amount.with_itself() };
        let below = joined(&place.below, &row.name);
        self.entries.insert(Place { root: place.root, below }, amount);
    }

    /// Takes the removed entries out of a root.
    pub(super) fn apply_to_root(&self, root: usize, row: &mut Row) {
        self.entries.iter().filter(|(place, _)| place.root == root).for_each(|(_, amount)| {
            row.amount.subtract(amount);
        });
    }

    /// Takes the removed entries out of the rows of a directory.
    pub(super) fn apply(&self, place: &Place, rows: &mut Vec<Row>) {
        let mut changes: HashMap<&[u8], (bool, Amount<u64>)> = HashMap::new();
        for (removed, amount) in self.entries.iter().filter(|(removed, _)| removed.root == place.root) {
            let below = if place.below.is_empty() {
                Some(&removed.below[..])
            } else {
                removed.below.strip_prefix(&place.below[..]).and_then(|rest| rest.strip_prefix(b"/"))
            };
            let Some(below) = below else { continue };
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
