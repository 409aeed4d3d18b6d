//! The directories of an earlier inventory, by which workers find those that have not changed
//! since.
//!
//! Creating, removing or replacing a name modifies its directory, and moves its mtime and ctime
//! (POSIX.1-2024, "File Times Update"). So a directory with the same inode number and the same
//! times has the same entries, if both times were over when the earlier scan began: a second change
//! within one tick of the filesystem's clock moves no time. The inodes of its entries may have
//! changed without any change of the directory, so their metadata is as old as the earlier
//! inventory.
//!
//! Takes about 100 bytes and the name of each directory.

use std::ffi::CStr;
use std::path::Path;

use fathom_walk::{Errno, FileType, Meta, Names};
use parquet::errors::ParquetError;

use fathom_inventory::normal::{components, is_absolute};
use fathom_inventory::store::{EntriesByDir, Error, Inventory, Op, RowGroup, Table, micros};

/// The greatest granularity of a filesystem's times and the greatest offset of its clock that are
/// allowed for, in microseconds.
const CLOCK_SLACK_MICROS: i64 = 2_000_000;
/// Directories with more subdirectories are read again: the subdirectories of an unchanged one are
/// passed to the walk at once.
const SUBDIRS_MAX: usize = 1 << 20;
/// The longest name of a directory entry, in bytes.
const NAME_MAX: usize = 255;

/// A directory of the earlier inventory.
#[derive(Clone, Copy, Debug)]
struct EarlierDir {
    /// The number of the parent, counted from 1 in the order of the inventory and of
    /// [`EarlierDirs::dirs`]; 0 for a root.
    parent: u32,
    name: (usize, u16),
    dev: u64,
    ino: u64,
    /// Modification and change, in microseconds since 1970, each with the nanoseconds beyond.
    times: [(i64, i64); 2],
    scanned: i64,
    /// Whether all of its entries are known.
    complete: bool,
}

/// The directories of an earlier inventory.
#[derive(Debug)]
pub(crate) struct EarlierDirs {
    dirs: Vec<EarlierDir>,
    text: Vec<u8>,
    /// All directories but roots, sorted by parent and name.
    children: Vec<u32>,
    roots: Vec<u32>,
    /// The beginning of the earlier scan, in microseconds since 1970.
    begin: i64,
}

impl EarlierDirs {
    /// Reads the directories of the inventory at `path`.
    pub(super) fn read(path: &Path) -> Result<(Self, EntriesByDir), Error> {
        let inventory = Inventory::open(path)?;
        let failed = |why: &str| Error::new(Op::Read, path, why);
        let mut collected = EarlierDirsBuilder::default();
        inventory.each(Table::Dirs, |group| collected.take(group))?;
        let EarlierDirsBuilder { mut dirs, text } = collected;
        dirs.sort_unstable_by_key(|(id, _)| *id);
        if dirs.iter().zip(1..).any(|((id, _), place)| *id != place) || u32::try_from(dirs.len()).is_err() {
            return Err(failed("its directories are not numbered as they should be"));
        }
        if dirs.iter().any(|(id, dir)| i64::from(dir.parent) >= *id) {
            return Err(failed("its directories are not in one another as they should be"));
        }
        let (by_dir, unknown) = EntriesByDir::read(&inventory)?;
        let complete = |(id, dir): (i64, EarlierDir)| EarlierDir {
            complete: dir.complete && !unknown.contains(&id),
            ..dir
        };
        let dirs = dirs.into_iter().map(complete).collect();
        let begin = inventory.manifest().start.saturating_mul(1_000_000);
        Ok((Self::new(dirs, text, begin), by_dir))
    }

    fn new(dirs: Vec<EarlierDir>, text: Vec<u8>, begin: i64) -> Self {
        let (roots, children) = (1..=dirs.len() as u32).partition(|id| dirs[*id as usize - 1].parent == 0);
        let mut earlier = Self { dirs, text, children, roots, begin };
        let mut children = std::mem::take(&mut earlier.children);
        children.sort_unstable_by_key(|id| (earlier.dir(*id).parent, earlier.name(*id)));
        Self { children, ..earlier }
    }

    fn dir(&self, id: u32) -> &EarlierDir {
        &self.dirs[id as usize - 1]
    }

