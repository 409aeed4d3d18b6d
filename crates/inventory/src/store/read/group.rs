//! A row group: its columns, each of which is read when it is requested.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{Buf, Bytes, buf};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};

use super::decode::{Cursor, damaged, runs};
use super::header;
use super::table_file::TableFile;
use super::values::{COLUMN_BYTES_MAX, ColumnValues, NumberColumn, TextColumn};
use crate::store::column::ColumnKind;

/// A row group of a file.
pub struct RowGroup<'a> {
    part: &'a TableFile,
    columns: &'a RowGroupMetaData,
    rows: usize,
}

impl<'a> RowGroup<'a> {
    pub(super) fn new(part: &'a TableFile, columns: &'a RowGroupMetaData, rows: usize) -> Self {
        Self { part, columns, rows }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns whether the file has the column `name`.
    pub fn has_column(&self, name: &str) -> bool {
        let mut specs = self.part.specs.iter().zip(&self.part.places);
        specs.any(|(spec, place)| spec.name == name && place.is_some())
    }

    /// Reads the column `name`, which has to be one of numbers.
    pub fn numbers(&self, name: &str) -> Result<NumberColumn> {
        self.column(name, |kind| !is_text(kind))
    }

    /// Reads the column `name`, which has to be one of texts or bytes.
    pub fn texts(&self, name: &str) -> Result<TextColumn> {
        self.column(name, is_text)
    }

    /// Reads all columns, to check them.
    pub(super) fn check(&self) -> Result<()> {
        for spec in self.part.specs {
            if is_text(spec.kind) {
                self.texts(spec.name)?;
            } else {
                self.numbers(spec.name)?;
            }
        }
        Ok(())
    }

    /// Checks what the footer says of all columns.
    pub(super) fn check_shape(&self) -> Result<()> {
        for meta in self.part.places.iter().flatten().map(|place| self.columns.column(*place)) {
            self.place(meta)?;
            if usize::try_from(meta.uncompressed_size()).map_or(true, |bytes| bytes > COLUMN_BYTES_MAX) {
                return Err(damaged("a column of a row group is too long"));
            }
        }
        Ok(())
    }

    fn column<V: ColumnValues>(&self, name: &str, fits: impl Fn(ColumnKind) -> bool) -> Result<V> {
        let mut specs = self.part.specs.iter().zip(&self.part.places);
        let found = specs.find(|(spec, _)| spec.name == name && fits(spec.kind));
        let (spec, place) = found.ok_or_else(|| damaged("unknown column"))?;
        let Some(place) = *place else {
            let mut nothing = V::of(spec.kind, self.rows);
            nothing.expand(0, &vec![false; self.rows]);
            return Ok(nothing);
        };
        let meta = self.columns.column(place);
        let pages = SerializedPageReader::new(Arc::new(self.chunk(meta)?), meta, self.rows, None)?;
        read(pages, ColumnType { kind: spec.kind, nullable: spec.nullable }, self.rows)
    }

    /// Returns the offset of a column in the file and its length in bytes, after checking that it
    /// lies within the file and is not too long.
    fn place(&self, meta: &ColumnChunkMetaData) -> Result<(u64, usize)> {
        let start = meta.dictionary_page_offset().unwrap_or(meta.data_page_offset());
        let (start, count) = (u64::try_from(start), usize::try_from(meta.compressed_size()));
        let (Ok(start), Ok(count)) = (start, count) else {
            return Err(damaged("a column has an impossible place"));
        };
        let is_within = start.checked_add(count as u64).is_some_and(|end| end <= self.part.bytes);
        if !is_within || count > COLUMN_BYTES_MAX {
            return Err(damaged("a column has an impossible place"));
        }
        Ok((start, count))
    }

    fn chunk(&self, meta: &ColumnChunkMetaData) -> Result<ColumnBytes> {
        let (start, count) = self.place(meta)?;
        let bytes = self.part.source.read(start, count)?;
        self.part.bytes_read.fetch_add(count as u64, Ordering::Relaxed);
        header::check(Cursor(&bytes))?;
        Ok(ColumnBytes { start, bytes })
    }
}

fn is_text(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Text | ColumnKind::Bytes)
}

/// The value type of a column in a file, and whether it may hold nulls.
#[derive(Clone, Copy, Debug)]
struct ColumnType {
    kind: ColumnKind,
    nullable: bool,
}

/// Reads `rows` rows of a column, neither more nor less.
fn read<V: ColumnValues>(mut pages: impl PageReader, form: ColumnType, rows: usize) -> Result<V> {
    let mut values = V::of(form.kind, rows);
    let mut dictionary = None;
    while let Some(page) = pages.get_next_page()? {
        match page {
            Page::DictionaryPage { buf, num_values, encoding, .. } => {
                let is_plain = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
                if !is_plain || dictionary.is_some() || num_values as usize > rows {
                    return Err(damaged("a dictionary page is invalid"));
                }
                let mut entries = V::of(form.kind, num_values as usize);
                entries.decode(Cursor(&buf), Encoding::PLAIN, num_values as usize, None)?;
                dictionary = Some(entries);
            }
            Page::DataPage { buf, num_values, encoding, def_level_encoding, .. } => {
                let count = num_values as usize;
                if count > rows - values.len() || def_level_encoding != Encoding::RLE {
                    return Err(damaged("a page has an impossible shape"));
                }
                data(&mut values, Cursor(&buf), encoding, count, dictionary.as_ref(), form)?;
            }
            Page::DataPageV2 { .. } => {
                return Err(damaged("a page is of a kind that inventories do not have"));
            }
        }
    }
    if values.len() == rows { Ok(values) } else { Err(damaged("a column has too few rows")) }
}

