//! Changes as a Parquet file: a row for each. It has another name, its own with `.part` at the end, until the disk has all of it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fathom_walk::{Attributes, Errno};

use super::change::{Change, Field};
use super::facts::{Facts, Number};
use crate::store::{
    Also, Bools, Columns, Error, Fill, GROUP_TEXT_BYTES, Int32s, Int64s, Kind, Op, Packing, Sink, Spec,
    TextColumn, readable, rename_new, sync_directory_of,
};

/// Rows that are encoded together.
const GROUP_ROWS: usize = 65_536;

const fn text(name: &'static str) -> Spec {
    Spec::new(name, Kind::Text, Packing::Dictionary).optional()
}

const fn number(name: &'static str, kind: Kind) -> Spec {
    Spec::new(name, kind, Packing::Delta).optional()
}

/// What is known of an entry on one side.
macro_rules! facts {
    ($($side:literal),*) => {
        [$(
            text(concat!($side, "_type")),
            number(concat!($side, "_ino"), Kind::Int64),
            number(concat!($side, "_size"), Kind::Int64),
            number(concat!($side, "_blocks"), Kind::Int64),
            number(concat!($side, "_mtime"), Kind::Micros),
            number(concat!($side, "_ctime"), Kind::Micros),
            number(concat!($side, "_btime"), Kind::Micros),
            number(concat!($side, "_mode"), Kind::Uint32),
            number(concat!($side, "_uid"), Kind::Uint32),
            number(concat!($side, "_gid"), Kind::Uint32),
            number(concat!($side, "_nlink"), Kind::Uint32),
            number(concat!($side, "_mtime_ns"), Kind::Int32),
            number(concat!($side, "_ctime_ns"), Kind::Int32),
            number(concat!($side, "_project"), Kind::Uint32),
            text(concat!($side, "_attributes")),
            text(concat!($side, "_xattrs")),
            Spec::new(concat!($side, "_acl"), Kind::Bool, Packing::Dictionary).optional(),
            text(concat!($side, "_link_target")),
            Spec::new(concat!($side, "_link_raw"), Kind::Bytes, Packing::Lengths).optional(),
        )*]
    };
}

/// In the order of the columns.
const LONGS: [Number; 6] =
    [Number::Ino, Number::Size, Number::Blocks, Number::Mtime, Number::Ctime, Number::Btime];
const INTS: [Number; 7] = [
    Number::Mode,
    Number::Uid,
    Number::Gid,
    Number::Nlink,
    Number::MtimeNs,
    Number::CtimeNs,
    Number::Project,
];
const FACTS: [Spec; 38] = facts!("old", "new");
const HEAD: [Spec; 6] = [
    Spec::new("change", Kind::Text, Packing::Dictionary),
    Spec::new("path", Kind::Text, Packing::Front),
    Spec::new("path_raw", Kind::Bytes, Packing::Lengths).optional(),
    Spec::new("old_path", Kind::Text, Packing::Lengths).optional(),
    Spec::new("old_path_raw", Kind::Bytes, Packing::Lengths).optional(),
    Spec::new("fields", Kind::Text, Packing::Dictionary).optional(),
];

/// Rows to be written.
#[derive(Default)]
struct Changes {
    rows: usize,
    text_bytes: usize,
    head: [TextColumn; 6],
    sides: [Side; 2],
}

/// The columns of one side.
#[derive(Default)]
struct Side {
    letter: TextColumn,
    longs: [Int64s; LONGS.len()],
    ints: [Int32s; INTS.len()],
    attributes: TextColumn,
    xattrs: TextColumn,
    acl: Bools,
    link: [TextColumn; 2],
}

impl Side {
    fn push(&mut self, facts: Option<&Facts>) {
        self.letter.push_some(facts.map(|facts| std::slice::from_ref(&facts.letter)));
        for (column, number) in self.longs.iter_mut().zip(LONGS) {
            column.push_some(facts.and_then(|facts| facts.number(number)));
        }
        for (column, number) in self.ints.iter_mut().zip(INTS) {
            // Half of them are unsigned: what counts are the bits.
            column.push_some(facts.and_then(|facts| facts.number(number)).map(|number| number as i32));
        }
        let mut text = [0; Attributes::TEXT_BYTES_MAX];
        let attributes = facts.and_then(Facts::attributes);
        self.attributes.push_some(attributes.map(|attributes| attributes.text(&mut text)));
        self.xattrs.push_some(facts.and_then(|facts| facts.xattrs.as_deref()));
        let acl = facts.and_then(|facts| facts.number(Number::Acl));
        self.acl.push_some(acl.map(|acl| acl == 1));
        let link = facts.map(|facts| &facts.link[..]).filter(|link| !link.is_empty());
        let [text, raw] = &mut self.link;
        push_path(link, text, raw);
    }

