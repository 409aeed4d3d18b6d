//! Which entries are listed. A filter is asked in steps, the cheap ones first: by name and depth, by type, by path, by
//! metadata. What it will need is told beforehand, so that a caller takes no metadata and builds no path for nothing.
//!
//! Owns the tests and the grammar of their arguments. Does not own options, nor what is descended into.

mod date;
mod name;
mod regexes;
mod size;
mod types;
mod when;

use fathom_text::quote::Charset;
use fathom_walk::{Fields, FileType, Meta};

use self::name::NamePattern;
pub use self::regexes::RegexError;
use self::regexes::WholePath;
pub use self::size::{SizeError, SizeTest};
pub use self::types::{TypeError, Types};
pub use self::when::{FORMS, When, WhenError};

/// What an entry must be to be listed; without any test, everything is. Tests of different kinds must all hold.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    types: Option<Types>,
    names: Vec<NamePattern>,
    paths: Vec<WholePath>,
    skips_hidden: bool,
    min_depth: usize,
    max_depth: Option<usize>,
    sizes: Vec<SizeTest>,
    newer: Option<When>,
    older: Option<When>,
}

impl Filter {
    /// Lists these types only; of several sets, those in any.
    pub fn add_types(&mut self, types: Types) {
        self.types = Some(self.types.map_or(types, |before| before.and(types)));
    }

    /// Lists names that match a wildcard pattern, as find's `-name`; of several, any.
    pub fn add_name(&mut self, pattern: &[u8], charset: Charset) {
        self.names.push(NamePattern::new(pattern, charset));
    }

    /// Lists paths that a regular expression matches as a whole; of several, any.
    ///
    /// # Errors
    /// An expression that cannot be read, or one too large to be compiled.
    pub fn add_regex(&mut self, expression: &[u8], charset: Charset) -> Result<(), RegexError> {
        self.paths.push(WholePath::new(expression, charset)?);
        Ok(())
    }

    /// Lists no names that begin with a dot, but for starting points.
    pub fn set_skips_hidden(&mut self, skips: bool) {
        self.skips_hidden = skips;
    }

    /// Lists nothing above this depth; starting points have depth 0.
    pub fn set_min_depth(&mut self, depth: usize) {
        self.min_depth = depth;
    }

    /// Lists nothing below this depth.
    pub fn set_max_depth(&mut self, depth: usize) {
        self.max_depth = Some(depth);
    }

    /// Lists files of certain sizes; of several tests, all must hold.
    pub fn add_size(&mut self, test: SizeTest) {
        self.sizes.push(test);
    }

    /// Lists what was modified strictly after `when`.
    pub fn set_newer(&mut self, when: When) {
        self.newer = Some(when);
    }

    /// Lists what was modified strictly before `when`.
    pub fn set_older(&mut self, when: When) {
        self.older = Some(when);
    }

    /// Whether there is no test: every entry is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { types, names, paths, skips_hidden, min_depth, max_depth, sizes, newer, older } = self;
        let by_name = *skips_hidden || !names.is_empty() || !paths.is_empty();
        let by_depth = *min_depth > 0 || max_depth.is_some();
        let by_meta = types.is_some() || !sizes.is_empty() || newer.is_some() || older.is_some();
        !(by_name || by_depth || by_meta)
    }

    /// Whether any test is on the type, which some filesystems tell in metadata alone.
    #[must_use]
    pub fn needs_type(&self) -> bool {
        self.types.is_some()
    }

    /// Whether any test is on the path: without, [`matches_path`](Filter::matches_path) need not be asked.
    #[must_use]
    pub fn needs_path(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Whether any test is on metadata other than the type.
    #[must_use]
    pub fn needs_meta(&self) -> bool {
        self.fields().is_some()
    }

    /// Whether an entry of this type must be asked for its metadata before it can be listed.
    #[must_use]
    pub fn needs_meta_of(&self, file_type: FileType) -> bool {
        self.needs_meta() || (self.needs_type() && file_type == FileType::Unknown)
    }

    /// The metadata that tests are on; none if there are no such tests.
    #[must_use]
    pub fn fields(&self) -> Option<Fields> {
        let size = (!self.sizes.is_empty()).then_some(Fields::SIZE);
        let times = (self.newer.is_some() || self.older.is_some()).then_some(Fields::TIMES);
        size.into_iter().chain(times).reduce(Fields::and)
    }

    /// Whether anything in a directory of this depth could be listed.
    #[must_use]
    pub fn descends(&self, depth: usize) -> bool {
        self.max_depth.is_none_or(|max| depth < max)
    }

    /// Whether depth and name are right. `name` is the last component, of a starting point too.
    #[must_use]
    pub fn matches_name(&self, name: &[u8], depth: usize) -> bool {
        let in_range = depth >= self.min_depth && self.max_depth.is_none_or(|max| depth <= max);
        let hidden = self.skips_hidden && depth > 0 && name.starts_with(b".");
        in_range
            && !hidden
            && (self.names.is_empty() || self.names.iter().any(|pattern| pattern.matches(name)))
    }

    /// Whether the type is right; one that is not known yet may be.
    #[must_use]
    pub fn matches_type(&self, file_type: FileType) -> bool {
        file_type == FileType::Unknown || self.types.is_none_or(|types| types.has(file_type))
    }

    /// Whether the path is right, from the starting point as it was given.
    #[must_use]
    pub fn matches_path(&self, path: &[u8]) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|expression| expression.matches(path))
    }

    /// Whether the metadata is right: the type, which it always tells, and what [`fields`](Filter::fields) names.
    #[must_use]
    pub fn matches_meta(&self, meta: &Meta) -> bool {
        self.types.is_none_or(|types| types.has(meta.file_type()))
            && self.sizes.iter().all(|test| test.admits(meta.size))
            && self.newer.is_none_or(|when| meta.modified > when.stamp())
            && self.older.is_none_or(|when| meta.modified < when.stamp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_walk::Stamp;

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
        let changes: [fn(&mut Filter); 9] = [
            |filter| filter.add_types(Types::parse(b"f").unwrap()),
            |filter| filter.add_name(b"a", Charset::Utf8),
            |filter| filter.add_regex(b"a", Charset::Utf8).unwrap(),
            |filter| filter.set_skips_hidden(true),
            |filter| filter.set_min_depth(1),
            |filter| filter.set_max_depth(1),
            |filter| filter.add_size(SizeTest::parse(b"1").unwrap()),
            |filter| filter.set_newer(When::at(Stamp::default())),
            |filter| filter.set_older(When::at(Stamp::default())),
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut filter = Filter::default();
            change(&mut filter);
            assert!(!filter.is_empty(), "{index}");
        }
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
        filter.add_types(Types::parse(b"f,d").unwrap());
        filter.add_types(Types::parse(b"p").unwrap());
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
        filter.set_newer(When::at(Stamp { sec: 1, nsec: 5 }));
        filter.set_older(When::at(Stamp { sec: 2, nsec: 0 }));
        assert_eq!(filter.fields(), Some(Fields::TIMES));
        let at = |sec, nsec| filter.matches_meta(&Meta { modified: Stamp { sec, nsec }, ..Meta::default() });
        assert!(!at(1, 5) && at(1, 6) && at(1, 999_999_999) && !at(2, 0) && !at(0, 9));
    }
}
