//! Inventories: `fathomfs.open` and the result of `fathomfs.scan`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_inventory::store::{Error, Inventory as StoredInventory, Manifest, Table};
use fathom_questions::diff::{DiffOptions, GrowthReport, Sides, growth};
use fathom_questions::top::{GroupKey, QueryError, ReportKind, ReportOptions, ReportRow, report};
use fathom_questions::usage::{UsageTarget, directories, find};
use fathom_questions::views;
use fathom_walk::FileType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call;
use crate::columns::parse_columns;
use crate::error::{of_inventory, of_query};
use crate::inventory_entries::{entries, span};
use crate::inventory_tables::{changes, rows};
use crate::predicate::{Conditions, Predicate};
use crate::scan::as_path;
use crate::stream::EntryStream;

/// An inventory.
#[pyclass(frozen, module = "fathomfs")]
pub(crate) struct Inventory {
    inner: Arc<StoredInventory>,
    path: PathBuf,
}

impl Inventory {
    /// Opens the inventory in the directory `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        Ok(Self { inner: Arc::new(StoredInventory::open(path)?), path: path.to_owned() })
    }

    fn manifest(&self) -> &Manifest {
        self.inner.manifest()
    }
}

/// Opens an inventory.
#[pyfunction]
pub(crate) fn open_inventory(py: Python<'_>, path: Vec<u8>) -> PyResult<Inventory> {
    let opened = call::read(py, None, move |_| Inventory::read(as_path(&path)))?;
    opened.map_err(|error| of_inventory(py, &error))
}

#[pymethods]
impl Inventory {
    /// The directory of the inventory.
    #[getter]
    fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    /// The number of entries, with the directories and the roots.
    #[getter]
    fn entry_count(&self) -> u64 {
        self.manifest().entries
    }

    /// Whether the inventory is complete.
    #[getter]
    fn complete(&self) -> bool {
        self.manifest().completeness.is_complete()
    }

    /// The manifest as JSON.
    fn manifest_json(&self) -> PyResult<String> {
        serde_json::to_string(self.manifest()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The paths of the Parquet files of a table.
    fn files(&self, table: &str) -> Vec<PathBuf> {
        let of_table = self.manifest().files.iter().filter(|file| file.table == table);
        of_table.map(|file| self.path.join(&file.name)).collect()
    }

    /// The compressed bytes of the columns that entries, tables and reports have read so far.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.inner.bytes_read()
    }

    /// Returns the statements that give DuckDB the views, with `directory` before the names of
    /// files.
    fn views(&self, py: Python<'_>, directory: &str) -> PyResult<Vec<String>> {
        views::setup(&self.inner, directory, None).map_err(|error| of_inventory(py, &error))
    }

    /// Streams the entries that meet the conditions.
    fn entries(
        &self,
        py: Python<'_>,
        columns: Vec<String>,
        conditions: Option<Conditions>,
        below: Option<Vec<u8>>,
    ) -> PyResult<EntryStream> {
        let columns = parse_columns(&columns)?;
        let predicate = conditions.map(Predicate::new).transpose()?.unwrap_or_default();
        let span = span(py, &self.inner, below)?;
        entries(py, Arc::clone(&self.inner), columns, predicate, span)
    }

    /// Streams the rows of the table `dirs`.
    fn dirs(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        below: Option<Vec<u8>>,
    ) -> PyResult<EntryStream> {
        let span = span(py, &self.inner, below)?;
        rows(py, Arc::clone(&self.inner), Table::Dirs, columns, span)
    }

    /// Streams the rows of the table `errors`.
    fn errors(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        below: Option<Vec<u8>>,
    ) -> PyResult<EntryStream> {
        let span = span(py, &self.inner, below)?;
        rows(py, Arc::clone(&self.inner), Table::Errors, columns, span)
    }

    /// Streams the changes from this inventory to `new`.
    fn diff(
        &self,
        py: Python<'_>,
        new: &Self,
        columns: Option<Vec<String>>,
        below: Option<Vec<u8>>,
    ) -> PyResult<EntryStream> {
        changes(py, Arc::clone(&self.inner), Arc::clone(&new.inner), columns, below)
    }

    /// Returns the directories that have grown or shrunk most since this inventory.
    fn growth<'py>(
        &self,
        py: Python<'py>,
        new: &Self,
        count: usize,
        below: Option<Vec<u8>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let (old, new) = (Arc::clone(&self.inner), Arc::clone(&new.inner));
        let options = DiffOptions { below, scratch: std::env::temp_dir() };
        let found =
            call::read(py, None, move |_| growth(&Sides { old: &*old, new: &*new }, &options, count))?;
        growth_rows(py, &found.map_err(|error| of_query(py, &error))?)
    }

