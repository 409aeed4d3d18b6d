//! What directories come to as du counts, from their own rows alone: each inode once in the whole of what is asked for, where
//! the walk met it first.
//!
//! Owns which part of an inventory a path means. Does not own lines, units, or what is left out.

use std::collections::{HashMap, HashSet};

use fathom_walk::{Errno, Meta};
use parquet::errors::ParquetError;

use crate::normal::is_same;
use crate::scan::TIME;
use crate::store::{Error, Group, Inventory, Metas, Numbers, Paths, State, Table, errno_of};
use crate::top::{Failure, Sum, below};

pub use below::Span;

/// What a path means in an inventory.
#[derive(Clone, Debug)]
pub enum Place {
    /// A directory, with all below it.
    Directory(Top),
    /// Anything else that is known.
    File(Meta),
}

/// Where an answer begins.
#[derive(Clone, Debug)]
pub struct Top {
    /// It, and all below it.
    pub span: Span,
    /// Its path in the inventory.
    pub path: Vec<u8>,
    depth: i64,
}

/// What is at `path`: as the inventory has it, or relative to what was scanned.
///
/// # Errors
/// If there is nothing, or the inventory is damaged.
pub fn find(inventory: &Inventory, path: &[u8]) -> Result<Place, Failure> {
    let absent = match below::find(inventory, path) {
        Ok(span) => return Ok(Place::Directory(top(inventory, span)?)),
        Err(Failure::Absent) => Failure::Absent,
        Err(other) => return Err(other),
    };
    if let Some(meta) = entry(inventory, 0, path)? {
        return Ok(Place::File(meta));
    }
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let (dir, name) = slash.map_or((&b"."[..], path), |at| (&path[..at.max(1)], &path[at + 1..]));
    let Ok(span) = below::find(inventory, dir) else { return Err(absent) };
    entry(inventory, span.first, name)?.map(Place::File).ok_or(absent)
}

/// What is known of an entry of a directory.
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
            found = Metas::read(group)?.get(row);
        }
        Ok(())
    })?;
    Ok(found)
}

/// What a directory comes to.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Its path in the inventory.
    pub path: Vec<u8>,
    /// Levels below the first directory of the span.
    pub depth: u64,
    /// What its own inode comes to.
    pub own: Sum,
    /// That, and what entries right in it come to that are no directories.
    pub entries: Sum,
    /// All at and below it.
    pub all: Sum,
}

/// Calls `with` for each directory at and below `top`, down to `depth_max` that was entered, a directory after those below it. Files with
/// several names count once if `once`.
///
/// # Errors
/// If the inventory is damaged.
pub fn directories(
    inventory: &Inventory,
    top: &Top,
    depth_max: Option<u64>,
    once: bool,
    mut with: impl FnMut(&Usage),
) -> Result<(), Error> {
    let span = top.span;
    let surplus = if once { surplus(inventory, span)? } else { HashMap::new() };
    let mut closed = Closed { surplus, below: Vec::new() };
    inventory.each(Table::Dirs, |group| {
        let columns = Columns::read(group)?;
        let wanted = |row: &usize| span.has(columns.pre.or_zero()[*row]);
        let mut shown = Vec::new();
        for row in (0..group.rows()).filter(wanted) {
            let spare = closed
                .close(&columns, row)
                .ok_or_else(|| ParquetError::General("its directories are not in their order".to_owned()))?;
            let depth = columns.depth.or_zero()[row].saturating_sub(top.depth);
            let depth = u64::try_from(depth).unwrap_or(0);
            if depth_max.is_none_or(|max| depth <= max) && columns.state[row] != Some(State::Skipped) {
                shown.push((row, depth, spare));
            }
        }
        if shown.is_empty() {
            return Ok(());
        }
        let paths = Paths::read(group)?;
        for (row, depth, (below, own)) in shown {
            let path = match paths.get(row) {
                Some(path) => path.to_vec(),
                None => inventory.long_path(columns.pre.or_zero()[row]).map_err(external)?,
            };
            let entries = columns.entries(row).less(&own);
            with(&Usage { path, depth, own: columns.own(row), entries, all: columns.all(row).less(&below) });
        }
        Ok(())
    })
}

