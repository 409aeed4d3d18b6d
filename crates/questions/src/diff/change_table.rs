//! Writes changes to a Parquet file, one row for each.

use std::fs::File;
use std::path::{Path, PathBuf};

use fathom_walk::Attributes;

use super::change::{Change, ChangedField};
use super::inode_info::{InodeInfo, NumericField};
use fathom_inventory::store::{
    BoolBuffer, ColumnBuffer, ColumnEncoding, ColumnKind, ColumnSpec, Draft, Error, GROUP_TEXT_BYTES,
    Int32Buffer, Int64Buffer, Op, OptionalColumns, ParquetWriter, TableBuffer, TextBuffer, to_text,
};

/// Rows of a row group.
const GROUP_ROWS: usize = 65_536;

const fn text(name: &'static str) -> ColumnSpec {
    ColumnSpec::new(name, ColumnKind::Text, ColumnEncoding::Dictionary).nullable()
}

const fn number(name: &'static str, kind: ColumnKind) -> ColumnSpec {
    ColumnSpec::new(name, kind, ColumnEncoding::Delta).nullable()
}

/// The columns of the metadata of one side.
macro_rules! info {
    ($($side:literal),*) => {
        [$(
            text(concat!($side, "_type")),
            number(concat!($side, "_ino"), ColumnKind::Int64),
            number(concat!($side, "_size"), ColumnKind::Int64),
            number(concat!($side, "_blocks"), ColumnKind::Int64),
            number(concat!($side, "_mtime"), ColumnKind::Micros),
            number(concat!($side, "_ctime"), ColumnKind::Micros),
            number(concat!($side, "_btime"), ColumnKind::Micros),
            number(concat!($side, "_mode"), ColumnKind::Uint32),
            number(concat!($side, "_uid"), ColumnKind::Uint32),
            number(concat!($side, "_gid"), ColumnKind::Uint32),
            number(concat!($side, "_nlink"), ColumnKind::Uint32),
            number(concat!($side, "_mtime_ns"), ColumnKind::Int32),
            number(concat!($side, "_ctime_ns"), ColumnKind::Int32),
            number(concat!($side, "_project"), ColumnKind::Uint32),
            text(concat!($side, "_attributes")),
            text(concat!($side, "_xattrs")),
            ColumnSpec::new(concat!($side, "_acl"), ColumnKind::Bool, ColumnEncoding::Dictionary).nullable(),
            text(concat!($side, "_link_target")),
            ColumnSpec::new(concat!($side, "_link_raw"), ColumnKind::Bytes, ColumnEncoding::Lengths).nullable(),
        )*]
    };
}

/// The columns of 64 bits, in their order.
const LONGS: [NumericField; 6] = [
    NumericField::Ino,
    NumericField::Size,
    NumericField::Blocks,
    NumericField::Mtime,
    NumericField::Ctime,
    NumericField::Btime,
];
const INTS: [NumericField; 7] = [
    NumericField::Mode,
    NumericField::Uid,
    NumericField::Gid,
    NumericField::Nlink,
    NumericField::MtimeNs,
    NumericField::CtimeNs,
    NumericField::Project,
];
const FACTS: [ColumnSpec; 38] = info!("old", "new");
const HEAD: [ColumnSpec; 6] = [
    ColumnSpec::new("change", ColumnKind::Text, ColumnEncoding::Dictionary),
    ColumnSpec::new("path", ColumnKind::Text, ColumnEncoding::Front),
    ColumnSpec::new("path_raw", ColumnKind::Bytes, ColumnEncoding::Lengths).nullable(),
    ColumnSpec::new("old_path", ColumnKind::Text, ColumnEncoding::Lengths).nullable(),
    ColumnSpec::new("old_path_raw", ColumnKind::Bytes, ColumnEncoding::Lengths).nullable(),
    ColumnSpec::new("fields", ColumnKind::Text, ColumnEncoding::Dictionary).nullable(),
];

