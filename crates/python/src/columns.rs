//! The columns of a list, and the record batches that workers build of them.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
    UInt32Builder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use fathom_walk::{Fields, FileTime, FileType, Meta};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The zone of times (RFC 3339).
pub(crate) const ZONE: &str = "UTC";

/// A column of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Path,
    PathRaw,
    Name,
    NameRaw,
    Type,
    Depth,
    /// The inode number in the directory, which `scandir` has without a call: the same as `ino`,
    /// except for a mount point. Users do not see this column.
    DirentIno,
    Size,
    Allocated,
    Mtime,
    Atime,
    Ctime,
    Btime,
    Mode,
    Nlink,
    Uid,
    Gid,
    Ino,
    Dev,
    /// `st_mtime` and `st_ctime` of `os.stat`.
    StMtime,
    StCtime,
}

impl Column {
    /// All columns that users see, in their order.
    pub(crate) const ALL: [Self; 20] = [
        Self::Path,
        Self::PathRaw,
        Self::Name,
        Self::NameRaw,
        Self::Type,
        Self::Depth,
        Self::Size,
        Self::Allocated,
        Self::Mtime,
        Self::Atime,
        Self::Ctime,
        Self::Btime,
        Self::Mode,
        Self::Nlink,
        Self::Uid,
        Self::Gid,
        Self::Ino,
        Self::Dev,
        Self::StMtime,
        Self::StCtime,
    ];

    /// Returns the name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::PathRaw => "path_raw",
            Self::Name => "name",
            Self::NameRaw => "name_raw",
            Self::Type => "type",
            Self::Depth => "depth",
            Self::DirentIno => "d_ino",
            Self::Size => "size",
            Self::Allocated => "allocated",
            Self::Mtime => "mtime",
            Self::Atime => "atime",
            Self::Ctime => "ctime",
            Self::Btime => "btime",
            Self::Mode => "mode",
            Self::Nlink => "nlink",
            Self::Uid => "uid",
            Self::Gid => "gid",
            Self::Ino => "ino",
            Self::Dev => "dev",
            Self::StMtime => "st_mtime",
            Self::StCtime => "st_ctime",
        }
    }

    /// Returns the fields of metadata that the column is made of; `None` if it needs no metadata.
    pub(crate) fn fields(self) -> Option<Fields> {
        match self {
            Self::Path | Self::PathRaw | Self::Name | Self::NameRaw => None,
            Self::Type | Self::Depth | Self::DirentIno => None,
            Self::Size => Some(Fields::SIZE),
            Self::Allocated => Some(Fields::BLOCKS),
            Self::Mtime | Self::Atime | Self::Ctime | Self::StMtime | Self::StCtime => Some(Fields::TIMES),
            Self::Btime => Some(Fields::BIRTH),
            Self::Uid | Self::Gid => Some(Fields::OWNER),
            Self::Mode | Self::Nlink | Self::Ino | Self::Dev => Some(Fields::IDENTITY),
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Path | Self::Name | Self::Type => DataType::Utf8,
            Self::PathRaw | Self::NameRaw => DataType::Binary,
            Self::Size => DataType::Int64,
            Self::Mtime | Self::Atime | Self::Ctime | Self::Btime => {
                DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()))
            }
            Self::Depth | Self::Mode | Self::Uid | Self::Gid => DataType::UInt32,
            Self::DirentIno | Self::Allocated | Self::Nlink | Self::Ino | Self::Dev => DataType::UInt64,
            Self::StMtime | Self::StCtime => DataType::Float64,
        }
    }
}

/// Parses names of columns.
///
/// # Errors
/// `ValueError` for a name that no column has.
pub(crate) fn parse_columns(names: &[String]) -> PyResult<Vec<Column>> {
    let parse = |name: &String| {
        let known = Column::ALL.into_iter().chain([Column::DirentIno]);
        let found = known.into_iter().find(|column| column.name() == name);
        found.ok_or_else(|| {
            let names = Column::ALL.map(Column::name).join(", ");
            PyValueError::new_err(format!("unknown column {name:?}: the columns are {names}"))
        })
    };
    names.iter().map(parse).collect()
}

/// Returns the schema of a list with these columns.
pub(crate) fn schema(columns: &[Column]) -> SchemaRef {
    let field = |column: &Column| Field::new(column.name(), column.data_type(), *column == Column::Btime);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Returns the schema of entries of which some have no metadata.
pub(crate) fn nullable_schema(columns: &[Column]) -> SchemaRef {
    let field = |column: &Column| Field::new(column.name(), column.data_type(), column.fields().is_some());
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// An entry whose row is added to a batch.
pub(crate) struct RowSource<'a> {
    /// The path, of which the last `name_len` bytes are the name.
    pub(crate) path: &'a [u8],
    pub(crate) name_len: usize,
    pub(crate) depth: usize,
    /// The inode number that the directory has.
    pub(crate) ino: u64,
    pub(crate) file_type: FileType,
    /// Set if a column needs it and it is known.
    pub(crate) meta: Option<&'a Meta>,
}

impl RowSource<'_> {
    fn name(&self) -> &[u8] {
        &self.path[self.path.len() - self.name_len..]
    }
}

/// The growing values of a column.
#[derive(Debug)]
enum ColumnValues {
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Signed(Int64Builder),
    Short(UInt32Builder),
    Long(UInt64Builder),
    Seconds(Float64Builder),
    Time(TimestampMicrosecondBuilder),
}

