//! Exceptions. Their classes are in Python (python/fathomfs/_errors.py).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use fathom_questions::top::QueryError;
use fathom_walk::Errno;
use pyo3::prelude::*;

/// Returns a `FathomError` of the operation `operation` on `path`.
pub(crate) fn raised(py: Python<'_>, errno: i32, operation: &str, path: Option<&[u8]>) -> PyErr {
    let cause = Errno::from_raw_os_error(errno);
    let text = if errno == 0 { operation.to_owned() } else { words(cause) };
    exception(py, "FathomError", (errno, text, path.map(OsStr::from_bytes), operation))
}

/// Returns an exception for an error of an inventory.
pub(crate) fn of_inventory(py: Python<'_>, error: &fathom_inventory::store::Error) -> PyErr {
    let errno = error.io_error().and_then(std::io::Error::raw_os_error).unwrap_or(0);
    exception(py, "InventoryError", (errno, error.to_string(), Some(error.path().as_os_str()), ""))
}

/// Returns an exception for a call that cannot be answered from an inventory.
pub(crate) fn of_query(py: Python<'_>, error: &impl std::fmt::Display) -> PyErr {
    exception(py, "InventoryError", (0, error.to_string(), None::<&OsStr>, ""))
}

/// Returns an exception for a walk that could not start.
pub(crate) fn of_walk(py: Python<'_>, error: &fathom_walk::Error) -> PyErr {
    let errno = error.io_error().raw_os_error().unwrap_or(0);
    exception(py, "FathomError", (errno, error.to_string(), None::<&OsStr>, "walk"))
}

/// The error of the thread that fills a stream.
#[derive(Debug)]
pub(crate) enum StreamError {
    Walk(fathom_walk::Error),
    Inventory(fathom_inventory::store::Error),
    Query(QueryError),
}

impl StreamError {
    /// Returns the exception for the error.
    pub(crate) fn raised(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Walk(error) => of_walk(py, error),
            Self::Inventory(error) => of_inventory(py, error),
            Self::Query(error) => of_query(py, error),
        }
    }
}

impl std::fmt::Display for StreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Walk(error) => error.fmt(f),
            Self::Inventory(error) => error.fmt(f),
            Self::Query(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StreamError {}

fn exception(py: Python<'_>, class: &str, values: (i32, String, Option<&OsStr>, &str)) -> PyErr {
    let class = py.import("fathomfs._errors").and_then(|module| module.getattr(class));
    match class.and_then(|class| class.call1(values)) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Returns the words of the C library for an error.
pub(crate) fn words(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    match text.rfind(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
