//! The dictionaries of fsspec's `info` for the entries of lists (python/fathomfs/fsspec.py).

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, BinaryArray, Float64Array, Int64Array, UInt32Array, UInt64Array};
use fathom_walk::FileType;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{IntoPyObjectExt, intern};

use crate::batch::EntryBatch;

/// The columns of a batch.
struct InfoColumns<'a> {
    path: &'a BinaryArray,
    size: &'a Int64Array,
    created: &'a Float64Array,
    mode: &'a UInt32Array,
    uid: &'a UInt32Array,
    gid: &'a UInt32Array,
    mtime: &'a Float64Array,
    ino: &'a UInt64Array,
    nlink: &'a UInt64Array,
}

impl<'a> InfoColumns<'a> {
    /// Returns `None` if a column is missing.
    fn of(batch: &'a EntryBatch) -> Option<Self> {
        let column = |name| batch.batch().column_by_name(name);
        Some(Self {
            path: column("path_raw")?.as_binary_opt()?,
            size: column("size")?.as_primitive_opt::<Int64Type>()?,
            created: column("st_ctime")?.as_primitive_opt::<Float64Type>()?,
            mode: column("mode")?.as_primitive_opt::<UInt32Type>()?,
            uid: column("uid")?.as_primitive_opt::<UInt32Type>()?,
            gid: column("gid")?.as_primitive_opt::<UInt32Type>()?,
            mtime: column("st_mtime")?.as_primitive_opt::<Float64Type>()?,
            ino: column("ino")?.as_primitive_opt::<UInt64Type>()?,
            nlink: column("nlink")?.as_primitive_opt::<UInt64Type>()?,
        })
    }

    fn file_type(&self, row: usize) -> FileType {
        FileType::from_mode(self.mode.value(row))
    }

    /// Sets the values of a row in `info`, a copy of the template.
    fn fill(&self, row: usize, name: &Bound<'_, PyString>, info: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = info.py();
        info.set_item(intern!(py, "name"), name)?;
        info.set_item(intern!(py, "size"), self.size.value(row))?;
        match self.file_type(row) {
            FileType::Regular => {}
            FileType::Directory => info.set_item(intern!(py, "type"), intern!(py, "directory"))?,
            file_type => {
                info.set_item(intern!(py, "type"), intern!(py, "other"))?;
                info.set_item(intern!(py, "islink"), file_type == FileType::Symlink)?;
            }
        }
        info.set_item(intern!(py, "created"), self.created.value(row))?;
        info.set_item(intern!(py, "mode"), self.mode.value(row))?;
        info.set_item(intern!(py, "uid"), self.uid.value(row))?;
        info.set_item(intern!(py, "gid"), self.gid.value(row))?;
        info.set_item(intern!(py, "mtime"), self.mtime.value(row))?;
        info.set_item(intern!(py, "ino"), self.ino.value(row))?;
        info.set_item(intern!(py, "nlink"), self.nlink.value(row))
    }
}

/// Returns the information of a regular file without values, in fsspec's order of keys. Copying a
/// dictionary is faster than making it key by key.
fn template(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let info = PyDict::new(py);
    for key in ["name", "size", "type", "created", "islink", "mode", "uid", "gid", "mtime", "ino", "nlink"] {
        let value = match key {
            "type" => intern!(py, "file").into_bound_py_any(py)?,
            "islink" => false.into_bound_py_any(py)?,
            _ => py.None().into_bound(py),
        };
        info.set_item(PyString::intern(py, key), value)?;
    }
    Ok(info)
}

/// Returns the information of all entries by path, and the paths of links, whose targets are not
/// looked at. With `is_sorted`, paths are in the order in which Python sorts them.
#[pyfunction]
pub(crate) fn infos<'py>(
    py: Python<'py>,
    batches: Vec<PyRef<'py, EntryBatch>>,
    is_sorted: bool,
) -> PyResult<(Bound<'py, PyDict>, Vec<Bound<'py, PyString>>)> {
    let columns = batches.iter().map(|batch| InfoColumns::of(batch)).collect::<Option<Vec<_>>>();
    let columns = columns.ok_or_else(|| PyKeyError::new_err("a column of the information is missing"))?;
    let (found, mut links, template) = (PyDict::new(py), Vec::new(), template(py)?);
    for (columns, row) in rows(&columns, is_sorted) {
        let name = OsStr::from_bytes(columns.path.value(row)).into_pyobject(py)?;
        let info = template.copy()?;
        columns.fill(row, &name, &info)?;
        found.set_item(&name, info)?;
        if columns.file_type(row) == FileType::Symlink {
            links.push(name);
        }
    }
    Ok((found, links))
}

fn rows<'a, 'b>(columns: &'b [InfoColumns<'a>], is_sorted: bool) -> Vec<(&'b InfoColumns<'a>, usize)> {
    let rows = |columns: &'b InfoColumns<'a>| (0..columns.path.len()).map(move |row| (columns, row));
    let mut found: Vec<_> = columns.iter().flat_map(rows).collect();
    if is_sorted {
        // A stable sort is fast where parts are sorted, as names of a directory often are.
        let is_text =
            |(columns, row): &(&InfoColumns<'_>, usize)| str::from_utf8(columns.path.value(*row)).is_ok();
        let compare = if found.iter().all(is_text) { compare_text } else { compare_decoded };
        found.sort_by(|(one, at), (other, other_at)| {
            compare(one.path.value(*at), other.path.value(*other_at))
        });
    }
    found
}

/// Compares paths that are UTF-8, whose bytes have the order of their characters.
fn compare_text(one: &[u8], other: &[u8]) -> Ordering {
    one.cmp(other)
}

/// Compares paths as `os.fsdecode` decodes them: a byte that is not UTF-8 is U+DC00 plus the byte.
fn compare_decoded(one: &[u8], other: &[u8]) -> Ordering {
    let decoded = |bytes: &'_ [u8]| {
        let mut points = Vec::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            points.extend(chunk.valid().chars().map(u32::from));
            points.extend(chunk.invalid().iter().map(|byte| 0xDC00 + u32::from(*byte)));
        }
        points
    };
    decoded(one).cmp(&decoded(other))
}
