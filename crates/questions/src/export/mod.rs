//! Exports an inventory to formats that other programs read: lines or objects, ncdu's tree, SQL
//! statements. The output is written while the inventory is read. Memory grows with the number of
//! directories and with the size of a row group, not with the number of entries.
//!
//! Owns the order of the entries and the bytes of each format. Does not own the destination of the
//! output.

mod csv;
mod ncdu;
mod prometheus;
mod records;
mod sql;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;

use parquet::errors::{ParquetError, Result as ParquetResult};

pub use csv::{write_csv_field, write_csv_text};
pub use ncdu::WRAPPER_NAME as NCDU_WRAPPER_NAME;
pub use prometheus::{PrometheusOptions, prometheus, replace_public};

use crate::replay::{ReplayEntry, ReplayHeader, ReplayVisitor, replay};
use crate::top::{self, below};
use fathom_inventory::store::Span;
use fathom_inventory::store::{DirState, Error, Inventory};
use records::{JsonLinesFormat, NulFormat};

/// Bytes at which the buffer is written. A pipe holds 64 KiB (pipe(7)); a larger write would sleep
/// until the reader has taken all of it.
const FULL_BYTES: usize = 60 * 1024;

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// Objects as [`crate::json`] writes them, one a line.
    JsonLines,
    /// The members of these objects as columns, after RFC 4180.
    Csv,
    /// Paths, each with a zero byte after it.
    Nul,
    /// ncdu's export format, version 1.2 (<https://dev.yorhel.nl/ncdu/jsonfmt>).
    Ncdu,
    /// The tables as SQL statements for SQLite.
    Sql,
}

/// The options of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportOptions {
    /// The output format.
    pub format: ExportFormat,
    /// In CSV, whether text that a spreadsheet would evaluate as a formula gets an apostrophe in
    /// front.
    pub guards_formulas: bool,
    /// Export only entries at or below this directory. The path is as the inventory records it, or
    /// relative to a root.
    pub below: Option<Vec<u8>>,
}

/// The error of an export that did not write everything.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// The inventory has no such directory, or cannot be read.
    Inventory(top::QueryError),
    /// The output could not be written.
    Refused(io::Error),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inventory(error) => error.fmt(f),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<top::QueryError> for ExportError {
    fn from(failure: top::QueryError) -> Self {
        Self::Inventory(failure)
    }
}

impl From<Error> for ExportError {
    fn from(error: Error) -> Self {
        Self::Inventory(error.into())
    }
}

/// Passes the output to `write`, in buffers of about 60 KiB.
///
/// # Errors
/// If the inventory is damaged or has no directory [`ExportOptions::below`], or at the first error
/// of `write`. The output is incomplete then.
///
/// ```
/// use fathom_questions::export::{ExportFormat, ExportOptions, export};
/// use fathom_inventory::store::Inventory;
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let options = ExportOptions { format: ExportFormat::Nul, guards_formulas: false, below: None };
/// let mut paths = Vec::new();
/// export(&Inventory::open(&out)?, &options, &mut |bytes| {
///     paths.extend_from_slice(bytes);
///     Ok(())
/// })?;
/// assert!(paths.split(|byte| *byte == 0).any(|path| path == b"src/lib.rs"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn export(
    inventory: &Inventory,
    options: &ExportOptions,
    write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), ExportError> {
    let span = match &options.below {
        Some(path) => below::find(inventory, path)?,
        None => Span::ALL,
    };
    let mut out = OutputBuffer::new(write);
    let written = match options.format {
        ExportFormat::JsonLines => replay_as(inventory, span, JsonLinesFormat::new(), &mut out),
        ExportFormat::Csv => {
            replay_as(inventory, span, csv::CsvFormat::new(options.guards_formulas), &mut out)
        }
        ExportFormat::Nul => replay_as(inventory, span, NulFormat, &mut out),
        ExportFormat::Ncdu => replay_as(inventory, span, ncdu::NcduFormat::default(), &mut out),
        ExportFormat::Sql => sql::write(inventory, span, &mut out),
    };
    match out.failed() {
        Some(error) => Err(ExportError::Refused(error)),
        None => Ok(written?),
    }
}

fn replay_as(
    inventory: &Inventory,
    span: Span,
    form: impl EntryFormat,
    out: &mut OutputBuffer<'_>,
) -> Result<(), Error> {
    replay(inventory, span, ExportVisitor { form, out })
}

/// Writes the entries that a replay visits.
struct ExportVisitor<'o, 'w, F> {
    form: F,
    out: &'o mut OutputBuffer<'w>,
}

impl<F: EntryFormat> ReplayVisitor for ExportVisitor<'_, '_, F> {
    fn needs_metadata(&self) -> bool {
        self.form.needs_metadata()
    }

    fn needs_links(&self) -> bool {
        self.form.needs_links()
    }

    fn begin(&mut self, about: &ReplayHeader) {
        self.form.begin(about, &mut self.out.buffer);
    }

    fn entry(&mut self, item: &ReplayEntry<'_>) {
        self.form.entry(item, &mut self.out.buffer);
    }

    fn enter(&mut self, item: &ReplayEntry<'_>, state: DirState) {
        self.form.enter(item, state, &mut self.out.buffer);
    }

    fn leave(&mut self) {
        self.form.leave(&mut self.out.buffer);
    }

    fn end(&mut self) {
        self.form.end(&mut self.out.buffer);
        // A failed write is kept in the buffer; `should_continue` reports it.
        let _ = self.out.flush();
    }

    fn should_continue(&mut self) -> bool {
        self.out.flush_if_full().is_ok()
    }
}

/// A format that has one entry after the other, directories before their entries.
trait EntryFormat {
    /// Returns whether the format has more than paths.
    fn needs_metadata(&self) -> bool {
        true
    }
    /// Returns whether the format has the targets of symbolic links.
    fn needs_links(&self) -> bool {
        false
    }
    /// Appends the text before the first entry.
    fn begin(&mut self, about: &ReplayHeader, out: &mut Vec<u8>) {
        let _ = (about, out);
    }
    /// Appends an entry that is not a directory.
    fn entry(&mut self, item: &ReplayEntry<'_>, out: &mut Vec<u8>);
    /// Appends a directory. The entries that follow are in it, until `leave`.
    fn enter(&mut self, item: &ReplayEntry<'_>, _state: DirState, out: &mut Vec<u8>) {
        self.entry(item, out);
    }
    /// Ends the directory that was entered last and has not been left.
    fn leave(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }
    /// Appends the text after the last entry.
    fn end(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }
}

/// A buffer, and the function that writes it.
struct OutputBuffer<'a> {
    buffer: Vec<u8>,
    write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>,
    failed: Option<io::Error>,
}

impl<'a> OutputBuffer<'a> {
    fn new(write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>) -> Self {
        Self { buffer: Vec::with_capacity(FULL_BYTES + 4096), write, failed: None }
    }

    /// Writes the buffer if it is full. The error only ends the export; [`OutputBuffer::failed`]
    /// has its cause.
    fn flush_if_full(&mut self) -> ParquetResult<()> {
        if self.buffer.len() < FULL_BYTES { Ok(()) } else { self.flush() }
    }

    /// Writes the buffer.
    fn flush(&mut self) -> ParquetResult<()> {
        let written = (self.write)(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| {
            self.failed = Some(error);
            damaged("the output cannot be written")
        })
    }

    /// Returns the error of a failed write.
    fn failed(self) -> Option<io::Error> {
        self.failed
    }
}

/// Returns an error that says what is wrong with an inventory.
fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
