//! Makes an inventory of what another program wrote about a tree: ncdu, gdu or GNU du.
//!
//! Owns the formats of these programs. The input is untrusted and
//! read as a stream: memory grows with the depth of the tree, not with the number of entries.
//! Damaged input is an error, and no inventory is made. Does not own the format on disk.

mod builder;
mod du;
mod json;
mod ncdu;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::scan::seconds;
use builder::{ImportOrigin, InventoryBuilder};
use fathom_inventory::store::{Error, Manifest};

/// The program that wrote the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportFormat {
    /// ncdu's export format (<https://dev.yorhel.nl/ncdu/jsonfmt>), any minor version of 1.
    Ncdu,
    /// gdu's variant of that format, in which directories have no sizes.
    Gdu,
    /// The output of GNU du.
    Du(DuOutput),
}

/// The options with which du was called, as far as its output does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuOutput {
    /// The bytes of a block. Ignored for apparent sizes.
    pub block_bytes: u64,
    /// Whether the numbers are apparent sizes in bytes (`du -b`).
    pub apparent: bool,
    /// Whether only directories have lines (du without `-a`). Otherwise a line without lines below
    /// it is taken for a file, even if it is an empty directory.
    pub only_directories: bool,
    /// Whether the last line has the sum of all trees (`du -c`). Only then is output that was cut
    /// off at the end of a line noticed.
    pub has_total: bool,
}

impl Default for DuOutput {
    /// `du -a`.
    fn default() -> Self {
        Self { block_bytes: 1024, apparent: false, only_directories: false, has_total: false }
    }
}

/// The error of an import. There is no inventory then.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// The input does not have its format. The offset is the place of the byte after the first
    /// impossible one.
    Malformed {
        /// The number of bytes that were read.
        offset: u64,
        /// The message.
        what: &'static str,
    },
    /// The input cannot be read.
    Input(io::Error),
    /// The inventory cannot be written.
    Inventory(Error),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { offset, what } => write!(f, "{what} (at byte {offset})"),
            Self::Input(error) => error.fmt(f),
            Self::Inventory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImportError {}

impl From<Error> for ImportError {
    fn from(error: Error) -> Self {
        Self::Inventory(error)
    }
}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> Self {
        Self::Input(error)
    }
}

/// Where the input comes from, for the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSource {
    /// The name of the input.
    pub name: String,
    /// The time of its last modification, in seconds since 1970, if it is a file. It stands for the
    /// time of the scan where the input has none.
    pub modified: Option<i64>,
}

/// Makes the new inventory `out` of `input`, and returns its manifest. `warn` is called with each
/// warning, which does not affect the inventory.
///
/// # Errors
/// If the input is damaged or cannot be read, if `out` exists or cannot be written, or once `stop`
/// is set. `out` does not exist then.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use fathom_scans::import::{ImportFormat, ImportSource, import};
/// use fathom_inventory::store::Inventory;
///
/// let temp = tempfile::tempdir()?;
/// let out = temp.path().join("home.inv");
/// let export = br#"[1,0,{},[{"name":"/home","dsize":4096},{"name":"a","asize":5}]]"#;
/// let mut input = &export[..];
/// let (source, stop) = (ImportSource::default(), AtomicBool::new(false));
/// let manifest = import(ImportFormat::Ncdu, &mut input, &source, &out, &stop, &mut |_| ())?;
/// assert_eq!(manifest.entries, 2);
/// assert!(Inventory::open(&out)?.manifest().completeness.is_complete());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn import(
    format: ImportFormat,
    input: &mut dyn BufRead,
    source: &ImportSource,
    out: &Path,
    stop: &AtomicBool,
    warn: &mut dyn FnMut(&[u8]),
) -> Result<Manifest, ImportError> {
    let mut builder = InventoryBuilder::begin(out, warn)?;
    builder.set_scanned(source.modified.unwrap_or_else(|| seconds(SystemTime::now())));
    let read = match format {
        ImportFormat::Ncdu => ncdu::read(&mut Interruptible { input, stop }, false, &mut builder),
        ImportFormat::Gdu => ncdu::read(&mut Interruptible { input, stop }, true, &mut builder),
        ImportFormat::Du(options) => {
            du::read(&mut Interruptible { input, stop }, &options, &mut builder, warn)
        }
    };
    match read {
        Ok(origin) => {
            let scanned = origin.scanned.or(source.modified);
            Ok(builder.finish(&ImportOrigin { scanned, ..origin }, &source.name)?)
        }
        Err(error) => {
            // A write error causes the end of the input: report it first.
            builder.abandon()?;
            Err(error)
        }
    }
}

/// An input that ends with an error once a flag is set.
struct Interruptible<'a> {
    input: &'a mut dyn BufRead,
    stop: &'a AtomicBool,
}

impl Interruptible<'_> {
    fn check(&self) -> io::Result<()> {
        // Not `Interrupted`, which the standard library's readers repeat.
        if self.stop.load(Ordering::Relaxed) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.input.read(buffer)
    }
}

impl BufRead for Interruptible<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.check()?;
        self.input.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
    }
}
