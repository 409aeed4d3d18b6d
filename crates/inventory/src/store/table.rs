//! One Parquet file: its schema from a list of columns, row group after row group, and what there is to say of it at the end.

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

use super::also::Also;
use super::column::{Fill, Kind, Packing, Spec};
use super::place::create_private;

/// Columns that are filled together.
pub(crate) trait Columns: Default + Send {
    /// What they are, in their order.
    const SPECS: &'static [Spec];
    /// The columns, in the same order.
    fn fields(&mut self) -> Vec<&mut dyn Fill>;
    /// Rows since they were last written.
    fn rows(&self) -> usize;
}

/// What is known of a file that has been written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Of all bytes, by xxHash64 with seed 0.
    pub(crate) hash: u64,
}

/// A file being written.
pub(crate) struct Table<C> {
    writer: SerializedFileWriter<Hashed>,
    /// The columns that were asked for.
    also: Also,
    columns: PhantomData<fn(C)>,
}

/// Counts and hashes what is written.
struct Hashed {
    file: BufWriter<File>,
    /// Whether the disk is to have it in the end.
    durable: bool,
    hash: XxHash64,
    bytes: u64,
}

impl Write for Hashed {
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

impl<C: Columns> Table<C> {
    /// Makes a new file, which its owner alone may read.
    pub(crate) fn create(path: &Path, also: Also) -> Result<Self> {
        Self::new(create_private(path)?, true, also)
    }

    /// Makes a table that is written to a stream, such as a pipe.
    pub(crate) fn to_stream(stream: File) -> Result<Self> {
        Self::new(stream, false, Also::default())
    }

    fn new(file: File, durable: bool, also: Also) -> Result<Self> {
        let file = BufWriter::with_capacity(256 * 1024, file);
        let sink = Hashed { file, durable, hash: XxHash64::with_seed(0), bytes: 0 };
        let specs: Vec<_> = C::SPECS.iter().filter(|spec| spec.is_in(also)).copied().collect();
        let writer = SerializedFileWriter::new(sink, schema(&specs)?, Arc::new(properties(&specs)?))?;
        Ok(Self { writer, also, columns: PhantomData })
    }

    /// Writes a row group of what is in `columns`, and empties them.
    pub(crate) fn write(&mut self, columns: &mut C) -> Result<()> {
        if columns.rows() == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (field, spec) in columns.fields().into_iter().zip(C::SPECS) {
            if !spec.is_in(self.also) {
                field.clear();
                continue;
            }
            let mut column = group.next_column()?.ok_or_else(|| missing("fewer columns than fields"))?;
            field.put(&mut column)?;
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Closes the file, once the disk has it if it is to.
    pub(crate) fn finish(mut self) -> Result<Facts> {
        let rows = self.writer.finish()?.file_metadata().num_rows().unsigned_abs();
        let Hashed { file, durable, hash, bytes } = self.writer.inner_mut();
        file.flush()?;
        if *durable {
            file.get_ref().sync_all()?;
        }
        Ok(Facts { rows, bytes: *bytes, hash: hash.finish() })
    }
}

fn missing(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

fn schema(specs: &[Spec]) -> Result<TypePtr> {
    let fields = specs.iter().map(field).collect::<Result<_>>()?;
    Ok(Arc::new(Type::group_type_builder("fathom").with_fields(fields).build()?))
}

/// What Parquet calls a kind of column.
pub(crate) fn logical(kind: Kind) -> (Physical, Option<LogicalType>) {
    match kind {
        Kind::Int32 => (Physical::INT32, None),
        Kind::Uint32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
        Kind::Int64 => (Physical::INT64, None),
        Kind::Micros => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Bytes => (Physical::BYTE_ARRAY, None),
        Kind::Bool => (Physical::BOOLEAN, None),
    }
}

fn field(spec: &Spec) -> Result<TypePtr> {
    let (physical, logical) = logical(spec.kind);
    let repetition = if spec.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let builder = Type::primitive_type_builder(spec.name, physical);
    Ok(Arc::new(builder.with_repetition(repetition).with_logical_type(logical).build()?))
}

fn properties(specs: &[Spec]) -> Result<WriterProperties> {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("fathom ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(false)
        .set_write_batch_size(8192)
        .set_max_row_group_row_count(None);
    for spec in specs {
        let path = ColumnPath::from(spec.name);
        builder = match spec.packing {
            Packing::Dictionary => builder.set_column_dictionary_enabled(path.clone(), true),
            Packing::Delta => builder.set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED),
            Packing::Front => builder.set_column_encoding(path.clone(), Encoding::DELTA_BYTE_ARRAY),
            Packing::Lengths => builder.set_column_encoding(path.clone(), Encoding::DELTA_LENGTH_BYTE_ARRAY),
        };
        if matches!(spec.kind, Kind::Text | Kind::Bytes) {
            builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    Ok(builder.build())
}
