//! The marked entries. A mark is a path and the inode that was shown under it, never a position: no
//! sorting, filtering, moving or reading again changes which entries are marked.

use std::collections::{BTreeMap, HashSet};

use fathom_io::FileType;

use crate::source::{Place, Row};

/// A marked entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The directory of the entry.
    pub place: Place,
    /// The entry, as it was when it was marked.
    pub row: Row,
}

/// The marked entries, in the order of their paths.
///
/// ```
/// use fathom_explore::marks::Marks;
/// use fathom_explore::memory::file;
/// use fathom_explore::source::Place;
///
/// let (mut marks, place) = (Marks::default(), Place { root: 0, below: Vec::new() });
/// let mut row = file("a", 5, 0);
/// marks.insert(&place, &row);
/// assert!(marks.contains(&place, &row));
/// // Another inode under the same name is not the one that was marked.
/// row.identity.ino += 1;
/// assert!(!marks.contains(&place, &row));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(BTreeMap<(usize, Vec<u8>), Mark>);

impl Marks {
    /// Returns the number of marked entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether nothing is marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether this entry is marked.
    #[must_use]
    pub fn contains(&self, place: &Place, row: &Row) -> bool {
        self.0.get(&key(place, row)).is_some_and(|mark| mark.row.identity == row.identity)
    }

    /// Marks an entry.
    pub fn insert(&mut self, place: &Place, row: &Row) {
        self.0.insert(key(place, row), Mark { place: place.clone(), row: row.clone() });
    }

    /// Removes the mark of an entry.
    pub fn remove(&mut self, place: &Place, row: &Row) {
        if self.contains(place, row) {
            self.0.remove(&key(place, row));
        }
    }

    /// Marks an entry that is not marked, and removes the mark of one that is.
    pub fn toggle(&mut self, place: &Place, row: &Row) {
        if self.contains(place, row) { self.remove(place, row) } else { self.insert(place, row) }
    }

    /// Returns the mark of the entry at a path.
    #[must_use]
    pub fn get(&self, path: &Place) -> Option<&Mark> {
        self.0.get(&(path.root, path.below.clone()))
    }

    /// Removes the mark of the entry at a path.
    pub fn remove_at(&mut self, path: &Place) {
        self.0.remove(&(path.root, path.below.clone()));
    }

    /// Returns the path of the marked entry that is so many entries before or behind a path, or of
    /// the first or the last one, if there are fewer. Takes no longer if more entries are marked.
    #[must_use]
    pub fn near(&self, path: &Place, steps: isize) -> Option<Place> {
        let key = (path.root, path.below.clone());
        let count = steps.unsigned_abs() + 1;
        let (first, last) = (self.0.keys().next(), self.0.keys().next_back());
        let found = if steps < 0 {
            self.0.range(..=key).rev().take(count).last().map(|(key, _)| key).or(first)
        } else {
            self.0.range(key..).take(count).last().map(|(key, _)| key).or(last)
        };
        found.map(|(root, below)| place_at(*root, below))
    }

    /// Returns the paths of the first and of the last marked entry.
    #[must_use]
    pub fn ends(&self) -> Option<(Place, Place)> {
        let (first, last) = (self.0.keys().next()?, self.0.keys().next_back()?);
        Some((place_at(first.0, &first.1), place_at(last.0, &last.1)))
    }

    /// Returns at most `count` marked entries around a path, and the number of those before it.
    #[must_use]
    pub fn around(&self, path: &Place, count: usize) -> (Vec<&Mark>, usize) {
        let key = (path.root, path.below.clone());
        let before = self.0.range(..key.clone()).rev().take(count.saturating_sub(1));
        let mut found: Vec<_> = before.map(|(_, mark)| mark).collect();
        found.reverse();
        let selected = found.len();
        found.extend(self.0.range(key..).take(count - selected).map(|(_, mark)| mark));
        (found, selected)
    }

    /// Removes the marks of entries that are gone, and of everything below them.
    pub fn remove_below(&mut self, gone: &[(Place, Row)]) {
        for (place, row) in gone {
            self.remove(place, row);
        }
        let gone: HashSet<_> = gone.iter().map(|(place, row)| key(place, row)).collect();
        self.0.retain(|(root, path), _| !is_below(*root, path, |above| gone.contains(above)));
    }

