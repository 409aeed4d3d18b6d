//! The order of a listing, and which of its rows are shown.

use std::cmp::Ordering;
use std::sync::Arc;

use fathom_io::FileType;

use crate::filter::Filter;
use crate::source::{Amount, Row, RowState};

/// The column by which rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// By name, from the first to the last.
    Name,
    /// By size, the largest first.
    Size,
    /// By the number of entries, the largest first.
    Count,
    /// By the newest modification, the newest first.
    Mtime,
    /// By growth, the largest first.
    Growth,
}

/// The order of rows, and which of them are shown.
///
/// ```
/// use fathom_explore::arrange::{Arrangement, SortKey};
/// use fathom_explore::memory::file;
///
/// let rows = [file("a", 1, 0), file("b", 3, 0), file(".c", 2, 0)];
/// let mut arrangement = Arrangement::default();
/// assert_eq!(arrangement.order(&rows), [1, 2, 0]);
/// arrangement.sort = SortKey::Name;
/// arrangement.shows_hidden = false;
/// assert_eq!(arrangement.order(&rows), [0, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct Arrangement {
    /// The column by which rows are sorted.
    pub sort: SortKey,
    /// Whether the order is the reverse of the column's own.
    pub reverse: bool,
    /// Whether sizes are apparent sizes instead of allocated bytes.
    pub apparent: bool,
    /// Whether directories come before everything else.
    pub directories_first: bool,
    /// Whether names that begin with a dot are shown.
    pub shows_hidden: bool,
    /// The condition for a row to be shown.
    pub filter: Option<Arc<Filter>>,
}

impl Default for Arrangement {
    fn default() -> Self {
        Self {
            sort: SortKey::Size,
            reverse: false,
            apparent: false,
            directories_first: false,
            shows_hidden: true,
            filter: None,
        }
    }
}

/// A row in the order: the values that are compared first, in one place of memory.
struct SortedRow {
    is_behind: bool,
    value: u64,
    row: u32,
}

impl Arrangement {
    /// Returns whether both give every listing the same order.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let filters = match (&self.filter, &other.filter) {
            (None, None) => true,
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            _ => false,
        };
        let facts = |it: &Self| (it.sort, it.reverse, it.apparent, it.directories_first, it.shows_hidden);
        filters && facts(self) == facts(other)
    }

    /// Returns whether some rows may not be shown.
    #[must_use]
    pub fn is_selective(&self) -> bool {
        self.filter.is_some() || !self.shows_hidden
    }

    /// Returns whether both show the same rows, in whatever order.
    #[must_use]
    pub fn selects_same(&self, other: &Self) -> bool {
        let Self { sort, reverse, directories_first, .. } = *self;
        // The size that a filter compares depends on `apparent`.
        let apparent = if self.filter.is_some() { self.apparent } else { other.apparent };
        Self { sort, reverse, directories_first, apparent, ..other.clone() }.is_same(self)
    }

    /// Returns the size of a row that is shown.
    #[must_use]
    pub fn size<T: Copy>(&self, amount: &Amount<T>) -> T {
        if self.apparent { amount.apparent } else { amount.allocated }
    }

    /// Returns whether a row is shown.
    #[must_use]
    pub fn admits(&self, row: &Row) -> bool {
        (self.shows_hidden || !row.name.starts_with(b"."))
            && self.filter.as_ref().is_none_or(|filter| filter.admits(row, self.apparent))
    }

    /// Returns the indices of the rows that are shown, in their order. Rows beyond `u32::MAX` are
    /// not shown.
    #[must_use]
    pub fn order(&self, rows: &[Row]) -> Vec<u32> {
        let numbered = (0..=u32::MAX).zip(rows).filter(|(_, row)| self.admits(row));
        let mut sorted: Vec<SortedRow> = numbered
            .map(|(number, row)| SortedRow {
                is_behind: self.directories_first && row.file_type != FileType::Directory,
                value: self.value(row),
                row: number,
            })
            .collect();
        sorted.sort_unstable_by(|one, two| self.compare(one, two, rows));
        sorted.into_iter().map(|sorted| sorted.row).collect()
    }

    /// Returns a number that increases along the order. Rows with the same number are compared by
    /// name.
    fn value(&self, row: &Row) -> u64 {
        let signed = |value: i64| value.cast_unsigned() ^ (1 << 63);
        let value = match self.sort {
            SortKey::Name => prefix(&row.name),
            SortKey::Size => !self.size(&row.amount),
            SortKey::Count => !row.amount.entries,
            SortKey::Mtime => !signed(row.newest_mtime_s.unwrap_or(i64::MIN)),
            SortKey::Growth => !signed(growth(row, self.apparent)),
        };
        if self.reverse { !value } else { value }
    }

    fn compare(&self, one: &SortedRow, two: &SortedRow, rows: &[Row]) -> Ordering {
        let by_name = || {
            let [one, two] = [one, two].map(|sorted| &rows[sorted.row as usize].name);
            let order = one.cmp(two);
            if self.reverse && self.sort == SortKey::Name { order.reverse() } else { order }
        };
        let by_value = one.is_behind.cmp(&two.is_behind).then(one.value.cmp(&two.value));
        by_value.then_with(by_name).then(one.row.cmp(&two.row))
    }
}

