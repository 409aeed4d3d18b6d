//! Decodes a row group of `dirs` into rows, as a scan makes them.

use fathom_walk::FileType;
use parquet::errors::Result;

use super::decode::damaged;
use super::group::RowGroup;
use super::metas::MetaColumns;
use super::paths::PathColumns;
use super::values::{NumberColumn, TextColumn};
use crate::store::chunk::{EntryRow, EntryTotals};
use crate::store::dirs::DirState;
use crate::store::optional::OptionalValues;

/// The columns of a row group of `dirs`.
pub struct DirColumns {
    pre: NumberColumn,
    post: NumberColumn,
    parent: NumberColumn,
    root: NumberColumn,
    depth: NumberColumn,
    names: [TextColumn; 2],
    paths: PathColumns,
    states: TextColumn,
    metas: MetaColumns,
    own: SumColumns,
    below: SumColumns,
    scanned: NumberColumn,
    errno: NumberColumn,
}

/// The columns of one set of sums: files, directories, others, bytes and blocks, then the latest
/// modification and the latest change, where the set has them.
type SumColumns = ([NumberColumn; 5], Vec<NumberColumn>);

/// A row of `dirs` that was read. The fields are named as in [`crate::store::DirRow`].
#[derive(Debug)]
pub struct DirRowRead<'a> {
    /// See [`DirRow::id`](crate::store::DirRow::id).
    pub id: i64,
    /// See [`DirRow::parent`](crate::store::DirRow::parent).
    pub parent: Option<i64>,
    /// See [`DirRow::last`](crate::store::DirRow::last).
    pub last: i64,
    /// See [`DirRow::root`](crate::store::DirRow::root).
    pub root: i32,
    /// See [`DirRow::depth`](crate::store::DirRow::depth).
    pub depth: i32,
    /// See [`DirRow::name`](crate::store::DirRow::name).
    pub name: &'a [u8],
    /// See [`DirRow::path`](crate::store::DirRow::path).
    pub path: Option<&'a [u8]>,
    /// See [`DirRow::meta`](crate::store::DirRow::meta).
    pub meta: Option<EntryRow>,
    /// See [`DirRow::optional_values`](crate::store::DirRow::optional_values).
    pub optional_values: Option<OptionalValues<'a>>,
    /// See [`DirRow::own`](crate::store::DirRow::own).
    pub own: EntryTotals,
    /// See [`DirRow::below`](crate::store::DirRow::below).
    pub below: EntryTotals,
    /// See [`DirRow::scanned`](crate::store::DirRow::scanned).
    pub scanned: i64,
    /// See [`DirRow::state`](crate::store::DirRow::state).
    pub state: DirState,
    /// See [`DirRow::errno`](crate::store::DirRow::errno).
    pub errno: Option<i32>,
}

impl DirColumns {
    /// Reads the columns of a row group.
    pub fn read(group: &RowGroup<'_>) -> Result<Self> {
        let number = |name| group.numbers(name);
        let own = [
            number("n_files")?,
            number("n_dirs")?,
            number("n_other")?,
            number("sum_size")?,
            number("sum_blocks")?,
        ];
        let below = [
            number("t_files")?,
            number("t_dirs")?,
            number("t_other")?,
            number("t_size")?,
            number("t_blocks")?,
        ];
        Ok(Self {
            pre: number("pre")?,
            post: number("post")?,
            parent: number("parent_id")?,
            root: number("root")?,
            depth: number("depth")?,
            names: [group.texts("name")?, group.texts("name_raw")?],
            paths: PathColumns::read(group)?,
            states: group.texts("state")?,
            metas: MetaColumns::read(group)?,
            own: (own, vec![number("max_mtime")?, number("max_ctime")?]),
            below: (below, vec![number("t_max_mtime")?]),
            scanned: number("scanned")?,
            errno: number("errno")?,
        })
    }

    /// Returns the row `row` of the row group, which has to have it.
    pub fn row(&self, row: usize) -> Result<DirRowRead<'_>> {
        let number = |column: &NumberColumn| column.or_zero()[row];
        let narrow = |column: &NumberColumn| {
            i32::try_from(column.or_zero()[row]).map_err(|_| damaged("a number is too large"))
        };
        let meta = self.metas.get(row);
        Ok(DirRowRead {
            id: number(&self.pre),
            parent: self.parent.get(row),
            last: number(&self.post),
            root: narrow(&self.root)?,
            depth: narrow(&self.depth)?,
            name: self.names[1].get(row).or(self.names[0].get(row)).unwrap_or_default(),
            path: self.paths.get(row),
            meta: meta
                .as_ref()
                .map(|meta| EntryRow::new(FileType::Directory, Ok(meta)).without(self.metas.missing(row))),
            optional_values: self.metas.optional_values(row),
            own: sums(&self.own, row),
            below: sums(&self.below, row),
            scanned: number(&self.scanned),
            state: self
                .states
                .get(row)
                .and_then(DirState::from_word)
                .ok_or_else(|| damaged("a directory has an impossible state"))?,
            errno: self.errno.get(row).and_then(|errno| i32::try_from(errno).ok()),
        })
    }
}

fn sums((numbers, times): &SumColumns, row: usize) -> EntryTotals {
    let [files, dirs, others, size, blocks] = numbers.each_ref().map(|column| column.or_zero()[row]);
    let time = |at: usize| times.get(at).and_then(|column| column.get(row));
    EntryTotals {
        files: files.cast_unsigned(),
        dirs: dirs.cast_unsigned(),
        others: others.cast_unsigned(),
        size,
        blocks: blocks.cast_unsigned(),
        max_mtime: time(0),
        max_ctime: time(1),
    }
}
