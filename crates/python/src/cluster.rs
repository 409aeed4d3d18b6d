//! The native part of `fathomfs.distributed`: the scan that a driver holds, and the units of its
//! workers.

use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fathom_inventory::Owners;
use fathom_inventory::store::Error;
use fathom_scans::scan::{Observer, Problem as ScanProblem};
use fathom_scans::units::{Job, JobOptions, SLICE_BYTES, UnitOptions, UnitRange, UnitRecord, UnitWorker};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::{self, CallState};
use crate::du::{model, path};
use crate::error::of_inventory;
use crate::inventory::Inventory;
use crate::scan::{as_path, path_buf};

/// The worker is kept from one unit to the next, so the options of a scan, and an earlier
/// inventory, are read once. A unit takes it, so two units at once do not wait for each other.
static WORKER: Mutex<Option<UnitWorker>> = Mutex::new(None);

/// A scan by several machines, as its driver holds it.
#[pyclass(frozen, module = "fathomfs")]
pub(crate) struct ClusterScan {
    /// `None` once it is closed.
    job: Mutex<Option<Arc<Job>>>,
    out: Vec<u8>,
}

impl ClusterScan {
    fn job(&self) -> PyResult<Arc<Job>> {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).clone();
        job.ok_or_else(|| PyValueError::new_err("the scan is closed"))
    }
}

/// Begins a scan by several machines, or goes on with one.
#[pyfunction]
pub(crate) fn begin_cluster_scan(
    py: Python<'_>,
    roots: Vec<Vec<u8>>,
    out: Vec<u8>,
    one_file_system: bool,
    since: Option<Vec<u8>>,
    resume: bool,
    io: &str,
) -> PyResult<ClusterScan> {
    // A wrong name is the caller's error, and not one of each unit.
    model(io)?;
    let roots = roots.into_iter().map(path).collect::<PyResult<Vec<CString>>>()?;
    let options = JobOptions { roots, one_file_system, since: since.map(path_buf) };
    let begin = if resume { Job::resume } else { Job::begin };
    let job = py.detach(|| begin(&options, as_path(&out)));
    let job = job.map_err(|error| of_inventory(py, &error))?;
    Ok(ClusterScan { job: Mutex::new(Some(Arc::new(job))), out })
}

#[pymethods]
impl ClusterScan {
    /// The directory in which the inventory is made.
    #[getter]
    fn part(&self) -> PyResult<std::ffi::OsString> {
        Ok(self.job()?.part().as_os_str().to_owned())
    }

    /// The number of operands.
    #[getter]
    fn roots(&self) -> PyResult<usize> {
        Ok(self.job()?.operand_count())
    }

    /// Whether the inventory has its name already.
    #[getter]
    fn finished(&self) -> PyResult<bool> {
        Ok(self.job()?.is_finished())
    }

    /// Removes the directory in which the inventory was made.
    fn remove_part(&self, py: Python<'_>) -> PyResult<()> {
        let job = self.job()?;
        py.detach(|| job.remove_part()).map_err(|error| of_inventory(py, &error))
    }

    /// Writes the record of a unit that is to be done in pieces, under its temporary name.
    fn record_split(
        &self,
        py: Python<'_>,
        unit: &str,
        parent: &str,
        start: usize,
        end: usize,
        pieces: Vec<(usize, usize)>,
    ) -> PyResult<String> {
        let (job, unit) = (self.job()?, range(unit, parent, start, end));
        let record = py.detach(|| job.record_split(&unit, &pieces));
        to_json(&record.map_err(|error| of_inventory(py, &error))?)
    }

    /// Writes the record of a unit that cannot be done, under its temporary name.
    fn record_failed(
        &self,
        py: Python<'_>,
        unit: &str,
        parent: &str,
        start: usize,
        end: usize,
        reason: &str,
    ) -> PyResult<String> {
        let (job, unit) = (self.job()?, range(unit, parent, start, end));
        let record = py.detach(|| job.record_failed(&unit, reason));
        to_json(&record.map_err(|error| of_inventory(py, &error))?)
    }

    /// Puts the tables of all units together, and gives the inventory its name.
    #[pyo3(signature = (stopped, progress))]
    fn finish(
        &self,
        py: Python<'_>,
        stopped: Option<String>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Inventory> {
        let (job, out) = (self.job()?, path_buf(self.out.clone()));
        let finished = call::run(py, progress, move |state| -> Result<Inventory, Error> {
            let stop = Arc::clone(state.stop());
            job.finish(stopped.as_deref(), &Owners::default(), &stop, &mut |entries| {
                state.set_progress(fathom_walk::Progress { entries, ..fathom_walk::Progress::default() });
            })?;
            Inventory::read(&out)
        })?;
        finished.map_err(|error| of_inventory(py, &error))
    }

    /// Gives up the lock. The finished units stay, and another driver can go on.
    fn close(&self) {
        drop(self.job.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Watches a unit for the call.
struct UnitWatch<'a>(&'a CallState);

impl Observer for UnitWatch<'_> {
    fn progress(&mut self, progress: fathom_walk::Progress) {
        self.0.set_progress(progress);
    }

    /// The tables have the problems.
    fn problem(&mut self, _problem: &ScanProblem) {}
}

/// Makes an attempt at a unit. Returns its record as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are those of the Python function")]
#[pyo3(signature = (part, unit, parent, start, end, attempt, budget_s, pieces, slices, rate, max_in_flight, threads, io, progress))]
pub(crate) fn scan_unit(
    py: Python<'_>,
    part: Vec<u8>,
    unit: &str,
    parent: &str,
    start: usize,
    end: usize,
    attempt: i64,
    budget_s: f64,
    pieces: usize,
    slices: usize,
    rate: Option<u64>,
    max_in_flight: Option<usize>,
    threads: Option<usize>,
    io: &str,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let budget = Duration::try_from_secs_f64(budget_s)
        .map_err(|error| PyValueError::new_err(format!("budget {budget_s}: {error}")))?;
    let (unit, model) = (range(unit, parent, start, end), model(io)?);
    let scanned = call::run(py, progress, move |state| -> Result<UnitRecord, Error> {
        let part = path_buf(part);
        let kept = WORKER.lock().unwrap_or_else(PoisonError::into_inner).take();
        let kept = kept.filter(|worker| worker.part() == part);
        let mut worker = kept.map_or_else(|| UnitWorker::new(&part), Ok)?;
        let options = UnitOptions {
            budget,
            pieces,
            slices,
            slice_bytes: SLICE_BYTES,
            rate,
            in_flight_max: max_in_flight,
            threads,
            model,
            stop: Arc::clone(state.stop()),
        };
        let record = worker.run(&unit, attempt, &options, &mut UnitWatch(state));
        *WORKER.lock().unwrap_or_else(PoisonError::into_inner) = Some(worker);
        record
    })?;
    to_json(&scanned.map_err(|error| of_inventory(py, &error))?)
}

fn range(id: &str, parent: &str, start: usize, end: usize) -> UnitRange {
    UnitRange { id: id.to_owned(), parent: parent.to_owned(), start, end }
}

fn to_json(record: &UnitRecord) -> PyResult<String> {
    serde_json::to_string(record).map_err(|error| PyValueError::new_err(error.to_string()))
}