    fn name(&self, id: u32) -> &[u8] {
        let (start, length) = self.dir(id).name;
        &self.text[start..start + usize::from(length)]
    }

    fn children(&self, parent: u32) -> &[u32] {
        let start = self.children.partition_point(|id| self.dir(*id).parent < parent);
        let end = self.children.partition_point(|id| self.dir(*id).parent <= parent);
        &self.children[start..end]
    }

    /// Returns the directory of this name in `parent`.
    pub(super) fn child(&self, parent: u32, name: &[u8]) -> Option<u32> {
        let children = self.children(parent);
        let at = children.binary_search_by(|id| self.name(*id).cmp(name)).ok()?;
        Some(children[at])
    }

    /// Returns the directory that had this path.
    pub(super) fn find(&self, path: &[u8]) -> Option<u32> {
        self.roots.iter().find_map(|root| {
            let (mut names, name) = (components(path), self.name(*root));
            let is_below = is_absolute(name) == is_absolute(path)
                && components(name).all(|above| names.next() == Some(above));
            if is_below { names.try_fold(*root, |dir, name| self.child(dir, name)) } else { None }
        })
    }

    /// Returns the first directory with this device and inode number, for a root whose path has
    /// changed.
    pub(super) fn find_inode(&self, id: (u64, u64)) -> Option<u32> {
        let place = self.dirs.iter().position(|dir| (dir.dev, dir.ino) == id)?;
        u32::try_from(place + 1).ok()
    }

    /// Returns whether a directory still has the entries that the earlier inventory has, given its
    /// present metadata.
    pub(super) fn is_unchanged(&self, id: u32, now: &Meta) -> bool {
        let then = self.dir(id);
        let times = [now.mtime, now.ctime].map(micros).map(|(micros, nanos)| (micros, i64::from(nanos)));
        let over = |(time, _): &(i64, i64)| *time < self.begin.saturating_sub(CLOCK_SLACK_MICROS);
        then.complete
            && then.ino == now.ino
            && then.times == times
            && times.iter().all(over)
            && self.children(id).len() <= SUBDIRS_MAX
    }

    /// Appends the subdirectories of a directory to `names`, in the order in which they were read.
    ///
    /// # Errors
    /// As [`Names::push`]: the inventory has names that no directory can have.
    pub(super) fn subdirs(&self, id: u32, names: &mut Names) -> Result<(), Errno> {
        let mut children = self.children(id).to_vec();
        children.sort_unstable();
        let mut name = Vec::with_capacity(NAME_MAX + 1);
        for child in children {
            name.clear();
            name.extend_from_slice(self.name(child));
            name.push(0);
            if let Ok(name) = CStr::from_bytes_with_nul(&name) {
                names.push(name, self.dir(child).ino, FileType::Directory)?;
            }
        }
        Ok(())
    }

    /// Returns the time at which the directory was read, in microseconds since 1970.
    pub(super) fn scanned(&self, id: u32) -> i64 {
        self.dir(id).scanned
    }

    /// Returns the device number of a directory.
    pub(super) fn dev(&self, id: u32) -> u64 {
        self.dir(id).dev
    }
}

/// The directories read so far.
#[derive(Default)]
struct EarlierDirsBuilder {
    dirs: Vec<(i64, EarlierDir)>,
    text: Vec<u8>,
}

impl EarlierDirsBuilder {
    fn take(&mut self, group: &RowGroup<'_>) -> Result<(), ParquetError> {
        let number = |name| group.numbers(name);
        let [ids, parents, scanned] = [number("dir_id")?, number("parent_id")?, number("scanned")?];
        let [dev, ino, mtime, ctime] = [number("dev")?, number("ino")?, number("mtime")?, number("ctime")?];
        let nanos = [number("mtime_ns")?, number("ctime_ns")?];
        let (names, raw, state) = (group.texts("name")?, group.texts("name_raw")?, group.texts("state")?);
        for row in 0..group.rows() {
            let get = |column: &fathom_inventory::store::NumberColumn| column.or_zero()[row];
            let name = raw.get(row).or(names.get(row)).unwrap_or_default();
            let parent = u32::try_from(get(&parents)).ok().filter(|parent| is_name(name, *parent == 0));
            let parent =
                parent.ok_or_else(|| ParquetError::General("a directory has no such name".to_owned()))?;
            let start = self.text.len();
            self.text.extend_from_slice(name);
            let dir = EarlierDir {
                parent,
                name: (start, name.len() as u16),
                dev: get(&dev).cast_unsigned(),
                ino: get(&ino).cast_unsigned(),
                times: [(get(&mtime), get(&nanos[0])), (get(&ctime), get(&nanos[1]))],
                scanned: get(&scanned),
                complete: state.get(row) == Some(b"complete") && dev.get(row).is_some(),
            };
            self.dirs.push((get(&ids), dir));
        }
        Ok(())
    }
}