/// The buffered rows of a row group.
#[derive(Default)]
struct ChangesBuffer {
    rows: usize,
    text_bytes: usize,
    head: [TextBuffer; 6],
    sides: [SideBuffer; 2],
}

/// The columns of the metadata of one side.
#[derive(Default)]
struct SideBuffer {
    letter: TextBuffer,
    longs: [Int64Buffer; LONGS.len()],
    ints: [Int32Buffer; INTS.len()],
    attributes: TextBuffer,
    xattrs: TextBuffer,
    acl: BoolBuffer,
    link: [TextBuffer; 2],
}

impl SideBuffer {
    fn push(&mut self, info: Option<&InodeInfo>) {
        self.letter.push_option(info.map(|info| std::slice::from_ref(&info.letter)));
        for (column, number) in self.longs.iter_mut().zip(LONGS) {
            column.push_option(info.and_then(|info| info.number(number)));
        }
        for (column, number) in self.ints.iter_mut().zip(INTS) {
            // Columns of unsigned numbers hold the bits of the number.
            column.push_option(info.and_then(|info| info.number(number)).map(|number| number as i32));
        }
        let mut text = [0; Attributes::TEXT_BYTES_MAX];
        let attributes = info.and_then(InodeInfo::attributes);
        self.attributes.push_option(attributes.map(|attributes| attributes.text(&mut text)));
        self.xattrs.push_option(info.and_then(|info| info.xattrs.as_deref()));
        let acl = info.and_then(|info| info.number(NumericField::Acl));
        self.acl.push_option(acl.map(|acl| acl == 1));
        let link = info.map(|info| &info.link[..]).filter(|link| !link.is_empty());
        let [text, raw] = &mut self.link;
        push_path(link, text, raw);
    }

    fn buffers(&mut self) -> Vec<&mut dyn ColumnBuffer> {
        let mut buffers: Vec<&mut dyn ColumnBuffer> = vec![&mut self.letter];
        buffers.extend(self.longs.iter_mut().map(|column| column as &mut dyn ColumnBuffer));
        buffers.extend(self.ints.iter_mut().map(|column| column as &mut dyn ColumnBuffer));
        buffers.extend([&mut self.attributes as &mut dyn ColumnBuffer, &mut self.xattrs, &mut self.acl]);
        buffers.extend(self.link.iter_mut().map(|column| column as &mut dyn ColumnBuffer));
        buffers
    }
}

fn push_path(bytes: Option<&[u8]>, text: &mut TextBuffer, raw: &mut TextBuffer) {
    let converted = bytes.map(to_text);
    text.push_option(converted.as_ref().map(|(text, _)| text.as_bytes()));
    raw.push_option(converted.and_then(|(_, raw)| raw));
}

impl ChangesBuffer {
    fn push(&mut self, change: &Change) {
        self.rows += 1;
        let text = |info: &InodeInfo| info.link.len() + info.xattrs.as_ref().map_or(0, Vec::len);
        let texts = [&change.old, &change.new].into_iter().flatten().map(text);
        self.text_bytes +=
            change.path.len() + change.from.as_ref().map_or(0, Vec::len) + texts.sum::<usize>();
        let [verb, path, path_raw, from, from_raw, fields] = &mut self.head;
        verb.push(change.kind.word().as_bytes());
        let (text, raw) = to_text(&change.path);
        path.push(text.as_bytes());
        path_raw.push_option(raw);
        push_path(change.from.as_deref(), from, from_raw);
        let words: Vec<_> = change.fields().into_iter().map(ChangedField::word).collect();
        fields.push_option((!words.is_empty()).then(|| words.join(",")).as_deref().map(str::as_bytes));
        let [old, new] = &mut self.sides;
        old.push(change.old.as_ref());
        new.push(change.new.as_ref());
    }
}

