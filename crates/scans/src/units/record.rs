//! The record of a unit. The lists of its roots and of what it leaves may be long, so they are in
//! files of their own.

use std::ffi::CString;
use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::scan::{RootSpan, Slice, UnitRoot, from_hex, hex};
use fathom_inventory::store::{Error, Op, replace_private, sync_directory};

/// The directory of the records.
const DONE: &str = "done";
/// The directory of the tables.
const PARTS: &str = "parts";
/// The list of roots in the directory of an attempt.
const ROOTS: &str = "roots.jsonl";
/// The list of what is left.
const LEFT: &str = "left.jsonl";
/// About how many names a slice of a directory has: see [`SLICE_BYTES`](super::unit::SLICE_BYTES).
const SLICE_ENTRIES: u64 = 65_536;

/// A unit: some of the references that the unit `parent` has left, or, if that is empty, some of
/// the operands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitRange {
    /// The name of the unit: letters and digits.
    pub id: String,
    /// The name of the unit whose references these are; empty for the operands.
    pub parent: String,
    /// The index of the first reference.
    pub start: usize,
    /// The index after the last one.
    pub end: usize,
}

/// The way in which a unit has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum UnitEnd {
    /// Its tables are written.
    #[default]
    Scanned,
    /// It is done in the pieces of the record.
    Split,
    /// It cannot be done.
    Failed,
}

/// The record of a unit that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitRecord {
    /// The unit.
    #[serde(flatten)]
    pub unit: UnitRange,
    /// The number of the attempt; -1 if no worker has made the record.
    pub attempt: i64,
    /// How the unit has ended.
    #[serde(rename = "kind")]
    pub end: UnitEnd,
    /// Ranges of the references that the unit has left, or, if it is split, of its own: each is to
    /// be another unit.
    pub pieces: Vec<(usize, usize)>,
    /// The number of entries, directories included.
    pub entries: u64,
    /// The number of directories.
    pub dirs: u64,
    /// The number of rows of `errors`.
    pub errors: u64,
    /// Whether everything was read but what is left.
    pub complete: bool,
    /// The time that the unit took.
    pub seconds: f64,
    /// The host name of the machine.
    pub host: String,
    /// Why the unit cannot be done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A reference in the list of what is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LeftLine {
    #[serde(serialize_with = "hex", deserialize_with = "from_hex")]
    path: Vec<u8>,
    #[serde(flatten)]
    place: LeftPlace,
    slice: Option<Slice>,
    #[serde(default)]
    operand: bool,
}

/// The place of a reference in the tables of the unit that has left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftPlace {
    /// The number of the directory; 0 for a root that was not begun.
    pub(super) id: i64,
    /// The number of rows of `entries` before those that it would have.
    pub(super) row: u64,
    pub(super) dev: u64,
}

/// Returns the directory of an attempt at a unit.
pub(super) fn attempt_path(part: &Path, unit: &str, attempt: i64) -> PathBuf {
    part.join(PARTS).join(format!("{unit}.{attempt}"))
}

/// Creates the directories of records and tables.
pub(super) fn create_directories(part: &Path) -> Result<(), Error> {
    for name in [DONE, PARTS] {
        let path = part.join(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::new(Op::Create, &path, error));
            }
            _ => {}
        }
    }
    sync_directory(part).map_err(|error| Error::new(Op::Write, part, error))
}

impl UnitRecord {
    /// Reads the records of all units that have ended.
    pub(super) fn read_all(part: &Path) -> Result<Vec<Self>, Error> {
        let directory = part.join(DONE);
        let failed = |error: io::Error| Error::new(Op::Read, &directory, error);
        let mut records = Vec::new();
        for name in fs::read_dir(&directory).map_err(failed)? {
            let name = name.map_err(failed)?.file_name();
            let unit = name.to_str().and_then(|name| name.strip_suffix(".json"));
            if let Some(unit) = unit.filter(|unit| !unit.starts_with('.')) {
                records.extend(Self::read(part, unit)?);
            }
        }
        Ok(records)
    }

    /// Reads the record of a unit; `None` if it has not ended.
    pub(super) fn read(part: &Path, unit: &str) -> Result<Option<Self>, Error> {
        let path = part.join(DONE).join(format!("{unit}.json"));
        match fs::read(&path) {
            Ok(text) => {
                let record = serde_json::from_slice(&text);
                record.map(Some).map_err(|error| Error::new(Op::Read, &path, error))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::new(Op::Read, &path, error)),
        }
    }

    /// Writes the record under its temporary name, from which it is published by a link.
    pub(super) fn write_new(&self, part: &Path) -> Result<(), Error> {
        let path = part.join(DONE).join(format!(".{}.{}.new", self.unit.id, self.attempt));
        let write = || {
            let mut file = replace_private(&path)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()
        };
        write().map_err(|error: io::Error| Error::new(Op::Write, &path, error))
    }

