//! The paths of directories: the paths in the table, and longer paths, which are joined from names.
//!
//! The table `dirs` has no path longer than the kernel accepts. When the first longer one is
//! needed, the names of all such directories and of their ancestors are read. Memory grows with
//! their number, not with the number of other directories.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use parquet::errors::Result;

use super::decode::damaged;
use super::group::RowGroup;
use super::values::TextColumn;
use super::{Error, Inventory, Table};
use crate::normal::{components, is_same};

/// The longest path that is joined, in bytes. Every ancestor takes an inode, so no filesystem has a
/// longer path.
pub const TREE_PATH_BYTES_MAX: usize = 64 << 20;

/// The path columns of a row group.
pub struct PathColumns([TextColumn; 2]);

impl PathColumns {
    /// Reads the columns of a row group.
    pub fn read(group: &RowGroup<'_>) -> Result<Self> {
        Ok(Self([group.texts("path")?, group.texts("path_raw")?]))
    }

    /// Returns the path of a row; `None` if it is too long for the table.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let [text, raw] = &self.0;
        raw.get(row).or(text.get(row))
    }
}

/// A directory with a long path, or an ancestor of one.
#[derive(Clone, Copy, Debug)]
struct LongPathDir {
    id: i64,
    post: i64,
    parent: Option<i64>,
    /// The index of the parent in [`LongPaths`].
    above: Option<usize>,
    name: (usize, usize),
    /// The length of the path in bytes.
    path_len: usize,
    /// The number of names in the path.
    steps: usize,
    is_long: bool,
}

/// The directories whose paths the table does not have.
#[derive(Debug)]
pub struct LongPaths {
    /// Sorted by number, with all ancestors.
    dirs: Vec<LongPathDir>,
    names: Vec<u8>,
}

impl LongPaths {
    pub(super) fn read(inventory: &Inventory) -> std::result::Result<Self, Error> {
        let mut paths = Self { dirs: Vec::new(), names: Vec::new() };
        let mut wanted = HashSet::new();
        inventory.each(Table::Dirs, |group| paths.take(group, &mut wanted))?;
        paths.join().filter(|()| wanted.is_empty()).ok_or_else(|| {
            inventory.refused("its directories contradict one another, or a path in it is too long")
        })?;
        Ok(paths)
    }

    /// Keeps the directories in `wanted`, and those without a path. A directory's row follows the
    /// rows of everything below it, so by then it is known whether it is wanted.
    fn take(&mut self, group: &RowGroup<'_>, wanted: &mut HashSet<i64>) -> Result<()> {
        let paths = PathColumns::read(group)?;
        let (ids, parents, posts) =
            (group.numbers("dir_id")?, group.numbers("parent_id")?, group.numbers("post")?);
        let mut names = None;
        for row in 0..group.rows() {
            let (id, is_long) = (ids.or_zero()[row], paths.get(row).is_none());
            if !wanted.remove(&id) && !is_long {
                continue;
            }
            let [text, raw] = match &names {
                Some(names) => names,
                None => names.insert([group.texts("name")?, group.texts("name_raw")?]),
            };
            let name = raw.get(row).or(text.get(row)).unwrap_or_default();
            let parent = parents.get(row);
            if parent.is_some_and(|parent| !(1..id).contains(&parent)) {
                return Err(damaged("a directory comes before its parent"));
            }
            let start = self.names.len();
            self.names.extend_from_slice(name);
            let post = posts.or_zero()[row];
            self.dirs.push(LongPathDir {
                id,
                post,
                parent,
                above: None,
                name: (start, name.len()),
                path_len: 0,
                steps: 0,
                is_long,
            });
            wanted.extend(parent);
        }
        Ok(())
    }

