//! One file of a table: its hash, its footer, its schema, and the row groups in it.

use std::fs::File;
use std::hash::Hasher;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::metadata::{
    ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy, RowGroupMetaData,
};
use parquet::schema::types::ColumnDescriptor;
use twox_hash::XxHash64;

use super::decode::damaged;
use super::group::Group;
use crate::store::column::Spec;
use crate::store::manifest::{Listed, VERSION};
use crate::store::table::logical;

/// The length of the footer, and the magic bytes.
const TAIL: usize = 8;
const MAGIC: &[u8] = b"PAR1";
/// A footer may have so many bytes, and one for so many of the file: what is read of it takes a multiple of them.
const FOOTER_BYTES: u64 = 256 * 1024;
const FOOTER_SHARE: u64 = 16;
/// Rows of a row group at most.
const GROUP_ROWS_MAX: usize = 1 << 22;

/// Where a file's bytes are.
#[derive(Debug)]
pub(super) enum Source {
    File(File),
    Bytes(Bytes),
}

impl Source {
    /// `count` bytes from `offset` on; the caller has seen that the file is long enough.
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
                range.map(|range| bytes.slice(range)).ok_or_else(|| damaged("it ends too soon"))
            }
        }
    }
}

/// A column of a table, as a file has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Its place in the file; none if files of this format do not have it.
    pub(super) place: Option<usize>,
    /// Whether rows may have no value.
    pub(super) optional: bool,
}

/// A file of a table.
pub(crate) struct Part {
    pub(super) source: Source,
    pub(super) bytes: u64,
    pub(super) specs: &'static [Spec],
    /// Where each of the columns is in the file.
    pub(super) columns: Vec<Found>,
    footer: ParquetMetaData,
}

impl Part {
    /// Opens the file at `path`, which has to have the columns of its table in `format`. Its hash
    /// is [`verify`]'s to compare.
    pub(crate) fn open(path: &Path, listed: &Listed, specs: &'static [Spec], format: u32) -> Result<Self> {
        let part = Self::new(Source::File(File::open(path)?), listed.bytes, specs, format)?;
        let rows: i64 = part.footer.file_metadata().num_rows();
        if u64::try_from(rows) != Ok(listed.rows) {
            return Err(damaged("it has not as many rows as its manifest says"));
        }
        Ok(part)
    }

    /// Of bytes that nobody has compared with a hash.
    pub(super) fn of_bytes(bytes: Bytes, specs: &'static [Spec]) -> Result<Self> {
        let length = bytes.len() as u64;
        Self::new(Source::Bytes(bytes), length, specs, VERSION)
    }

    fn new(source: Source, bytes: u64, specs: &'static [Spec], format: u32) -> Result<Self> {
        let footer = footer(&source, bytes)?;
        let descriptors = footer.file_metadata().schema_descr().columns();
        let find = |spec: &Spec| {
            let optional = spec.is_optional_in(format);
            let place = descriptors.iter().position(|column| is_of(column, spec, optional));
            if place.is_none() && format >= spec.since && !spec.is_asked {
                return Err(damaged(&format!("it has no column '{}' of the right type", spec.name)));
            }
            Ok(Found { place, optional })
        };
        let columns = specs.iter().map(find).collect::<Result<_>>()?;
        Ok(Self { source, bytes, specs, columns, footer })
    }

    /// Checks that every row group is one that readers take, without reading it.
    pub(crate) fn check_shape(&self) -> Result<()> {
        self.each(&mut |group| group.check_shape())
    }

    /// Calls `with` for each row group.
    pub(crate) fn each(&self, with: &mut impl FnMut(&Group<'_>) -> Result<()>) -> Result<()> {
        let mut left = self.footer.file_metadata().num_rows();
        for (number, group) in self.footer.row_groups().iter().enumerate() {
            left = left.checked_sub(group.num_rows()).ok_or_else(|| damaged("it has too many rows"))?;
            with(&self.group(number)?)?;
        }
        if left == 0 { Ok(()) } else { Err(damaged("its row groups have not as many rows as it says")) }
    }

    /// Row group `number`, counted from 0.
    pub(super) fn group(&self, number: usize) -> Result<Group<'_>> {
        let group = self.footer.row_groups().get(number).ok_or_else(|| damaged("it has fewer row groups"))?;
        Ok(Group::new(self, group, self.rows(group)?))
    }

    /// The rows of a row group that has all columns.
    fn rows(&self, group: &RowGroupMetaData) -> Result<usize> {
        let rows = usize::try_from(group.num_rows()).ok().filter(|rows| *rows <= GROUP_ROWS_MAX);
        let has_all = group.num_columns() == self.footer.file_metadata().schema_descr().num_columns();
        rows.filter(|_| has_all).ok_or_else(|| damaged("a row group has an impossible shape"))
    }
}

/// Compares the file's hash with the one that is listed.
pub(crate) fn verify(path: &Path, listed: &Listed) -> Result<()> {
    if hash(&File::open(path)?, listed.bytes)? != u64::from_str_radix(&listed.xxh64, 16).ok() {
        return Err(damaged("it is not as it was written: its hash is another"));
    }
    Ok(())
}

/// The hash of a file, if it has so many bytes.
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

/// The footer, without what readers could do without: statistics are another parser for hostile bytes.
fn footer(source: &Source, bytes: u64) -> Result<ParquetMetaData> {
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

/// Whether a column of a file is what `spec` says.
fn is_of(column: &ColumnDescriptor, spec: &Spec, optional: bool) -> bool {
    let (physical, logical) = logical(spec.kind);
    column.path().parts() == [spec.name]
        && column.physical_type() == physical
        && column.logical_type_ref() == logical.as_ref()
        && column.max_def_level() == i16::from(optional)
        && column.max_rep_level() == 0
}
