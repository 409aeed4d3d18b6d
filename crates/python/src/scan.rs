//! `fathomfs.scan`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_inventory::store::Error;
use fathom_scans::scan::{Observer, Scan, resume as resume_scan, scan as begin_scan};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::{self, CallState};
use crate::du::{model, path};
use crate::error::of_inventory;
use crate::inventory::Inventory;

/// Watches a scan for the call.
struct ScanWatch<'a>(&'a CallState);

impl Observer for ScanWatch<'_> {
    fn progress(&mut self, progress: fathom_walk::Progress) {
        self.0.set_progress(progress);
    }

    /// The inventory has the problems.
    fn problem(&mut self, _problem: &fathom_scans::scan::Problem) {}
}

/// Scans `roots` into the new inventory `out`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are those of the Python function")]
#[pyo3(signature = (roots, out, one_file_system, since, deadline, rate, max_in_flight, resume, threads, io, progress))]
pub(crate) fn scan(
    py: Python<'_>,
    roots: Vec<Vec<u8>>,
    out: Vec<u8>,
    one_file_system: bool,
    since: Option<Vec<u8>>,
    deadline: Option<f64>,
    rate: Option<u64>,
    max_in_flight: Option<usize>,
    resume: bool,
    threads: Option<usize>,
    io: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Inventory> {
    let seconds = |seconds: f64| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(format!("deadline {seconds}: {error}")))
    };
    let mut options = Scan {
        roots: roots.into_iter().map(path).collect::<PyResult<_>>()?,
        model: model(io)?,
        threads,
        one_file_system,
        since: since.map(path_buf),
        deadline: deadline.map(seconds).transpose()?,
        rate,
        in_flight_max: max_in_flight,
        ..Scan::default()
    };
    options.options = recorded(&options);
    let out = path_buf(out);
    let found = call::run(py, progress, move |state| -> Result<Inventory, Error> {
        options.stop = state.stop().clone();
        let begin = if resume { resume_scan } else { begin_scan };
        let outcome = begin(&options, &out, &mut ScanWatch(state))?;
        state.set_progress(outcome.summary.progress);
        Inventory::read(&out)
    })?;
    found.map_err(|error| of_inventory(py, &error))
}

/// Returns the options for the manifest, under the names of the command `fathom scan`.
fn recorded(scan: &Scan) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    if scan.one_file_system {
        options.insert("one-file-system".to_owned(), String::new());
    }
    if let Some(deadline) = scan.deadline {
        options.insert("deadline".to_owned(), format!("{}s", deadline.as_secs_f64()));
    }
    options
}

pub(crate) fn path_buf(bytes: Vec<u8>) -> PathBuf {
    std::ffi::OsString::from_vec(bytes).into()
}

pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