    /// Returns the marked entries in the order of their paths.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Mark> + ExactSizeIterator {
        self.0.values()
    }

    /// Returns the marked entries that are in no other marked directory.
    pub fn outermost(&self) -> impl Iterator<Item = &Mark> {
        self.iter().filter(|mark| !self.is_covered(mark))
    }

    /// Returns whether a directory above the entry is marked.
    fn is_covered(&self, mark: &Mark) -> bool {
        let is_marked = |above: &(usize, Vec<u8>)| {
            self.0.get(above).is_some_and(|found| found.row.file_type == FileType::Directory)
        };
        is_below(mark.place.root, &key(&mark.place, &mark.row).1, is_marked)
    }
}

/// Returns whether any directory above a path, below its root, fulfils a condition.
fn is_below(root: usize, path: &[u8], mut condition: impl FnMut(&(usize, Vec<u8>)) -> bool) -> bool {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    slashes.into_iter().any(|slash| condition(&(root, path[..slash].to_vec())))
}

fn place_at(root: usize, below: &[u8]) -> Place {
    Place { root, below: below.to_vec() }
}

/// Returns the root and the path of an entry.
fn key(place: &Place, row: &Row) -> (usize, Vec<u8>) {
    (place.root, place.child(&row.name).below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{directory, file};

    fn place(below: &str) -> Place {
        Place { root: 0, below: below.into() }
    }

    #[test]
    fn entries_of_marked_directories_are_not_listed_twice() {
        let mut marks = Marks::default();
        for (below, row) in [
            ("", directory("a", 1, 0)),
            ("", file("a-b", 1, 0)),
            ("a/x", file("deep", 1, 0)),
            ("b", file("a", 1, 0)),
            ("c", file("d", 1, 0)),
        ] {
            marks.insert(&place(below), &row);
        }
        let names: Vec<_> = marks.outermost().map(|mark| mark.place.child(&mark.row.name).below).collect();
        assert_eq!(names, [&b"a"[..], b"a-b", b"b/a", b"c/d"]);
    }

    #[test]
    fn what_is_below_a_removed_directory_is_no_longer_marked() {
        let mut marks = Marks::default();
        for (below, name) in [("a/b", "c"), ("a", "d"), ("ab", "e")] {
            marks.insert(&place(below), &file(name, 1, 0));
        }
        marks.remove_below(&[(place("a"), directory("b", 1, 0)), (place("a"), file("d", 1, 0))]);
        assert_eq!(marks.iter().map(|mark| &*mark.row.name).collect::<Vec<_>>(), [b"e"]);
    }

    #[test]
    fn marks_are_found_from_a_path_on() {
        let mut marks = Marks::default();
        let any = place("m");
        assert!(marks.near(&any, 0).is_none() && marks.ends().is_none());
        for number in 0..10 {
            marks.insert(&place(""), &file(&format!("f{number}"), 1, 0));
        }
        for (from, steps, expected) in [
            ("f3", 0, "f3"),
            ("f3", 1, "f4"),
            ("f3", -1, "f2"),
            ("f3", 10, "f9"),
            ("f3", -10, "f0"),
            ("f35", 0, "f4"),
            ("z", 0, "f9"),
            ("a", -1, "f0"),
        ] {
            assert_eq!(marks.near(&place(from), steps), Some(place(expected)), "{from} {steps}");
        }
        let names = |(found, selected): (Vec<&Mark>, usize)| {
            (found.iter().map(|mark| mark.row.name[1]).collect::<Vec<_>>(), selected)
        };
        assert_eq!(names(marks.around(&place("f1"), 4)), (b"0123".to_vec(), 1));
        assert_eq!(names(marks.around(&place("f7"), 4)), (b"4567".to_vec(), 3));
        assert_eq!(names(marks.around(&place("f7"), 1)), (b"7".to_vec(), 0));
    }

    #[test]
    fn links_to_one_inode_are_marked_one_by_one() {
        let mut marks = Marks::default();
        marks.toggle(&place(""), &file("a", 1, 0));
        assert!(!marks.contains(&place(""), &file("b", 1, 0)));
        marks.toggle(&place(""), &file("b", 1, 0));
        marks.toggle(&place(""), &file("a", 1, 0));
        assert_eq!(marks.iter().map(|mark| &*mark.row.name).collect::<Vec<_>>(), [b"b"]);
    }
}
