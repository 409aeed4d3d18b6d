//! The table `dirs`: a row for each directory, with the sums of what is in it and of all that is below. Rows come when
//! everything below is known, so a directory's row follows those of its subdirectories.

use super::also::Extra;
use super::chunk::{Row, Sums};
use super::column::{Fill, Int32s, Int64s, Kind, Packing, Spec, Texts};
use super::entries::{META, META_COLUMNS, MetaColumns};
use super::table::Columns;
use super::text::readable;

/// The longest path that the tables have, in bytes: the kernel takes no longer one (`PATH_MAX`
/// without its NUL). The sum of all paths of a deep tree grows with the square of its depth, so
/// longer ones are put together from names when they are read.
pub(crate) const PATH_BYTES_MAX: usize = 4095;

/// How far a directory is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All of its entries are there.
    Complete,
    /// Some of its entries are there.
    Partial,
    /// None of its entries is there.
    Failed,
    /// It is one of its own ancestors, or was to be left out: none of its entries is there, and none is missing.
    Skipped,
}

impl State {
    const ALL: [Self; 4] = [Self::Complete, Self::Partial, Self::Failed, Self::Skipped];

    /// The state that has this word in the table.
    pub(crate) fn from_word(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word().as_bytes() == word)
    }

    /// The word for it in the table.
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

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dir<'a> {
    /// Its place among all directories in the order of the walk, from 1 on.
    pub(crate) id: i64,
    pub(crate) parent: Option<i64>,
    /// The last of the directories below it, or itself.
    pub(crate) last: i64,
    pub(crate) root: i32,
    pub(crate) depth: i32,
    pub(crate) name: &'a [u8],
    /// None if it is too long for the table.
    pub(crate) path: Option<&'a [u8]>,
    pub(crate) meta: Option<&'a Row>,
    /// Values of columns that were asked for.
    pub(crate) extra: Option<&'a Extra<'a>>,
    pub(crate) own: &'a Sums,
    pub(crate) below: &'a Sums,
    /// When it was read, in microseconds since 1970.
    pub(crate) scanned: i64,
    pub(crate) state: State,
    pub(crate) errno: Option<i32>,
}

/// Rows to be written.
#[derive(Default)]
pub(crate) struct Dirs {
    rows: usize,
    ids: [Int64s; 4],
    root: Int32s,
    depth: Int32s,
    names: [Texts; 4],
    text_bytes: usize,
    meta: MetaColumns,
    own: [Int64s; 7],
    below: [Int64s; 6],
    scanned: Int64s,
    state: Texts,
    errno: Int32s,
}

impl Dirs {
    pub(crate) fn push(&mut self, dir: &Dir<'_>) {
        self.rows += 1;
        let [id, parent, pre, post] = &mut self.ids;
        id.push(dir.id);
        parent.push_some(dir.parent);
        pre.push(dir.id);
        post.push(dir.last);
        self.root.push(dir.root);
        self.depth.push(dir.depth);
        self.push_names(dir);
        self.meta.push(dir.meta, dir.extra);
        push_sums(&mut self.own, dir.own);
        push_sums(&mut self.below, dir.below);
        self.scanned.push(dir.scanned);
        self.state.push(dir.state.word().as_bytes());
        self.errno.push_some(dir.errno);
    }

    fn push_names(&mut self, dir: &Dir<'_>) {
        let [name, name_raw, path, path_raw] = &mut self.names;
        let (text, raw) = readable(dir.name);
        name.push(text.as_bytes());
        name_raw.push_some(raw);
        push_text(dir.path, path, path_raw);
        let xattrs = dir.extra.and_then(|extra| extra.xattrs.as_deref());
        self.text_bytes += dir.name.len() + dir.path.map_or(0, <[u8]>::len) + xattrs.map_or(0, str::len);
    }

    /// Bytes of names and paths since they were last written.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes
    }
}

/// The path as the tables have it; none if it is too long.
pub(crate) fn stored_path(path: &[u8]) -> Option<&[u8]> {
    Some(path).filter(|path| path.len() <= PATH_BYTES_MAX)
}

/// Appends a text, if there is one, and its bytes where it is not UTF-8.
pub(crate) fn push_text(bytes: Option<&[u8]>, text: &mut Texts, raw: &mut Texts) {
    let readable = bytes.map(readable);
    text.push_some(readable.as_ref().map(|(text, _)| text.as_bytes()));
    raw.push_some(readable.and_then(|(_, raw)| raw));
}

/// The columns take as many of the sums as there are of them.
fn push_sums(columns: &mut [Int64s], sums: &Sums) {
    let numbers = [sums.files, sums.dirs, sums.others].map(u64::cast_signed);
    for (column, number) in columns.iter_mut().zip(numbers) {
        column.push(number);
    }
    columns[3].push(sums.size);
    columns[4].push(sums.blocks.cast_signed());
    for (column, time) in columns[5..].iter_mut().zip([sums.modified, sums.changed]) {
        column.push_some(time);
    }
}

const fn number(name: &'static str) -> Spec {
    Spec::new(name, Kind::Int64, Packing::Delta)
}

const fn time(name: &'static str) -> Spec {
    Spec::new(name, Kind::Micros, Packing::Delta)
}

const BEFORE: [Spec; 10] = [
    number("dir_id"),
    number("parent_id").optional(),
    number("pre"),
    number("post"),
    Spec::new("root", Kind::Int32, Packing::Dictionary),
    Spec::new("depth", Kind::Int32, Packing::Delta),
    Spec::new("name", Kind::Text, Packing::Front),
    Spec::new("name_raw", Kind::Bytes, Packing::Lengths).optional(),
    Spec::new("path", Kind::Text, Packing::Front).optional_since(2),
    Spec::new("path_raw", Kind::Bytes, Packing::Lengths).optional(),
];

const AFTER: [Spec; 16] = [
    number("n_files"),
    number("n_dirs"),
    number("n_other"),
    number("sum_size"),
    number("sum_blocks"),
    time("max_mtime").optional(),
    time("max_ctime").optional(),
    number("t_files"),
    number("t_dirs"),
    number("t_other"),
    number("t_size"),
    number("t_blocks"),
    time("t_max_mtime").optional(),
    time("scanned"),
    Spec::new("state", Kind::Text, Packing::Dictionary),
    Spec::new("errno", Kind::Int32, Packing::Dictionary).optional(),
];

impl Columns for Dirs {
    const SPECS: &'static [Spec] = &{
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

    fn fields(&mut self) -> Vec<&mut dyn Fill> {
        let Self { rows, ids, root, depth, names, text_bytes, meta, own, below, scanned, state, errno } =
            self;
        (*rows, *text_bytes) = (0, 0);
        let mut fields: Vec<&mut dyn Fill> = ids.iter_mut().map(|column| column as &mut dyn Fill).collect();
        fields.extend([root as &mut dyn Fill, depth]);
        fields.extend(names.iter_mut().map(|column| column as &mut dyn Fill));
        fields.extend(meta.fields());
        fields.extend(own.iter_mut().chain(below).map(|column| column as &mut dyn Fill));
        fields.extend([scanned as &mut dyn Fill, state, errno]);
        fields
    }

    fn rows(&self) -> usize {
        self.rows
    }
}
