//! Decodes a row group of `entries` into rows, as a scan makes them.

use std::ops::Range;

use fathom_walk::Errno;
use parquet::errors::Result;

use super::decode::damaged;
use super::group::RowGroup;
use super::metas::MetaColumns;
use super::values::{NumberColumn, TextColumn};
use crate::entry::type_of;
use crate::store::chunk::{EntryRow, MissingColumns, RowChunk};

/// The end of the range of error numbers (`MAX_ERRNO` in the kernel's err.h, plus one).
const ERRNO_END: i64 = 4096;

/// The columns of a row group of `entries`.
pub struct EntryColumns {
    name: [TextColumn; 2],
    file_type: TextColumn,
    link: [TextColumn; 2],
    metas: MetaColumns,
    errno: NumberColumn,
}

impl EntryColumns {
    /// Reads the columns of a row group.
    pub fn read(group: &RowGroup<'_>) -> Result<Self> {
        Ok(Self {
            name: [group.texts("name")?, group.texts("name_raw")?],
            file_type: group.texts("type")?,
            link: [group.texts("link_target")?, group.texts("link_raw")?],
            metas: MetaColumns::read(group)?,
            errno: group.numbers("errno")?,
        })
    }

    /// Returns rows that are all in one directory.
    pub fn chunk(&self, rows: Range<usize>) -> Result<RowChunk> {
        let mut chunk = RowChunk::default();
        chunk.reserve(rows.len());
        for row in rows {
            let (name, link) = (either(&self.name, row), either(&self.link, row));
            let sound = !name.is_empty() && !name.contains(&0);
            if !sound || !chunk.push_row(self.row(row), name, link) {
                return Err(damaged("a name is empty or contains a NUL byte"));
            }
            self.metas
                .optional_values(row)
                .iter()
                .for_each(|optional_values| chunk.push_optional(optional_values));
        }
        Ok(chunk)
    }

    fn row(&self, row: usize) -> EntryRow {
        let file_type = self.file_type.get(row).map_or(fathom_walk::FileType::Unknown, type_of);
        let meta = self.metas.get(row);
        let missing = if meta.is_some() { self.metas.missing(row) } else { MissingColumns::default() };
        let meta = meta.as_ref().ok_or_else(|| errno_of(self.errno.get(row)));
        EntryRow::new(file_type, meta).without(missing)
    }
}

/// Returns the error with this number; `EIO` if there is none.
pub fn errno_of(number: Option<i64>) -> Errno {
    let number = number.filter(|number| (1..ERRNO_END).contains(number));
    number.map_or(Errno::IO, |number| Errno::from_raw_os_error(number as i32))
}

/// Returns the bytes of a text, from the column of bytes where it is not UTF-8.
fn either([text, raw]: &[TextColumn; 2], row: usize) -> &[u8] {
    raw.get(row).or(text.get(row)).unwrap_or_default()
}
