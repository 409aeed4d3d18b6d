//! `manifest.json`: the roots and options of an inventory, its completeness, and the list of its
//! files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::checksum::{append_checksum, has_valid_checksum};
use super::dirs::DirState;
use super::error::{Error, Op};
use super::files::replace_private;
use super::optional::OptionalColumns;
use super::parquet_writer::FileStats;

/// The format version that is written, and the only one that readers accept.
pub const VERSION: u32 = 3;
/// The name of the manifest in the directory.
pub const NAME: &str = "manifest.json";
/// Most bytes of a manifest. A listed file takes about a hundred bytes.
const BYTES_MAX: u64 = 256 << 20;

/// The completeness of an inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completeness {
    /// The number of directories all of whose entries are there.
    pub complete: u64,
    /// The number of directories some of whose entries are there.
    pub partial: u64,
    /// The number of directories none of whose entries is there.
    pub failed: u64,
    /// The number of directories that the scan left out: on other filesystems, at the depth limit,
    /// or reached a second time.
    pub skipped: u64,
    /// The number of entries without metadata.
    pub unknown_entries: u64,
    /// The number of values of optional columns that could not be read.
    #[serde(default)]
    pub unknown_values: u64,
    /// The number of operands that do not exist.
    pub missing_roots: u64,
    /// The number of entries with a time out of range, for which the table has an end of the range.
    #[serde(default)]
    pub clamped_times: u64,
    /// The reason why the scan was stopped: `interrupted` or `deadline`.
    pub stopped: Option<String>,
}

impl Completeness {
    /// Counts a directory.
    pub fn count(&mut self, state: DirState) {
        *match state {
            DirState::Complete => &mut self.complete,
            DirState::Partial => &mut self.partial,
            DirState::Failed => &mut self.failed,
            DirState::Skipped => &mut self.skipped,
        } += 1;
    }

    /// Returns the combined completeness of two inventories.
    pub fn merged_with(self, other: &Self) -> Self {
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

    /// Returns whether nothing is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let unknown = self.unknown_entries + self.unknown_values;
        self.stopped.is_none() && self.partial + self.failed + unknown + self.missing_roots == 0
    }

    /// Returns the share of complete directories among those that were to be read; `None` if there
    /// are none.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let all = self.complete + self.partial + self.failed + self.missing_roots;
        (all > 0).then(|| self.complete as f64 / all as f64)
    }
}

/// The part of an inventory that was copied from an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReuseSummary {
    /// The path of the earlier inventory. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The number of directories that had not changed and were not read.
    pub directories: u64,
    /// The number of entries that were copied, with their old metadata.
    pub entries: u64,
}

/// The name of the option that has the program from whose output an inventory was imported. Such
/// an inventory has times of whole seconds.
pub const IMPORTED_FROM: &str = "imported-from";

/// An operand of the scan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestRoot {
    /// The path as it was given. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The bytes of the path in hexadecimal, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_hex: Option<String>,
    /// The absolute path, if `path` is relative to the working directory that the scan had. Bytes
    /// that are not UTF-8 are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absolute: Option<String>,
    /// The bytes of the absolute path in hexadecimal, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absolute_hex: Option<String>,
    /// The type of the filesystem, if it is known.
    pub filesystem: Option<String>,
    /// The number of the filesystem in hexadecimal, if it has one that stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem_id: Option<String>,
}

impl ManifestRoot {
    /// Returns the bytes of the path.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        bytes_of(&self.path, self.path_hex.as_deref())
    }

    /// Returns the bytes of the absolute path; `None` for a relative path of which nothing more is
    /// known.
    #[must_use]
    pub fn absolute_bytes(&self) -> Option<Vec<u8>> {
        let given = self.bytes();
        if given.starts_with(b"/") {
            return Some(given);
        }
        self.absolute.as_deref().map(|absolute| bytes_of(absolute, self.absolute_hex.as_deref()))
    }
}

/// Returns the bytes of a path: the bytes in `hex`, unless there are none.
fn bytes_of(text: &str, hex: Option<&str>) -> Vec<u8> {
    let digits: Option<Vec<_>> = hex.unwrap_or_default().chars().map(|digit| digit.to_digit(16)).collect();
    let bytes = digits.filter(|digits| !digits.is_empty() && digits.len().is_multiple_of(2));
    let byte = |pair: &[u32]| (pair[0] * 16 + pair[1]) as u8;
    bytes.map_or_else(|| text.as_bytes().to_vec(), |digits| digits.chunks_exact(2).map(byte).collect())
}

/// A file of an inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// The name of the file in the directory.
    pub name: String,
    /// The table that the file is a part of.
    pub table: String,
    /// The number of rows.
    pub rows: u64,
    /// The length in bytes.
    pub bytes: u64,
    /// The xxHash64 of the file with seed 0, in hexadecimal.
    pub xxh64: String,
}

impl ManifestFile {
    /// Makes the entry of a file of `table` that has been written.
    pub fn new(name: String, table: &str, facts: &FileStats) -> Self {
        let FileStats { rows, bytes, hash } = *facts;
        Self { name, table: table.to_owned(), rows, bytes, xxh64: format!("{hash:016x}") }
    }
}

/// The contents of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format version, [`VERSION`].
    pub format: u32,
    /// The program that wrote the inventory, with its version.
    pub tool: String,
    /// The host name of the machine.
    pub host: String,
    /// The operands of the scan.
    pub roots: Vec<ManifestRoot>,
    /// The options of the scan as the user gave them.
    pub options: BTreeMap<String, String>,
    /// The optional columns that the tables have.
    #[serde(default, rename = "also", skip_serializing_if = "OptionalColumns::is_empty")]
    pub optional_columns: OptionalColumns,
    /// The start of the scan, in seconds since 1970.
    pub start: i64,
    /// The end of the scan, in seconds since 1970.
    pub end: i64,
    /// The number of entries of every type, roots and directories included.
    pub entries: u64,
    /// The completeness of the inventory.
    pub completeness: Completeness,
    /// The part that was copied from an earlier inventory, if the scan had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<ReuseSummary>,
    /// The files, in any order.
    pub files: Vec<ManifestFile>,
}

impl Manifest {
    /// Reads the manifest of the inventory in `directory`.
    ///
    /// # Errors
    /// If there is none, if it cannot be read or is damaged, or if its format version is not
    /// supported.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::new(Op::Read, &path, source);
        let bytes = fs::metadata(&path).map_err(|error| failed(error.into()))?.len();
        if bytes > BYTES_MAX {
            return Err(failed("it is too long for a manifest".into()));
        }
        let text = fs::read(&path).map_err(|error| failed(error.into()))?;
        let manifest: Self = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        if manifest.format != VERSION {
            let version = manifest.format;
            return Err(failed(format!("it has format {version}, this program reads {VERSION}").into()));
        }
        if !has_valid_checksum(&text) {
            return Err(failed("its checksum differs from the recorded checksum".into()));
        }
        Ok(manifest)
    }

    /// Writes the manifest to `directory`. It has to be the last file written there.
    pub fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(NAME);
        let failed = |error: std::io::Error| Error::new(Op::Write, &path, error);
        let text = append_checksum(serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?);
        let mut file = replace_private(&path).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)
    }
}
