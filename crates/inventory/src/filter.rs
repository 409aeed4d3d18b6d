//! Decides which entries are listed. A filter is applied in steps, the cheap ones first: name and
//! depth, type, path, metadata. It says beforehand which of these it needs, so that a caller reads
//! metadata and joins paths only where a test depends on them.
//!
//! Owns the tests and the grammar of their arguments. Does not own options, nor the choice of
//! directories to descend into.

mod date;
mod day;
mod name;
mod regexes;
mod size;
mod types;
mod when;

use fathom_text::quote::Charset;
use fathom_walk::{Fields, FileType, Meta};

use self::name::NamePattern;
use self::regexes::PathRegex;
pub use self::regexes::RegexError;
pub use self::size::{SizeError, SizeTest};
pub use self::types::{TypeError, TypeSet};
pub use self::when::{FORMS, FORMS_WITH_DAYS, PointInTime, TimeError};
use crate::entry::{Entry, Lookup};

/// The tests that an entry has to pass to be listed. Without any test, every entry is listed. Tests
/// of different kinds must all hold.
///
/// ```
/// use fathom_inventory::filter::{Filter, SizeTest, TypeSet};
/// use fathom_text::quote::Charset;
/// use fathom_walk::{Fields, FileType, Meta};
///
/// let mut filter = Filter::default();
/// filter.add_name(b"*.rs", Charset::Utf8);
/// filter.add_types(TypeSet::parse(b"f").unwrap());
/// filter.add_size(SizeTest::parse(b"+1K").unwrap());
/// assert!(filter.matches_name(b"a.rs", 1) && filter.matches_type(FileType::Regular));
/// // Metadata is needed for the size alone.
/// assert_eq!(filter.fields(), Some(Fields::SIZE));
/// let meta = Meta { size: 2000, mode: 0o100_644, ..Meta::default() };
/// assert!(filter.matches_meta(&meta) && !filter.matches_meta(&Meta { size: 1024, ..meta }));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    types: Option<TypeSet>,
    names: Vec<NamePattern>,
    paths: Vec<PathRegex>,
    skips_hidden: bool,
    min_depth: usize,
    max_depth: Option<usize>,
    sizes: Vec<SizeTest>,
    newer: Option<PointInTime>,
    older: Option<PointInTime>,
    only_empty: bool,
}

impl Filter {
    /// Adds a set of types. Of several sets, one has to contain the type.
    pub fn add_types(&mut self, types: TypeSet) {
        self.types = Some(self.types.map_or(types, |before| before.union(types)));
    }

    /// Adds a wildcard pattern for names, as find's `-name`. Of several patterns, one has to match.
    pub fn add_name(&mut self, pattern: &[u8], charset: Charset) {
        self.names.push(NamePattern::new(pattern, charset));
    }

    /// Adds a regular expression that has to match the whole path. Of several expressions, one has
    /// to match.
    ///
    /// # Errors
    /// If the expression cannot be parsed, or is too large to be compiled.
    pub fn add_regex(&mut self, expression: &[u8], charset: Charset) -> Result<(), RegexError> {
        self.paths.push(PathRegex::new(expression, charset)?);
        Ok(())
    }

    /// Sets whether names that begin with a dot are left out. Starting points are listed in any
    /// case.
    pub fn set_skips_hidden(&mut self, skips: bool) {
        self.skips_hidden = skips;
    }

    /// Sets the least depth of an entry. Starting points have depth 0.
    pub fn set_min_depth(&mut self, depth: usize) {
        self.min_depth = depth;
    }

    /// Sets the greatest depth of an entry.
    pub fn set_max_depth(&mut self, depth: usize) {
        self.max_depth = Some(depth);
    }

    /// Adds a test of the file size. Of several tests, all have to hold.
    pub fn add_size(&mut self, test: SizeTest) {
        self.sizes.push(test);
    }

    /// Lists only entries that were modified strictly after `when`.
    pub fn set_newer(&mut self, when: PointInTime) {
        self.newer = Some(when);
    }

    /// Lists only entries that were modified strictly before `when`.
    pub fn set_older(&mut self, when: PointInTime) {
        self.older = Some(when);
    }

    /// Lists only regular files of 0 bytes and directories without entries, as find's `-empty`.
    pub fn set_only_empty(&mut self) {
        self.only_empty = true;
    }

