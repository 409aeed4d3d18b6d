//! A failed operation on one entry, as a value.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{raised, words};

/// An operation that failed on an entry, which did not end the call.
#[pyclass(frozen, module = "fathomfs")]
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) path: Vec<u8>,
    pub(crate) operation: String,
    pub(crate) errno: fathom_walk::Errno,
}

#[pymethods]
impl Problem {
    #[getter]
    fn path(&self) -> &OsStr {
        OsStr::from_bytes(&self.path)
    }

    #[getter]
    fn path_raw<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.path)
    }

    #[getter]
    fn operation(&self) -> &str {
        &self.operation
    }

    #[getter]
    fn errno(&self) -> i32 {
        self.errno.raw_os_error()
    }

    fn __str__(&self) -> String {
        let path = String::from_utf8_lossy(&self.path);
        format!("cannot {} '{}': {}", self.operation, path.escape_debug(), words(self.errno))
    }

    fn __repr__(&self) -> String {
        format!("<Problem: {}>", self.__str__())
    }
}

impl Problem {
    fn exception(&self, py: Python<'_>) -> PyErr {
        raised(py, self.errno.raw_os_error(), &self.operation, Some(&self.path))
    }
}

/// Raises the first of `problems`, if there is one and it is wanted.
pub(crate) fn raise_if(py: Python<'_>, strict: bool, problems: &[Problem]) -> PyResult<()> {
    match problems.first() {
        Some(problem) if strict => Err(problem.exception(py)),
        _ => Ok(()),
    }
}