/// Appends the rows of a data page.
fn data<V: ColumnValues>(
    values: &mut V,
    mut input: Cursor<'_>,
    encoding: Encoding,
    rows: usize,
    dictionary: Option<&V>,
    form: ColumnType,
) -> Result<()> {
    if !form.nullable {
        return values.decode(input, encoding, rows, dictionary);
    }
    let mut levels = Cursor(input.sized()?);
    let mut present = Vec::with_capacity(rows);
    runs(&mut levels, 1, rows, &mut |level, times| {
        present.resize(present.len() + times, level == 1);
        Ok(())
    })?;
    let from = values.len();
    let count = present.iter().filter(|present| **present).count();
    if count > 0 {
        values.decode(input, encoding, count, dictionary)?;
    }
    values.expand(from, &present);
    Ok(())
}

/// The bytes of a column, found by their offset in the file.
struct ColumnBytes {
    start: u64,
    bytes: Bytes,
}

impl ColumnBytes {
    fn from(&self, start: u64) -> Result<Bytes> {
        let offset = start.checked_sub(self.start).and_then(|offset| usize::try_from(offset).ok());
        let offset = offset.filter(|offset| *offset <= self.bytes.len());
        offset.map(|offset| self.bytes.slice(offset..)).ok_or_else(|| damaged("a page is not in its column"))
    }
}

impl Length for ColumnBytes {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for ColumnBytes {
    type T = buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.from(start).map(Buf::reader)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(damaged("a page is not in its column"));
        }
        Ok(bytes.slice(..length))
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::os::unix::process::ExitStatusExt;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::Command;

    use parquet::basic::Type as Physical;
    use parquet::column::page::PageMetadata;
    use parquet::column::reader::{ColumnReader, get_column_reader};
    use parquet::schema::types::{ColumnDescriptor, ColumnPath, Type};
    use rustix::process::{Resource, Rlimit, Signal, setrlimit};

    use super::*;

    /// The limit of the address space in which a damaged file must be an error.
    const MEMORY_MAX: u64 = 512 << 20;
    const IS_LIMITED: &str = "FATHOM_TEST_LIMITED";
    /// The head of the lengths in a page: blocks of 128 numbers in 4 parts.
    const BLOCK: [u8; 3] = [0x80, 0x01, 4];

    /// A column of one page with one text.
    struct OnePage(Option<Page>);

    impl OnePage {
        /// Creates a page of texts in the encoding `DELTA_LENGTH_BYTE_ARRAY`.
        fn new(bytes: Vec<u8>) -> Self {
            Self(Some(Page::DataPage {
                buf: bytes.into(),
                num_values: 1,
                encoding: Encoding::DELTA_LENGTH_BYTE_ARRAY,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            }))
        }
    }

    impl Iterator for OnePage {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.0.take().map(Ok)
        }
    }

    impl PageReader for OnePage {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.take())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn read_here(bytes: &[u8]) -> Result<TextColumn> {
        read(OnePage::new(bytes.to_vec()), ColumnType { kind: ColumnKind::Text, nullable: false }, 1)
    }

    /// Reads the page with the decoders of the `parquet` crate. Returns the number of texts.
    fn read_by_library(bytes: &[u8]) -> Result<usize> {
        let column = Type::primitive_type_builder("text", Physical::BYTE_ARRAY).build()?;
        let column = ColumnDescriptor::new(Arc::new(column), 0, 0, ColumnPath::from("text"));
        let pages = Box::new(OnePage::new(bytes.to_vec()));
        let ColumnReader::ByteArrayColumnReader(mut reader) = get_column_reader(Arc::new(column), pages)
        else {
            return Err(damaged("not a column of texts"));
        };
        reader.read_records(1, None, None, &mut Vec::new()).map(|(rows, ..)| rows)
    }

    /// If the library refuses these pages one day, the decoders in this directory can be deleted.
    #[test]
    fn the_library_panics_for_a_text_that_is_longer_than_its_page() {
        let sound = [&BLOCK[..], &[1, 4], b"ab"].concat();
        assert_eq!(
            (read_here(&sound).unwrap().get(0), read_by_library(&sound).unwrap()),
            (Some(&b"ab"[..]), 1)
        );
        let damaged = [&BLOCK[..], &[1, 40], b"ab"].concat();
        assert!(read_here(&damaged).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| read_by_library(&damaged))).is_err());
    }

    /// A page says that it has 2^28 texts. The library allocates the lengths of all of them, and a
    /// failed allocation aborts the process, however panics are handled.
    #[test]
    fn the_library_aborts_for_a_number_of_texts_that_memory_does_not_hold() {
        let forged = [&BLOCK[..], &[0x80, 0x80, 0x80, 0x80, 0x01, 0]].concat();
        assert!(read_here(&forged).is_err());
        if env::var_os(IS_LIMITED).is_some() {
            let limit = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
            setrlimit(Resource::Core, limit(0)).unwrap();
            setrlimit(Resource::As, limit(MEMORY_MAX)).unwrap();
            assert!(read_here(&forged).is_err());
            println!("refused here");
            let _ = read_by_library(&forged);
            return;
        }
        let name =
            "store::read::group::tests::the_library_aborts_for_a_number_of_texts_that_memory_does_not_hold";
        let child = Command::new(env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(IS_LIMITED, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(text.contains("refused here"), "{child:?}");
        assert_eq!(child.status.signal(), Some(Signal::ABORT.as_raw()), "{child:?}");
    }
}