    /// Returns whether there is no test, so that every entry is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { types, names, paths, skips_hidden, min_depth, max_depth, sizes, newer, older, only_empty } =
            self;
        let by_name = *skips_hidden || !names.is_empty() || !paths.is_empty();
        let by_depth = *min_depth > 0 || max_depth.is_some();
        let by_meta = types.is_some() || !sizes.is_empty() || newer.is_some() || older.is_some();
        !(by_name || by_depth || by_meta || *only_empty)
    }

    /// Returns whether any test is on the type, which some filesystems report in metadata alone.
    #[must_use]
    pub fn needs_type(&self) -> bool {
        self.types.is_some() || self.only_empty
    }

    /// Returns whether any test is on the number of entries of a directory.
    #[must_use]
    pub fn needs_entry_counts(&self) -> bool {
        self.only_empty
    }

    /// Returns whether any test is on the path. Otherwise [`matches_path`](Filter::matches_path) is
    /// always true.
    #[must_use]
    pub fn needs_path(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Returns whether any test is on metadata other than the type.
    #[must_use]
    pub fn needs_meta(&self) -> bool {
        self.fields().is_some()
    }

    /// Returns whether the filter needs the metadata of an entry of this type.
    #[must_use]
    pub fn needs_meta_of(&self, file_type: FileType) -> bool {
        self.needs_meta() || (self.needs_type() && file_type == FileType::Unknown)
    }

    /// Returns the metadata that tests are on; `None` if there are no such tests.
    #[must_use]
    pub fn fields(&self) -> Option<Fields> {
        let size = (self.only_empty || !self.sizes.is_empty()).then_some(Fields::SIZE);
        let times = (self.newer.is_some() || self.older.is_some()).then_some(Fields::TIMES);
        size.into_iter().chain(times).reduce(Fields::union)
    }

    /// Returns whether any entry of a directory of this depth could be listed.
    #[must_use]
    pub fn descends(&self, depth: usize) -> bool {
        self.max_depth.is_none_or(|max| depth < max)
    }

    /// Returns whether an entry passes all tests. An entry without metadata fails the tests on
    /// metadata. `path` is a buffer for the path, which is joined only if a test is on it.
    #[must_use]
    pub fn passes(&self, entry: &Entry<'_>, lookup: &mut impl Lookup, path: &mut Vec<u8>) -> bool {
        let name = if entry.depth == 0 { base(entry.name) } else { entry.name };
        if !self.matches_name(name, entry.depth) || !self.matches_type(entry.file_type) {
            return false;
        }
        if self.needs_path() {
            path.clear();
            entry.write_path(path);
            if !self.matches_path(path) {
                return false;
            }
        }
        let is_dir = entry.file_type() == FileType::Directory;
        entry.meta.map_or(!self.needs_meta(), |meta| self.matches_meta(meta))
            && (!self.only_empty || !is_dir || lookup.is_empty_dir(entry) == Some(true))
    }

    /// Returns whether depth and name pass. `name` is the last component, also for a starting
    /// point.
    #[must_use]
    pub fn matches_name(&self, name: &[u8], depth: usize) -> bool {
        let in_range = depth >= self.min_depth && self.max_depth.is_none_or(|max| depth <= max);
        let hidden = self.skips_hidden && depth > 0 && name.starts_with(b".");
        in_range
            && !hidden
            && (self.names.is_empty() || self.names.iter().any(|pattern| pattern.matches(name)))
    }

    /// Returns whether the type passes. An unknown type does.
    #[must_use]
    pub fn matches_type(&self, file_type: FileType) -> bool {
        let is_of_types = self.types.is_none_or(|types| types.contains(file_type));
        let can_be_empty = matches!(file_type, FileType::Regular | FileType::Directory);
        file_type == FileType::Unknown || (is_of_types && (can_be_empty || !self.only_empty))
    }

    /// Returns whether the path passes. It begins with the starting point as it was given.
    #[must_use]
    pub fn matches_path(&self, path: &[u8]) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|expression| expression.matches(path))
    }

    /// Returns whether the metadata passes: the type, and the values that
    /// [`fields`](Filter::fields) names.
    #[must_use]
    pub fn matches_meta(&self, meta: &Meta) -> bool {
        let file_type = meta.file_type();
        let may_be_empty = match file_type {
            FileType::Regular => meta.size == 0,
            file_type => file_type == FileType::Directory,
        };
        self.types.is_none_or(|types| types.contains(file_type))
            && (may_be_empty || !self.only_empty)
            && self.sizes.iter().all(|test| test.admits(meta.size))
            && self.newer.is_none_or(|when| meta.mtime > when.stamp())
            && self.older.is_none_or(|when| meta.mtime < when.stamp())
    }
}

