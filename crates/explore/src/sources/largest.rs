//! A bounded set of the largest files.

use std::collections::BTreeMap;

use crate::source::Row;

/// The largest files, each with a directory of type `D`. A file that was refused or dropped is not
/// larger than any file below [`LargestFiles::least`], so those that are kept are always the
/// largest ones.
#[derive(Clone, Debug)]
pub(crate) struct LargestFiles<D> {
    count_max: usize,
    /// The least allocated size of a file that is accepted; 0 if none was refused.
    least: u64,
    /// By allocated size and order of arrival.
    files: BTreeMap<(u64, u64), (D, Row)>,
    arrivals: u64,
}

impl<D> LargestFiles<D> {
    /// Creates a set of at most `count_max` files.
    pub(crate) fn new(count_max: usize) -> Self {
        Self { count_max, least: 0, files: BTreeMap::new(), arrivals: 0 }
    }

    /// Returns the least allocated size of a file that is accepted.
    pub(crate) fn least(&self) -> u64 {
        self.least
    }

    /// Returns whether every file is in the set.
    pub(crate) fn has_all(&self) -> bool {
        self.least == 0
    }

    /// Adds a file, unless it is too small.
    pub(crate) fn push(&mut self, dir: D, row: Row) {
        if row.amount.allocated < self.least || self.count_max == 0 {
            return;
        }
        // Among files of one size the first ones are kept.
        self.arrivals += 1;
        self.files.insert((row.amount.allocated, u64::MAX - self.arrivals), (dir, row));
        if self.files.len() > self.count_max
            && let Some(((allocated, _), _)) = self.files.pop_first()
        {
            self.least = allocated.saturating_add(1);
        }
    }

    /// Keeps the files for which `keep` returns true.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&D, &Row) -> bool) {
        self.files.retain(|_, (dir, row)| keep(dir, row));
    }

    /// Iterates over the files, the largest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(D, Row)> {
        self.files.values().rev()
    }
}

#[cfg(test)]
mod tests {
    use fathom_io::FileType;
    use fathom_remove::Identity;
    use proptest::prelude::*;

    use super::*;
    use crate::source::{Amount, RowState};

    fn row(allocated: u64) -> Row {
        Row {
            name: Box::from(&b"f"[..]),
            identity: Identity { dev: 0, ino: allocated },
            ctime: None,
            file_type: FileType::Regular,
            links: 1,
            uid: None,
            gid: 0,
            amount: Amount { allocated, ..Amount::default() },
            shared: 0,
            newest_mtime_s: None,
            growth: None,
            state: RowState::Complete,
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn kept_files_are_the_largest_of_all(sizes in prop::collection::vec(0u64..50, 0..60)) {
            let mut largest = LargestFiles::new(10);
            sizes.iter().for_each(|size| largest.push((), row(*size)));
            let mut sorted = sizes.clone();
            sorted.sort_unstable_by(|one, other| other.cmp(one));
            sorted.truncate(10);
            prop_assert_eq!(largest.iter().map(|(_, row)| row.amount.allocated).collect::<Vec<_>>(), sorted);
            prop_assert_eq!(largest.has_all(), sizes.len() <= 10);
        }
    }

    #[test]
    fn a_file_that_left_makes_no_room_for_a_small_one() {
        let mut largest = LargestFiles::new(2);
        [5, 9, 7].into_iter().for_each(|size| largest.push((), row(size)));
        largest.retain(|(), row| row.amount.allocated != 9);
        largest.push((), row(5));
        assert_eq!(largest.iter().map(|(_, row)| row.amount.allocated).collect::<Vec<_>>(), [7]);
    }
}
