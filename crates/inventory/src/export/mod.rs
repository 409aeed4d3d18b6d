//! An inventory in formats that other programs read: a line or an object an entry, ncdu's tree, statements in SQL. Written while
//! it is read. Memory grows with directories and with what a row group may have, not with entries.
//!
//! Owns the order of the entries and the bytes of each format. Does not own where they go.

mod csv;
mod jsonl;
mod ncdu;
mod nul;
mod out;
mod sql;
#[cfg(test)]
mod tests;

use std::io;

use parquet::errors::ParquetError;

use crate::replay::{About, Item, Visitor, replay};
use crate::store::{Error, Inventory, State};
use crate::top::{self, below};
use below::Span;
use out::Out;

/// What an inventory is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Objects as [`crate::json`] has them, one a line.
    JsonLines,
    /// The same members as columns, after RFC 4180.
    Csv,
    /// Paths, each with a zero byte behind it.
    Nul,
    /// ncdu's export format, version 1.2 (<https://dev.yorhel.nl/ncdu/jsonfmt>).
    Ncdu,
    /// The tables as statements that SQLite takes.
    Sql,
}

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// As what.
    pub format: Format,
    /// In CSV, an apostrophe before text that a spreadsheet would take for a formula.
    pub guards_formulas: bool,
    /// Only what is at or below this directory: as the inventory has it, or relative to what was scanned.
    pub below: Option<Vec<u8>>,
}

/// Why not everything was written.
#[derive(Debug)]
pub enum Failure {
    /// There is nothing to be below of, or the inventory cannot be read.
    Inventory(top::Failure),
    /// Whoever was to take the bytes did not.
    Refused(io::Error),
}

impl From<top::Failure> for Failure {
    fn from(failure: top::Failure) -> Self {
        Self::Inventory(failure)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Inventory(error.into())
    }
}

/// Gives everything to `write`, some ten thousand bytes at a time.
///
/// # Errors
/// If the inventory is damaged or has no directory to be below of, or at the first error of `write`. What was written until
/// then is not whole.
pub fn export(
    inventory: &Inventory,
    ask: &Ask,
    write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), Failure> {
    let span = match &ask.below {
        Some(path) => below::find(inventory, path)?,
        None => Span::ALL,
    };
    let mut out = Out::new(write);
    let written = match ask.format {
        Format::JsonLines => travel(inventory, span, jsonl::Form::new(), &mut out),
        Format::Csv => travel(inventory, span, csv::Form::new(ask.guards_formulas), &mut out),
        Format::Nul => travel(inventory, span, nul::Form, &mut out),
        Format::Ncdu => travel(inventory, span, ncdu::Form::default(), &mut out),
        Format::Sql => sql::write(inventory, span, &mut out),
    };
    match out.failed() {
        Some(error) => Err(Failure::Refused(error)),
        None => Ok(written?),
    }
}

fn travel(inventory: &Inventory, span: Span, form: impl Form, out: &mut Out<'_>) -> Result<(), Error> {
    replay(inventory, span, Writing { form, out })
}

/// Writes what it is told.
struct Writing<'o, 'w, F> {
    form: F,
    out: &'o mut Out<'w>,
}

impl<F: Form> Visitor for Writing<'_, '_, F> {
    fn needs_metadata(&self) -> bool {
        self.form.needs_metadata()
    }

    fn needs_links(&self) -> bool {
        self.form.needs_links()
    }

    fn begin(&mut self, about: &About) {
        self.form.begin(about, &mut self.out.buffer);
    }

    fn entry(&mut self, item: &Item<'_>) {
        self.form.entry(item, &mut self.out.buffer);
    }

    fn enter(&mut self, item: &Item<'_>, state: State) {
        self.form.enter(item, state, &mut self.out.buffer);
    }

    fn leave(&mut self) {
        self.form.leave(&mut self.out.buffer);
    }

    fn end(&mut self) {
        self.form.end(&mut self.out.buffer);
        // Whether that is possible is asked for in a moment.
        let _ = self.out.flush();
    }

    fn goes_on(&mut self) -> bool {
        self.out.relieve().is_ok()
    }
}

/// A format that has the entries one after the other, directories before what is in them.
trait Form {
    /// Whether more is written than paths.
    fn needs_metadata(&self) -> bool {
        true
    }
    /// Whether the targets of symbolic links are written.
    fn needs_links(&self) -> bool {
        false
    }
    /// What comes first.
    fn begin(&mut self, about: &About, out: &mut Vec<u8>) {
        let _ = (about, out);
    }
    /// An entry that is no directory.
    fn entry(&mut self, item: &Item<'_>, out: &mut Vec<u8>);
    /// A directory; what follows is in it.
    fn enter(&mut self, item: &Item<'_>, _state: State, out: &mut Vec<u8>) {
        self.entry(item, out);
    }
    /// The directory entered last of those not left is left.
    fn leave(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }
    /// What comes last.
    fn end(&mut self, out: &mut Vec<u8>) {
        let _ = out;
    }
}

/// What is wrong with an inventory, as an error.
fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
