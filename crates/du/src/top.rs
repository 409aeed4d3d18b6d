//! The largest entries of a run. Memory grows with the number of entries to keep, not with the
//! number of entries: each entry is examined once and kept only while it is among the largest so
//! far. Owns the selection and its order; the caller formats it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use fathom_walk::FileType;

use crate::options::Measure;
use crate::scan::Line;
use crate::totals::Totals;

/// Returns the field of `totals` that `measure` selects.
#[must_use]
pub fn value(measure: Measure, totals: &Totals) -> u64 {
    match measure {
        Measure::Inodes => totals.inodes,
        Measure::Usage | Measure::Apparent | Measure::Lengths => totals.bytes,
    }
}

/// An entry that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopEntry {
    /// Path, starting with the operand as given.
    pub path: Vec<u8>,
    /// The index of its operand, in the order of the operands' lines.
    pub operand: usize,
    /// Levels below the operand.
    pub depth: usize,
    /// Its type. Unknown for a non-directory if the run's lines carry no metadata.
    pub file_type: FileType,
    /// The totals of the entry.
    pub totals: Totals,
    /// The totals of its inode alone.
    pub own: Totals,
}

impl TopEntry {
    fn new(line: &Line<'_>, operand: usize) -> Self {
        Self {
            path: line.path.to_vec(),
            operand,
            depth: line.depth,
            file_type: file_type(line),
            totals: *line.totals,
            own: *line.own,
        }
    }
}

/// Returns the type of the entry, as far as `line` tells it.
#[must_use]
pub fn file_type(line: &Line<'_>) -> FileType {
    match line.meta {
        _ if line.is_dir => FileType::Directory,
        Some(meta) => meta.file_type(),
        None => FileType::Unknown,
    }
}

/// Keeps the largest entries of a run.
///
/// Among entries of equal size, the ones with the smaller paths in byte order are kept. So the
/// directory of a kept entry is kept too: it is at least as large and has a shorter path.
///
/// ```
/// use fathom_du::options::Measure;
/// use fathom_du::scan::Line;
/// use fathom_du::top::Top;
/// use fathom_du::totals::Totals;
///
/// let mut top = Top::new(Measure::Usage, 2);
/// for (path, bytes) in [(&b"a/x"[..], 1), (b"a/y", 3), (b"a", 4)] {
///     let totals = Totals { bytes, inodes: 1, ..Totals::EPOCH };
///     let (depth, is_dir) = (usize::from(path.len() > 1), path.len() == 1);
///     top.add(&Line { path, depth, totals: &totals, own: &totals, meta: None, is_dir });
/// }
/// let paths: Vec<_> = top.take_sorted().into_iter().map(|entry| entry.path).collect();
/// assert_eq!(paths, [&b"a"[..], b"a/y"]);
/// ```
#[derive(Debug)]
pub struct Top {
    measure: Measure,
    count_max: usize,
    /// A max-heap in output order: the top is the smallest entry, which is replaced next.
    kept: BinaryHeap<RankedEntry>,
    operand: usize,
}

impl Top {
    /// Creates a selection of at most `count_max` entries.
    #[must_use]
    pub fn new(measure: Measure, count_max: usize) -> Self {
        Self { measure, count_max, kept: BinaryHeap::new(), operand: 0 }
    }

    /// Examines an entry. The lines of all operands must be among the examined ones, because they
    /// count the operands.
    pub fn add(&mut self, line: &Line<'_>) {
        let operand = self.operand;
        // The line of an operand follows all lines below it.
        self.operand += usize::from(line.depth == 0);
        let value = value(self.measure, line.totals);
        if self.kept.len() < self.count_max {
            self.kept.push(RankedEntry { value, entry: TopEntry::new(line, operand) });
        } else if let Some(mut last) = self.kept.peek_mut()
            && order((value, line.path, operand), last.key()).is_lt()
        {
            *last = RankedEntry { value, entry: TopEntry::new(line, operand) };
        }
    }

