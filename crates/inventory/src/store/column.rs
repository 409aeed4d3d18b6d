//! Columns while they are filled: the values of a row group, one buffer a column and no heap object a row.

use bytes::Bytes;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;

use super::also::Also;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A signed 32-bit number.
    Int32,
    /// An unsigned 32-bit number.
    Uint32,
    /// A signed 64-bit number.
    Int64,
    /// Microseconds since 1970, UTC.
    Micros,
    /// UTF-8.
    Text,
    /// Any bytes.
    Bytes,
    /// True or false.
    Bool,
}

/// How a column is put in few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// Differences between neighbours.
    Delta,
    /// Each value once, then which.
    Dictionary,
    /// What a text shares with the beginning of the one before is left out.
    Front,
    /// All lengths, then all bytes.
    Lengths,
}

/// One column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) packing: Packing,
    /// Rows may have no value.
    pub(crate) optional: bool,
    /// The first format that has the column.
    pub(crate) since: u32,
    /// The first format in which rows may have no value.
    pub(crate) optional_since: u32,
    /// Files have the column only if it was asked for.
    pub(crate) is_asked: bool,
}

impl Spec {
    pub(crate) const fn new(name: &'static str, kind: Kind, packing: Packing) -> Self {
        Self { name, kind, packing, optional: false, since: 1, optional_since: 1, is_asked: false }
    }

    pub(crate) const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Marks a column that files of formats before `format` do not have.
    pub(crate) const fn since(self, format: u32) -> Self {
        Self { since: format, ..self }
    }

    /// Marks a column that has a value in every row of files of formats before `format`.
    pub(crate) const fn optional_since(self, format: u32) -> Self {
        Self { optional: true, optional_since: format, ..self }
    }

    /// Marks a column that files have only if it was asked for.
    pub(crate) const fn asked(self) -> Self {
        Self { is_asked: true, optional: true, ..self }
    }

    /// Whether files have the column where those of `also` were asked for.
    pub(crate) fn is_in(&self, also: Also) -> bool {
        !self.is_asked || also.has(self.name)
    }

    /// Whether rows of a file of `format` may have no value.
    pub(crate) const fn is_optional_in(&self, format: u32) -> bool {
        self.optional && format >= self.optional_since
    }
}

/// A filled column.
pub(crate) trait Fill {
    /// Writes the values, and forgets them.
    fn put(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()>;
    /// Forgets the values.
    fn clear(&mut self);
}

/// Numbers, and which rows have one: a level is 1 or 0. A column that is never without has no levels.
#[derive(Debug)]
pub(crate) struct Numbers<T: DataType> {
    values: Vec<T::T>,
    levels: Vec<i16>,
}

pub(crate) type Bools = Numbers<BoolType>;
pub(crate) type Int32s = Numbers<Int32Type>;
pub(crate) type Int64s = Numbers<Int64Type>;

impl<T: DataType> Default for Numbers<T> {
    fn default() -> Self {
        Self { values: Vec::new(), levels: Vec::new() }
    }
}

impl<T: DataType> Numbers<T> {
    /// In a column that is never without.
    pub(crate) fn push(&mut self, value: T::T) {
        self.values.push(value);
    }

    /// In a column that may be without.
    pub(crate) fn push_some(&mut self, value: Option<T::T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

fn levels(levels: &[i16]) -> Option<&[i16]> {
    (!levels.is_empty()).then_some(levels)
}

impl<T: DataType> Fill for Numbers<T> {
    fn put(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        column.typed::<T>().write_batch(&self.values, levels(&self.levels), None)?;
        self.clear();
        Ok(())
    }

    fn clear(&mut self) {
        self.values.clear();
        self.levels.clear();
    }
}

/// Texts or bytes, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    levels: Vec<i16>,
}

impl Texts {
    /// In a column that is never without.
    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// In a column that may be without.
    pub(crate) fn push_some(&mut self, text: Option<&[u8]>) {
        self.levels.push(i16::from(text.is_some()));
        text.into_iter().for_each(|text| self.push(text));
    }
}

impl Fill for Texts {
    fn put(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
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
