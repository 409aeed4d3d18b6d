//! A row group of `entries`, decoded whole: rows as a scan makes them.

use std::ops::Range;

use fathom_walk::Errno;
use parquet::errors::Result;

use super::decode::damaged;
use super::group::Group;
use super::metas::Metas;
use super::values::{Numbers, Texts};
use crate::entry::type_of;
use crate::store::chunk::{Chunk, Row};

/// Error numbers are below (MAX_ERRNO in the kernel's err.h).
const ERRNO_END: i64 = 4096;

/// The columns of a row group.
pub(crate) struct Rows {
    name: [Texts; 2],
    file_type: Texts,
    link: [Texts; 2],
    metas: Metas,
    errno: Numbers,
}

impl Rows {
    pub(crate) fn read(group: &Group<'_>) -> Result<Self> {
        Ok(Self {
            name: [group.texts("name")?, group.texts("name_raw")?],
            file_type: group.texts("type")?,
            link: [group.texts("link_target")?, group.texts("link_raw")?],
            metas: Metas::read(group)?,
            errno: group.numbers("errno")?,
        })
    }

    /// Some of the rows, which are all of one directory.
    pub(crate) fn chunk(&self, rows: Range<usize>) -> Result<Chunk> {
        let mut chunk = Chunk::default();
        chunk.reserve(rows.len());
        for row in rows {
            let (name, link) = (either(&self.name, row), either(&self.link, row));
            let sound = !name.is_empty() && !name.contains(&0);
            if !sound || !chunk.push_row(self.row(row), name, link) {
                return Err(damaged("a name is none"));
            }
            self.metas.extra(row).iter().for_each(|extra| chunk.push_extra(extra));
        }
        Ok(chunk)
    }

    fn row(&self, row: usize) -> Row {
        let file_type = self.file_type.get(row).map_or(fathom_walk::FileType::Unknown, type_of);
        Row::new(file_type, self.metas.get(row).as_ref().ok_or_else(|| errno_of(self.errno.get(row))))
    }
}

/// The error of a number that should be one's.
pub(crate) fn errno_of(number: Option<i64>) -> Errno {
    let number = number.filter(|number| (1..ERRNO_END).contains(number));
    number.map_or(Errno::IO, |number| Errno::from_raw_os_error(number as i32))
}

/// A text, or its own bytes where it is not UTF-8.
fn either([text, raw]: &[Texts; 2], row: usize) -> &[u8] {
    raw.get(row).or(text.get(row)).unwrap_or_default()
}
