//! The directories of one inventory, in memory: about 80 bytes for each, and its name. Directories
//! are found by their numbers. Number 0 is no directory; it stands for the parent of the operands
//! that are not directories.

use parquet::errors::{ParquetError, Result};

use super::inode_info::DeviceMap;
use fathom_inventory::store::{DirState, Error, Inventory, RowGroup, TREE_PATH_BYTES_MAX, Table};

/// The number of no directory.
pub(super) const NONE: u32 = u32::MAX;

/// A directory.
#[derive(Clone, Copy, Debug)]
struct TreeDir {
    id: u32,
    parent: u32,
    name_start: usize,
    name_len: u32,
    state: DirState,
    known: bool,
    /// Whether `time` is the creation time. Otherwise it is the modification time.
    has_btime: bool,
    dev: i64,
    ino: i64,
    time: i64,
}

impl TreeDir {
    /// Directory 0, which has the operands that are not directories. It is never complete, as an
    /// operand that one inventory lacks may exist all the same.
    const OUTSIDE: Self = Self {
        id: 0,
        parent: NONE,
        name_start: 0,
        name_len: 0,
        state: DirState::Partial,
        known: false,
        has_btime: false,
        dev: 0,
        ino: 0,
        time: 0,
    };
}

/// All directories of an inventory.
pub(super) struct DirTree {
    dirs: Vec<TreeDir>,
    names: Vec<u8>,
    /// All directories but roots, sorted by parent and name.
    by_name: Vec<u32>,
    /// All directories whose metadata is known, sorted by device and inode number.
    by_inode: Vec<u32>,
}

impl DirTree {
    pub(super) fn read(inventory: &Inventory) -> std::result::Result<Self, Error> {
        let mut tree = Self {
            dirs: vec![TreeDir::OUTSIDE],
            names: Vec::new(),
            by_name: Vec::new(),
            by_inode: Vec::new(),
        };
        inventory.each(Table::Dirs, |group| tree.take(group))?;
        tree.dirs.sort_unstable_by_key(|dir| dir.id);
        if tree.dirs.iter().zip(0..).any(|(dir, id)| dir.id != id) {
            return Err(inventory.refused("its directories are not numbered from 1 on"));
        }
        let mut by_name: Vec<_> = tree.all().filter(|dir| tree.parent(*dir).is_some()).collect();
        by_name.sort_unstable_by_key(|dir| tree.name_key(*dir));
        tree.by_name = by_name;
        Ok(tree)
    }

    fn take(&mut self, group: &RowGroup<'_>) -> Result<()> {
        let names = [group.texts("name")?, group.texts("name_raw")?];
        let [ids, parents] = [group.numbers("dir_id")?, group.numbers("parent_id")?];
        let [dev, ino] = [group.numbers("dev")?, group.numbers("ino")?];
        let [mtime, btime] = [group.numbers("mtime")?, group.numbers("btime")?];
        let states = group.texts("state")?;
        for row in 0..group.rows() {
            let name = names[1].get(row).or(names[0].get(row)).unwrap_or_default();
            let id = number(ids.or_zero()[row])?;
            let parent = parents.get(row).map_or(Ok(NONE), number)?;
            if parent != NONE && !(1..id).contains(&parent) {
                return Err(damaged("a directory comes before its parent"));
            }
            let state = states.get(row).and_then(DirState::from_word);
            let state = state.ok_or_else(|| damaged("a directory has an invalid state"))?;
            self.dirs.push(TreeDir {
                id,
                parent,
                name_start: self.names.len(),
                name_len: u32::try_from(name.len()).map_err(|_| damaged("a name is too long"))?,
                state,
                known: ino.get(row).is_some(),
                has_btime: btime.get(row).is_some(),
                dev: dev.or_zero()[row],
                ino: ino.or_zero()[row],
                time: btime.get(row).unwrap_or(mtime.or_zero()[row]),
            });
            self.names.extend_from_slice(name);
        }
        Ok(())
    }

    /// Maps device numbers to numbers of the other inventory, and builds the index by inode.
    pub(super) fn index_inodes(&mut self, devices: &DeviceMap) {
        for dir in &mut self.dirs {
            dir.dev = devices.get(&dir.dev).copied().unwrap_or(dir.dev);
        }
        let mut by_inode: Vec<_> = self.all().filter(|dir| self.get(*dir).known).collect();
        by_inode.sort_unstable_by_key(|dir| (self.inode(*dir), *dir));
        self.by_inode = by_inode;
    }

    /// Returns the number of directories, 0 included.
    pub(super) fn len(&self) -> usize {
        self.dirs.len()
    }

    /// Returns the numbers of all directories but 0. Parents come before their children.
    pub(super) fn all(&self) -> std::ops::Range<u32> {
        1..self.dirs.len() as u32
    }

    /// Returns the directory with the number `dir_id`.
    pub(super) fn at(&self, dir_id: i64) -> Result<u32> {
        let dir = u32::try_from(dir_id).ok().filter(|dir| (*dir as usize) < self.dirs.len());
        dir.ok_or_else(|| damaged("an entry has no directory"))
    }

    fn get(&self, dir: u32) -> &TreeDir {
        &self.dirs[dir as usize]
    }

    pub(super) fn parent(&self, dir: u32) -> Option<u32> {
        Some(self.get(dir).parent).filter(|parent| *parent != NONE)
    }

    pub(super) fn state(&self, dir: u32) -> DirState {
        self.get(dir).state
    }

    pub(super) fn name(&self, dir: u32) -> &[u8] {
        let TreeDir { name_start, name_len, .. } = *self.get(dir);
        &self.names[name_start..name_start + name_len as usize]
    }

