//! Paths of directories: those that the table has, and longer ones, which are put together from
//! names.
//!
//! The table `dirs` has no path longer than the kernel takes. Whoever needs one reads the names of
//! such directories, and of all that they are in, once: memory grows with them, not with other
//! directories.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use parquet::errors::Result;

use super::decode::damaged;
use super::group::Group;
use super::values::Texts;
use super::{Error, Inventory, Table};
use crate::normal::{components, is_same};

/// The longest path that is put together, in bytes. Every directory above takes an inode, so no
/// filesystem has a longer one.
pub(crate) const TREE_PATH_BYTES_MAX: usize = 64 << 20;

/// The paths of a row group.
pub(crate) struct Paths([Texts; 2]);

impl Paths {
    pub(crate) fn read(group: &Group<'_>) -> Result<Self> {
        Ok(Self([group.texts("path")?, group.texts("path_raw")?]))
    }

    /// The path of a row; none if it is too long for the table.
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        let [text, raw] = &self.0;
        raw.get(row).or(text.get(row))
    }
}

/// A directory whose path is long, or that has such a one below it.
#[derive(Clone, Copy, Debug)]
struct Dir {
    id: i64,
    post: i64,
    parent: Option<i64>,
    /// The place of its parent among these.
    above: Option<usize>,
    name: (usize, usize),
    /// Bytes of its path.
    path_len: usize,
    /// Names that its path leads through.
    steps: usize,
    is_long: bool,
}

/// All directories whose paths the table does not have.
#[derive(Debug)]
pub(crate) struct LongPaths {
    /// In the order of their numbers, with all that they are in.
    dirs: Vec<Dir>,
    names: Vec<u8>,
}

impl LongPaths {
    pub(super) fn read(inventory: &Inventory) -> std::result::Result<Self, Error> {
        let mut paths = Self { dirs: Vec::new(), names: Vec::new() };
        let mut wanted = HashSet::new();
        inventory.each(Table::Dirs, |group| paths.take(group, &mut wanted))?;
        paths.join().filter(|()| wanted.is_empty()).ok_or_else(|| {
            inventory.refused("its directories do not fit together, or a path in it is too long")
        })?;
        Ok(paths)
    }

    /// Keeps the directories that are wanted. A directory's row follows those below it, so it is
    /// known by then to be wanted.
    fn take(&mut self, group: &Group<'_>, wanted: &mut HashSet<i64>) -> Result<()> {
        let paths = Paths::read(group)?;
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
                return Err(damaged("a directory comes before the one that it is in"));
            }
            let start = self.names.len();
            self.names.extend_from_slice(name);
            let post = posts.or_zero()[row];
            self.dirs.push(Dir {
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

    /// Finds each directory's parent and the length of its path; none if they do not fit together.
    fn join(&mut self) -> Option<()> {
        self.dirs.sort_unstable_by_key(|dir| dir.id);
        for at in 0..self.dirs.len() {
            let Dir { parent, name: (_, length), .. } = self.dirs[at];
            let mut steps = components(self.name(at)).count();
            let above = match parent {
                Some(parent) => {
                    let place = self.dirs[..at].binary_search_by_key(&parent, |dir| dir.id).ok()?;
                    self.dirs[at].above = Some(place);
                    steps += self.dirs[place].steps;
                    self.dirs[place].path_len + usize::from(!self.name(place).ends_with(b"/"))
                }
                None => 0,
            };
            self.dirs[at].steps = steps;
            self.dirs[at].path_len = above.checked_add(length).filter(|path| *path <= TREE_PATH_BYTES_MAX)?;
        }
        Some(())
    }

    fn name(&self, place: usize) -> &[u8] {
        let (start, length) = self.dirs[place].name;
        &self.names[start..start + length]
    }

    /// The place of a directory, and of each that it is in, up to a root.
    fn upwards(&self, place: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(place), |at| self.dirs[*at].above)
    }

    /// The path of the directory with this number.
    pub(crate) fn get(&self, dir_id: i64) -> Option<Vec<u8>> {
        let place = self.dirs.binary_search_by_key(&dir_id, |dir| dir.id).ok()?;
        let mut path = vec![b'/'; self.dirs[place].path_len];
        for at in self.upwards(place) {
            let (end, name) = (self.dirs[at].path_len, self.name(at));
            path[end - name.len()..end].copy_from_slice(name);
        }
        Some(path)
    }

    /// The numbers of the directory that `path` leads to, and of all below it.
    pub(crate) fn find(&self, path: &[u8]) -> Option<RangeInclusive<i64>> {
        let (steps, last) = (components(path).count(), components(path).next_back());
        // Few have as many names above them and the same one themselves, so few paths are put
        // together.
        let may_be = |(place, dir): &(usize, &Dir)| {
            dir.is_long && dir.steps == steps && Some(self.name(*place)) == last
        };
        let mut found = self.dirs.iter().enumerate().filter(may_be).map(|(_, dir)| dir);
        let dir = found.find(|dir| self.get(dir.id).is_some_and(|found| is_same(&found, path)))?;
        Some(dir.id..=dir.post)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the long paths of directories, given as `(id, parent, name)`.
    fn paths(dirs: &[(i64, Option<i64>, &str)]) -> Option<LongPaths> {
        let mut paths = LongPaths { dirs: Vec::new(), names: Vec::new() };
        for (id, parent, name) in dirs {
            let start = paths.names.len();
            paths.names.extend_from_slice(name.as_bytes());
            let (name, is_long) = ((start, name.len()), parent.is_some());
            paths.dirs.push(Dir {
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
    fn what_does_not_fit_together_has_no_path() {
        assert!(paths(&[(2, Some(1), "a")]).is_none(), "its parent is not there");
        let long = "x".repeat(TREE_PATH_BYTES_MAX / 2);
        assert!(paths(&[(1, None, &long), (2, Some(1), &long)]).is_none());
    }
}
