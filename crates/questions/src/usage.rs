//! The disk usage of directories as du counts it, computed from the rows of `dirs` alone. Each
//! inode counts once in the requested part, where the walk found it first.
//!
//! Owns the meaning of a path in an inventory. Does not own output lines, units, or exclusions.

use std::collections::{HashMap, HashSet};

use fathom_walk::{Errno, Meta};
use parquet::errors::ParquetError;

use crate::top::{QueryError, UsageSum, below};
use fathom_inventory::normal::is_same;
use fathom_inventory::store::{
    DirState, Error, Inventory, MetaColumns, NumberColumn, PathColumns, RowGroup, Span, TIME_OPERATION,
    Table, errno_of,
};

/// The part of an inventory that a path refers to. The set is closed.
#[derive(Clone, Debug)]
pub enum UsageTarget {
    /// A directory, with everything below it.
    Directory(UsageRoot),
    /// An entry that is not a directory.
    File(Meta),
}

/// A directory at which a query begins.
#[derive(Clone, Debug)]
pub struct UsageRoot {
    /// The directory and everything below it.
    pub span: Span,
    /// The path of the directory in the inventory.
    pub path: Vec<u8>,
    depth: i64,
}

/// Finds `path`, which is as the inventory records it, or relative to a root.
///
/// # Errors
/// If the inventory has no such path, or is damaged.
///
/// ```
/// use fathom_inventory::store::Inventory;
/// use fathom_questions::usage::{UsageTarget, directories, find};
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let inventory = Inventory::open(&out)?;
/// let UsageTarget::Directory(top) = find(&inventory, b"src")? else { unreachable!() };
/// let mut sums = Vec::new();
/// directories(&inventory, &top, Some(0), true, |dir| {
///     sums.push((dir.path.clone(), dir.all.entries));
/// })?;
/// assert_eq!(sums, [(b"src".to_vec(), inventory.manifest().entries)]);
/// assert!(matches!(find(&inventory, b"src/lib.rs")?, UsageTarget::File(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn find(inventory: &Inventory, path: &[u8]) -> Result<UsageTarget, QueryError> {
    let absent = match below::find(inventory, path) {
        Ok(span) => return Ok(UsageTarget::Directory(top(inventory, span)?)),
        Err(QueryError::Absent) => QueryError::Absent,
        Err(other) => return Err(other),
    };
    if let Some(meta) = entry(inventory, 0, path)? {
        return Ok(UsageTarget::File(meta));
    }
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let (dir, name) = slash.map_or((&b"."[..], path), |at| (&path[..at.max(1)], &path[at + 1..]));
    let Ok(span) = below::find(inventory, dir) else { return Err(absent) };
    entry(inventory, span.first, name)?.map(UsageTarget::File).ok_or(absent)
}

