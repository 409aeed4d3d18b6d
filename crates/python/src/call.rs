//! Calls that take long: without the interpreter lock, ended by Ctrl-C, with progress.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::raised;
use crate::values::value;

/// Time between two looks at signals and progress.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The progress of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    entries: u64,
    directories: u64,
    bytes: u64,
}

/// The state that a call shares with the thread that does its work.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    stop: Arc<AtomicBool>,
    progress: Mutex<Progress>,
}

impl CallState {
    /// Returns the flag that ends the work early.
    pub(crate) fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Records the progress of the work.
    pub(crate) fn set_progress(&self, progress: fathom_walk::Progress) {
        let fathom_walk::Progress { entries, directories, measured, .. } = progress;
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) =
            Progress { entries, directories, bytes: measured };
    }

    fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does `work` on a thread of its own and waits for it without the interpreter lock. A signal whose
/// handler raises, and an error of `progress`, end the work early and are the result.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&CallState) -> T + Send + 'static,
) -> PyResult<T> {
    run_until(py, progress, true, work)
}

/// Does `work`, which only reads, as [`run`] does. A signal whose handler raises does not wait for
/// its end, which may be far, or behind a call that never returns.
pub(crate) fn read<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&CallState) -> T + Send + 'static,
) -> PyResult<T> {
    run_until(py, progress, false, work)
}

fn run_until<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    must_end: bool,
    work: impl FnOnce(&CallState) -> T + Send + 'static,
) -> PyResult<T> {
    let state = Arc::new(CallState::default());
    let (sender, receiver) = bounded(1);
    let worker_state = Arc::clone(&state);
    let thread = thread::Builder::new()
        .name("fathomfs".to_owned())
        // The receiver waits for the result.
        .spawn(move || drop(sender.send(work(&worker_state))))
        .map_err(|error| raised(py, error.raw_os_error().unwrap_or(0), "start a thread", None))?;
    let mut failure = None;
    let result = loop {
        match py.detach(|| receiver.recv_timeout(POLL_INTERVAL)) {
            Ok(result) => break Some(result),
            Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if failure.is_none() {
            failure = look(py, progress, &state).err();
        }
        if failure.is_some() {
            state.stop.store(true, Ordering::Relaxed);
        }
        if let Some(failure) = failure.take_if(|_| !must_end) {
            return Err(failure);
        }
    };
    // The thread has sent its result or panicked.
    let _ = thread.join();
    match (failure, result) {
        (Some(failure), _) => Err(failure),
        (None, Some(result)) => {
            report(progress, state.progress())?;
            Ok(result)
        }
        (None, None) => Err(PyRuntimeError::new_err("the work panicked, which is a bug in fathomfs")),
    }
}

fn look(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>, state: &CallState) -> PyResult<()> {
    py.check_signals()?;
    report(progress, state.progress())
}

fn report(callable: Option<&Bound<'_, PyAny>>, progress: Progress) -> PyResult<()> {
    let Some(callable) = callable else { return Ok(()) };
    let Progress { entries, directories, bytes } = progress;
    let progress = value(callable.py(), "Progress", (entries, directories, bytes))?;
    callable.call1((progress,)).map(drop)
}
