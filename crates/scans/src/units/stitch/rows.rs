//! Reads a table of many units. Each is read from its first row to its last, but the final pass
//! goes to and fro between them: a few decoded row groups are kept.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::errors::Result as Parquet;

use fathom_inventory::store::{
    CopySource, DirColumns, EntryColumns, Error, GROUP_ROWS, Inventory, LinkRow, NumberColumn, Op, RowGroup,
    Table,
};

/// Most decoded row groups.
const GROUPS_MAX: usize = 4;

/// Fewest rows of a row group that is copied. It begins a row group of the new table, so small ones
/// would make many of those. Tests have small trees.
const COPIED_ROWS_MIN: u64 = if cfg!(test) { 1 } else { GROUP_ROWS as u64 / 4 };

/// The columns of a row group of a table.
pub(super) trait Decoded: Sized {
    const TABLE: Table;

    fn decode(group: &RowGroup<'_>) -> Parquet<Self>;
}

/// A row group of `entries`.
pub(super) struct EntriesGroup {
    pub(super) ids: NumberColumn,
    pub(super) devs: NumberColumn,
    pub(super) rows: EntryColumns,
}

impl Decoded for EntriesGroup {
    const TABLE: Table = Table::Entries;

    fn decode(group: &RowGroup<'_>) -> Parquet<Self> {
        let (ids, devs) = (group.numbers("dir_id")?, group.numbers("dev")?);
        Ok(Self { ids, devs, rows: EntryColumns::read(group)? })
    }
}

/// The numbers of a row group of `entries` that is copied.
pub(super) struct GroupHead {
    pub(super) ids: NumberColumn,
    /// The owners and groups of its rows. Consecutive ones differ.
    pub(super) owners: Vec<(u32, u32)>,
    /// The rows whose inodes have several names, each with its index.
    pub(super) links: Vec<(usize, LinkRow)>,
}

impl GroupHead {
    fn decode(group: &RowGroup<'_>, source: &CopySource, index: usize) -> Parquet<Self> {
        let ids = group.numbers("dir_id")?;
        let owners = owners(group, source, index)?;
        // The statistics of most row groups say that no file has a second name.
        let has_links = source.constant(index, "nlink") != Some(1);
        let links = if has_links { links(group, &ids)? } else { Vec::new() };
        Ok(Self { ids, owners, links })
    }
}

fn owners(group: &RowGroup<'_>, source: &CopySource, index: usize) -> Parquet<Vec<(u32, u32)>> {
    if let (Some(uid), Some(gid)) = (source.constant(index, "uid"), source.constant(index, "gid")) {
        return Ok(vec![(uid as u32, gid as u32)]);
    }
    let (uids, gids) = (group.numbers("uid")?, group.numbers("gid")?);
    let pairs = (0..group.rows()).filter_map(|row| Some((uids.get(row)? as u32, gids.get(row)? as u32)));
    let mut owners: Vec<_> = pairs.collect();
    owners.dedup();
    Ok(owners)
}

fn links(group: &RowGroup<'_>, ids: &NumberColumn) -> Parquet<Vec<(usize, LinkRow)>> {
    let nlinks = group.numbers("nlink")?;
    let linked: Vec<_> = (0..).zip(nlinks.or_zero()).filter(|(_, nlink)| **nlink > 1).collect();
    if linked.is_empty() {
        return Ok(Vec::new());
    }
    let (devs, inos, sizes) = (group.numbers("dev")?, group.numbers("ino")?, group.numbers("size")?);
    let [ids, devs, inos, sizes] = [ids, &devs, &inos, &sizes].map(NumberColumn::or_zero);
    let (blocks, mtimes) = (group.numbers("blocks")?, group.numbers("mtime")?);
    let row = |(row, nlink): (usize, &i64)| {
        let (dir_id, dev, ino, size) = (ids[row], devs[row], inos[row], sizes[row]);
        let (blocks, mtime) = (blocks.or_zero()[row], mtimes.or_zero()[row]);
        (row, LinkRow { dir_id, dev, ino, size, blocks, nlink: *nlink as u32, mtime })
    };
    Ok(linked.into_iter().map(row).collect())
}

impl Decoded for DirColumns {
    const TABLE: Table = Table::Dirs;

    fn decode(group: &RowGroup<'_>) -> Parquet<Self> {
        Self::read(group)
    }
}

/// The row groups of a table of a unit.
struct OpenTable {
    inventory: Inventory,
    /// The first row of each row group, with its file and its index there.
    groups: Vec<(u64, usize, usize)>,
    rows: u64,
    /// The file from which a row group was copied last, with its index.
    source: Option<(usize, Option<Arc<CopySource>>)>,
}

/// The tables of all units that are being read.
pub(super) struct Tables<D> {
    open: HashMap<usize, OpenTable>,
    /// The decoded row groups, by unit and index, the most recently used one first.
    decoded: Vec<((usize, usize), D)>,
}

impl<D: Decoded> Tables<D> {
    pub(super) fn new() -> Self {
        Self { open: HashMap::new(), decoded: Vec::new() }
    }

