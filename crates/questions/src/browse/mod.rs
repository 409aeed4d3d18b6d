//! Reads the directories of an inventory one by one: only the row groups with rows of the requested
//! directory are decoded. Opening does not read the entries. It reads the names of inodes with
//! several names, which take memory; if the inventory has gaps, the state of each directory as
//! well. The first list of entries reads one column of all entries, to find their row groups.
//!
//! The rows of `dirs` are in the order in which the walk left the directories, so the rows of a
//! subtree are consecutive, and the row of its top is the last. Directories are numbered in the
//! order in which the walk entered them, without gaps. So the subdirectories are found from the
//! last one backwards: the span of numbers of each says how many rows its subtree has.

mod entries;
mod sums;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_walk::{FileType, Meta};
use parquet::errors::Result;

use self::entries::EntryGroups;
use self::sums::SumCorrections;
use crate::top::UsageSum;
use fathom_inventory::normal::is_same;
use fathom_inventory::store::{
    DirState, Error, Inventory, MetaColumns, NumberColumn, Op, PathColumns, RowGroup, Span, Table, TableFile,
    TextColumn, damaged,
};

/// The place of a directory in an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BrowseKey {
    row: u64,
    first: i64,
    last: i64,
}

impl BrowseKey {
    /// Returns the directory and everything below it.
    #[must_use]
    pub fn span(self) -> Span {
        Span { first: self.first, last: self.last }
    }

    /// Returns the numbers of the directory and of the last one below it; those between are below
    /// it as well.
    #[must_use]
    pub fn numbers(self) -> (i64, i64) {
        (self.first, self.last)
    }
}

/// A directory that was found.
#[derive(Clone, Debug)]
pub struct BrowsedDir {
    /// The place of the directory, for further calls.
    pub key: BrowseKey,
    /// The index of its root in the manifest.
    pub root: usize,
    /// The name in its parent; of a root, the path as given.
    pub name: Vec<u8>,
    /// The metadata, if it is known.
    pub meta: Option<Meta>,
    /// The state of the directory itself.
    pub state: DirState,
    /// Whether a directory at or below it could not be read, or only in part.
    pub has_gap: bool,
    /// The sum of everything at and below it: of the sizes of an inode with several names once, but
    /// each name is an entry. Zero for a directory that was skipped.
    pub sum: UsageSum,
    /// The allocated bytes below it of inodes that have names elsewhere as well.
    pub shared: u64,
    /// The newest modification of it or of anything below it, in seconds since 1970.
    pub newest_mtime_s: Option<i64>,
}

/// An entry that is not a directory.
#[derive(Clone, Copy, Debug)]
pub struct BrowsedEntry<'a> {
    /// The name; of a root, the path as given.
    pub name: &'a [u8],
    /// The type.
    pub file_type: FileType,
    /// The metadata, if it is known.
    pub meta: Option<&'a Meta>,
}

/// A row group of a table.
#[derive(Clone, Copy, Debug)]
struct GroupPlace {
    /// The index of its file in the manifest.
    file: usize,
    group: usize,
    /// The number of rows in the groups before.
    first_row: u64,
    rows: u64,
}

/// Reads an inventory directory by directory.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::atomic::AtomicBool;
/// use fathom_questions::browse::Browser;
/// use fathom_inventory::store::Inventory;
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let mut browser = Browser::new(Inventory::open(&out)?)?;
/// let root = browser.roots()?.remove(0);
/// let go_on = AtomicBool::new(false);
/// let (mut dirs, mut files) = (Vec::new(), Vec::new());
/// browser.dirs(root.key, &go_on, &mut |dir| {
///     dirs.push(dir.name);
///     ControlFlow::Continue(())
/// })?;
/// browser.entries(root.key, &go_on, &mut |entry| files.push(entry.name.to_vec()))?;
/// assert!(dirs.contains(&b"diff".to_vec()) && files.contains(&b"lib.rs".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Browser {
    inventory: Inventory,
    dirs: Vec<GroupPlace>,
    corrections: SumCorrections,
    /// The row groups of `entries`, once they have been needed.
    entries: EntryGroups,
    /// The file that was read last, by its index in the manifest.
    open: Option<(usize, TableFile)>,
}

