//! The rows of a view, in their order. The order is computed once, when the rows or the arrangement
//! change; a frame only reads the part that it shows.

use std::collections::HashSet;
use std::sync::Arc;

use fathom_io::FileType;

use crate::arrange::Arrangement;
use crate::source::{Amount, FoundFiles, Place, PlacedRow, Row, RowState, RowSums};

/// The number of rows of which a treemap shows the areas.
pub const TILES_MAX: usize = 256;

/// The places of the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Places {
    /// The rows are the roots.
    Roots,
    /// All rows are in one directory.
    Directory(Place),
    /// Each row has a directory of its own.
    Each(Vec<Place>),
}

/// Rows that are shared by their listings in several orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRows {
    rows: Vec<Row>,
    places: Places,
    has_growth: bool,
    sums: RowSums,
}

/// Rows in their order.
///
/// ```
/// use fathom_explore::arrange::Arrangement;
/// use fathom_explore::listing::Listing;
/// use fathom_explore::memory::file;
/// use fathom_explore::source::{Place, RowSums};
///
/// let place = Place { root: 0, below: b"d".to_vec() };
/// let rows = vec![file("small", 1, 0), file("large", 9, 0)];
/// let listing = Listing::of_directory(place, rows, RowSums::default(), &Arrangement::default());
/// assert_eq!(&*listing.row(0).unwrap().name, b"large");
/// assert_eq!(listing.target(0).unwrap().below, b"d/large");
/// ```
#[derive(Clone, Debug)]
pub struct Listing {
    all: Arc<ListedRows>,
    arrangement: Arrangement,
    order: Vec<u32>,
    tiles: Vec<(usize, u64)>,
    size_sum: u64,
    gone: usize,
}

impl Listing {
    /// Creates the list of the roots.
    #[must_use]
    pub fn of_roots(rows: Vec<Row>, sums: RowSums, arrangement: &Arrangement) -> Self {
        Self::new(rows, Places::Roots, sums, arrangement)
    }

    /// Creates the list of the entries of a directory.
    #[must_use]
    pub fn of_directory(place: Place, rows: Vec<Row>, sums: RowSums, arrangement: &Arrangement) -> Self {
        Self::new(rows, Places::Directory(place), sums, arrangement)
    }

    /// Creates a list of entries of several directories, each inode once.
    #[must_use]
    pub fn of_files(files: Vec<PlacedRow>, arrangement: &Arrangement) -> Self {
        let (places, rows) = files.into_iter().map(|file| (file.place, file.row)).unzip();
        let sums = RowSums { counts_names: true, ..RowSums::default() };
        Self::new(rows, Places::Each(places), sums, arrangement)
    }

    /// Creates a list of the largest files that a search has found.
    #[must_use]
    pub fn of_found(found: FoundFiles, arrangement: &Arrangement) -> Self {
        let (places, rows) = found.files.into_iter().map(|file| (file.place, file.row)).unzip();
        let sums = RowSums { counts_names: true, found: Some(found.total), ..RowSums::default() };
        Self::new(rows, Places::Each(places), sums, arrangement)
    }

    fn new(rows: Vec<Row>, places: Places, sums: RowSums, arrangement: &Arrangement) -> Self {
        let has_growth = sums.growth.is_some() || rows.iter().any(|row| row.growth.is_some());
        Self::of_rows(Arc::new(ListedRows { rows, places, has_growth, sums }), arrangement)
    }

    /// Creates a list of the rows of another one.
    #[must_use]
    pub fn of_rows(all: Arc<ListedRows>, arrangement: &Arrangement) -> Self {
        let (order, tiles) = (Vec::new(), Vec::new());
        let mut listing = Self { all, arrangement: arrangement.clone(), order, tiles, size_sum: 0, gone: 0 };
        listing.compute();
        listing
    }

    /// Returns whether the rows are in this order.
    #[must_use]
    pub fn is_arranged(&self, arrangement: &Arrangement) -> bool {
        self.arrangement.is_same(arrangement)
    }

    /// Returns all rows, also those that are not shown.
    #[must_use]
    pub fn all(&self) -> &Arc<ListedRows> {
        &self.all
    }

    /// Returns the sums of all files that a search has found, of which the rows are the largest.
    pub(crate) fn found(&self) -> Option<Amount<u64>> {
        self.all.sums.found
    }

    /// Returns the sums of the directory with everything below it, if they are known.
    pub(crate) fn total(&self) -> Option<Amount<u64>> {
        self.all.sums.total
    }

    /// Returns the growth of the directory since the earlier inventory, if it is known and all of
    /// its rows are shown.
    pub(crate) fn growth(&self) -> Option<Amount<i64>> {
        self.all.sums.growth.filter(|_| self.hidden() == 0)
    }

    /// Returns the number of rows that are shown and [gone](RowState::Gone).
    pub(crate) fn gone(&self) -> usize {
        self.gone
    }