    /// Finds the parent of each directory and the length of its path; `None` if the directories are
    /// inconsistent.
    fn join(&mut self) -> Option<()> {
        self.dirs.sort_unstable_by_key(|dir| dir.id);
        for at in 0..self.dirs.len() {
            let LongPathDir { parent, name: (_, length), .. } = self.dirs[at];
            let mut steps = components(self.name(at)).count();
            let above = match parent {
                Some(parent) => {
                    let index = self.dirs[..at].binary_search_by_key(&parent, |dir| dir.id).ok()?;
                    self.dirs[at].above = Some(index);
                    steps += self.dirs[index].steps;
                    self.dirs[index].path_len + usize::from(!self.name(index).ends_with(b"/"))
                }
                None => 0,
            };
            self.dirs[at].steps = steps;
            self.dirs[at].path_len = above.checked_add(length).filter(|path| *path <= TREE_PATH_BYTES_MAX)?;
        }
        Some(())
    }

    fn name(&self, index: usize) -> &[u8] {
        let (start, length) = self.dirs[index].name;
        &self.names[start..start + length]
    }

    /// Iterates over a directory and its ancestors, up to a root.
    fn ancestors(&self, index: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(index), |at| self.dirs[*at].above)
    }

    /// Returns the path of the directory with this number.
    pub fn get(&self, dir_id: i64) -> Option<Vec<u8>> {
        let index = self.dirs.binary_search_by_key(&dir_id, |dir| dir.id).ok()?;
        let mut path = vec![b'/'; self.dirs[index].path_len];
        for at in self.ancestors(index) {
            let (end, name) = (self.dirs[at].path_len, self.name(at));
            path[end - name.len()..end].copy_from_slice(name);
        }
        Some(path)
    }

    /// Returns the range of numbers of the directory at `path` and of everything below it.
    pub fn find(&self, path: &[u8]) -> Option<RangeInclusive<i64>> {
        let (steps, last) = (components(path).count(), components(path).next_back());
        // Few directories have the same number of names in their path and the same last name, so
        // few paths are joined.
        let may_be = |(index, dir): &(usize, &LongPathDir)| {
            dir.is_long && dir.steps == steps && Some(self.name(*index)) == last
        };
        let mut found = self.dirs.iter().enumerate().filter(may_be).map(|(_, dir)| dir);
        let dir = found.find(|dir| self.get(dir.id).is_some_and(|found| is_same(&found, path)))?;
        Some(dir.id..=dir.post)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins the long paths of directories, given as `(id, parent, name)`.
    fn paths(dirs: &[(i64, Option<i64>, &str)]) -> Option<LongPaths> {
        let mut paths = LongPaths { dirs: Vec::new(), names: Vec::new() };
        for (id, parent, name) in dirs {
            let start = paths.names.len();
            paths.names.extend_from_slice(name.as_bytes());
            let (name, is_long) = ((start, name.len()), parent.is_some());
            paths.dirs.push(LongPathDir {
                id: *id,
                post: *id,
                parent: *parent,
                above: None,
                name,
                path_len: 0,
                steps: 0,
                is_long,
            });
        }
        paths.join().map(|()| paths)
    }

    #[test]
    fn paths_are_put_together_from_the_root_down() {
        let tree =
            [(9, Some(4), "b"), (4, Some(2), "a"), (2, None, "/"), (7, Some(6), "a"), (6, None, "r//x")];
        let paths = paths(&tree).unwrap();
        let text = |id| paths.get(id).map(|path| String::from_utf8(path).unwrap());
        assert_eq!(
            [text(9).as_deref(), text(7).as_deref(), text(5).as_deref()],
            [Some("/a/b"), Some("r//x/a"), None]
        );
        let found = |path: &[u8]| paths.find(path).map(|span| *span.start());
        assert_eq!(
            [found(b"/a/b"), found(b"r//x/a"), found(b"/a/c"), found(b"xx/b")],
            [Some(9), Some(7), None, None]
        );
        assert_eq!(found(b"/"), None, "the table has it");
    }

    #[test]
    fn inconsistent_directories_have_no_path() {
        assert!(paths(&[(2, Some(1), "a")]).is_none(), "its parent is not there");
        let long = "x".repeat(TREE_PATH_BYTES_MAX / 2);
        assert!(paths(&[(1, None, &long), (2, Some(1), &long)]).is_none());
    }
}
