//! Writes a Parquet file: the schema comes from a list of column specifications, row groups follow
//! one another, and the end returns length and hash.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufWriter, Write};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use twox_hash::XxHash64;

use super::column::{ColumnBuffer, ColumnEncoding, ColumnKind, ColumnSpec};
use super::copied_group::{CopiedGroup, close_result};
use super::files::create_private;
use super::optional::OptionalColumns;

/// The column buffers of a table.
pub trait TableBuffer: Default + Send {
    /// The specifications of the columns, in their order.
    const SPECS: &'static [ColumnSpec];
    /// Returns the column buffers, in the same order, to be written or cleared. Resets the number
    /// of rows.
    fn buffers(&mut self) -> Vec<&mut dyn ColumnBuffer>;
    /// Returns the number of rows since the last row group.
    fn rows(&self) -> usize;
}

/// The length and the hash of a file that has been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStats {
    /// The number of rows.
    pub rows: u64,
    pub(crate) bytes: u64,
    /// The xxHash64 of all bytes, with seed 0.
    pub hash: u64,
}

/// A Parquet file that is being written.
pub struct ParquetWriter<C> {
    writer: SerializedFileWriter<HashingFile>,
    /// The optional columns of the file.
    optional_columns: OptionalColumns,
    columns: PhantomData<fn(C)>,
}

/// Counts and hashes everything that is written.
struct HashingFile {
    file: BufWriter<File>,
    /// Whether the file is synced at the end.
    durable: bool,
    hash: XxHash64,
    bytes: u64,
}

impl Write for HashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.write(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<C: TableBuffer> ParquetWriter<C> {
    /// Creates a new file, which only its owner may read.
    pub(crate) fn create(path: &Path, optional_columns: OptionalColumns) -> Result<Self> {
        Self::new(create_private(path)?, true, optional_columns)
    }

    /// Writes to an empty file.
    pub fn to_file(file: File, optional_columns: OptionalColumns) -> Result<Self> {
        Self::new(file, true, optional_columns)
    }

    /// Writes to a stream, such as a pipe.
    pub fn to_stream(stream: File) -> Result<Self> {
        Self::new(stream, false, OptionalColumns::default())
    }

    fn new(file: File, durable: bool, optional_columns: OptionalColumns) -> Result<Self> {
        let file = BufWriter::with_capacity(256 * 1024, file);
        let sink = HashingFile { file, durable, hash: XxHash64::with_seed(0), bytes: 0 };
        let specs: Vec<_> = C::SPECS.iter().filter(|spec| spec.is_in(optional_columns)).copied().collect();
        let writer = SerializedFileWriter::new(sink, schema(&specs)?, Arc::new(properties(&specs)?))?;
        Ok(Self { writer, optional_columns, columns: PhantomData })
    }

    /// Writes the buffered rows as a row group, and clears the buffers.
    pub fn write(&mut self, columns: &mut C) -> Result<()> {
        if columns.rows() == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (field, spec) in columns.buffers().into_iter().zip(C::SPECS) {
            if !spec.is_in(self.optional_columns) {
                field.clear();
                continue;
            }
            let mut column = group.next_column()?.ok_or_else(|| missing("fewer columns than fields"))?;
            field.write_to(&mut column)?;
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Copies a row group of a file with the same columns, with other values in the column
    /// `replaced`, the columns of `values`.
    pub(crate) fn copy(
        &mut self,
        copied: &CopiedGroup,
        replaced: &str,
        values: &mut dyn ColumnBuffer,
    ) -> Result<()> {
        let footer = &copied.source.footer;
        let of_group = footer.row_groups().get(copied.group).ok_or_else(|| missing("fewer row groups"))?;
        let mut group = self.writer.next_row_group()?;
        for column in of_group.columns() {
            if column.column_descr().name() == replaced {
                let mut column = group.next_column()?.ok_or_else(|| missing("fewer columns than fields"))?;
                values.write_to(&mut column)?;
                column.close()?;
            } else {
                group.append_column(&copied.source.file, close_result(column, copied.dir_ids.len()))?;
            }
        }
        group.close()?;
        Ok(())
    }

    /// Writes the footer, and syncs the file if it is not a stream.
    pub fn finish(mut self) -> Result<FileStats> {
        let rows = self.writer.finish()?.file_metadata().num_rows().unsigned_abs();
        let HashingFile { file, durable, hash, bytes } = self.writer.inner_mut();
        file.flush()?;
        if *durable {
            file.get_ref().sync_all()?;
        }
        Ok(FileStats { rows, bytes: *bytes, hash: hash.finish() })
    }
}

fn missing(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

/// Returns the schema of a file with these columns.
pub(super) fn schema(specs: &[ColumnSpec]) -> Result<TypePtr> {
    let fields = specs.iter().map(field).collect::<Result<_>>()?;
    Ok(Arc::new(Type::group_type_builder("fathom").with_fields(fields).build()?))
}

/// Returns the physical and the logical Parquet type of a column kind.
pub(crate) fn logical(kind: ColumnKind) -> (Physical, Option<LogicalType>) {
    match kind {
        ColumnKind::Int32 => (Physical::INT32, None),
        ColumnKind::Uint32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
        ColumnKind::Int64 => (Physical::INT64, None),
        ColumnKind::Micros => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnKind::Bytes => (Physical::BYTE_ARRAY, None),
        ColumnKind::Bool => (Physical::BOOLEAN, None),
    }
}

fn field(spec: &ColumnSpec) -> Result<TypePtr> {
    let (physical, logical) = logical(spec.kind);
    let repetition = if spec.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let builder = Type::primitive_type_builder(spec.name, physical);
    Ok(Arc::new(builder.with_repetition(repetition).with_logical_type(logical).build()?))
}

fn properties(specs: &[ColumnSpec]) -> Result<WriterProperties> {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(false)
        .set_write_batch_size(8192)
        .set_max_row_group_row_count(None);
    for spec in specs {
        let path = ColumnPath::from(spec.name);
        builder = match spec.encoding {
            ColumnEncoding::Dictionary => builder.set_column_dictionary_enabled(path.clone(), true),
            ColumnEncoding::Delta => builder.set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED),
            ColumnEncoding::Front => builder.set_column_encoding(path.clone(), Encoding::DELTA_BYTE_ARRAY),
            ColumnEncoding::Lengths => {
                builder.set_column_encoding(path.clone(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
            }
        };
        if matches!(spec.kind, ColumnKind::Text | ColumnKind::Bytes) {
            builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    Ok(builder.build())
}