    /// Returns the directory of its tables.
    pub(super) fn tables(&self, part: &Path) -> PathBuf {
        attempt_path(part, &self.unit.id, self.attempt)
    }

    /// Reads the list of its roots.
    pub(super) fn spans(&self, part: &Path) -> Result<Vec<RootSpan>, Error> {
        read_lines(&self.tables(part).join(ROOTS), 0..usize::MAX)
    }

    /// Reads the places of what it has left.
    pub(super) fn left(&self, part: &Path) -> Result<Vec<LeftPlace>, Error> {
        read_lines(&self.tables(part).join(LEFT), 0..usize::MAX)
    }
}

/// Writes the lists of an attempt: its roots, and what it has left, which ends with the roots that
/// were not begun. Returns the number of entries that each reference is expected to stand for.
pub(super) fn write_lists(directory: &Path, cut: &crate::scan::Cut) -> Result<Vec<u64>, Error> {
    write_lines(&directory.join(ROOTS), cut.spans.iter())?;
    let of_dirs = cut.left.iter().flat_map(|left| {
        (0..left.slices).map(move |index| LeftLine {
            path: left.path.clone(),
            place: LeftPlace { id: left.id, row: left.row, dev: left.dev },
            slice: (left.slices > 1).then_some(Slice { index, count: left.slices }),
            operand: false,
        })
    });
    let of_roots = cut.options.roots.iter().skip(cut.spans.len()).map(|root| LeftLine {
        path: root.path.to_bytes().to_vec(),
        place: LeftPlace { id: 0, row: 0, dev: 0 },
        slice: root.slice,
        operand: root.is_operand,
    });
    let mut expected = Vec::new();
    let lines = of_dirs.chain(of_roots).inspect(|line| {
        let is_slice = line.slice.is_some();
        expected.push(if is_slice { SLICE_ENTRIES } else { cut.entries_expected(&line.path) });
    });
    write_lines(&directory.join(LEFT), lines)?;
    sync_directory(directory).map_err(|error| Error::new(Op::Write, directory, error))?;
    Ok(expected)
}

fn write_lines<T: Serialize>(path: &Path, lines: impl Iterator<Item = T>) -> Result<(), Error> {
    let write = || {
        let mut file = BufWriter::new(replace_private(path)?);
        for line in lines {
            serde_json::to_writer(&mut file, &line)?;
            file.write_all(b"\n")?;
        }
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    };
    write().map_err(|error: io::Error| Error::new(Op::Write, path, error))
}

fn read_lines<T: DeserializeOwned>(path: &Path, range: std::ops::Range<usize>) -> Result<Vec<T>, Error> {
    let failed = |error: io::Error| Error::new(Op::Read, path, error);
    let lines = BufReader::new(fs::File::open(path).map_err(failed)?).split(b'\n');
    let mut values = Vec::new();
    for line in lines.skip(range.start).take(range.len()) {
        let value = serde_json::from_slice(&line.map_err(failed)?);
        values.push(value.map_err(|error| Error::new(Op::Read, path, error))?);
    }
    Ok(values)
}

/// Returns the roots of a unit.
pub(super) fn roots_of(part: &Path, unit: &UnitRange, operands: &[CString]) -> Result<Vec<UnitRoot>, Error> {
    let mut range = unit.clone();
    let refused = |why: &str| Error::new(Op::Read, part, format!("unit {}: {why}", unit.id));
    while !range.parent.is_empty() {
        let record = UnitRecord::read(part, &range.parent)?;
        let record = record.ok_or_else(|| refused("the unit it belongs to has no record"))?;
        match record.end {
            UnitEnd::Failed => return Err(refused("the unit it belongs to has failed")),
            UnitEnd::Split => {
                let above = record.unit;
                range = UnitRange { start: above.start + range.start, end: above.start + range.end, ..above };
            }
            UnitEnd::Scanned => {
                let lines: Vec<LeftLine> =
                    read_lines(&record.tables(part).join(LEFT), range.start..range.end)?;
                let roots = lines.into_iter().map(|line| {
                    let path = CString::new(line.path).map_err(|_| refused("a path has a NUL"))?;
                    Ok(UnitRoot { path, slice: line.slice, is_operand: line.operand })
                });
                let roots = roots.collect::<Result<Vec<_>, Error>>()?;
                let is_whole = roots.len() == range.end.saturating_sub(range.start) && !roots.is_empty();
                return if is_whole { Ok(roots) } else { Err(refused("unknown references")) };
            }
        }
    }
    let operands = operands.get(range.start..range.end).filter(|operands| !operands.is_empty());
    let operands = operands.ok_or_else(|| refused("unknown operands"))?;
    let root = |path: &CString| UnitRoot { path: path.clone(), slice: None, is_operand: true };
    Ok(operands.iter().map(root).collect())
}
