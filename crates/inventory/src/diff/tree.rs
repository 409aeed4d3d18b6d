//! The directories of one inventory, in memory: some 80 bytes for each, and its name. Directories are known by their numbers; 0
//! is none, but has the operands that are no directories.

use parquet::errors::{ParquetError, Result};

use super::facts::Devices;
use crate::store::{Error, Group, Inventory, State, TREE_PATH_BYTES_MAX, Table};

/// No directory.
pub(super) const NONE: u32 = u32::MAX;

/// A directory.
#[derive(Clone, Copy, Debug)]
struct Dir {
    id: u32,
    parent: u32,
    name_start: usize,
    name_len: u32,
    state: State,
    known: bool,
    /// Whether `time` is that of its birth; otherwise it is that of its last modification.
    is_born: bool,
    dev: i64,
    ino: i64,
    time: i64,
}

impl Dir {
    /// What has the operands: nobody knows which there might be.
    const OUTSIDE: Self = Self {
        id: 0,
        parent: NONE,
        name_start: 0,
        name_len: 0,
        state: State::Partial,
        known: false,
        is_born: false,
        dev: 0,
        ino: 0,
        time: 0,
    };
}

/// All directories.
pub(super) struct Tree {
    dirs: Vec<Dir>,
    names: Vec<u8>,
    /// All but roots, by parent and name.
    by_name: Vec<u32>,
    /// Those that anything is known of, by device and inode.
    by_inode: Vec<u32>,
}

impl Tree {
    pub(super) fn read(inventory: &Inventory) -> std::result::Result<Self, Error> {
        let mut tree =
            Self { dirs: vec![Dir::OUTSIDE], names: Vec::new(), by_name: Vec::new(), by_inode: Vec::new() };
        inventory.each(Table::Dirs, |group| tree.take(group))?;
        tree.dirs.sort_unstable_by_key(|dir| dir.id);
        if tree.dirs.iter().zip(0..).any(|(dir, id)| dir.id != id) {
            return Err(inventory.refused("its directories are not numbered from 1 on"));
        }
        let mut by_name: Vec<_> = tree.all().filter(|dir| tree.parent(*dir).is_some()).collect();
        by_name.sort_unstable_by_key(|dir| tree.place(*dir));
        tree.by_name = by_name;
        Ok(tree)
    }

