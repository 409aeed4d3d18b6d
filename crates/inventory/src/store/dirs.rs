//! The table `dirs`: a row for each directory, with the sums over its entries and over everything
//! below it. The row is written once everything below is known, so it follows the rows of the
//! subdirectories.

use super::chunk::{EntryRow, EntryTotals};
use super::column::{
    ColumnBuffer, ColumnEncoding, ColumnKind, ColumnSpec, Int32Buffer, Int64Buffer, TextBuffer,
};
use super::entries::{META, META_COLUMNS, MetaBuffer};
use super::optional::OptionalValues;
use super::parquet_writer::TableBuffer;
use super::text::to_text;

/// The longest path in the tables, in bytes: the kernel accepts no longer one (`PATH_MAX` without
/// its NUL). The total length of all paths of a deep tree grows with the square of its depth, so
/// longer paths are joined from the names when they are read.
pub const PATH_BYTES_MAX: usize = 4095;

/// The completeness of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirState {
    /// The inventory has all of its entries.
    Complete,
    /// The inventory has some of its entries.
    Partial,
    /// The inventory has none of its entries.
    Failed,
    /// The scan left out its entries, or it is one of its own ancestors. The inventory has none of
    /// its entries, and none is missing.
    Skipped,
}

impl DirState {
    const ALL: [Self; 4] = [Self::Complete, Self::Partial, Self::Failed, Self::Skipped];

    /// Returns the state that has this word in the table.
    pub fn from_word(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word().as_bytes() == word)
    }

    /// Returns the word for the state in the table.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// A row of `dirs`.
#[derive(Clone, Copy, Debug)]
pub struct DirRow<'a> {
    /// The index of the directory in the order of the walk, from 1 on.
    pub id: i64,
    /// The number of its parent; `None` for a root.
    pub parent: Option<i64>,
    /// The number of the last directory below it, or its own.
    pub last: i64,
    /// The number of its root.
    pub root: i32,
    /// The number of directories above it, up to its root.
    pub depth: i32,
    /// The name; of a root the path.
    pub name: &'a [u8],
    /// The path; `None` if it is too long for the table.
    pub path: Option<&'a [u8]>,
    /// The metadata, if it could be read.
    pub meta: Option<&'a EntryRow>,
    /// The values of the optional columns.
    pub optional_values: Option<&'a OptionalValues<'a>>,
    /// The sums over its entries.
    pub own: &'a EntryTotals,
    /// The sums over everything below it.
    pub below: &'a EntryTotals,
    /// The time at which it was read, in microseconds since 1970.
    pub scanned: i64,
    /// How much of it the inventory has.
    pub state: DirState,
    /// The error because of which it is not complete.
    pub errno: Option<i32>,
}

/// The buffered rows of a row group.
#[derive(Default)]
pub struct DirsBuffer {
    rows: usize,
    ids: [Int64Buffer; 4],
    root: Int32Buffer,
    depth: Int32Buffer,
    names: [TextBuffer; 4],
    text_bytes: usize,
    meta: MetaBuffer,
    own: [Int64Buffer; 7],
    below: [Int64Buffer; 6],
    scanned: Int64Buffer,
    state: TextBuffer,
    errno: Int32Buffer,
}

impl DirsBuffer {
    /// Adds a row.
    pub fn push(&mut self, dir: &DirRow<'_>) {
        self.rows += 1;
        let [id, parent, pre, post] = &mut self.ids;
        id.push(dir.id);
        parent.push_option(dir.parent);
        pre.push(dir.id);
        post.push(dir.last);
        self.root.push(dir.root);
        self.depth.push(dir.depth);
        self.push_names(dir);
        self.meta.push(dir.meta, dir.optional_values);
        push_sums(&mut self.own, dir.own);
        push_sums(&mut self.below, dir.below);
        self.scanned.push(dir.scanned);
        self.state.push(dir.state.word().as_bytes());
        self.errno.push_option(dir.errno);
    }

    fn push_names(&mut self, dir: &DirRow<'_>) {
        let [name, name_raw, path, path_raw] = &mut self.names;
        let (text, raw) = to_text(dir.name);
        name.push(text.as_bytes());
        name_raw.push_option(raw);
        push_text(dir.path, path, path_raw);
        let xattrs = dir.optional_values.and_then(|values| values.xattrs.as_deref());
        self.text_bytes += dir.name.len() + dir.path.map_or(0, <[u8]>::len) + xattrs.map_or(0, str::len);
    }