/// Returns the last component of an operand, or `/` if there is no other, like find(1).
fn base(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    match path[..end].rsplit(|byte| *byte == b'/').next() {
        Some(b"") | None => b"/",
        Some(base) => base,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_walk::FileTime;

    fn is_shared<T: Send + Sync>(_: &T) {}

    #[test]
    fn without_tests_everything_is_listed_and_nothing_needed() {
        let filter = Filter::default();
        is_shared(&filter);
        assert!(!filter.needs_type() && !filter.needs_path() && !filter.needs_meta());
        assert!(!filter.needs_meta_of(FileType::Unknown) && filter.descends(usize::MAX));
        assert!(
            filter.matches_name(b".a", 7) && filter.matches_path(b"") && filter.matches_type(FileType::Fifo)
        );
        assert!(filter.matches_meta(&Meta::default()));
        assert!(filter.is_empty());
    }

    #[test]
    fn a_filter_with_any_test_is_not_empty() {
        let changes: [fn(&mut Filter); 10] = [
            |filter| filter.add_types(TypeSet::parse(b"f").unwrap()),
            |filter| filter.add_name(b"a", Charset::Utf8),
            |filter| filter.add_regex(b"a", Charset::Utf8).unwrap(),
            |filter| filter.set_skips_hidden(true),
            |filter| filter.set_min_depth(1),
            |filter| filter.set_max_depth(1),
            |filter| filter.add_size(SizeTest::parse(b"1").unwrap()),
            |filter| filter.set_newer(PointInTime::at(FileTime::default())),
            |filter| filter.set_older(PointInTime::at(FileTime::default())),
            Filter::set_only_empty,
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut filter = Filter::default();
            change(&mut filter);
            assert!(!filter.is_empty(), "{index}");
        }
    }

    #[test]
    fn the_entries_of_a_directory_are_looked_up_last() {
        /// Answers for directories, and counts the questions.
        struct Directories(Option<bool>, usize);
        impl Lookup for Directories {
            fn is_empty_dir(&mut self, _entry: &Entry<'_>) -> Option<bool> {
                self.1 += 1;
                self.0
            }
        }
        let mut filter = Filter::default();
        filter.set_only_empty();
        assert!(filter.needs_type() && filter.needs_meta() && filter.needs_entry_counts());
        let ask = |mode, size, answer| {
            let meta = Meta { mode, size, ..Meta::default() };
            let file_type = meta.file_type();
            let entry = Entry { dir: b"", name: b"a", root_len: 1, depth: 0, file_type, meta: Some(&meta) };
            let mut directories = Directories(answer, 0);
            (filter.passes(&entry, &mut directories, &mut Vec::new()), directories.1)
        };
        assert_eq!([0, 1].map(|size| ask(0o100_644, size, Some(true))), [(true, 0), (false, 0)]);
        assert_eq!(ask(0o010_644, 0, Some(true)), (false, 0));
        let answers = [Some(true), Some(false), None];
        assert_eq!(answers.map(|answer| ask(0o040_755, 4096, answer)), [(true, 1), (false, 1), (false, 1)]);
    }

    #[test]
    fn depths_include_both_ends() {
        let mut filter = Filter::default();
        filter.set_min_depth(1);
        filter.set_max_depth(2);
        assert_eq!([0, 1, 2, 3].map(|depth| filter.matches_name(b"a", depth)), [false, true, true, false]);
        assert_eq!([0, 1, 2].map(|depth| filter.descends(depth)), [true, true, false]);
    }

    #[test]
    fn a_starting_point_is_never_hidden() {
        let mut filter = Filter::default();
        filter.set_skips_hidden(true);
        assert!(
            filter.matches_name(b".", 0) && filter.matches_name(b"a.b", 1) && !filter.matches_name(b".a", 1)
        );
    }

    #[test]
    fn of_several_names_or_expressions_any_may_match() {
        let mut filter = Filter::default();
        filter.add_name(b"*.rs", Charset::Utf8);
        filter.add_name(b"a", Charset::Utf8);
        assert_eq!(
            ["a", "b.rs", "b"].map(|name| filter.matches_name(name.as_bytes(), 1)),
            [true, true, false]
        );
        filter.add_regex(b".*/a", Charset::Utf8).unwrap();
        filter.add_regex(b"b", Charset::Utf8).unwrap();
        assert!(filter.needs_path());
        assert_eq!(["x/a", "b", "x/b"].map(|path| filter.matches_path(path.as_bytes())), [true, true, false]);
    }

    #[test]
    fn a_type_that_is_not_known_is_settled_by_metadata() {
        let mut filter = Filter::default();
        filter.add_types(TypeSet::parse(b"f,d").unwrap());
        filter.add_types(TypeSet::parse(b"p").unwrap());
        assert!(filter.needs_type() && !filter.needs_meta());
        assert!(filter.needs_meta_of(FileType::Unknown) && !filter.needs_meta_of(FileType::Directory));
        assert!(filter.matches_type(FileType::Unknown) && !filter.matches_type(FileType::Symlink));
        let of_mode = |mode| filter.matches_meta(&Meta { mode, ..Meta::default() });
        assert!(of_mode(0o040_755) && of_mode(0o010_644) && !of_mode(0o120_777) && !of_mode(0));
    }

    #[test]
    fn all_sizes_must_hold_and_times_are_strict() {
        let mut filter = Filter::default();
        filter.add_size(SizeTest::parse(b"+1").unwrap());
        assert_eq!(filter.fields(), Some(Fields::SIZE));
        filter.add_size(SizeTest::parse(b"-4").unwrap());
        let of_size = |size| filter.matches_meta(&Meta { size, ..Meta::default() });
        assert_eq!([1, 2, 3, 4].map(of_size), [false, true, true, false]);

        let mut filter = Filter::default();
        filter.set_newer(PointInTime::at(FileTime { sec: 1, nsec: 5 }));
        filter.set_older(PointInTime::at(FileTime { sec: 2, nsec: 0 }));
        assert_eq!(filter.fields(), Some(Fields::TIMES));
        let at = |sec, nsec| filter.matches_meta(&Meta { mtime: FileTime { sec, nsec }, ..Meta::default() });
        assert!(!at(1, 5) && at(1, 6) && at(1, 999_999_999) && !at(2, 0) && !at(0, 9));
    }
}