impl TableBuffer for ChangesBuffer {
    const SPECS: &'static [ColumnSpec] = &{
        let mut specs = [HEAD[0]; HEAD.len() + FACTS.len()];
        let mut at = 0;
        while at < specs.len() {
            specs[at] = if at < HEAD.len() { HEAD[at] } else { FACTS[at - HEAD.len()] };
            at += 1;
        }
        specs
    };

    fn buffers(&mut self) -> Vec<&mut dyn ColumnBuffer> {
        (self.rows, self.text_bytes) = (0, 0);
        let head = self.head.iter_mut().map(|column| column as &mut dyn ColumnBuffer);
        head.chain(self.sides.iter_mut().flat_map(SideBuffer::buffers)).collect()
    }

    fn rows(&self) -> usize {
        self.rows
    }
}

/// A Parquet file of changes that is being written. Unless [`ChangeTable::finish`] is called,
/// nothing is left of it.
///
/// ```
/// use std::ops::ControlFlow;
/// use fathom_questions::diff::{ChangeTable, DiffOptions, Sides, diff};
/// use fathom_scans::scan::{Scan, scan};
/// use fathom_inventory::store::Inventory;
///
/// let temp = tempfile::tempdir()?;
/// let [inventory, out] = ["src.inv", "changes.parquet"].map(|name| temp.path().join(name));
/// scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &inventory, &mut ())?;
/// let inventory = Inventory::open(&inventory)?;
///
/// let mut table = ChangeTable::create(&out)?;
/// let mut failed = None;
/// let options = DiffOptions { below: None, scratch: temp.path().to_owned() };
/// diff(&Sides { old: &inventory, new: &inventory }, &options, &mut |change| {
///     failed = table.push(change).err();
///     if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
/// })?;
/// assert!(failed.is_none() && !out.exists());
/// table.finish()?;
/// assert!(out.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ChangeTable {
    /// The file under its temporary name; `None` for a stream.
    draft: Option<Draft>,
    /// The name in error messages.
    name: PathBuf,
    columns: ChangesBuffer,
    writer: ParquetWriter<ChangesBuffer>,
}

impl ChangeTable {
    /// Creates the file that is to be `out`, and takes the place of an earlier one.
    ///
    /// # Errors
    /// As [`Draft::create`].
    pub fn create(out: &Path) -> Result<Self, Error> {
        let draft = Draft::create(out)?;
        let file = draft.file().try_clone().map_err(|error| draft.cannot_write(error))?;
        let writer = ParquetWriter::to_file(file, OptionalColumns::default());
        let writer = writer.map_err(|error| draft.cannot_write(error))?;
        Ok(Self { draft: Some(draft), name: out.to_owned(), columns: ChangesBuffer::default(), writer })
    }

    /// Writes to a stream. Error messages call it `name`.
    ///
    /// # Errors
    /// If the stream cannot be written.
    pub fn to_stream(stream: File, name: &Path) -> Result<Self, Error> {
        let writer = ParquetWriter::to_stream(stream).map_err(|error| Error::new(Op::Write, name, error))?;
        Ok(Self { draft: None, name: name.to_owned(), columns: ChangesBuffer::default(), writer })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, change: &Change) -> Result<(), Error> {
        self.columns.push(change);
        let is_full = self.columns.rows >= GROUP_ROWS || self.columns.text_bytes >= GROUP_TEXT_BYTES;
        if is_full { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Error> {
        self.writer.write(&mut self.columns).map_err(|error| match &self.draft {
            Some(draft) => draft.cannot_write(error),
            None => Error::new(Op::Write, &self.name, error),
        })
    }

    /// Syncs the file and gives it its final name.
    ///
    /// # Errors
    /// If the file cannot be written or renamed.
    pub fn finish(mut self) -> Result<(), Error> {
        self.write()?;
        let Self { draft, name, writer, .. } = self;
        let finished = writer.finish().map(drop);
        match draft {
            None => finished.map_err(|error| Error::new(Op::Write, &name, error)),
            Some(draft) => {
                finished.map_err(|error| draft.cannot_write(error))?;
                draft.publish()
            }
        }
    }
}