    /// Returns the number of bytes of names and paths since the last row group.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }
}

/// Returns the path for the table; `None` if it is too long.
pub fn stored_path(path: &[u8]) -> Option<&[u8]> {
    Some(path).filter(|path| path.len() <= PATH_BYTES_MAX)
}

/// Adds a text, or none, and its bytes where it is not UTF-8.
pub(crate) fn push_text(bytes: Option<&[u8]>, text: &mut TextBuffer, raw: &mut TextBuffer) {
    let converted = bytes.map(to_text);
    text.push_option(converted.as_ref().map(|(text, _)| text.as_bytes()));
    raw.push_option(converted.and_then(|(_, raw)| raw));
}

/// Adds the sums. `columns` for a subtree have one time less.
fn push_sums(columns: &mut [Int64Buffer], sums: &EntryTotals) {
    let numbers = [sums.files, sums.dirs, sums.others].map(u64::cast_signed);
    for (column, number) in columns.iter_mut().zip(numbers) {
        column.push(number);
    }
    columns[3].push(sums.size);
    columns[4].push(sums.blocks.cast_signed());
    for (column, time) in columns[5..].iter_mut().zip([sums.max_mtime, sums.max_ctime]) {
        column.push_option(time);
    }
}

const fn number(name: &'static str) -> ColumnSpec {
    ColumnSpec::new(name, ColumnKind::Int64, ColumnEncoding::Delta)
}

const fn time(name: &'static str) -> ColumnSpec {
    ColumnSpec::new(name, ColumnKind::Micros, ColumnEncoding::Delta)
}

const BEFORE: [ColumnSpec; 10] = [
    number("dir_id"),
    number("parent_id").nullable(),
    number("pre"),
    number("post"),
    ColumnSpec::new("root", ColumnKind::Int32, ColumnEncoding::Dictionary),
    ColumnSpec::new("depth", ColumnKind::Int32, ColumnEncoding::Delta),
    ColumnSpec::new("name", ColumnKind::Text, ColumnEncoding::Front),
    ColumnSpec::new("name_raw", ColumnKind::Bytes, ColumnEncoding::Lengths).nullable(),
    ColumnSpec::new("path", ColumnKind::Text, ColumnEncoding::Front).nullable(),
    ColumnSpec::new("path_raw", ColumnKind::Bytes, ColumnEncoding::Lengths).nullable(),
];

const AFTER: [ColumnSpec; 16] = [
    number("n_files"),
    number("n_dirs"),
    number("n_other"),
    number("sum_size"),
    number("sum_blocks"),
    time("max_mtime").nullable(),
    time("max_ctime").nullable(),
    number("t_files"),
    number("t_dirs"),
    number("t_other"),
    number("t_size"),
    number("t_blocks"),
    time("t_max_mtime").nullable(),
    time("scanned"),
    ColumnSpec::new("state", ColumnKind::Text, ColumnEncoding::Dictionary),
    ColumnSpec::new("errno", ColumnKind::Int32, ColumnEncoding::Dictionary).nullable(),
];

impl TableBuffer for DirsBuffer {
    const SPECS: &'static [ColumnSpec] = &{
        let mut specs = [BEFORE[0]; BEFORE.len() + META_COLUMNS + AFTER.len()];
        let mut at = 0;
        while at < specs.len() {
            specs[at] = if at < BEFORE.len() {
                BEFORE[at]
            } else if at < BEFORE.len() + META_COLUMNS {
                META[at - BEFORE.len()]
            } else {
                AFTER[at - BEFORE.len() - META_COLUMNS]
            };
            at += 1;
        }
        specs
    };

    fn buffers(&mut self) -> Vec<&mut dyn ColumnBuffer> {
        let Self { rows, ids, root, depth, names, text_bytes, meta, own, below, scanned, state, errno } =
            self;
        (*rows, *text_bytes) = (0, 0);
        let mut buffers: Vec<&mut dyn ColumnBuffer> =
            ids.iter_mut().map(|column| column as &mut dyn ColumnBuffer).collect();
        buffers.extend([root as &mut dyn ColumnBuffer, depth]);
        buffers.extend(names.iter_mut().map(|column| column as &mut dyn ColumnBuffer));
        buffers.extend(meta.buffers());
        buffers.extend(own.iter_mut().chain(below).map(|column| column as &mut dyn ColumnBuffer));
        buffers.extend([scanned as &mut dyn ColumnBuffer, state, errno]);
        buffers
    }

    fn rows(&self) -> usize {
        self.rows
    }
}
