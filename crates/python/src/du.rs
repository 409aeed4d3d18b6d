//! `fathomfs.du`.

use std::ffi::CString;

use fathom_du::exclude::Exclude;
use fathom_du::scan::Engine;
use fathom_du::usage::{Usage, UsageOptions, UsageProblem, usage};
use fathom_walk::Model;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::call;
use crate::error::of_walk;
use crate::problem::{Problem, raise_if};
use crate::values::value;

/// Converts a path, which has no NUL byte.
pub(crate) fn path(bytes: Vec<u8>) -> PyResult<CString> {
    CString::new(bytes).map_err(|_| PyValueError::new_err("embedded null byte in a path"))
}

/// Parses the name of an I/O model.
pub(crate) fn model(name: &str) -> PyResult<Model> {
    let parsed = name.parse::<Model>();
    parsed.map_err(|error| PyValueError::new_err(format!("unknown I/O model {name:?}: {error}")))
}

/// Counts the tree at `path`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are those of the Python function")]
#[pyo3(signature = (path, exclude, one_file_system, threads, io, strict, progress))]
pub(crate) fn du<'py>(
    py: Python<'py>,
    path: Vec<u8>,
    exclude: Vec<Vec<u8>>,
    one_file_system: bool,
    threads: Option<usize>,
    io: &str,
    strict: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let root = self::path(path)?;
    let mut patterns = Exclude::default();
    exclude.iter().for_each(|pattern| patterns.add(pattern));
    let engine = Engine { model: model(io)?, threads, ..Engine::default() };
    let options = UsageOptions { one_file_system, exclude: patterns, engine };
    let found = call::read(py, progress, move |state| {
        let found = usage(root, options, state.stop(), &mut |progress| state.set_progress(progress));
        found.inspect(|found| state.set_progress(found.summary.progress))
    })?;
    let found = found.map_err(|error| of_walk(py, &error))?;
    let errors: Vec<Problem> = found.problems.into_iter().map(problem).collect();
    raise_if(py, strict, &errors)?;
    let errors = errors.iter().map(|problem| problem.value(py)).collect::<PyResult<Vec<_>>>()?;
    let Usage { bytes, apparent, files, dirs } = found.usage;
    let complete = found.summary.complete && found.problem_count == 0;
    let fields = (bytes, apparent, files, dirs, PyTuple::new(py, errors)?, found.problem_count, complete);
    value(py, "Usage", fields)
}

fn problem(problem: UsageProblem) -> Problem {
    let UsageProblem { path, operation, errno } = problem;
    Problem { path, operation: operation.to_string(), errno }
}
