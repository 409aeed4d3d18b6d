//! The part of an inventory at or below a directory.

use std::ops::RangeInclusive;

use super::QueryError;
use crate::normal::{is_absolute, is_same, normal};
use crate::store::{Inventory, PATH_BYTES_MAX, PathColumns, Table};

/// A range of directory numbers, both ends included. Number 0 is no directory; it stands for the
/// parent of the operands that are not directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Span {
    /// All directories, and the operands that are not directories.
    pub const ALL: Self = Self { first: i64::MIN, last: i64::MAX };
    /// All directories.
    pub(crate) const TREES: Self = Self { first: 1, last: i64::MAX };
    pub(crate) const NONE: Self = Self { first: 0, last: -1 };

    pub(crate) fn contains(self, dir_id: i64) -> bool {
        (self.first..=self.last).contains(&dir_id)
    }
}

/// Returns the directory numbers at and below the directory `path`.
pub(crate) fn find(inventory: &Inventory, path: &[u8]) -> Result<Span, QueryError> {
    let roots = inventory.manifest().roots.iter().map(|root| joined(&root.bytes(), path));
    let wanted: Vec<_> = roots.flatten().collect();
    let (mut recorded, mut relative) = (None, Vec::new());
    inventory.each(Table::Dirs, |group| {
        let paths = PathColumns::read(group)?;
        let (pre, post) = (group.numbers("pre")?, group.numbers("post")?);
        for row in 0..group.rows() {
            let Some(found) = paths.get(row) else { continue };
            let span = || Span { first: pre.or_zero()[row], last: post.or_zero()[row] };
            if is_same(found, path) {
                recorded.get_or_insert_with(span);
            } else if wanted.iter().any(|wanted| is_same(found, wanted)) {
                // Overlapping trees have a directory twice.
                let path = normal(found);
                if !relative.iter().any(|(known, _)| *known == path) {
                    relative.push((path, span()));
                }
            }
        }
        Ok(())
    })?;
    let span = |found: RangeInclusive<i64>| Span { first: *found.start(), last: *found.end() };
    if recorded.is_none() && path.len() > PATH_BYTES_MAX {
        recorded = inventory.long_paths()?.find(path).map(span);
    }
    for path in wanted.iter().filter(|path| path.len() > PATH_BYTES_MAX) {
        relative.extend(inventory.long_paths()?.find(path).map(|found| (normal(path), span(found))));
    }
    match (recorded, &relative[..]) {
        (Some(span), _) | (None, &[(_, span)]) => Ok(span),
        (None, []) => Err(QueryError::Absent),
        (None, _) => Err(QueryError::Ambiguous),
    }
}

/// Returns `path`, which is relative to `root`, as the inventory records it; `None` if it is
/// absolute.
fn joined(root: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    (!is_absolute(path)).then(|| [root, b"/", path].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_seen_from_a_root() {
        let joined =
            |root: &str, path: &str| joined(root.as_bytes(), path.as_bytes()).map(|path| normal(&path));
        for (root, path, expected) in [("/", "usr/", "/usr"), ("a//", "././b", "a/b"), ("a", ".", "a")] {
            assert_eq!(joined(root, path).as_deref(), Some(expected.as_bytes()));
        }
        assert_eq!(joined("a", "/b"), None);
    }
}