    fn take(&mut self, group: &Group<'_>) -> Result<()> {
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
                return Err(damaged("a directory comes before the one that it is in"));
            }
            let state = states.get(row).and_then(State::from_word);
            let state = state.ok_or_else(|| damaged("a directory is in no state that there is"))?;
            self.dirs.push(Dir {
                id,
                parent,
                name_start: self.names.len(),
                name_len: u32::try_from(name.len()).map_err(|_| damaged("a name is too long"))?,
                state,
                known: ino.get(row).is_some(),
                is_born: btime.get(row).is_some(),
                dev: dev.or_zero()[row],
                ino: ino.or_zero()[row],
                time: btime.get(row).unwrap_or(mtime.or_zero()[row]),
            });
            self.names.extend_from_slice(name);
        }
        Ok(())
    }

    /// Has device numbers as the other inventory has them, and directories be found by their inodes.
    pub(super) fn settle(&mut self, devices: &Devices) {
        for dir in &mut self.dirs {
            dir.dev = devices.get(&dir.dev).copied().unwrap_or(dir.dev);
        }
        let mut by_inode: Vec<_> = self.all().filter(|dir| self.get(*dir).known).collect();
        by_inode.sort_unstable_by_key(|dir| (self.inode(*dir), *dir));
        self.by_inode = by_inode;
    }

    /// How many there are, with 0.
    pub(super) fn len(&self) -> usize {
        self.dirs.len()
    }

    /// All of them, each after the one that it is in.
    pub(super) fn all(&self) -> std::ops::Range<u32> {
        1..self.dirs.len() as u32
    }

    /// The directory that a row is about.
    pub(super) fn at(&self, dir_id: i64) -> Result<u32> {
        let dir = u32::try_from(dir_id).ok().filter(|dir| (*dir as usize) < self.dirs.len());
        dir.ok_or_else(|| damaged("an entry is in no directory"))
    }

    fn get(&self, dir: u32) -> &Dir {
        &self.dirs[dir as usize]
    }

    pub(super) fn parent(&self, dir: u32) -> Option<u32> {
        Some(self.get(dir).parent).filter(|parent| *parent != NONE)
    }

    pub(super) fn state(&self, dir: u32) -> State {
        self.get(dir).state
    }

    pub(super) fn name(&self, dir: u32) -> &[u8] {
        let Dir { name_start, name_len, .. } = *self.get(dir);
        &self.names[name_start..name_start + name_len as usize]
    }

    fn place(&self, dir: u32) -> (u32, &[u8]) {
        (self.get(dir).parent, self.name(dir))
    }

    /// Device and inode.
    pub(super) fn inode(&self, dir: u32) -> (i64, i64) {
        let Dir { dev, ino, .. } = *self.get(dir);
        (dev, ino)
    }

    /// The directory of this name in `parent`.
    pub(super) fn child(&self, parent: u32, name: &[u8]) -> Option<u32> {
        let found = self.by_name.binary_search_by_key(&(parent, name), |dir| self.place(*dir));
        found.ok().map(|at| self.by_name[at])
    }

    /// Directories with an inode, in the order of the walk: several if it was reached on several ways.
    pub(super) fn with_inode(&self, inode: (i64, i64)) -> impl Iterator<Item = u32> {
        let start = self.by_inode.partition_point(|dir| self.inode(*dir) < inode);
        self.by_inode[start..].iter().copied().take_while(move |dir| self.inode(*dir) == inode)
    }

    /// Whether a directory has the inode number of one of the `other` tree, whatever its device is called.
    pub(super) fn has_number_of(&self, dir: u32, other: &Self, twin: u32) -> bool {
        let (one, two) = (self.get(dir), other.get(twin));
        one.known && two.known && one.ino == two.ino
    }

    /// Whether it is known that both were made at the same time.
    pub(super) fn was_born_with(&self, dir: u32, other: &Self, twin: u32) -> bool {
        let (one, two) = (self.get(dir), other.get(twin));
        one.is_born && two.is_born && one.time == two.time
    }

    /// Whether a directory is one of the `other` tree, wherever it is. Numbers of inodes are used again.
    pub(super) fn is_same(&self, dir: u32, other: &Self, twin: u32) -> bool {
        let (one, two) = (self.get(dir), other.get(twin));
        let numbers = |dir: &Dir| (dir.dev, dir.ino, dir.is_born, dir.time);
        one.known && two.known && numbers(one) == numbers(two)
    }

    /// The path of a directory; none if nothing could be called that.
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

/// Appends a name to the path of the directory it is in.
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
impl Tree {
    /// Of directories as `(parent, name, inode, time of birth)`, from 1 on; the parent of a root is [`NONE`].
    pub(super) fn of(dirs: &[(u32, &str, i64, i64)]) -> Self {
        let mut tree =
            Self { dirs: vec![Dir::OUTSIDE], names: Vec::new(), by_name: Vec::new(), by_inode: Vec::new() };
        for (id, (parent, name, ino, time)) in (1..).zip(dirs) {
            tree.dirs.push(Dir {
                id,
                parent: *parent,
                name_start: tree.names.len(),
                name_len: name.len() as u32,
                state: State::Complete,
                known: true,
                is_born: true,
                dev: 1,
                ino: *ino,
                time: *time,
            });
            tree.names.extend_from_slice(name.as_bytes());
        }
        tree.by_name = tree.all().filter(|dir| tree.parent(*dir).is_some()).collect();
        let mut by_name = std::mem::take(&mut tree.by_name);
        by_name.sort_unstable_by_key(|dir| tree.place(*dir));
        tree.by_name = by_name;
        tree
    }

    pub(super) fn set(&mut self, dir: u32, dev: i64, state: State) {
        let dir = &mut self.dirs[dir as usize];
        (dir.dev, dir.state) = (dev, state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_found_by_name_and_by_inode() {
        let mut tree = Tree::of(&[(NONE, "/", 2, 0), (1, "b", 3, 0), (1, "a", 4, 0), (3, "b", 3, 0)]);
        tree.settle(&Devices::default());
        assert_eq!([tree.child(1, b"a"), tree.child(3, b"b"), tree.child(2, b"b")], [Some(3), Some(4), None]);
        assert_eq!(tree.with_inode((1, 3)).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(tree.path(4).as_deref(), Some(&b"/a/b"[..]));
    }

    #[test]
    fn a_path_without_end_is_none() {
        let name = "x".repeat(TREE_PATH_BYTES_MAX / 4);
        let tree = Tree::of(&[(NONE, &name, 1, 0), (1, &name, 2, 0), (2, &name, 3, 0), (3, &name, 4, 0)]);
        assert!(tree.path(3).is_some() && tree.path(4).is_none());
    }
}