    /// Changes the arrangement. Does nothing if the order stays the same.
    pub fn arrange(&mut self, arrangement: &Arrangement) {
        if !self.is_arranged(arrangement) {
            self.arrangement = arrangement.clone();
            self.compute();
        }
    }

    fn compute(&mut self) {
        self.order = self.arrangement.order(&self.all.rows);
        let size = |row: &u32| self.arrangement.size(&self.all.rows[*row as usize].amount);
        self.size_sum = self.sum();
        self.gone = self.order.iter().filter(|row| is_gone(&self.all.rows[**row as usize])).count();
        let tile = |(position, row)| (position, size(row));
        let mut tiles: Vec<(usize, u64)> = self.order.iter().enumerate().map(tile).collect();
        let by_size = |(position, size): &(usize, u64)| (u64::MAX - size, *position);
        if tiles.len() > TILES_MAX {
            tiles.select_nth_unstable_by_key(TILES_MAX - 1, by_size);
            tiles.truncate(TILES_MAX);
        }
        tiles.sort_unstable_by_key(by_size);
        // Rows of size 0 have no area.
        tiles.retain(|(_, size)| *size > 0);
        self.tiles = tiles;
    }

    /// Returns the size of the directory if all of its rows are shown, or else the size of the
    /// rows: of files with the same inode once.
    fn sum(&self) -> u64 {
        let RowSums { total, counts_names, .. } = self.all.sums;
        let total = total.map(|total| self.arrangement.size(&total));
        if let Some(total) = total.filter(|_| self.hidden() == 0) {
            return total;
        }
        let mut inodes = HashSet::new();
        let rows = self.order.iter().map(|row| &self.all.rows[*row as usize]);
        let counted = rows.filter(|row| counts_names || !is_linked(row) || inodes.insert(row.identity));
        let sum = counted.map(|row| self.arrangement.size(&row.amount)).fold(0, u64::saturating_add);
        // Directories may have names of the same inodes, too.
        sum.min(total.unwrap_or(sum))
    }

    /// Returns the number of rows that are shown.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns whether no row is shown.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the number of rows that the arrangement does not show.
    #[must_use]
    pub fn hidden(&self) -> usize {
        self.all.rows.len() - self.order.len()
    }

    /// Returns the row at a position of the order.
    #[must_use]
    pub fn row(&self, position: usize) -> Option<&Row> {
        Some(&self.all.rows[*self.order.get(position)? as usize])
    }

    /// Returns the directory of the row at a position; `None` for a root.
    #[must_use]
    pub fn place(&self, position: usize) -> Option<&Place> {
        match &self.all.places {
            Places::Roots => None,
            Places::Directory(place) => Some(place),
            Places::Each(places) => places.get(*self.order.get(position)? as usize),
        }
    }

    /// Returns the path of the row at a position, as a place.
    #[must_use]
    pub fn target(&self, position: usize) -> Option<Place> {
        let name = &self.row(position)?.name;
        match self.place(position) {
            Some(place) => Some(place.child(name)),
            None => Some(Place { root: *self.order.get(position)? as usize, below: Vec::new() }),
        }
    }

    /// Returns the position of the row with this name, in this directory.
    #[must_use]
    pub fn position(&self, place: Option<&Place>, name: &[u8]) -> Option<usize> {
        let place_of = |row: usize| match &self.all.places {
            Places::Roots => None,
            Places::Directory(place) => Some(place),
            Places::Each(places) => places.get(row),
        };
        let mut rows = self.all.rows.iter().enumerate();
        let (row, _) = rows.find(|(at, row)| *row.name == *name && place_of(*at) == place)?;
        self.order.iter().position(|at| *at as usize == row)
    }

    /// Returns the positions of the rows of a treemap with their sizes, the largest first.
    #[must_use]
    pub fn tiles(&self) -> &[(usize, u64)] {
        &self.tiles
    }

    /// Returns the first position at or behind `from` whose name begins with `prefix`, continuing
    /// at the first one.
    #[must_use]
    pub fn find(&self, prefix: &[u8], from: usize) -> Option<usize> {
        let begins = |position: &usize| {
            let name = self.row(*position).map(|row| &row.name);
            name.and_then(|name| name.get(..prefix.len()))
                .is_some_and(|name| name.eq_ignore_ascii_case(prefix))
        };
        (from..self.len()).chain(0..from.min(self.len())).find(begins)
    }

    /// Returns the size of all that is shown.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size_sum
    }

    /// Returns whether the growth of any row is known.
    #[must_use]
    pub fn has_growth(&self) -> bool {
        self.all.has_growth
    }

    /// Returns whether rows have a directory each.
    #[must_use]
    pub fn is_mixed(&self) -> bool {
        matches!(self.all.places, Places::Each(_))
    }
}