/// Returns the growth of a row. A new entry has grown by its size.
pub(crate) fn growth(row: &Row, apparent: bool) -> i64 {
    if row.growth.is_none() && row.state == RowState::Walking {
        return 0;
    }
    let select = |amount: &Amount<i64>| if apparent { amount.apparent } else { amount.allocated };
    let size = if apparent { row.amount.apparent } else { row.amount.allocated };
    row.growth.as_ref().map_or_else(|| i64::try_from(size).unwrap_or(i64::MAX), select)
}

/// Returns the first eight bytes of a name as a number.
fn prefix(name: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = name.len().min(8);
    bytes[..len].copy_from_slice(&name[..len]);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{directory, file};

    fn names(arrangement: &Arrangement, rows: &[Row]) -> Vec<String> {
        let order = arrangement.order(rows);
        order.iter().map(|row| String::from_utf8_lossy(&rows[*row as usize].name).into_owned()).collect()
    }

    fn rows() -> [Row; 4] {
        let mut rows =
            [file("b", 5, 30), file("a", 5, 10), directory("z", 9, 20), file("longer than 8", 1, -5)];
        rows[2].amount.entries = 7;
        rows[0].growth = Some(Amount { apparent: -5, allocated: -5, entries: 0 });
        rows
    }

    #[test]
    fn each_column_has_its_own_direction() {
        for (sort, expected) in [
            (SortKey::Name, ["a", "b", "longer than 8", "z"]),
            (SortKey::Size, ["z", "a", "b", "longer than 8"]),
            (SortKey::Count, ["z", "a", "b", "longer than 8"]),
            (SortKey::Mtime, ["b", "z", "a", "longer than 8"]),
            (SortKey::Growth, ["z", "a", "longer than 8", "b"]),
        ] {
            let arrangement = Arrangement { sort, ..Arrangement::default() };
            assert_eq!(names(&arrangement, &rows()), expected, "{sort:?}");
        }
    }

    #[test]
    fn a_directory_that_is_being_walked_has_not_grown_by_its_size() {
        let mut rows = rows();
        rows[2].state = RowState::Walking;
        let arrangement = Arrangement { sort: SortKey::Growth, ..Arrangement::default() };
        assert_eq!(names(&arrangement, &rows), ["a", "longer than 8", "z", "b"]);
    }

    #[test]
    fn the_reverse_keeps_directories_first() {
        let arrangement = Arrangement {
            sort: SortKey::Name,
            reverse: true,
            directories_first: true,
            ..Arrangement::default()
        };
        assert_eq!(names(&arrangement, &rows()), ["z", "longer than 8", "b", "a"]);
    }

    #[test]
    fn names_with_the_same_beginning_are_compared_to_their_end() {
        let rows = ["12345678b", "12345678a", "12345678"].map(|name| file(name, 0, 0));
        let mut arrangement = Arrangement { sort: SortKey::Name, ..Arrangement::default() };
        assert_eq!(names(&arrangement, &rows), ["12345678", "12345678a", "12345678b"]);
        arrangement.reverse = true;
        assert_eq!(names(&arrangement, &rows), ["12345678b", "12345678a", "12345678"]);
    }
}