/// Returns the metadata of an entry of a directory.
fn entry(inventory: &Inventory, dir_id: i64, name: &[u8]) -> Result<Option<Meta>, Error> {
    let mut found = None;
    inventory.each(Table::Entries, |group| {
        let ids = group.numbers("dir_id")?;
        if found.is_some() || !ids.or_zero().contains(&dir_id) {
            return Ok(());
        }
        let (names, raw) = (group.texts("name")?, group.texts("name_raw")?);
        let is_named = |found: &[u8]| if dir_id == 0 { is_same(found, name) } else { found == name };
        let is_it = |row: &usize| {
            ids.or_zero()[*row] == dir_id && raw.get(*row).or(names.get(*row)).is_some_and(is_named)
        };
        if let Some(row) = (0..group.rows()).find(is_it) {
            found = MetaColumns::read(group)?.get(row);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The usage of a directory.
#[derive(Clone, Debug, Default)]
pub struct DirUsage {
    /// The path of the directory in the inventory.
    pub path: Vec<u8>,
    /// The number of levels below the first directory of the span.
    pub depth: u64,
    /// The sum of its own inode.
    pub own: UsageSum,
    /// The sum of its own inode and of its entries that are not directories.
    pub entries: UsageSum,
    /// The sum of everything at and below it.
    pub all: UsageSum,
}

/// Calls `with` for each directory at and below `top`, down to `depth_max`, that the scan entered.
/// Directories come after those below them. If `dedup_links`, a file with several names counts
/// once.
///
/// # Errors
/// If the inventory is damaged.
pub fn directories(
    inventory: &Inventory,
    top: &UsageRoot,
    depth_max: Option<u64>,
    dedup_links: bool,
    mut with: impl FnMut(&DirUsage),
) -> Result<(), Error> {
    let span = top.span;
    let surplus = if dedup_links { surplus(inventory, span)? } else { HashMap::new() };
    let mut stack = SurplusStack { surplus, below: Vec::new() };
    inventory.each(Table::Dirs, |group| {
        let columns = UsageColumns::read(group)?;
        let wanted = |row: &usize| span.contains(columns.pre.or_zero()[*row]);
        let mut shown = Vec::new();
        for row in (0..group.rows()).filter(wanted) {
            let surplus = stack
                .pop_row(&columns, row)
                .ok_or_else(|| ParquetError::General("its directories are out of order".to_owned()))?;
            let depth = columns.depth.or_zero()[row].saturating_sub(top.depth);
            let depth = u64::try_from(depth).unwrap_or(0);
            if depth_max.is_none_or(|max| depth <= max) && columns.state[row] != Some(DirState::Skipped) {
                shown.push((row, depth, surplus));
            }
        }
        if shown.is_empty() {
            return Ok(());
        }
        let paths = PathColumns::read(group)?;
        for (row, depth, (below, own)) in shown {
            let path = match paths.get(row) {
                Some(path) => path.to_vec(),
                None => inventory.long_path(columns.pre.or_zero()[row]).map_err(external)?,
            };
            let entries = columns.entries(row).minus(&own);
            with(&DirUsage {
                path,
                depth,
                own: columns.own(row),
                entries,
                all: columns.all(row).minus(&below),
            });
        }
        Ok(())
    })
}

/// Returns the directory that was scanned, if there was no other operand.
///
/// # Errors
/// If the inventory is damaged.
pub fn only_root(inventory: &Inventory) -> Result<Option<UsageRoot>, Error> {
    let (mut tops, mut found) = (0, None);
    inventory.each(Table::Dirs, |group| {
        let (pre, post, parent) =
            (group.numbers("pre")?, group.numbers("post")?, group.numbers("parent_id")?);
        for row in (0..group.rows()).filter(|row| parent.get(*row).is_none()) {
            tops += 1;
            found = Some(Span { first: pre.or_zero()[row], last: post.or_zero()[row] });
        }
        Ok(())
    })?;
    let alone = tops == 1 && inventory.manifest().roots.len() == 1;
    found.filter(|_| alone).map(|span| top(inventory, span)).transpose()
}

/// Returns device and inode numbers of the operands that are not directories.
///
/// # Errors
/// If the inventory is damaged.
pub fn files(inventory: &Inventory) -> Result<Vec<(u64, u64)>, Error> {
    let mut files = Vec::new();
    inventory.each(Table::Entries, |group| {
        let ids = group.numbers("dir_id")?;
        if ids.or_zero().contains(&0) {
            let metas = MetaColumns::read(group)?;
            let operands = (0..group.rows()).filter(|row| ids.or_zero()[*row] == 0);
            files.extend(operands.filter_map(|row| metas.get(row)).map(|meta| meta.id()));
        }
        Ok(())
    })?;
    Ok(files)
}

/// Returns the operands that did not exist, each with its error.
///
/// # Errors
/// If the inventory is damaged.
pub fn missing(inventory: &Inventory) -> Result<HashMap<Vec<u8>, Errno>, Error> {
    let mut missing = HashMap::new();
    inventory.each(Table::Errors, |group| {
        let (ids, errno) = (group.numbers("dir_id")?, group.numbers("errno")?);
        let ops = group.texts("op")?;
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        for row in (0..group.rows())
            .filter(|row| ids.get(*row).is_none() && ops.get(*row) != Some(TIME_OPERATION.as_bytes()))
        {
            let name = raw.get(row).or(names.get(row)).unwrap_or_default();
            missing.insert(name.to_vec(), errno_of(errno.get(row)));
        }
        Ok(())
    })?;
    Ok(missing)
}

/// Wraps an error that is not about the row group that is being read.
fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

fn top(inventory: &Inventory, span: Span) -> Result<UsageRoot, Error> {
    let mut top = UsageRoot { span, path: Vec::new(), depth: 0 };
    let mut is_long = false;
    inventory.each(Table::Dirs, |group| {
        let (ids, depths) = (group.numbers("dir_id")?, group.numbers("depth")?);
        if let Some(row) = ids.or_zero().iter().position(|id| *id == span.first) {
            let path = PathColumns::read(group)?.get(row).map(<[u8]>::to_vec);
            is_long = path.is_none();
            top.path = path.unwrap_or_default();
            top.depth = depths.or_zero()[row];
        }
        Ok(())
    })?;
    if is_long {
        top.path = inventory.long_path(span.first)?;
    }
    Ok(top)
}

/// Returns the sum of the names whose inode has another name before, for each directory. Rows are
/// in the order in which the walk found the names.
fn surplus(inventory: &Inventory, span: Span) -> Result<HashMap<i64, UsageSum>, Error> {
    let (mut seen, mut surplus) = (HashSet::new(), HashMap::<_, UsageSum>::new());
    inventory.each(Table::Links, |group| {
        let [ids, dev, ino] = [group.numbers("dir_id")?, group.numbers("dev")?, group.numbers("ino")?];
        let (size, blocks) = (group.numbers("size")?, group.numbers("blocks")?);
        for row in (0..group.rows()).filter(|row| span.contains(ids.or_zero()[*row])) {
            if !seen.insert((dev.or_zero()[row], ino.or_zero()[row])) {
                let sum = UsageSum::new(1, blocks.or_zero()[row], size.or_zero()[row]);
                surplus.entry(ids.or_zero()[row]).or_default().add(&sum);
            }
        }
        Ok(())
    })?;
    Ok(surplus)
}

/// The surplus of directories whose row has been read and whose parent's row has not.
struct SurplusStack {
    /// The sum of the names that do not count, for each directory.
    surplus: HashMap<i64, UsageSum>,
    /// The surplus at and below each directory, sorted by the directory's number.
    below: Vec<(i64, UsageSum)>,
}

impl SurplusStack {
    /// Returns the surplus in the sums of a row, and the part of it that is directly in the
    /// directory. `None` if a directory comes before one below it.
    fn pop_row(&mut self, columns: &UsageColumns, row: usize) -> Option<(UsageSum, UsageSum)> {
        let (pre, post) = (columns.pre.or_zero()[row], columns.post.or_zero()[row]);
        let own = self.surplus.remove(&pre).unwrap_or_default();
        let mut surplus = own;
        while let Some((_, below)) = self.below.pop_if(|(first, _)| *first > pre) {
            surplus.add(&below);
        }
        let is_nested = self.below.last().is_none_or(|(first, _)| *first < pre) && pre <= post;
        let skipped = columns.state[row] == Some(DirState::Skipped);
        // The parent's sums include a directory that was not entered.
        let carried = if skipped { columns.all(row) } else { surplus };
        if carried != UsageSum::default() {
            self.below.push((pre, carried));
        }
        is_nested.then_some((surplus, own))
    }
}

/// The columns of `dirs` that have sums.
struct UsageColumns {
    pre: NumberColumn,
    post: NumberColumn,
    depth: NumberColumn,
    state: Vec<Option<DirState>>,
    blocks: NumberColumn,
    /// The sums over the entries of the directory: files, directories, others, bytes, blocks.
    own: [NumberColumn; 5],
    below: [NumberColumn; 5],
}

impl UsageColumns {
    fn read(group: &RowGroup<'_>) -> Result<Self, ParquetError> {
        let number = |name: &str| group.numbers(name);
        let state = group.texts("state")?;
        Ok(Self {
            pre: number("pre")?,
            post: number("post")?,
            depth: number("depth")?,
            state: (0..group.rows()).map(|row| state.get(row).and_then(DirState::from_word)).collect(),
            blocks: number("blocks")?,
            own: [
                number("n_files")?,
                number("n_dirs")?,
                number("n_other")?,
                number("sum_size")?,
                number("sum_blocks")?,
            ],
            below: [
                number("t_files")?,
                number("t_dirs")?,
                number("t_other")?,
                number("t_size")?,
                number("t_blocks")?,
            ],
        })
    }

    fn own(&self, row: usize) -> UsageSum {
        UsageSum::new(1, self.blocks.or_zero()[row], 0)
    }

    fn entries(&self, row: usize) -> UsageSum {
        let [files, _, others, size, blocks] = self.own.each_ref().map(|column| column.or_zero()[row]);
        let mut sum = UsageSum::new(files.saturating_add(others), blocks, size);
        sum.add(&self.own(row));
        sum
    }

    fn all(&self, row: usize) -> UsageSum {
        let [files, dirs, others, size, blocks] = self.below.each_ref().map(|column| column.or_zero()[row]);
        let entries = files.saturating_add(dirs).saturating_add(others).saturating_add(1);
        UsageSum::new(entries, blocks, size)
    }
}