impl std::fmt::Debug for Browser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Browser").field("inventory", &self.inventory).finish_non_exhaustive()
    }
}

impl Browser {
    /// Reads the names of hard links, and if the inventory is incomplete, the states of
    /// directories.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn new(inventory: Inventory) -> std::result::Result<Self, Error> {
        let corrections = SumCorrections::read(&inventory)?;
        let mut browser =
            Self { inventory, dirs: Vec::new(), corrections, entries: EntryGroups::default(), open: None };
        browser.dirs = browser.groups(Table::Dirs)?;
        Ok(browser)
    }

    /// Returns the inventory.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Returns the index in the manifest of the root at `path`.
    #[must_use]
    pub fn root_at(&self, path: &[u8]) -> Option<usize> {
        self.inventory.manifest().roots.iter().position(|root| is_same(&root.bytes(), path))
    }

    /// Returns the roots that are directories.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn roots(&mut self) -> std::result::Result<Vec<BrowsedDir>, Error> {
        let rows = self.dir_rows();
        let all = BrowseKey { row: rows, first: 0, last: rows.cast_signed() };
        let mut roots = Vec::new();
        self.dirs(all, &AtomicBool::new(false), &mut |dir| {
            roots.push(dir);
            ControlFlow::Continue(())
        })?;
        roots.reverse();
        Ok(roots)
    }

    /// Returns the sum of all roots that are directories, with an inode that has names below
    /// several of them once.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn total(&mut self) -> std::result::Result<UsageSum, Error> {
        let mut total = UsageSum::default();
        self.roots()?.iter().for_each(|root| total.add(&root.sum));
        Ok(total.minus(&self.corrections.between_roots()))
    }

    /// Returns the directory with this key.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn dir(&mut self, key: BrowseKey) -> std::result::Result<BrowsedDir, Error> {
        let mut found = None;
        let around = BrowseKey { row: key.row + 1, first: key.first - 1, last: key.last };
        self.dirs(around, &AtomicBool::new(false), &mut |dir| {
            found = Some(dir);
            ControlFlow::Break(())
        })?;
        found.ok_or_else(|| self.inventory.refused("its directories are out of order"))
    }

    /// Returns the sum of a directory with the size of an inode for each of its names.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn sum_of_names(&mut self, key: BrowseKey) -> std::result::Result<UsageSum, Error> {
        let mut sum = self.dir(key)?.sum;
        sum.add(&self.corrections.of_links(key.span()));
        Ok(sum)
    }

    /// Leaves names of inodes with several names out of what is counted once. `keeps` gets the
    /// number of the directory of each name, and the device and number of the inode. Sums of names
    /// stay as they are. The names are read again, if there are any.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn retain_links(
        &mut self,
        keeps: &mut dyn FnMut(i64, (u64, u64)) -> bool,
    ) -> std::result::Result<(), Error> {
        self.corrections.retain_links(&self.inventory, keeps)
    }

    /// Calls `with` for each subdirectory of a directory, the last one first, until it breaks.
    /// Returns false if `cancelled` was set before.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn dirs(
        &mut self,
        of: BrowseKey,
        cancelled: &AtomicBool,
        with: &mut dyn FnMut(BrowsedDir) -> ControlFlow<()>,
    ) -> std::result::Result<bool, Error> {
        let subdirs = of.last.saturating_sub(of.first).cast_unsigned();
        let low = of.row.checked_sub(subdirs).filter(|_| of.row <= self.dir_rows());
        let low = low.ok_or_else(|| self.inventory.refused("its directories are out of order"))?;
        // The rows before `end`, with numbers up to `last`, have not been looked at.
        let (mut end, mut last) = (of.row, of.last);
        while end > low {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let at = self.dirs.partition_point(|group| group.first_row < end) - 1;
            let place = self.dirs[at];
            let corrections = std::mem::take(&mut self.corrections);
            let read = self.with_group(Table::Dirs, place, |group| {
                let columns = BrowseColumns::read(group)?;
                while end > low.max(place.first_row) {
                    let row = (end - 1 - place.first_row) as usize;
                    let (first, post) = (columns.pre.or_zero()[row], columns.post.or_zero()[row]);
                    let key = key((first, post), (end - 1, last), (low, of.first))?;
                    if with(columns.dir(row, key, &corrections)?).is_break() {
                        end = low;
                        break;
                    }
                    end -= (key.last - key.first).cast_unsigned() + 1;
                    last = key.first - 1;
                }
                Ok(())
            });
            self.corrections = corrections;
            read?;
        }
        Ok(true)
    }

    /// Calls `with` for each entry of a directory that is not a directory. Returns false if
    /// `cancelled` was set before. The first call reads a column of all entries; one that was
    /// cancelled is continued by the next.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn entries(
        &mut self,
        of: BrowseKey,
        cancelled: &AtomicBool,
        with: &mut dyn FnMut(BrowsedEntry<'_>),
    ) -> std::result::Result<bool, Error> {
        self.entries_of(of.first, cancelled, with)
    }

    /// Calls `with` for each root that is not a directory.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn root_entries(&mut self, with: &mut dyn FnMut(BrowsedEntry<'_>)) -> std::result::Result<(), Error> {
        self.entries_of(0, &AtomicBool::new(false), with).map(|_| ())
    }

    /// Returns the paths of the directories with these numbers, as the inventory records them, each
    /// with the index of its root.
    ///
    /// # Errors
    /// If the inventory is damaged.
    pub fn paths(&self, ids: &HashSet<i64>) -> std::result::Result<HashMap<i64, (usize, Vec<u8>)>, Error> {
        let mut found = HashMap::new();
        let mut long = Vec::new();
        self.inventory.each(Table::Dirs, |group| {
            let dir_ids = group.numbers("dir_id")?;
            if !dir_ids.or_zero().iter().any(|id| ids.contains(id)) {
                return Ok(());
            }
            let (paths, roots) = (PathColumns::read(group)?, group.numbers("root")?);
            for (row, id) in dir_ids.or_zero().iter().enumerate().filter(|(_, id)| ids.contains(id)) {
                let root = usize::try_from(roots.or_zero()[row]).unwrap_or(usize::MAX);
                match paths.get(row) {
                    Some(path) => drop(found.insert(*id, (root, path.to_vec()))),
                    None => long.push((*id, root)),
                }
            }
            Ok(())
        })?;
        for (id, root) in long {
            found.insert(id, (root, self.inventory.long_path(id)?));
        }
        Ok(found)
    }

    /// Returns the number of directories.
    fn dir_rows(&self) -> u64 {
        self.dirs.last().map_or(0, |group| group.first_row + group.rows)
    }

    /// Returns the row groups of a table.
    fn groups(&mut self, table: Table) -> std::result::Result<Vec<GroupPlace>, Error> {
        let (mut groups, mut first_row) = (Vec::new(), 0);
        let files: Vec<usize> = self.inventory.files_of(table).collect();
        for (file, rows) in files.into_iter().zip(self.inventory.group_rows(table)?) {
            for (group, rows) in rows.into_iter().enumerate().filter(|(_, rows)| *rows > 0) {
                groups.push(GroupPlace { file, group, first_row, rows });
                first_row += rows;
            }
        }
        Ok(groups)
    }

    /// Calls `with` for a row group.
    fn with_group<T>(
        &mut self,
        table: Table,
        place: GroupPlace,
        with: impl FnOnce(&RowGroup<'_>) -> Result<T>,
    ) -> std::result::Result<T, Error> {
        let read = || {
            if self.open.as_ref().is_none_or(|(file, _)| *file != place.file) {
                self.open = Some((place.file, self.inventory.open_file(place.file, table)?));
            }
            let (_, part) = self.open.as_ref().ok_or_else(|| damaged("no such file"))?;
            with(&part.group(place.group)?)
        };
        read().map_err(|error| Error::new(Op::Read, &self.inventory.file_path(place.file), error))
    }
}

