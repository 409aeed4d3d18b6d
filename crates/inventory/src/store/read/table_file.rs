//! A file of a table: its hash, footer, schema and row groups.

use std::fs::File;
use std::hash::Hasher;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::metadata::{
    ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy, RowGroupMetaData,
};
use parquet::schema::types::ColumnDescriptor;
use twox_hash::XxHash64;

use super::decode::damaged;
use super::group::RowGroup;
use crate::store::column::ColumnSpec;
use crate::store::manifest::ManifestFile;
use crate::store::parquet_writer::logical;

/// The bytes at the end of a file: the length of the footer, and the magic number.
const TAIL: usize = 8;
const MAGIC: &[u8] = b"PAR1";
/// Most bytes of a footer: this many, and one for each [`FOOTER_SHARE`] bytes of the file. The
/// decoded footer takes a multiple of that.
const FOOTER_BYTES: u64 = 256 * 1024;
const FOOTER_SHARE: u64 = 16;
/// Most rows of a row group.
const GROUP_ROWS_MAX: usize = 1 << 22;

/// The bytes of a file, on disk or in memory.
#[derive(Debug)]
pub(super) enum ByteSource {
    File(File),
    Bytes(Bytes),
}

impl ByteSource {
    /// Reads `count` bytes from `offset` on. For a file the caller has checked that it is long
    /// enough.
    pub(super) fn read(&self, offset: u64, count: usize) -> Result<Bytes> {
        match self {
            Self::File(file) => {
                let mut bytes = vec![0; count];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes.into())
            }
            Self::Bytes(bytes) => {
                let end =
                    usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(count)?));
                let range = end.filter(|range| range.end <= bytes.len());
                range.map(|range| bytes.slice(range)).ok_or_else(|| damaged("it is truncated"))
            }
        }
    }
}

/// A file of a table.
pub struct TableFile {
    pub(super) source: ByteSource,
    pub(super) bytes: u64,
    pub(super) specs: &'static [ColumnSpec],
    /// The index in the file of each column in `specs`; `None` for an optional one that it lacks.
    pub(super) places: Vec<Option<usize>>,
    footer: ParquetMetaData,
    /// The bytes of columns that have been read.
    pub(super) bytes_read: AtomicU64,
}

impl TableFile {
    /// Opens the file at `path`, which has to have the columns of its table. `verify` compares
    /// its hash.
    pub fn open(path: &Path, listed: &ManifestFile, specs: &'static [ColumnSpec]) -> Result<Self> {
        let part = Self::new(ByteSource::File(File::open(path)?), listed.bytes, specs)?;
        let rows: i64 = part.footer.file_metadata().num_rows();
        if u64::try_from(rows) != Ok(listed.rows) {
            return Err(damaged("it has not as many rows as its manifest says"));
        }
        Ok(part)
    }

    /// Opens bytes whose hash has not been verified.
    pub(super) fn of_bytes(bytes: Bytes, specs: &'static [ColumnSpec]) -> Result<Self> {
        let length = bytes.len() as u64;
        Self::new(ByteSource::Bytes(bytes), length, specs)
    }

    fn new(source: ByteSource, bytes: u64, specs: &'static [ColumnSpec]) -> Result<Self> {
        let footer = footer(&source, bytes)?;
        let descriptors = footer.file_metadata().schema_descr().columns();
        let find = |spec: &ColumnSpec| {
            let place = descriptors.iter().position(|column| matches_spec(column, spec));
            if place.is_none() && !spec.is_optional {
                return Err(damaged(&format!("it has no column '{}' of the right type", spec.name)));
            }
            Ok(place)
        };
        let places = specs.iter().map(find).collect::<Result<_>>()?;
        Ok(Self { source, bytes, specs, places, footer, bytes_read: AtomicU64::new(0) })
    }

    /// Checks that readers accept every row group, without reading it.
    pub fn check_shape(&self) -> Result<()> {
        self.each(&mut |group| group.check_shape())
    }

