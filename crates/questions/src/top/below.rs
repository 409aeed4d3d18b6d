//! Finds the directories of an inventory at and below a path.

use std::ops::RangeInclusive;

use super::QueryError;
use fathom_inventory::normal::{is_absolute, is_same, normal};
use fathom_inventory::store::{Inventory, PATH_BYTES_MAX, PathColumns, Span, Table};

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