    /// Removes and returns the kept entries in descending order of size.
    pub fn take_sorted(&mut self) -> Vec<TopEntry> {
        let kept = std::mem::take(&mut self.kept);
        kept.into_sorted_vec().into_iter().map(|ranked| ranked.entry).collect()
    }
}

/// An entry with its value, ordered as in the output: larger entries are less.
#[derive(Debug)]
struct RankedEntry {
    value: u64,
    entry: TopEntry,
}

type RankKey<'a> = (u64, &'a [u8], usize);

fn order(left: RankKey<'_>, right: RankKey<'_>) -> Ordering {
    right.0.cmp(&left.0).then_with(|| (left.1, left.2).cmp(&(right.1, right.2)))
}

impl RankedEntry {
    fn key(&self) -> RankKey<'_> {
        (self.value, &self.entry.path, self.entry.operand)
    }
}

impl Ord for RankedEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        order(self.key(), other.key())
    }
}

impl PartialOrd for RankedEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RankedEntry {}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fathom_walk::FileTime;
    use proptest::prelude::*;

    /// Totals of `bytes` bytes in `inodes` inodes.
    pub(crate) fn totals(bytes: u64, inodes: u64) -> Totals {
        Totals { bytes, inodes, newest: FileTime::default() }
    }

    /// Adds an entry to `top`. A trailing `/` marks a directory and is not part of the path.
    pub(crate) fn show(top: &mut Top, path: &str, depth: usize, totals: Totals, own: Totals) {
        let is_dir = path.ends_with('/');
        let path = path.trim_end_matches('/').as_bytes();
        top.add(&Line { path, depth, totals: &totals, own: &own, meta: None, is_dir });
    }

    fn paths(mut top: Top) -> Vec<String> {
        let entries = top.take_sorted().into_iter();
        entries.map(|entry| String::from_utf8(entry.path).unwrap()).collect()
    }

    fn show_file(top: &mut Top, path: &str, bytes: u64) {
        show(top, path, 1, totals(bytes, 1), totals(bytes, 1));
    }

    #[test]
    fn the_largest_are_kept_and_equal_ones_by_path() {
        let mut top = Top::new(Measure::Usage, 3);
        for (path, bytes) in [("d", 1), ("c", 5), ("b", 5), ("a", 1), ("e", 9), ("f", 5)] {
            show_file(&mut top, path, bytes);
        }
        assert_eq!(paths(top), ["e", "b", "c"]);
    }

    #[test]
    fn none_are_kept_if_none_are_wanted() {
        let mut top = Top::new(Measure::Usage, 0);
        show_file(&mut top, "a", 1);
        assert_eq!(top.take_sorted(), []);
    }

    #[test]
    fn inodes_decide_where_inodes_are_counted() {
        let mut top = Top::new(Measure::Inodes, 1);
        show(&mut top, "few", 1, totals(9, 1), totals(9, 1));
        show(&mut top, "many", 1, totals(1, 2), totals(1, 2));
        assert_eq!(paths(top), ["many"]);
    }

    #[test]
    fn an_operand_given_twice_stays_two_entries() {
        let mut top = Top::new(Measure::Usage, 9);
        for operand in ["a/", "a/", "b"] {
            show(&mut top, operand, 0, totals(4, 1), totals(4, 1));
        }
        let entries = top.take_sorted();
        let operands: Vec<_> = entries.iter().map(|entry| (entry.operand, entry.file_type)).collect();
        let directory = FileType::Directory;
        assert_eq!(operands, [(0, directory), (1, directory), (2, FileType::Unknown)]);
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn equals_sorting_everything(
            count_max in 0usize..9,
            sizes in prop::collection::vec(0u64..4, 0..30),
            seed: usize,
        ) {
            let mut all: Vec<_> =
                sizes.iter().enumerate().map(|(at, &size)| (size, format!("{}", (at + seed % 7) * 37 % 101))).collect();
            let mut top = Top::new(Measure::Usage, count_max);
            all.iter().for_each(|(bytes, path)| show_file(&mut top, path, *bytes));
            all.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
            all.truncate(count_max);
            prop_assert_eq!(paths(top), all.into_iter().map(|(_, path)| path).collect::<Vec<_>>());
        }
    }
}
