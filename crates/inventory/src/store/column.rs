//! Column buffers of a row group that is being written: one buffer for each column, and no
//! allocation for a row.

use bytes::Bytes;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;

use super::optional::OptionalColumns;

/// The value type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A signed 32-bit number.
    Int32,
    /// An unsigned 32-bit number.
    Uint32,
    /// A signed 64-bit number.
    Int64,
    /// Microseconds since 1970, in UTC.
    Micros,
    /// UTF-8.
    Text,
    /// Any bytes.
    Bytes,
    /// A truth value.
    Bool,
}

/// The encoding of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnEncoding {
    /// Differences between neighbours (`DELTA_BINARY_PACKED`).
    Delta,
    /// Each distinct value once, and indices (`RLE_DICTIONARY`).
    Dictionary,
    /// The length of the prefix shared with the text before, and the rest (`DELTA_BYTE_ARRAY`).
    Front,
    /// All lengths, then all bytes (`DELTA_LENGTH_BYTE_ARRAY`).
    Lengths,
}

/// The specification of a column of a table.
#[derive(Clone, Copy, Debug)]
pub struct ColumnSpec {
    /// The name.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnKind,
    pub(crate) encoding: ColumnEncoding,
    /// Whether rows may have no value.
    pub nullable: bool,
    /// Whether files have the column only if the scan had the option for it.
    pub(crate) is_optional: bool,
}

impl ColumnSpec {
    /// Specifies a required column of every file.
    pub const fn new(name: &'static str, kind: ColumnKind, encoding: ColumnEncoding) -> Self {
        Self { name, kind, encoding, nullable: false, is_optional: false }
    }

    /// Specifies the same column for rows that may have no value.
    pub const fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// Marks a column that files have only if the scan had the option for it.
    pub(crate) const fn optional(self) -> Self {
        Self { is_optional: true, nullable: true, ..self }
    }

    /// Returns whether files have the column, if the scan had the options for `optional_columns`.
    pub fn is_in(&self, optional_columns: OptionalColumns) -> bool {
        !self.is_optional || optional_columns.has_column(self.name)
    }
}

/// The buffer of a column.
pub trait ColumnBuffer {
    /// Writes the values to `column`, and clears the buffer.
    fn write_to(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()>;
    /// Clears the buffer.
    fn clear(&mut self);
}

/// A buffer of numbers. The definition level of a row is 1 if it has a value and 0 if not; a
/// required column has no levels.
#[derive(Debug)]
pub struct PrimitiveBuffer<T: DataType> {
    values: Vec<T::T>,
    levels: Vec<i16>,
}

/// The buffer of a column of truth values.
pub type BoolBuffer = PrimitiveBuffer<BoolType>;
/// The buffer of a column of 32-bit numbers.
pub type Int32Buffer = PrimitiveBuffer<Int32Type>;
/// The buffer of a column of 64-bit numbers.
pub type Int64Buffer = PrimitiveBuffer<Int64Type>;

impl<T: DataType> Default for PrimitiveBuffer<T> {
    fn default() -> Self {
        Self { values: Vec::new(), levels: Vec::new() }
    }
}

impl<T: DataType> PrimitiveBuffer<T> {
    /// Adds a value to a required column.
    pub fn push(&mut self, value: T::T) {
        self.values.push(value);
    }

    /// Adds a value, or none, to a nullable column.
    pub fn push_option(&mut self, value: Option<T::T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

fn levels(levels: &[i16]) -> Option<&[i16]> {
    (!levels.is_empty()).then_some(levels)
}

impl<T: DataType> ColumnBuffer for PrimitiveBuffer<T> {
    fn write_to(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        column.typed::<T>().write_batch(&self.values, levels(&self.levels), None)?;
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.values.clear();
        self.levels.clear();
    }
}

/// A buffer of texts or byte strings, one after the other.
#[derive(Debug, Default)]
pub struct TextBuffer {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    levels: Vec<i16>,
}

impl TextBuffer {
    /// Adds a value to a required column.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Adds a value, or none, to a nullable column.
    pub fn push_option(&mut self, text: Option<&[u8]>) {
        self.levels.push(i16::from(text.is_some()));
        text.into_iter().for_each(|text| self.push(text));
    }
}

impl ColumnBuffer for TextBuffer {
    fn write_to(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let values: Vec<ByteArray> =
            starts.zip(&self.ends).map(|(start, end)| bytes.slice(start..*end).into()).collect();
        column.typed::<ByteArrayType>().write_batch(&values, levels(&self.levels), None)?;
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.levels.clear();
    }
}
