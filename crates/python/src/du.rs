//! `fathomfs.du`.

use std::ffi::CString;

use fathom_du::exclude::Exclude;
use fathom_du::scan::Engine;
use fathom_du::usage::{UsageOptions, UsageProblem, usage};
use fathom_walk::Model;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call;
use crate::error::of_walk;
use crate::problem::{Problem, raise_if};

/// The usage of a tree.
#[pyclass(frozen, get_all, module = "fathomfs")]
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    /// Bytes allocated on disk, directories included.
    bytes: u64,
    /// The lengths of regular files and symbolic links.
    apparent: u64,
    /// Entries that are not directories.
    files: u64,
    /// Directories, with the root.
    dirs: u64,
    /// The first problems, by path.
    errors: Vec<Problem>,
    /// The number of all problems.
    error_count: u64,
    /// Whether everything was counted.
    complete: bool,
}

#[pymethods]
impl Usage {
    fn __repr__(&self) -> String {
        let Self { bytes, apparent, files, dirs, error_count, .. } = self;
        let complete = if self.complete { "True" } else { "False" };
        format!(
            "Usage(bytes={bytes}, apparent={apparent}, files={files}, dirs={dirs}, \
             error_count={error_count}, complete={complete})"
        )
    }
}

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
pub(crate) fn du(
    py: Python<'_>,
    path: Vec<u8>,
    exclude: Vec<Vec<u8>>,
    one_file_system: bool,
    threads: Option<usize>,
    io: &str,
    strict: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Usage> {
    let root = self::path(path)?;
    let mut patterns = Exclude::default();
    exclude.iter().for_each(|pattern| patterns.add(pattern));
    let engine = Engine { choice: model(io)?, threads, ..Engine::default() };
    let options = UsageOptions { one_file_system, exclude: patterns, engine };
    let found = call::run(py, progress, move |state| {
        let found = usage(root, options, state.stop(), &mut |progress| state.set_progress(progress));
        found.inspect(|found| state.set_progress(found.summary.progress))
    })?;
    let found = found.map_err(|error| of_walk(py, &error))?;
    let errors: Vec<Problem> = found.problems.into_iter().map(problem).collect();
    raise_if(py, strict, &errors)?;
    let fathom_du::usage::Usage { bytes, apparent, files, dirs } = found.usage;
    let complete = found.summary.complete && found.problem_count == 0;
    Ok(Usage { bytes, apparent, files, dirs, errors, error_count: found.problem_count, complete })
}

fn problem(problem: UsageProblem) -> Problem {
    let UsageProblem { path, operation, errno } = problem;
    Problem { path, operation: operation.to_string(), errno }
}