/// The columns of a row group of `dirs`.
struct BrowseColumns {
    pre: NumberColumn,
    post: NumberColumn,
    root: NumberColumn,
    names: [TextColumn; 2],
    states: TextColumn,
    metas: MetaColumns,
    /// Files, directories, others, bytes and blocks below each directory.
    below: [NumberColumn; 5],
    newest: NumberColumn,
}

impl BrowseColumns {
    fn read(group: &RowGroup<'_>) -> Result<Self> {
        let number = |name| group.numbers(name);
        let mut metas = MetaColumns::default();
        metas.load(group, is_shown)?;
        Ok(Self {
            pre: number("pre")?,
            post: number("post")?,
            root: number("root")?,
            names: [group.texts("name")?, group.texts("name_raw")?],
            states: group.texts("state")?,
            metas,
            below: [
                number("t_files")?,
                number("t_dirs")?,
                number("t_other")?,
                number("t_size")?,
                number("t_blocks")?,
            ],
            newest: number("t_max_mtime")?,
        })
    }

    fn dir(&self, row: usize, key: BrowseKey, corrections: &SumCorrections) -> Result<BrowsedDir> {
        let state = self.states.get(row).and_then(DirState::from_word);
        let state = state.ok_or_else(|| damaged("a directory has an impossible state"))?;
        let meta = self.metas.get(row);
        let [files, dirs, others, size, blocks] = self.below.each_ref().map(|column| column.or_zero()[row]);
        let entries = files.saturating_add(dirs).saturating_add(others).saturating_add(1);
        let sum = UsageSum::new(entries, blocks, size).minus(&corrections.within(key.span()));
        let below = self.newest.get(row).map(|micros| micros.div_euclid(1_000_000));
        Ok(BrowsedDir {
            key,
            root: usize::try_from(self.root.or_zero()[row])
                .map_err(|_| damaged("a directory has an invalid root"))?,
            name: self.names[1].get(row).or(self.names[0].get(row)).unwrap_or_default().to_vec(),
            meta,
            state,
            has_gap: corrections.has_gap(key.span()),
            shared: corrections.shared(key.span()),
            sum: if state == DirState::Skipped { UsageSum::default() } else { sum },
            newest_mtime_s: below.max(meta.map(|meta| meta.mtime.sec)),
        })
    }
}