    /// Closes the table of a unit that is done.
    pub(super) fn close(&mut self, unit: usize) {
        self.open.remove(&unit);
        self.decoded.retain(|((of, _), _)| *of != unit);
    }

    /// Returns the table of a unit, which it opens if necessary.
    fn table(&mut self, unit: usize, directory: &Path) -> Result<&mut OpenTable, Error> {
        Ok(match self.open.entry(unit) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(free) => free.insert(OpenTable::open(directory, D::TABLE)?),
        })
    }

    /// Returns the row group that has the first row of `range`, and the rows of `range` that are in
    /// it, counted from its first one; `None` if the table has no such row.
    pub(super) fn group(
        &mut self,
        unit: usize,
        directory: &Path,
        range: &Range<u64>,
    ) -> Result<Option<(&D, Range<usize>)>, Error> {
        self.table(unit, directory)?;
        let Some(table) = self.open.get(&unit) else { return Ok(None) };
        let after = table.groups.partition_point(|(first, ..)| *first <= range.start);
        if after == 0 || range.start >= table.rows || range.is_empty() {
            return Ok(None);
        }
        let (first, file, group) = table.groups[after - 1];
        let end = table.groups.get(after).map_or(table.rows, |(first, ..)| *first).min(range.end);
        let rows = (range.start - first) as usize..(end - first) as usize;
        let key = (unit, after - 1);
        match self.decoded.iter().position(|(known, _)| *known == key) {
            Some(at) => self.decoded[..=at].rotate_right(1),
            None => {
                let mut columns = None;
                table.inventory.group(D::TABLE, file, group, |group| {
                    columns = Some(D::decode(group)?);
                    Ok(())
                })?;
                let missing = || Error::new(Op::Read, directory, "it has fewer row groups");
                self.decoded.truncate(GROUPS_MAX - 1);
                self.decoded.insert(0, (key, columns.ok_or_else(missing)?));
            }
        }
        Ok(self.decoded.first().map(|(_, columns)| (columns, rows)))
    }
}

impl Tables<EntriesGroup> {
    /// Returns the row group that begins with the first row of `range`, to be copied as it is:
    /// `None` unless all of it is in the range, it is large enough, and `fits` accepts the devices,
    /// before which no other column is decoded.
    pub(super) fn whole(
        &mut self,
        unit: usize,
        directory: &Path,
        range: &Range<u64>,
        fits: &mut dyn FnMut(Vec<u64>) -> bool,
    ) -> Result<Option<(GroupHead, Arc<CopySource>, usize)>, Error> {
        let table = self.table(unit, directory)?;
        let Ok(at) = table.groups.binary_search_by_key(&range.start, |(first, ..)| *first) else {
            return Ok(None);
        };
        let (first, file, index) = table.groups[at];
        let end = table.groups.get(at + 1).map_or(table.rows, |(first, ..)| *first);
        if end > range.end || end - first < COPIED_ROWS_MIN {
            return Ok(None);
        }
        let Some(source) = table.source(file)? else { return Ok(None) };
        let mut head = None;
        table.inventory.group(Table::Entries, file, index, |group| {
            let devs = match source.constant(index, "dev") {
                Some(dev) => vec![dev.cast_unsigned()],
                None => distinct(&group.numbers("dev")?, 0..group.rows()),
            };
            if fits(devs) {
                head = Some(GroupHead::decode(group, &source, index)?);
            }
            Ok(())
        })?;
        Ok(head.map(|head| (head, source, index)))
    }
}

/// Returns the different numbers of some rows of a column, in their order.
pub(super) fn distinct(column: &NumberColumn, rows: Range<usize>) -> Vec<u64> {
    let mut numbers: Vec<u64> = rows.filter_map(|row| column.get(row)).map(i64::cast_unsigned).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl OpenTable {
    fn open(directory: &Path, table: Table) -> Result<Self, Error> {
        let inventory = Inventory::open(directory)?;
        let (mut groups, mut rows) = (Vec::new(), 0);
        for (file, counts) in inventory.group_rows(table)?.into_iter().enumerate() {
            for (group, count) in counts.into_iter().enumerate() {
                groups.push((rows, file, group));
                rows += count;
            }
        }
        Ok(Self { inventory, groups, rows, source: None })
    }

    /// Returns the file at an index, if row groups of it can be copied.
    fn source(&mut self, file: usize) -> Result<Option<Arc<CopySource>>, Error> {
        if let Some((known, source)) = &self.source
            && *known == file
        {
            return Ok(source.clone());
        }
        let path = self.inventory.path_of(Table::Entries, file)?;
        let source = CopySource::open(&path).map_err(|error| Error::new(Op::Read, &path, error))?;
        let source = source.map(Arc::new);
        self.source = Some((file, source.clone()));
        Ok(source)
    }
}
