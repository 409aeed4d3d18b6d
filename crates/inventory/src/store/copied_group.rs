//! Row groups of `entries` that are copied from another inventory: every column as it is in the
//! file, except the numbers of the directories.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::statistics::Statistics;

use super::entries::EntriesBuffer;
use super::parquet_writer::{TableBuffer, schema};
use super::small_tables::LinkRow;

/// A file of which row groups are copied.
#[derive(Debug)]
pub struct CopySource {
    pub(super) file: File,
    pub(super) footer: ParquetMetaData,
}

impl CopySource {
    /// Opens a file that has been verified; `None` if it has not the columns that files of today
    /// have without any optional one. Its footer is read with its statistics, which copies keep.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        let file = File::open(path)?;
        let footer = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        let specs: Vec<_> = EntriesBuffer::SPECS.iter().filter(|spec| !spec.is_optional).copied().collect();
        let is_same = *footer.file_metadata().schema_descr().root_schema() == *schema(&specs)?;
        Ok(is_same.then_some(Self { file, footer }))
    }

    /// Returns the number that all rows of a row group have in a column, if its statistics say so.
    /// An unsigned number is the one with its bits.
    pub fn constant(&self, group: usize, column: &str) -> Option<i64> {
        let columns = self.footer.row_group(group).columns();
        let column = columns.iter().find(|found| found.column_path().parts() == [column])?;
        let statistics = column.statistics().filter(|all| all.null_count_opt() == Some(0))?;
        let (least, largest): (i64, i64) = match statistics {
            Statistics::Int32(all) => ((*all.min_opt()?).into(), (*all.max_opt()?).into()),
            Statistics::Int64(all) => (*all.min_opt()?, *all.max_opt()?),
            _ => return None,
        };
        (least == largest).then_some(least)
    }
}

/// A row group to be copied.
#[derive(Clone, Debug)]
pub struct CopiedGroup {
    /// The file that has it.
    pub source: Arc<CopySource>,
    /// The index of the row group.
    pub group: usize,
    /// The new numbers of the directories, one for each row.
    pub dir_ids: Vec<i64>,
    /// The rows of `links` for its rows whose inodes have several names.
    pub links: Vec<LinkRow>,
}

/// Describes a column for the writer that it is copied to.
pub(super) fn close_result(column: &ColumnChunkMetaData, rows: usize) -> ColumnCloseResult {
    ColumnCloseResult {
        bytes_written: column.compressed_size().unsigned_abs(),
        rows_written: rows as u64,
        metadata: column.clone(),
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    }
}