/// Returns the place of a directory with this span of numbers, after checking that its row and the
/// end of the span equal `at`, and that its subtree has only rows from the row in `low` on, and
/// numbers above the number in `low`.
fn key((first, post): (i64, i64), at: (u64, i64), low: (u64, i64)) -> Result<BrowseKey> {
    let (row, last) = at;
    let below = post.checked_sub(first).and_then(|below| u64::try_from(below).ok());
    let is_within = below.is_some_and(|below| below <= row - low.0) && first > low.1 && post == last;
    if !is_within {
        return Err(damaged("its directories are out of order"));
    }
    Ok(BrowseKey { row, first, last })
}

/// Returns whether rows of directories and entries need a column of metadata.
fn is_shown(column: &str) -> bool {
    let times = ["mtime", "ctime", "ctime_ns"];
    let numbers = ["dev", "ino", "mode", "uid", "gid", "nlink", "size", "blocks"];
    times.contains(&column) || numbers.contains(&column)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn any_spans_are_subdirectories_in_order_or_an_error(
            spans in prop::collection::vec((0i64..8, prop_oneof![0i64..8, any::<i64>()]), 1..8),
        ) {
            let (mut end, mut last) = (spans.len() as u64, spans.len() as i64);
            while end > 0 {
                let Ok(key) = key(spans[end as usize - 1], (end - 1, last), (0, 0)) else { break };
                prop_assert!((1..=last).contains(&key.first) && key.last == last && key.row == end - 1);
                end -= (key.last - key.first) as u64 + 1;
                last = key.first - 1;
                prop_assert_eq!(end as i64, last);
            }
        }
    }

    #[test]
    fn subtrees_outside_their_parent_are_refused() {
        assert!(key((2, 3), (4, 3), (3, 1)).is_ok());
        for (span, at, low) in [
            ((2, 4), (4, 3), (3, 1)),
            ((1, 3), (4, 3), (0, 1)),
            ((3, 2), (4, 2), (0, 1)),
            ((2, 5), (4, 5), (2, 1)),
            ((i64::MIN, i64::MAX), (4, i64::MAX), (0, 0)),
        ] {
            assert!(key(span, at, low).is_err(), "{span:?}");
        }
    }
}
