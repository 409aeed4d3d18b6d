//! The small tables: `errors`, `users` and `groups`, and `links`, which repeats columns of
//! `entries` for files with several names.

use super::column::{
    ColumnBuffer, ColumnEncoding, ColumnKind, ColumnSpec, Int32Buffer, Int64Buffer, TextBuffer,
};
use super::dirs::push_text;
use super::parquet_writer::TableBuffer;
use super::text::to_text;

/// The operation in a row of `errors` that reports a time out of range.
pub const TIME_OPERATION: &str = "time";

/// A row of `errors`.
#[derive(Clone, Copy, Debug)]
pub struct ErrorRow<'a> {
    /// The directory; `None` for an operand that does not exist.
    pub dir_id: Option<i64>,
    /// The entry of the directory, or the operand; `None` for the directory itself.
    pub name: Option<&'a [u8]>,
    /// The path; `None` if it is too long for the table.
    pub path: Option<&'a [u8]>,
    /// The operation that failed.
    pub op: &'a str,
    /// The error number.
    pub errno: i32,
    /// The error's words.
    pub message: &'a [u8],
}

/// The buffered rows of `errors`, each about a failed operation.
#[derive(Default)]
pub struct ErrorsBuffer {
    rows: usize,
    dir_id: Int64Buffer,
    texts: [TextBuffer; 6],
    text_bytes: usize,
    errno: Int32Buffer,
}

impl ErrorsBuffer {
    /// Adds a row.
    pub fn push(&mut self, failure: &ErrorRow<'_>) {
        self.rows += 1;
        let [name, name_raw, path, path_raw, op, message] = &mut self.texts;
        self.dir_id.push_option(failure.dir_id);
        push_text(failure.name, name, name_raw);
        push_text(failure.path, path, path_raw);
        op.push(failure.op.as_bytes());
        self.errno.push(failure.errno);
        message.push(to_text(failure.message).0.as_bytes());
        self.text_bytes += failure.name.map_or(0, <[u8]>::len) + failure.path.map_or(0, <[u8]>::len);
    }

    /// Returns the number of bytes of names and paths since the last row group.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes
    }
}

impl TableBuffer for ErrorsBuffer {
    const SPECS: &'static [ColumnSpec] = &[
        ColumnSpec::new("dir_id", ColumnKind::Int64, ColumnEncoding::Delta).nullable(),
        ColumnSpec::new("name", ColumnKind::Text, ColumnEncoding::Front).nullable(),
        ColumnSpec::new("name_raw", ColumnKind::Bytes, ColumnEncoding::Lengths).nullable(),
        ColumnSpec::new("path", ColumnKind::Text, ColumnEncoding::Front).nullable(),
        ColumnSpec::new("path_raw", ColumnKind::Bytes, ColumnEncoding::Lengths).nullable(),
        ColumnSpec::new("op", ColumnKind::Text, ColumnEncoding::Dictionary),
        ColumnSpec::new("errno", ColumnKind::Int32, ColumnEncoding::Dictionary),
        ColumnSpec::new("message", ColumnKind::Text, ColumnEncoding::Dictionary),
    ];

    fn buffers(&mut self) -> Vec<&mut dyn ColumnBuffer> {
        let Self { rows, dir_id, texts, text_bytes, errno } = self;
        let [name, name_raw, path, path_raw, op, message] = texts;
        (*rows, *text_bytes) = (0, 0);
        vec![dir_id, name, name_raw, path, path_raw, op, errno, message]
    }

    fn rows(&self) -> usize {
        self.rows
    }
}

/// The buffered rows of `links`: each name of an inode that has several and is not a directory.
#[derive(Default)]
pub(crate) struct LinksBuffer {
    rows: usize,
    numbers: [Int64Buffer; 5],
    nlink: Int32Buffer,
    mtime: Int64Buffer,
}

/// A row of `links`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// The number of the directory that has the name.
    pub dir_id: i64,
    /// The device number.
    pub dev: i64,
    /// The inode number.
    pub ino: i64,
    /// The size in bytes.
    pub size: i64,
    /// The blocks of 512 bytes.
    pub blocks: i64,
    /// The number of names.
    pub nlink: u32,
    /// The modification time, in microseconds since 1970.
    pub mtime: i64,
}

impl LinkRow {
    /// Makes the row of an entry of the directory `dir_id`.
    pub fn new(dir_id: i64, row: &super::chunk::EntryRow) -> Self {
        let (dev, ino, blocks) = (row.dev.cast_signed(), row.ino.cast_signed(), row.blocks.cast_signed());
        Self { dir_id, dev, ino, size: row.size, blocks, nlink: row.nlink, mtime: row.micros[1] }
    }
}

impl LinksBuffer {
    pub(crate) fn push(&mut self, row: &LinkRow) {
        self.rows += 1;
        let numbers = [row.dir_id, row.dev, row.ino, row.size, row.blocks];
        self.numbers.iter_mut().zip(numbers).for_each(|(column, number)| column.push(number));
        self.nlink.push(row.nlink.cast_signed());
        self.mtime.push(row.mtime);
    }
}

impl TableBuffer for LinksBuffer {
    const SPECS: &'static [ColumnSpec] = &[
        ColumnSpec::new("dir_id", ColumnKind::Int64, ColumnEncoding::Delta),
        ColumnSpec::new("dev", ColumnKind::Int64, ColumnEncoding::Dictionary),
        ColumnSpec::new("ino", ColumnKind::Int64, ColumnEncoding::Delta),
        ColumnSpec::new("size", ColumnKind::Int64, ColumnEncoding::Delta),
        ColumnSpec::new("blocks", ColumnKind::Int64, ColumnEncoding::Delta),
        ColumnSpec::new("nlink", ColumnKind::Uint32, ColumnEncoding::Dictionary),
        ColumnSpec::new("mtime", ColumnKind::Micros, ColumnEncoding::Delta),
    ];

    fn buffers(&mut self) -> Vec<&mut dyn ColumnBuffer> {
        let Self { rows, numbers: [dir_id, dev, ino, size, blocks], nlink, mtime } = self;
        *rows = 0;
        vec![dir_id, dev, ino, size, blocks, nlink, mtime]
    }

    fn rows(&self) -> usize {
        self.rows
    }
}

/// The buffered rows of `users` or `groups`: each ID that occurs, and its name if it has one.
#[derive(Default)]
pub(crate) struct OwnersBuffer {
    rows: usize,
    id: Int32Buffer,
    name: TextBuffer,
}

impl OwnersBuffer {
    pub(crate) fn push(&mut self, id: u32, name: Option<&[u8]>) {
        self.rows += 1;
        self.id.push(id.cast_signed());
        self.name.push_option(name.map(|name| to_text(name).0).as_deref().map(str::as_bytes));
    }
}

impl TableBuffer for OwnersBuffer {
    const SPECS: &'static [ColumnSpec] = &[
        ColumnSpec::new("id", ColumnKind::Uint32, ColumnEncoding::Delta),
        ColumnSpec::new("name", ColumnKind::Text, ColumnEncoding::Lengths).nullable(),
    ];

    fn buffers(&mut self) -> Vec<&mut dyn ColumnBuffer> {
        let Self { rows, id, name } = self;
        *rows = 0;
        vec![id, name]
    }

    fn rows(&self) -> usize {
        self.rows
    }
}
