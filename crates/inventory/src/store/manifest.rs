//! `manifest.json`: what an inventory is of, how complete it is, and which files belong to it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::also::Also;
use super::dirs::State;
use super::error::{Error, Op};
use super::place::replace_private;
use super::seal::{is_sealed, seal};
use super::table::Facts;

/// The format that is written. Readers take it and all before it, and refuse later ones.
pub const VERSION: u32 = 3;
/// The manifest's name in the directory.
pub(crate) const NAME: &str = "manifest.json";
/// Larger ones are not read: a file that is listed takes a hundred bytes.
const BYTES_MAX: u64 = 256 << 20;

/// How complete an inventory is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completeness {
    /// Directories of which all entries are there.
    pub complete: u64,
    /// Those of which some entries are there.
    pub partial: u64,
    /// Those of which no entry is there.
    pub failed: u64,
    /// Those that were to be left out: on other filesystems, or reached a second time.
    pub skipped: u64,
    /// Entries without metadata.
    pub unknown_entries: u64,
    /// Values of columns that were asked for and could not be found out.
    #[serde(default)]
    pub unknown_values: u64,
    /// Roots that are not there at all.
    pub missing_roots: u64,
    /// Entries with a time beyond the range of the type, for which its end is recorded.
    #[serde(default)]
    pub clamped_times: u64,
    /// Why the scan ended before its end: `interrupted` or `deadline`.
    pub stopped: Option<String>,
}

impl Completeness {
    pub(crate) fn count(&mut self, state: State) {
        *match state {
            State::Complete => &mut self.complete,
            State::Partial => &mut self.partial,
            State::Failed => &mut self.failed,
            State::Skipped => &mut self.skipped,
        } += 1;
    }

    /// Returns the combined completeness of two inventories.
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            complete: self.complete + other.complete,
            partial: self.partial + other.partial,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
            unknown_entries: self.unknown_entries + other.unknown_entries,
            unknown_values: self.unknown_values + other.unknown_values,
            missing_roots: self.missing_roots + other.missing_roots,
            clamped_times: self.clamped_times + other.clamped_times,
            stopped: self.stopped.or_else(|| other.stopped.clone()),
        }
    }

    /// Whether nothing is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let unknown = self.unknown_entries + self.unknown_values;
        self.stopped.is_none() && self.partial + self.failed + unknown + self.missing_roots == 0
    }

    /// The share of directories that is complete, of those known; `None` if there are none.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let all = self.complete + self.partial + self.failed + self.missing_roots;
        (all > 0).then(|| self.complete as f64 / all as f64)
    }
}

/// What of an inventory is taken from an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Since {
    /// Where that was; what is not UTF-8 is replaced.
    pub path: String,
    /// Directories that had not changed since then, and were not read.
    pub directories: u64,
    /// Entries of those, with what was known of them then.
    pub entries: u64,
}

/// What was scanned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// As it was given; what is not UTF-8 is replaced.
    pub path: String,
    /// Its bytes in hexadecimal, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    /// The type of the filesystem, if it is known.
    pub filesystem: Option<String>,
}

impl Root {
    /// The path's bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let hex = self.path_hex.as_deref().unwrap_or_default();
        let digits: Option<Vec<_>> = hex.chars().map(|digit| digit.to_digit(16)).collect();
        let bytes = digits.filter(|digits| !digits.is_empty() && digits.len().is_multiple_of(2));
        let byte = |pair: &[u32]| (pair[0] * 16 + pair[1]) as u8;
        bytes.map_or_else(
            || self.path.clone().into_bytes(),
            |digits| digits.chunks_exact(2).map(byte).collect(),
        )
    }
}

/// One file of an inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name in the directory.
    pub name: String,
    /// The table it is a part of.
    pub table: String,
    /// How many rows it has.
    pub rows: u64,
    /// How long it is.
    pub bytes: u64,
    /// xxHash64 of it, seed 0, in hexadecimal.
    pub xxh64: String,
}

impl Listed {
    pub(crate) fn new(name: String, table: &str, facts: &Facts) -> Self {
        let Facts { rows, bytes, hash } = *facts;
        Self { name, table: table.to_owned(), rows, bytes, xxh64: format!("{hash:016x}") }
    }
}

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`VERSION`].
    pub format: u32,
    /// What made it, with its version.
    pub tool: String,
    /// The machine's name.
    pub host: String,
    /// What was scanned.
    pub roots: Vec<Root>,
    /// What was asked for, option by option.
    pub options: BTreeMap<String, String>,
    /// The columns that its tables have because they were asked for.
    #[serde(default, skip_serializing_if = "Also::is_empty")]
    pub also: Also,
    /// When the scan began, in seconds since 1970.
    pub start: i64,
    /// When it ended.
    pub end: i64,
    /// Entries of every kind, roots and directories included.
    pub entries: u64,
    /// How complete it is.
    pub completeness: Completeness,
    /// What is taken from an earlier inventory, if anything was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
    /// The files, in no order.
    pub files: Vec<Listed>,
}

impl Manifest {
    /// Reads the manifest of the inventory in `directory`.
    ///
    /// # Errors
    /// If there is none, if it cannot be read, or if it is not of this version.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::new(Op::Read, &path, source);
        let bytes = fs::metadata(&path).map_err(|error| failed(error.into()))?.len();
        if bytes > BYTES_MAX {
            return Err(failed("it is too long for a manifest".into()));
        }
        let text = fs::read(&path).map_err(|error| failed(error.into()))?;
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        if !(1..=VERSION).contains(&manifest.format) {
            let version = manifest.format;
            return Err(failed(
                format!("it has format {version}, this program reads up to {VERSION}").into(),
            ));
        }
        if manifest.format > 1 && !is_sealed(&text) {
            return Err(failed("it is not as it was written: its checksum is another".into()));
        }
        Ok(manifest)
    }

    /// Writes it to `directory`, as the last file there.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(NAME);
        let failed = |error: std::io::Error| Error::new(Op::Write, &path, error);
        let text = seal(serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?);
        let mut file = replace_private(&path).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)
    }
}
