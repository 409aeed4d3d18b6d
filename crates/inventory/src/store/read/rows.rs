//! A row group of `entries`, decoded whole: rows as a scan makes them.

use std::ops::Range;

use parquet::errors::Result;

use super::decode::damaged;
use super::group::Group;
use super::values::{Numbers, Texts};
use crate::entry::file_type;
use crate::store::chunk::{Chunk, Row};

/// The columns of a row group.
pub(super) struct Rows {
    name: [Texts; 2],
    file_type: Texts,
    link: [Texts; 2],
    /// `dev`, `ino`, `size`, `blocks`, `mode`, `nlink`, `uid`, `gid`.
    numbers: [Numbers; 8],
    micros: [Numbers; 3],
    nanos: [Numbers; 3],
    born: Numbers,
    errno: Numbers,
}

impl Rows {
    pub(super) fn read(group: &Group<'_>) -> Result<Self> {
        let (number, text) = (|name| group.numbers(name), |name| group.texts(name));
        Ok(Self {
            name: [text("name")?, text("name_raw")?],
            file_type: text("type")?,
            link: [text("link_target")?, text("link_raw")?],
            numbers: [
                number("dev")?,
                number("ino")?,
                number("size")?,
                number("blocks")?,
                number("mode")?,
                number("nlink")?,
                number("uid")?,
                number("gid")?,
            ],
            micros: [number("atime")?, number("mtime")?, number("ctime")?],
            nanos: [number("atime_ns")?, number("mtime_ns")?, number("ctime_ns")?],
            born: number("btime")?,
            errno: number("errno")?,
        })
    }

    /// Some of the rows, which are all of one directory.
    pub(super) fn chunk(&self, rows: Range<usize>) -> Result<Chunk> {
        let mut chunk = Chunk::default();
        chunk.reserve(rows.len());
        for row in rows {
            let (name, link) = (either(&self.name, row), either(&self.link, row));
            let sound = !name.is_empty() && !name.contains(&0);
            if !sound || !chunk.push_row(self.row(row), name, link) {
                return Err(damaged("a name is none"));
            }
        }
        Ok(chunk)
    }

    fn row(&self, row: usize) -> Row {
        let letter = self.file_type.get(row).and_then(|text| text.first().copied()).unwrap_or_default();
        let number = |column: usize| self.numbers[column].or_zero()[row];
        let errno = self.errno.get(row).unwrap_or(0);
        Row {
            dev: number(0).cast_unsigned(),
            ino: number(1).cast_unsigned(),
            size: number(2),
            blocks: number(3).cast_unsigned(),
            mode: number(4) as u32,
            nlink: number(5) as u32,
            uid: number(6) as u32,
            gid: number(7) as u32,
            micros: self.micros.each_ref().map(|column| column.or_zero()[row]),
            nanos: self.nanos.each_ref().map(|column| column.or_zero()[row].clamp(0, 999) as u16),
            errno: u16::try_from(errno).unwrap_or(u16::MAX),
            ..Row::born_at(file_type(letter), self.born.get(row))
        }
    }
}

/// A text, or its own bytes where it is not UTF-8.
fn either([text, raw]: &[Texts; 2], row: usize) -> &[u8] {
    raw.get(row).or(text.get(row)).unwrap_or_default()
}