impl Place {
    /// Returns the place of an entry of this directory.
    #[must_use]
    pub fn child(&self, name: &[u8]) -> Place {
        let below =
            if self.below.is_empty() { name.to_vec() } else { [&self.below, &b"/"[..], name].concat() };
        Place { root: self.root, below }
    }

    /// Returns the directory above, and the name in it; `None` for a root.
    #[must_use]
    pub fn parent(&self) -> Option<(Place, &[u8])> {
        if self.below.is_empty() {
            return None;
        }
        let slash = self.below.iter().rposition(|byte| *byte == b'/');
        let (above, name) = slash
            .map_or((&b""[..], &self.below[..]), |slash| (&self.below[..slash], &self.below[slash + 1..]));
        Some((Place { root: self.root, below: above.to_vec() }, name))
    }
}

impl ListedRows {
    /// Returns the number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rows.len()
    }
}

/// Returns whether a row is one of several names of an inode.
pub(crate) fn is_linked(row: &Row) -> bool {
    row.links > 1 && row.file_type != FileType::Directory
}

/// Returns whether a row is a directory whose entries can be listed.
pub(crate) fn can_enter(row: &Row) -> bool {
    row.file_type == FileType::Directory && !is_gone(row)
}

/// Returns whether only the earlier inventory has the entry.
pub(crate) fn is_gone(row: &Row) -> bool {
    row.state == RowState::Gone
}

#[cfg(test)]
mod tests {
    use fathom_remove::Identity;

    use super::*;
    use crate::arrange::SortKey;
    use crate::memory::file;

    fn listing(count: u64) -> Listing {
        let rows = (0..count).map(|number| file(&format!("f{number}"), number, 0)).collect();
        let place = Place { root: 0, below: Vec::new() };
        Listing::of_directory(place, rows, RowSums::default(), &Arrangement::default())
    }

    #[test]
    fn names_of_an_inode_count_once_unless_each_does() {
        let name = |name: &str, ino| {
            let identity = Identity { dev: 1, ino };
            Row { links: 2, identity, ..file(name, 10, 0) }
        };
        let rows = [name("a", 1), name("b", 1), name("c", 2), file(".d", 5, 0)];
        let total = Amount { allocated: 29, ..Amount::default() };
        let place = Place { root: 0, below: Vec::new() };
        let sum = |total, counts_names, shows_hidden| {
            let arrangement = Arrangement { shows_hidden, ..Arrangement::default() };
            let sums = RowSums { total, counts_names, ..RowSums::default() };
            Listing::of_directory(place.clone(), rows.to_vec(), sums, &arrangement).size()
        };
        assert_eq!([sum(None, false, true), sum(None, true, true)], [25, 35]);
        assert_eq!([sum(Some(total), false, true), sum(Some(total), false, false)], [29, 20]);
        assert_eq!(sum(Some(Amount { allocated: 19, ..total }), false, false), 19, "no more than all of it");
    }

    #[test]
    fn tiles_are_the_largest_rows_in_any_order() {
        let mut listing = listing(1000);
        let expected: Vec<u64> = (0..1000).rev().take(TILES_MAX).collect();
        for sort in [SortKey::Size, SortKey::Name, SortKey::Mtime] {
            for reverse in [false, true] {
                for directories_first in [false, true] {
                    let arrangement =
                        Arrangement { sort, reverse, directories_first, ..Arrangement::default() };
                    listing.arrange(&arrangement);
                    let tiles = listing.tiles();
                    let sizes: Vec<u64> = tiles.iter().map(|tile| tile.1).collect();
                    assert_eq!(sizes, expected, "{sort:?} {reverse}");
                    let size = |position| listing.row(position).map(|row| row.amount.allocated);
                    assert!(tiles.iter().all(|(position, bytes)| size(*position) == Some(*bytes)));
                }
            }
        }
    }

    #[test]
    fn a_prefix_is_looked_for_from_the_cursor_on() {
        let listing = listing(30);
        let name =
            |position| listing.row(position).map(|row| String::from_utf8_lossy(&row.name).into_owned());
        assert_eq!(listing.find(b"F1", 0).and_then(name).as_deref(), Some("f19"));
        assert_eq!(listing.find(b"f1", 11).and_then(name).as_deref(), Some("f18"));
        assert_eq!(listing.find(b"f2", 29).and_then(name).as_deref(), Some("f29"));
        assert_eq!(listing.find(b"x", 3), None);
    }

    #[test]
    fn places_have_parents_up_to_their_root() {
        let place = Place { root: 1, below: b"a/b".to_vec() };
        let (above, name) = place.parent().unwrap();
        assert_eq!((&above.below[..], name), (&b"a"[..], &b"b"[..]));
        let (root, name) = above.parent().unwrap();
        assert_eq!((root.root, &root.below[..], name, root.parent()), (1, &b""[..], &b"a"[..], None));
        assert_eq!(root.child(b"x").below, b"x");
    }
}
