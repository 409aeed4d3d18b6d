//! The small tables: `errors`, `users` and `groups`, and `links`, which has what `entries` has of files with several names.

use super::column::{Fill, Int32s, Int64s, Kind, Packing, Spec, Texts};
use super::dirs::push_text;
use super::table::Columns;
use super::text::readable;

/// A row of `errors`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure<'a> {
    /// The directory concerned; none for an operand that is not there.
    pub(crate) dir_id: Option<i64>,
    /// The entry of that directory, or the operand; none if it is the directory itself.
    pub(crate) name: Option<&'a [u8]>,
    /// None if it is too long for the table.
    pub(crate) path: Option<&'a [u8]>,
    pub(crate) op: &'a str,
    pub(crate) errno: i32,
    pub(crate) message: &'a [u8],
}

/// Rows of `errors`: what could not be read, and why.
#[derive(Default)]
pub(crate) struct Errors {
    rows: usize,
    dir_id: Int64s,
    texts: [Texts; 6],
    text_bytes: usize,
    errno: Int32s,
}

impl Errors {
    pub(crate) fn push(&mut self, failure: &Failure<'_>) {
        self.rows += 1;
        let [name, name_raw, path, path_raw, op, message] = &mut self.texts;
        self.dir_id.push_some(failure.dir_id);
        push_text(failure.name, name, name_raw);
        push_text(failure.path, path, path_raw);
        op.push(failure.op.as_bytes());
        self.errno.push(failure.errno);
        message.push(readable(failure.message).0.as_bytes());
        self.text_bytes += failure.name.map_or(0, <[u8]>::len) + failure.path.map_or(0, <[u8]>::len);
    }

    /// Bytes of names and paths since they were last written.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes
    }
}

impl Columns for Errors {
    const SPECS: &'static [Spec] = &[
        Spec::new("dir_id", Kind::Int64, Packing::Delta).optional(),
        Spec::new("name", Kind::Text, Packing::Front).optional().since(2),
        Spec::new("name_raw", Kind::Bytes, Packing::Lengths).optional().since(2),
        Spec::new("path", Kind::Text, Packing::Front).optional_since(2),
        Spec::new("path_raw", Kind::Bytes, Packing::Lengths).optional(),
        Spec::new("op", Kind::Text, Packing::Dictionary),
        Spec::new("errno", Kind::Int32, Packing::Dictionary),
        Spec::new("message", Kind::Text, Packing::Dictionary),
    ];

    fn fields(&mut self) -> Vec<&mut dyn Fill> {
        let Self { rows, dir_id, texts, text_bytes, errno } = self;
        let [name, name_raw, path, path_raw, op, message] = texts;
        (*rows, *text_bytes) = (0, 0);
        vec![dir_id, name, name_raw, path, path_raw, op, errno, message]
    }

    fn rows(&self) -> usize {
        self.rows
    }
}

/// Rows of `links`: each name, but for directories, of an inode that has several.
#[derive(Default)]
pub(crate) struct Links {
    rows: usize,
    numbers: [Int64s; 5],
    nlink: Int32s,
    modified: Int64s,
}

impl Links {
    pub(crate) fn push(&mut self, dir_id: i64, row: &super::chunk::Row) {
        self.rows += 1;
        let numbers =
            [dir_id, row.dev.cast_signed(), row.ino.cast_signed(), row.size, row.blocks.cast_signed()];
        self.numbers.iter_mut().zip(numbers).for_each(|(column, number)| column.push(number));
        self.nlink.push(row.nlink.cast_signed());
        self.modified.push(row.micros[1]);
    }
}

impl Columns for Links {
    const SPECS: &'static [Spec] = &[
        Spec::new("dir_id", Kind::Int64, Packing::Delta),
        Spec::new("dev", Kind::Int64, Packing::Dictionary),
        Spec::new("ino", Kind::Int64, Packing::Delta),
        Spec::new("size", Kind::Int64, Packing::Delta),
        Spec::new("blocks", Kind::Int64, Packing::Delta),
        Spec::new("nlink", Kind::Uint32, Packing::Dictionary),
        Spec::new("mtime", Kind::Micros, Packing::Delta),
    ];

    fn fields(&mut self) -> Vec<&mut dyn Fill> {
        let Self { rows, numbers: [dir_id, dev, ino, size, blocks], nlink, modified } = self;
        *rows = 0;
        vec![dir_id, dev, ino, size, blocks, nlink, modified]
    }

    fn rows(&self) -> usize {
        self.rows
    }
}

/// Rows of `users` or `groups`: a number that occurs, and its name if it has one.
#[derive(Default)]
pub(crate) struct Names {
    rows: usize,
    id: Int32s,
    name: Texts,
}

impl Names {
    pub(crate) fn push(&mut self, id: u32, name: Option<&[u8]>) {
        self.rows += 1;
        self.id.push(id.cast_signed());
        self.name.push_some(name.map(|name| readable(name).0).as_deref().map(str::as_bytes));
    }
}

impl Columns for Names {
    const SPECS: &'static [Spec] = &[
        Spec::new("id", Kind::Uint32, Packing::Delta),
        Spec::new("name", Kind::Text, Packing::Lengths).optional(),
    ];

    fn fields(&mut self) -> Vec<&mut dyn Fill> {
        let Self { rows, id, name } = self;
        *rows = 0;
        vec![id, name]
    }

    fn rows(&self) -> usize {
        self.rows
    }
}
