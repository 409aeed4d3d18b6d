//! Values whose classes are in Python (python/fathomfs/_values.py).

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

/// Returns a value of a class, made of its fields in their order.
pub(crate) fn value<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("fathomfs._values")?.getattr(class)?.call1(fields)
}