    fn fields(&mut self) -> Vec<&mut dyn Fill> {
        let mut fields: Vec<&mut dyn Fill> = vec![&mut self.letter];
        fields.extend(self.longs.iter_mut().map(|column| column as &mut dyn Fill));
        fields.extend(self.ints.iter_mut().map(|column| column as &mut dyn Fill));
        fields.extend([&mut self.attributes as &mut dyn Fill, &mut self.xattrs, &mut self.acl]);
        fields.extend(self.link.iter_mut().map(|column| column as &mut dyn Fill));
        fields
    }
}

fn push_path(bytes: Option<&[u8]>, text: &mut TextColumn, raw: &mut TextColumn) {
    let readable = bytes.map(readable);
    text.push_some(readable.as_ref().map(|(text, _)| text.as_bytes()));
    raw.push_some(readable.and_then(|(_, raw)| raw));
}

impl Changes {
    fn push(&mut self, change: &Change) {
        self.rows += 1;
        let text = |facts: &Facts| facts.link.len() + facts.xattrs.as_ref().map_or(0, Vec::len);
        let texts = [&change.old, &change.new].into_iter().flatten().map(text);
        self.text_bytes +=
            change.path.len() + change.from.as_ref().map_or(0, Vec::len) + texts.sum::<usize>();
        let [verb, path, path_raw, from, from_raw, fields] = &mut self.head;
        verb.push(change.verb.word().as_bytes());
        let (text, raw) = readable(&change.path);
        path.push(text.as_bytes());
        path_raw.push_some(raw);
        push_path(change.from.as_deref(), from, from_raw);
        let words: Vec<_> = change.fields().into_iter().map(Field::word).collect();
        fields.push_some((!words.is_empty()).then(|| words.join(",")).as_deref().map(str::as_bytes));
        let [old, new] = &mut self.sides;
        old.push(change.old.as_ref());
        new.push(change.new.as_ref());
    }
}

impl Columns for Changes {
    const SPECS: &'static [Spec] = &{
        let mut specs = [HEAD[0]; HEAD.len() + FACTS.len()];
        let mut at = 0;
        while at < specs.len() {
            specs[at] = if at < HEAD.len() { HEAD[at] } else { FACTS[at - HEAD.len()] };
            at += 1;
        }
        specs
    };

    fn fields(&mut self) -> Vec<&mut dyn Fill> {
        (self.rows, self.text_bytes) = (0, 0);
        let head = self.head.iter_mut().map(|column| column as &mut dyn Fill);
        head.chain(self.sides.iter_mut().flat_map(Side::fields)).collect()
    }

    fn rows(&self) -> usize {
        self.rows
    }
}

/// A Parquet file of changes while it is made. It is not there unless [`Sheet::finish`] was called.
pub struct Sheet {
    /// The final path of the file; `None` for a stream.
    out: Option<PathBuf>,
    part: PathBuf,
    columns: Changes,
    table: Option<Sink<Changes>>,
}

impl Sheet {
    /// A new file that is to be called `out`.
    ///
    /// # Errors
    /// If there is something of that name, if the file cannot be made, or if there is one that was
    /// begun and not ended.
    pub fn create(out: &Path) -> Result<Self, Error> {
        if out.symlink_metadata().is_ok() {
            return Err(Error::new(Op::Create, out, io::Error::from(Errno::EXIST)));
        }
        let mut name = out.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = out.with_file_name(name);
        let table =
            Sink::create(&part, Also::default()).map_err(|error| Error::new(Op::Create, &part, error))?;
        Ok(Self { out: Some(out.to_owned()), part, columns: Changes::default(), table: Some(table) })
    }

    /// Writes to a stream that is called `name` in errors.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn to_stream(stream: File, name: &Path) -> Result<Self, Error> {
        let table = Sink::to_stream(stream).map_err(|error| Error::new(Op::Write, name, error))?;
        Ok(Self { out: None, part: name.to_owned(), columns: Changes::default(), table: Some(table) })
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
        let written = self.table.as_mut().map_or(Ok(()), |table| table.write(&mut self.columns));
        written.map_err(|error| Error::new(Op::Write, &self.part, error))
    }

    /// Gives the file its name, once the disk has all of it.
    ///
    /// # Errors
    /// If it cannot be written, or if there is something of its name by now.
    pub fn finish(mut self) -> Result<(), Error> {
        self.write()?;
        let Some(table) = self.table.take() else { return Ok(()) };
        let finished = table.finish().map_err(|error| Error::new(Op::Write, &self.part, error));
        let Some(out) = &self.out else { return finished.map(drop) };
        let renamed = finished.and_then(|_| {
            rename_new(&self.part, out).map_err(|error| Error::new(Op::Rename, &self.part, error))
        });
        if renamed.is_err() {
            let _ = fs::remove_file(&self.part);
        }
        renamed?;
        sync_directory_of(out).map_err(|error| Error::new(Op::Rename, out, error))
    }
}

impl Drop for Sheet {
    fn drop(&mut self) {
        if self.table.take().is_some() && self.out.is_some() {
            // Nobody has asked for half of it.
            let _ = fs::remove_file(&self.part);
        }
    }
}