    /// Calls `with` for each row group.
    pub fn each(&self, with: &mut impl FnMut(&RowGroup<'_>) -> Result<()>) -> Result<()> {
        let mut left = self.footer.file_metadata().num_rows();
        for (number, group) in self.footer.row_groups().iter().enumerate() {
            left = left.checked_sub(group.num_rows()).ok_or_else(|| damaged("it has too many rows"))?;
            with(&self.group(number)?)?;
        }
        if left == 0 { Ok(()) } else { Err(damaged("its row groups have not as many rows as it says")) }
    }

    /// Returns the number of rows of each row group.
    pub(super) fn group_rows(&self) -> Result<Vec<u64>> {
        self.footer.row_groups().iter().map(|group| Ok(self.rows(group)? as u64)).collect()
    }

    /// Returns row group `number`, counted from 0.
    pub fn group(&self, number: usize) -> Result<RowGroup<'_>> {
        let group = self.footer.row_groups().get(number).ok_or_else(|| damaged("it has fewer row groups"))?;
        Ok(RowGroup::new(self, group, self.rows(group)?))
    }

    /// Returns the number of rows of a row group, which has to have all columns.
    fn rows(&self, group: &RowGroupMetaData) -> Result<usize> {
        let rows = usize::try_from(group.num_rows()).ok().filter(|rows| *rows <= GROUP_ROWS_MAX);
        let has_all = group.num_columns() == self.footer.file_metadata().schema_descr().num_columns();
        rows.filter(|_| has_all).ok_or_else(|| damaged("a row group has an impossible shape"))
    }
}

/// Compares the hash of the file with the recorded one.
pub(crate) fn verify(path: &Path, listed: &ManifestFile) -> Result<()> {
    if hash(&File::open(path)?, listed.bytes)? != u64::from_str_radix(&listed.xxh64, 16).ok() {
        return Err(damaged("its hash differs from the recorded hash"));
    }
    Ok(())
}

/// Returns the hash of a file; `None` if it has fewer than `bytes` bytes.
fn hash(file: &File, bytes: u64) -> Result<Option<u64>> {
    let mut hasher = XxHash64::with_seed(0);
    let mut buffer = vec![0; 256 * 1024];
    let mut offset = 0;
    while offset < bytes {
        let wanted = buffer.len().min(usize::try_from(bytes - offset).unwrap_or(usize::MAX));
        let found = file.read_at(&mut buffer[..wanted], offset)?;
        if found == 0 {
            return Ok(None);
        }
        hasher.write(&buffer[..found]);
        offset += found as u64;
    }
    Ok(Some(hasher.finish()))
}

/// Reads the footer, without statistics: readers do not need them, and their parser would be
/// another target for hostile bytes.
fn footer(source: &ByteSource, bytes: u64) -> Result<ParquetMetaData> {
    let before =
        bytes.checked_sub(TAIL as u64).ok_or_else(|| damaged("it is too short for a Parquet file"))?;
    let tail = source.read(before, TAIL)?;
    let (length, magic) = tail.split_at(4);
    if magic != MAGIC {
        return Err(damaged("it does not end as a Parquet file"));
    }
    let length = u64::from(u32::from_le_bytes(length.try_into().map_err(|_| damaged("it is too short"))?));
    if length > before || length > FOOTER_BYTES + bytes / FOOTER_SHARE {
        return Err(damaged("its footer is too long"));
    }
    let footer = source.read(before - length, length as usize)?;
    let options = ParquetMetaDataOptions::new()
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    ParquetMetaDataReader::decode_metadata_with_options(&footer, Some(&options))
}

/// Returns whether a column of a file is the one that `spec` describes.
fn matches_spec(column: &ColumnDescriptor, spec: &ColumnSpec) -> bool {
    let (physical, logical) = logical(spec.kind);
    column.path().parts() == [spec.name]
        && column.physical_type() == physical
        && column.logical_type_ref() == logical.as_ref()
        && column.max_def_level() == i16::from(spec.nullable)
        && column.max_rep_level() == 0
}
