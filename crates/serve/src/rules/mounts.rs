//! Selects the mount of a path: the mount with the longest path that is the path or a prefix of it.
//!
//! Does not own: the decoding of paths, which happens before, and the rules of mounts.

use crate::config::MountConfig;

/// The paths of a site's mounts, the longest first.
///
/// ```
/// use fathom_serve::config::MountConfig;
/// use fathom_serve::rules::mounts::MountTable;
///
/// let mount = |path: &str| MountConfig { path: path.to_string(), ..MountConfig::default() };
/// let table = MountTable::new(&[mount("/docs"), mount("/docs/api")]);
/// assert_eq!(table.find(b"docs/a.html"), Some((0, 5)));
/// assert_eq!(table.find(b"docs/api/a.html"), Some((1, 9)));
/// assert_eq!(table.find(b"index.html"), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct MountTable(Vec<(Box<[u8]>, usize)>);

impl MountTable {
    /// Indexes `mounts` by path; their numbers are their positions.
    #[must_use]
    pub fn new(mounts: &[MountConfig]) -> Self {
        let path = |mount: &MountConfig| Box::from(mount.at().trim_start_matches('/').as_bytes());
        let mut all: Vec<(Box<[u8]>, usize)> = mounts.iter().map(path).zip(0..).collect();
        all.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Self(all)
    }

    /// Returns whether the site has no mounts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of the mount for the decoded `path`, which has no leading slash, and the
    /// offset in `path` at which the path below the mount begins.
    #[must_use]
    pub fn find(&self, path: &[u8]) -> Option<(usize, usize)> {
        self.0.iter().find_map(|(mount, number)| Some((*number, skip(path, mount)?)))
    }
}

/// Returns the offset in `path` at which the path below `prefix` begins; `None` if `path` is not
/// `prefix` or below it. Names are compared whole: `docsx` is not below `docs`. Every path is below
/// the empty prefix.
///
/// ```
/// use fathom_serve::rules::mounts::skip;
///
/// assert_eq!(skip(b"docs/a", b"docs"), Some(5));
/// assert_eq!(skip(b"docsx", b"docs"), None);
/// ```
#[must_use]
pub fn skip(path: &[u8], prefix: &[u8]) -> Option<usize> {
    if prefix.is_empty() {
        return Some(0);
    }
    match path.strip_prefix(prefix)? {
        [] => Some(prefix.len()),
        [b'/', ..] => Some(prefix.len() + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mounts(paths: &[&str]) -> MountTable {
        let mount = |path: &&str| MountConfig { path: (*path).to_owned(), ..MountConfig::default() };
        MountTable::new(&paths.iter().map(mount).collect::<Vec<_>>())
    }

    #[test]
    fn the_longest_path_of_whole_names_counts() {
        let mounts = mounts(&["/docs", "/docs/api/", "/d", "/a b"]);
        for (path, expected) in [
            ("docs", Some((0, 4))),
            ("docs/x", Some((0, 5))),
            ("docs/api", Some((1, 8))),
            ("docs/api/x/y", Some((1, 9))),
            ("docs/apix", Some((0, 5))),
            ("d", Some((2, 1))),
            ("d/docs", Some((2, 2))),
            ("a b/c", Some((3, 4))),
            ("docsx", None),
            ("doc", None),
            ("Docs", None),
            ("", None),
            ("x/docs", None),
        ] {
            assert_eq!(mounts.find(path.as_bytes()), expected, "{path}");
        }
    }

    /// Finds the mount by comparing lists of names.
    fn find_by_names<'p>(path: &[&'p str], paths: &[Vec<&str>]) -> Option<(usize, Vec<&'p str>)> {
        let fits = |(_, mount): &(usize, &Vec<&str>)| path.starts_with(mount);
        let best = paths.iter().enumerate().filter(fits).max_by_key(|(_, mount)| mount.len());
        best.map(|(number, mount)| (number, path[mount.len()..].to_vec()))
    }

    proptest! {
        #![proptest_config(fathom_cases::property(2000))]

        #[test]
        fn it_matches_a_comparison_of_names(
            path in prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "aa"]), 0..5),
            paths in prop::collection::btree_set(
                prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "aa"]), 1..4),
                0..6,
            ),
        ) {
            let paths: Vec<_> = paths.into_iter().collect();
            let texts: Vec<_> = paths.iter().map(|names| format!("/{}", names.join("/"))).collect();
            let mounts = mounts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let text = path.join("/");
            let found = mounts.find(text.as_bytes()).map(|(number, skip)| (number, text[skip..].to_owned()));
            let expected = find_by_names(&path, &paths).map(|(number, rest)| (number, rest.join("/")));
            prop_assert_eq!(found, expected);
        }
    }
}