/// The only directory that was scanned, if there was one and nothing else.
///
/// # Errors
/// If the inventory is damaged.
pub fn only_root(inventory: &Inventory) -> Result<Option<Top>, Error> {
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

/// Device and inode numbers of the operands that are no directories.
///
/// # Errors
/// If the inventory is damaged.
pub fn files(inventory: &Inventory) -> Result<Vec<(u64, u64)>, Error> {
    let mut files = Vec::new();
    inventory.each(Table::Entries, |group| {
        let ids = group.numbers("dir_id")?;
        if ids.or_zero().contains(&0) {
            let metas = Metas::read(group)?;
            let operands = (0..group.rows()).filter(|row| ids.or_zero()[*row] == 0);
            files.extend(operands.filter_map(|row| metas.get(row)).map(|meta| meta.id()));
        }
        Ok(())
    })?;
    Ok(files)
}

/// Operands that were not there, with the error's number.
///
/// # Errors
/// If the inventory is damaged.
pub fn missing(inventory: &Inventory) -> Result<HashMap<Vec<u8>, Errno>, Error> {
    let mut missing = HashMap::new();
    inventory.each(Table::Errors, |group| {
        let (ids, errno, paths) = (group.numbers("dir_id")?, group.numbers("errno")?, Paths::read(group)?);
        let ops = group.texts("op")?;
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        for row in
            (0..group.rows()).filter(|row| ids.get(*row).is_none() && ops.get(*row) != Some(TIME.as_bytes()))
        {
            // Format 1 has no names here.
            let name = raw.get(row).or(names.get(row)).or(paths.get(row)).unwrap_or_default();
            missing.insert(name.to_vec(), errno_of(errno.get(row)));
        }
        Ok(())
    })?;
    Ok(missing)
}

/// An error within a row group that is not about it.
fn external(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

fn top(inventory: &Inventory, span: Span) -> Result<Top, Error> {
    let mut top = Top { span, path: Vec::new(), depth: 0 };
    let mut is_long = false;
    inventory.each(Table::Dirs, |group| {
        let (ids, depths) = (group.numbers("dir_id")?, group.numbers("depth")?);
        if let Some(row) = ids.or_zero().iter().position(|id| *id == span.first) {
            let path = Paths::read(group)?.get(row).map(<[u8]>::to_vec);
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

/// What names come to whose inode has been met, by their directory. Rows are in the order in which names are met.
fn surplus(inventory: &Inventory, span: Span) -> Result<HashMap<i64, Sum>, Error> {
    let (mut met, mut surplus) = (HashSet::new(), HashMap::<_, Sum>::new());
    inventory.each(Table::Links, |group| {
        let [ids, dev, ino] = [group.numbers("dir_id")?, group.numbers("dev")?, group.numbers("ino")?];
        let (size, blocks) = (group.numbers("size")?, group.numbers("blocks")?);
        for row in (0..group.rows()).filter(|row| span.has(ids.or_zero()[*row])) {
            if !met.insert((dev.or_zero()[row], ino.or_zero()[row])) {
                let sum = Sum::new(1, blocks.or_zero()[row], size.or_zero()[row]);
                surplus.entry(ids.or_zero()[row]).or_default().add(&sum);
            }
        }
        Ok(())
    })?;
    Ok(surplus)
}

/// What is too much in directories that have been seen and whose parent has not.
struct Closed {
    /// Names that do not count, by their directory.
    surplus: HashMap<i64, Sum>,
    /// By the number of the directory.
    below: Vec<(i64, Sum)>,
}

impl Closed {
    /// What is too much in the sums of a row, and of that what is right in it. `None` if a directory comes before one below it.
    fn close(&mut self, columns: &Columns, row: usize) -> Option<(Sum, Sum)> {
        let (pre, post) = (columns.pre.or_zero()[row], columns.post.or_zero()[row]);
        let own = self.surplus.remove(&pre).unwrap_or_default();
        let mut spare = own;
        while let Some((_, below)) = self.below.pop_if(|(first, _)| *first > pre) {
            spare.add(&below);
        }
        let is_nested = self.below.last().is_none_or(|(first, _)| *first < pre) && pre <= post;
        let skipped = columns.state[row] == Some(State::Skipped);
        // Its parent counts one that was not entered.
        let carried = if skipped { columns.all(row) } else { spare };
        if carried != Sum::default() {
            self.below.push((pre, carried));
        }
        is_nested.then_some((spare, own))
    }
}

/// The columns of `dirs` that say what directories come to.
struct Columns {
    pre: Numbers,
    post: Numbers,
    depth: Numbers,
    state: Vec<Option<State>>,
    blocks: Numbers,
    /// Files, directories, others, bytes, blocks.
    own: [Numbers; 5],
    below: [Numbers; 5],
}

impl Columns {
    fn read(group: &Group<'_>) -> Result<Self, ParquetError> {
        let number = |name: &str| group.numbers(name);
        let state = group.texts("state")?;
        Ok(Self {
            pre: number("pre")?,
            post: number("post")?,
            depth: number("depth")?,
            state: (0..group.rows()).map(|row| state.get(row).and_then(State::from_word)).collect(),
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

    fn own(&self, row: usize) -> Sum {
        Sum::new(1, self.blocks.or_zero()[row], 0)
    }

    fn entries(&self, row: usize) -> Sum {
        let [files, _, others, size, blocks] = self.own.each_ref().map(|column| column.or_zero()[row]);
        let mut sum = Sum::new(files.saturating_add(others), blocks, size);
        sum.add(&self.own(row));
        sum
    }

    fn all(&self, row: usize) -> Sum {
        let [files, dirs, others, size, blocks] = self.below.each_ref().map(|column| column.or_zero()[row]);
        let entries = files.saturating_add(dirs).saturating_add(others).saturating_add(1);
        Sum::new(entries, blocks, size)
    }
}