impl ColumnValues {
    fn new(data_type: &DataType) -> Self {
        match data_type {
            DataType::Utf8 => Self::Text(StringBuilder::new()),
            DataType::Binary => Self::Bytes(BinaryBuilder::new()),
            DataType::Int64 => Self::Signed(Int64Builder::new()),
            DataType::UInt32 => Self::Short(UInt32Builder::new()),
            DataType::UInt64 => Self::Long(UInt64Builder::new()),
            DataType::Float64 => Self::Seconds(Float64Builder::new()),
            _ => Self::Time(TimestampMicrosecondBuilder::new().with_timezone(ZONE)),
        }
    }

    /// Adds a missing value of metadata.
    fn push_null(&mut self) {
        match self {
            Self::Text(values) => values.append_null(),
            Self::Bytes(values) => values.append_null(),
            Self::Signed(values) => values.append_null(),
            Self::Short(values) => values.append_null(),
            Self::Long(values) => values.append_null(),
            Self::Seconds(values) => values.append_null(),
            Self::Time(values) => values.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(values) => ArrayBuilder::finish(values),
            Self::Bytes(values) => ArrayBuilder::finish(values),
            Self::Signed(values) => ArrayBuilder::finish(values),
            Self::Short(values) => ArrayBuilder::finish(values),
            Self::Long(values) => ArrayBuilder::finish(values),
            Self::Seconds(values) => ArrayBuilder::finish(values),
            Self::Time(values) => ArrayBuilder::finish(values),
        }
    }
}

/// The rows of a batch that is not complete.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    columns: Vec<(Column, ColumnValues)>,
    rows: usize,
    text_bytes: usize,
}

impl BatchBuilder {
    /// Creates an empty batch.
    pub(crate) fn new(columns: &[Column]) -> Self {
        let values = |column: &Column| (*column, ColumnValues::new(&column.data_type()));
        Self { columns: columns.iter().map(values).collect(), rows: 0, text_bytes: 0 }
    }

    /// Returns the number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the bytes of the paths.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &RowSource<'_>) {
        let none = Meta::default();
        let meta = row.meta.unwrap_or(&none);
        for (column, values) in &mut self.columns {
            if row.meta.is_none() && column.fields().is_some() {
                values.push_null();
            } else {
                push_value(*column, values, row, meta);
            }
        }
        self.rows += 1;
        self.text_bytes += row.path.len();
    }

    /// Returns the batch and empties the builder.
    ///
    /// # Errors
    /// None in practice: all columns have the same length.
    pub(crate) fn finish(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        self.text_bytes = 0;
        let arrays = self.columns.iter_mut().map(|(_, values)| values.finish()).collect();
        // A batch without columns has rows, too.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
    }
}

fn push_value(column: Column, values: &mut ColumnValues, row: &RowSource<'_>, meta: &Meta) {
    match values {
        ColumnValues::Text(values) => match column {
            Column::Path => push_text(values, row.path),
            Column::Name => push_text(values, row.name()),
            _ => values.append_value(row.file_type.name()),
        },
        ColumnValues::Bytes(values) => {
            values.append_value(if column == Column::PathRaw { row.path } else { row.name() });
        }
        ColumnValues::Signed(values) => values.append_value(meta.size),
        ColumnValues::Short(values) => values.append_value(match column {
            Column::Depth => u32::try_from(row.depth).unwrap_or(u32::MAX),
            Column::Mode => meta.mode,
            Column::Uid => meta.uid,
            _ => meta.gid,
        }),
        ColumnValues::Long(values) => values.append_value(match column {
            Column::DirentIno => row.ino,
            Column::Allocated => meta.blocks.wrapping_mul(512),
            Column::Nlink => meta.nlink,
            Column::Ino => meta.ino,
            _ => meta.dev,
        }),
        ColumnValues::Seconds(values) => {
            values.append_value(seconds(if column == Column::StMtime { meta.mtime } else { meta.ctime }));
        }
        ColumnValues::Time(values) => values.append_option(match column {
            Column::Mtime => Some(microseconds(meta.mtime)),
            Column::Atime => Some(microseconds(meta.atime)),
            Column::Ctime => Some(microseconds(meta.ctime)),
            _ => meta.btime.map(microseconds),
        }),
    }
}

/// Adds text in which bytes that are not UTF-8 are replaced.
fn push_text(values: &mut StringBuilder, bytes: &[u8]) {
    // The lossy conversion checks byte by byte, and is rarely needed.
    match std::str::from_utf8(bytes) {
        Ok(text) => values.append_value(text),
        Err(_) => values.append_value(String::from_utf8_lossy(bytes)),
    }
}

/// Returns the microseconds since the epoch, rounded down.
pub(crate) fn microseconds(time: FileTime) -> i64 {
    time.sec.saturating_mul(1_000_000).saturating_add(i64::from(time.nsec / 1000))
}

/// Returns the seconds since the epoch, with the operations of Python's `os.stat`, so that the
/// results are the same to the last bit.
#[expect(clippy::cast_precision_loss, reason = "a float has fewer bits")]
fn seconds(time: FileTime) -> f64 {
    time.sec as f64 + 1e-9 * f64::from(time.nsec)
}