/// Returns whether a directory can have this name. The name of a root may be a path; any other has
/// to be a single component.
fn is_name(name: &[u8], is_root: bool) -> bool {
    let plain = name.len() <= NAME_MAX && !name.contains(&b'/') && name != b"." && name != b"..";
    !name.is_empty() && !name.contains(&0) && name.len() <= usize::from(u16::MAX) && (plain || is_root)
}

#[cfg(test)]
mod tests {
    use fathom_walk::FileTime;

    use super::*;

    /// Returns a tree of `r`, `r/a`, `r/a/a` and `r/b`.
    fn earlier() -> EarlierDirs {
        let dir = |parent, start: usize, length| EarlierDir {
            parent,
            name: (start, length),
            dev: 1,
            ino: 10 + start as u64,
            times: [(5_000_000, 7), (6_000_000, 8)],
            scanned: 9_000_000,
            complete: true,
        };
        let dirs = vec![dir(0, 0, 1), dir(1, 1, 1), dir(2, 1, 1), dir(1, 2, 1)];
        EarlierDirs::new(dirs, b"rab".to_vec(), 9_000_000)
    }

    #[test]
    fn directories_are_found_by_name_and_path() {
        let earlier = earlier();
        assert_eq!(
            [earlier.find(b"r"), earlier.find(b"r/a/a"), earlier.find(b"r/b/")],
            [Some(1), Some(3), Some(4)]
        );
        assert_eq!(
            [earlier.find(b"./r/./"), earlier.find(b"r//b"), earlier.find(b"/r")],
            [Some(1), Some(4), None]
        );
        assert_eq!([earlier.find_inode((1, 11)), earlier.find_inode((2, 11))], [Some(2), None]);
        assert_eq!(
            [earlier.find(b"ra"), earlier.find(b"r/c"), earlier.find(b"b"), earlier.find(b"")],
            [None; 4]
        );
        assert_eq!(
            [earlier.child(1, b"b"), earlier.child(2, b"b"), earlier.child(4, b"a")],
            [Some(4), None, None]
        );
        let mut names = Names::new();
        earlier.subdirs(1, &mut names).unwrap();
        let names: Vec<_> = names.iter().map(|name| (name.name.to_bytes().to_vec(), name.ino)).collect();
        assert_eq!(names, [(b"a".to_vec(), 11), (b"b".to_vec(), 12)]);
    }

    #[test]
    fn any_other_time_or_inode_is_a_change_and_so_is_a_time_that_was_not_over() {
        let earlier = earlier();
        let stamp = |sec, nsec| FileTime { sec, nsec };
        let same = Meta { ino: 10, mtime: stamp(5, 7), ctime: stamp(6, 8), ..Meta::default() };
        assert!(earlier.is_unchanged(1, &same));
        assert!(!earlier.is_unchanged(2, &same), "another inode");
        assert!(!earlier.is_unchanged(1, &Meta { mtime: stamp(5, 8), ..same }));
        assert!(!earlier.is_unchanged(1, &Meta { ctime: stamp(7, 8), ..same }));
        let begun = |begin| EarlierDirs { begin, ..self::earlier() }.is_unchanged(1, &same);
        assert_eq!([begun(8_000_001), begun(8_000_000)], [true, false]);
        let mut partial = self::earlier();
        partial.dirs[0].complete = false;
        assert!(!partial.is_unchanged(1, &same));
    }

    #[test]
    fn names_are_single_components() {
        assert!(is_name(b"a", false) && is_name(b"/a/../b", true) && is_name(b"..", true));
        for name in [&b""[..], b".", b"..", b"a/b", b"a\0b", &[b'x'; 256]] {
            assert!(!is_name(name, false), "{name:?}");
        }
    }
}
