//! The part of an inventory that is at or below a directory.

use super::Failure;
use crate::store::{Inventory, Table};

/// Directories by their numbers, from the first to the last; 0 is none, but has the operands that are no directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl Span {
    /// Everything.
    pub const ALL: Self = Self { first: i64::MIN, last: i64::MAX };
    pub(crate) const NONE: Self = Self { first: 0, last: -1 };

    pub(crate) fn has(self, dir_id: i64) -> bool {
        (self.first..=self.last).contains(&dir_id)
    }
}

/// What is at or below the directory `path`.
pub(crate) fn find(inventory: &Inventory, path: &[u8]) -> Result<Span, Failure> {
    let exact = trimmed(path);
    let roots = inventory.manifest().roots.iter().map(|root| joined(&root.bytes(), path));
    let wanted: Vec<_> = roots.flatten().collect();
    let (mut recorded, mut relative) = (None, Vec::new());
    inventory.each(Table::Dirs, |group| {
        let (paths, raw) = (group.texts("path")?, group.texts("path_raw")?);
        let (pre, post) = (group.numbers("pre")?, group.numbers("post")?);
        for row in 0..group.rows() {
            let found = trimmed(raw.get(row).or(paths.get(row)).unwrap_or_default());
            let span = || Span { first: pre.or_zero()[row], last: post.or_zero()[row] };
            if found == exact {
                recorded.get_or_insert_with(span);
            } else if wanted.iter().any(|wanted| found == wanted) {
                relative.push(span());
            }
        }
        Ok(())
    })?;
    match (recorded, &relative[..]) {
        (Some(span), _) | (None, &[span]) => Ok(span),
        (None, []) => Err(Failure::Absent),
        (None, _) => Err(Failure::Ambiguous),
    }
}

/// Without slashes at the end.
pub(crate) fn trimmed(path: &[u8]) -> &[u8] {
    let length = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    &path[..length.max(1).min(path.len())]
}

/// A path that is relative to `root`, from where `root` is seen.
fn joined(root: &[u8], mut path: &[u8]) -> Option<Vec<u8>> {
    if path.first() == Some(&b'/') {
        return None;
    }
    while let Some(rest) = path.strip_prefix(b"./") {
        path = rest;
    }
    let root = trimmed(root);
    if path.is_empty() || path == b"." {
        return Some(root.to_vec());
    }
    let slash: &[u8] = if root.ends_with(b"/") { b"" } else { b"/" };
    Some([root, slash, trimmed(path)].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_without_slashes_too_many() {
        let joined = |root: &str, path: &str| {
            joined(root.as_bytes(), path.as_bytes()).map(|path| String::from_utf8(path).unwrap())
        };
        assert_eq!(joined("/", "usr/").as_deref(), Some("/usr"));
        assert_eq!(joined("a//", "././b").as_deref(), Some("a/b"));
        assert_eq!([joined("a", ".").as_deref(), joined("a", "./").as_deref()], [Some("a"); 2]);
        assert_eq!(joined("a", "/b"), None);
        assert_eq!([trimmed(b"//"), trimmed(b"a/"), trimmed(b"")], [&b"/"[..], b"a", b""]);
    }
}