    /// Compares all files with the hashes in the manifest.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.clone();
        let verified = call::read(py, None, move |_| inner.verify())?;
        verified.map_err(|error| of_inventory(py, &error))
    }

    /// Reports on what is large: a dictionary for each row.
    fn top<'py>(
        &self,
        py: Python<'py>,
        by: &str,
        count: usize,
        below: Option<Vec<u8>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let by = ReportKind::from_word(by).ok_or_else(|| {
            let names = ReportKind::ALL.map(ReportKind::word).join(", ");
            PyValueError::new_err(format!("unknown report {by:?}: the reports are {names}"))
        })?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let (inner, options) = (self.inner.clone(), ReportOptions { by, count, below, now });
        let found = call::read(py, None, move |_| report(&inner, &options))?;
        found.map_err(|error| of_query(py, &error))?.rows.iter().map(|row| row_of(py, row)).collect()
    }

    /// Returns the usage at and below a path: allocated and apparent bytes, and entries.
    fn du(&self, py: Python<'_>, below: Vec<u8>) -> PyResult<(u64, u64, u64)> {
        let inner = self.inner.clone();
        let found = call::read(py, None, move |_| usage(&inner, &below))?;
        found.map_err(|error| of_query(py, &error))
    }
}

fn usage(inventory: &StoredInventory, below: &[u8]) -> Result<(u64, u64, u64), QueryError> {
    match find(inventory, below)? {
        UsageTarget::Directory(top) => {
            let mut found = (0, 0, 0);
            directories(inventory, &top, Some(0), true, |dir| {
                found = (dir.all.allocated, dir.all.apparent, dir.all.entries);
            })?;
            Ok(found)
        }
        UsageTarget::File(meta) => {
            let has_length = matches!(meta.file_type(), FileType::Regular | FileType::Symlink);
            let apparent = if has_length { u64::try_from(meta.size).unwrap_or(0) } else { 0 };
            Ok((meta.blocks.wrapping_mul(512), apparent, 1))
        }
    }
}

fn row_of<'py>(py: Python<'py>, row: &ReportRow) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let text = as_path(&row.text).as_os_str();
    match row.key {
        GroupKey::Path | GroupKey::Extension => dict.set_item("key", text)?,
        GroupKey::Id(id) => {
            dict.set_item("key", id)?;
            dict.set_item("name", (!row.text.is_empty()).then_some(text))?;
        }
        GroupKey::Age(at) => dict.set_item("key", bound(&fathom_questions::top::AGES, at))?,
        GroupKey::Size(at) => dict.set_item("key", bound(&fathom_questions::top::SIZES, at))?,
        GroupKey::Type(letter) => dict.set_item("key", char::from(letter).to_string())?,
        GroupKey::Depth(depth) => dict.set_item("key", depth)?,
        GroupKey::NoExtension => dict.set_item("key", py.None())?,
        GroupKey::Directory => dict.set_item("key", "(directories)")?,
        GroupKey::Other => dict.set_item("key", "(others)")?,
        GroupKey::Unknown => dict.set_item("key", "(unknown)")?,
    }
    dict.set_item("bytes", row.sum.allocated)?;
    dict.set_item("apparent", row.sum.apparent)?;
    dict.set_item("entries", row.sum.entries)?;
    Ok(dict)
}

fn growth_rows<'py>(py: Python<'py>, report: &GrowthReport) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let row = |growth: &fathom_questions::diff::DirGrowth| {
        let dict = PyDict::new(py);
        dict.set_item("path", as_path(&growth.path).as_os_str())?;
        dict.set_item("bytes", growth.allocated)?;
        dict.set_item("apparent", growth.apparent)?;
        dict.set_item("entries", growth.entries)?;
        dict.set_item("complete", growth.complete)?;
        Ok(dict)
    };
    report.rows.iter().map(row).collect()
}

/// Returns the upper end of a group, below which its values are; `None` for the last one.
fn bound(ends: &[i64], at: usize) -> Option<i64> {
    ends.get(at).copied()
}