    fn name_key(&self, dir: u32) -> (u32, &[u8]) {
        (self.get(dir).parent, self.name(dir))
    }

    /// Returns device and inode number.
    pub(super) fn inode(&self, dir: u32) -> (i64, i64) {
        let TreeDir { dev, ino, .. } = *self.get(dir);
        (dev, ino)
    }

    /// Returns the directory of this name in `parent`.
    pub(super) fn child(&self, parent: u32, name: &[u8]) -> Option<u32> {
        let found = self.by_name.binary_search_by_key(&(parent, name), |dir| self.name_key(*dir));
        found.ok().map(|at| self.by_name[at])
    }

    /// Iterates over the directories of an inode, in the order of the walk. There are several if it
    /// was reached on several paths.
    pub(super) fn with_inode(&self, inode: (i64, i64)) -> impl Iterator<Item = u32> {
        let start = self.by_inode.partition_point(|dir| self.inode(*dir) < inode);
        self.by_inode[start..].iter().copied().take_while(move |dir| self.inode(*dir) == inode)
    }

    /// Returns whether `dir` has the same inode number as `counterpart` of the `other` tree. Device
    /// numbers are not compared.
    pub(super) fn has_ino_of(&self, dir: u32, other: &Self, counterpart: u32) -> bool {
        let (one, two) = (self.get(dir), other.get(counterpart));
        one.known && two.known && one.ino == two.ino
    }

    /// Returns whether both creation times are known and equal.
    pub(super) fn has_btime_of(&self, dir: u32, other: &Self, counterpart: u32) -> bool {
        let (one, two) = (self.get(dir), other.get(counterpart));
        one.has_btime && two.has_btime && one.time == two.time
    }

    /// Returns whether `dir` and `counterpart` of the `other` tree are the same directory, whatever
    /// their paths. Inode numbers are reused, so the times have to be equal as well.
    pub(super) fn is_same(&self, dir: u32, other: &Self, counterpart: u32) -> bool {
        let (one, two) = (self.get(dir), other.get(counterpart));
        let numbers = |dir: &TreeDir| (dir.dev, dir.ino, dir.has_btime, dir.time);
        one.known && two.known && numbers(one) == numbers(two)
    }

    /// Returns the path of a directory; `None` if it is longer than any path can be.
    pub(super) fn path(&self, dir: u32) -> Option<Vec<u8>> {
        let (mut above, mut length) = (Vec::new(), 0);
        let mut at = Some(dir);
        while let Some(dir) = at {
            length += self.name(dir).len() + 1;
            if length > TREE_PATH_BYTES_MAX {
                return None;
            }
            above.push(dir);
            at = self.parent(dir);
        }
        let mut path = Vec::with_capacity(length);
        above.iter().rev().for_each(|dir| join(&mut path, self.name(*dir)));
        Some(path)
    }
}

/// Appends a name to the path of its directory.
pub(super) fn join(path: &mut Vec<u8>, name: &[u8]) {
    if path.last().is_some_and(|last| *last != b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

fn number(id: i64) -> Result<u32> {
    let number = u32::try_from(id).ok().filter(|id| (1..NONE).contains(id));
    number.ok_or_else(|| damaged("a directory has an impossible number"))
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

#[cfg(test)]
impl DirTree {
    /// Builds a tree of directories as `(parent, name, inode, creation time)`, numbered from 1 on.
    /// The parent of a root is [`NONE`].
    pub(super) fn of(dirs: &[(u32, &str, i64, i64)]) -> Self {
        let mut tree = Self {
            dirs: vec![TreeDir::OUTSIDE],
            names: Vec::new(),
            by_name: Vec::new(),
            by_inode: Vec::new(),
        };
        for (id, (parent, name, ino, time)) in (1..).zip(dirs) {
            tree.dirs.push(TreeDir {
                id,
                parent: *parent,
                name_start: tree.names.len(),
                name_len: name.len() as u32,
                state: DirState::Complete,
                known: true,
                has_btime: true,
                dev: 1,
                ino: *ino,
                time: *time,
            });
            tree.names.extend_from_slice(name.as_bytes());
        }
        tree.by_name = tree.all().filter(|dir| tree.parent(*dir).is_some()).collect();
        let mut by_name = std::mem::take(&mut tree.by_name);
        by_name.sort_unstable_by_key(|dir| tree.name_key(*dir));
        tree.by_name = by_name;
        tree
    }

    pub(super) fn set(&mut self, dir: u32, dev: i64, state: DirState) {
        let dir = &mut self.dirs[dir as usize];
        (dir.dev, dir.state) = (dev, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_found_by_name_and_by_inode() {
        let mut tree = DirTree::of(&[(NONE, "/", 2, 0), (1, "b", 3, 0), (1, "a", 4, 0), (3, "b", 3, 0)]);
        tree.index_inodes(&DeviceMap::default());
        assert_eq!([tree.child(1, b"a"), tree.child(3, b"b"), tree.child(2, b"b")], [Some(3), Some(4), None]);
        assert_eq!(tree.with_inode((1, 3)).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(tree.path(4).as_deref(), Some(&b"/a/b"[..]));
    }

    #[test]
    fn a_path_without_end_is_none() {
        let name = "x".repeat(TREE_PATH_BYTES_MAX / 4);
        let tree = DirTree::of(&[(NONE, &name, 1, 0), (1, &name, 2, 0), (2, &name, 3, 0), (3, &name, 4, 0)]);
        assert!(tree.path(3).is_some() && tree.path(4).is_none());
    }
}
