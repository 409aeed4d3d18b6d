//! A failed operation on one entry.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::raised;
use crate::values::value;

/// An operation that failed on an entry, which did not end the call.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) path: Vec<u8>,
    pub(crate) operation: String,
    pub(crate) errno: fathom_walk::Errno,
}

impl Problem {
    /// Returns the problem for Python.
    pub(crate) fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        value(py, "Problem", (PyBytes::new(py, &self.path), &self.operation, self.errno.raw_os_error()))
    }

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
