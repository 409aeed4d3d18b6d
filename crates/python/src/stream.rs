//! The stream of record batches of a list, for Python and for the Arrow C stream interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use fathom_io::threads::is_main_thread;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::batch::{EntryBatch, names, schema_capsule};
use crate::error::StreamError;
use crate::visitor::ListState;

/// Time between two looks at signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
pub(crate) const FORKED: &str = "this belongs to the process before the fork: create a new one";
const TAKEN: &str = "the entries were already taken";

type WalkThread = JoinHandle<Result<(), StreamError>>;

/// The batches that are not yet taken. Dropping it ends the walk.
struct BatchSource {
    schema: SchemaRef,
    receiver: Receiver<RecordBatch>,
    thread: Option<WalkThread>,
    state: Arc<ListState>,
    /// The process that the walk is in: another one, forked from it, has none of its threads.
    process: u32,
}

impl Drop for BatchSource {
    fn drop(&mut self) {
        if self.is_forked() {
            // Threads that this process does not have may have held locks of the channel.
            std::mem::forget(std::mem::replace(&mut self.receiver, crossbeam_channel::never()));
            std::mem::forget(self.thread.take());
            return;
        }
        // The workers also notice that the channel has no receiver, but only when they send.
        self.state.stop.store(true, Ordering::Relaxed);
    }
}

impl BatchSource {
    fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// Returns the error of a walk that has ended.
    fn end(&mut self) -> Result<(), StreamError> {
        // A panic of a worker is an error of the walk; the thread itself has nothing that panics.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(Ok(()))
    }
}

impl Iterator for BatchSource {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_forked() {
            return Some(Err(ArrowError::ExternalError(FORKED.into())));
        }
        loop {
            if let Err(error) = check_signals() {
                return Some(Err(error));
            }
            match self.receiver.recv_timeout(POLL_INTERVAL) {
                Ok(batch) => return Some(Ok(batch)),
                Err(RecvTimeoutError::Disconnected) => {
                    return self.end().err().map(|error| Err(ArrowError::ExternalError(Box::new(error))));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl RecordBatchReader for BatchSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Runs the handlers of signals, if a reader of Arrow streams calls on the main thread: Python runs
/// them in no other, where one that waits for the interpreter lock may be waited for.
fn check_signals() -> Result<(), ArrowError> {
    if !is_main_thread() {
        return Ok(());
    }
    Python::attach(|py| {
        let Err(error) = py.check_signals() else { return Ok(()) };
        let message = format!("a signal ended the stream: {error}");
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            // The reader makes an exception of its own of the error. This one follows it.
            let _ = py.import("_thread").and_then(|module| module.call_method0("interrupt_main"));
        }
        Err(ArrowError::ExternalError(message.into()))
    })
}

/// The place of the batches.
enum SourcePlace {
    Here(BatchSource),
    /// A reader of Arrow streams has them.
    Taken,
    /// The stream was read to its end, or closed.
    Ended,
}

/// A list, as batches of entries in the order in which they are found.
#[pyclass(frozen, module = "fathomfs")]
pub(crate) struct EntryStream {
    source: Mutex<SourcePlace>,
    state: Arc<ListState>,
    schema: SchemaRef,
}

impl EntryStream {
    pub(crate) fn new(
        schema: SchemaRef,
        receiver: Receiver<RecordBatch>,
        state: Arc<ListState>,
        thread: WalkThread,
    ) -> Self {
        let source = BatchSource {
            schema: Arc::clone(&schema),
            receiver,
            thread: Some(thread),
            state: Arc::clone(&state),
            process: std::process::id(),
        };
        Self { source: Mutex::new(SourcePlace::Here(source)), state, schema }
    }

    fn place(&self) -> MutexGuard<'_, SourcePlace> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the receiver of the batches, which any number of threads may have.
    fn receiver(&self) -> PyResult<Receiver<RecordBatch>> {
        match &*self.place() {
            SourcePlace::Here(source) if source.is_forked() => Err(PyRuntimeError::new_err(FORKED)),
            SourcePlace::Here(source) => Ok(source.receiver.clone()),
            SourcePlace::Taken => Err(PyValueError::new_err(TAKEN)),
            SourcePlace::Ended => Err(PyStopIteration::new_err(())),
        }
    }

    /// Ends the stream after its last batch. Returns the error of the walk to one of its readers.
    fn end(&self) -> Result<(), StreamError> {
        match std::mem::replace(&mut *self.place(), SourcePlace::Ended) {
            SourcePlace::Here(mut source) => source.end(),
            SourcePlace::Taken | SourcePlace::Ended => Ok(()),
        }
    }
}

#[pymethods]
impl EntryStream {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        names(&self.schema)
    }

    /// The first problems so far, by path.
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.state.problems().iter().map(|problem| problem.value(py)).collect()
    }

    /// The number of all problems so far.
    #[getter]
    fn error_count(&self) -> u64 {
        self.state.problem_count.load(Ordering::Relaxed)
    }

    /// Whether everything was read; `None` while the list goes on.
    #[getter]
    fn complete(&self) -> Option<bool> {
        // Pairs with the Release at the end of the walk.
        let has_ended = self.state.has_ended.load(Ordering::Acquire);
        has_ended.then(|| self.state.is_complete.load(Ordering::Relaxed))
    }

    /// Ends the list early.
    fn close(&self, py: Python<'_>) {
        // Threads that wait for a batch see the flag.
        self.state.stop.store(true, Ordering::Relaxed);
        let source = std::mem::replace(&mut *self.place(), SourcePlace::Ended);
        py.detach(|| drop(source));
    }

    fn __repr__(&self) -> String {
        format!("<EntryStream: columns {}>", names(&self.schema).join(", "))
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<EntryBatch> {
        loop {
            // Another thread may have closed the stream meanwhile.
            let receiver = self.receiver()?;
            match py.detach(|| receiver.recv_timeout(POLL_INTERVAL)) {
                Ok(batch) => return Ok(EntryBatch::new(batch)),
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = py.detach(|| self.end());
                    let end = || PyStopIteration::new_err(());
                    return Err(ended.err().map_or_else(end, |error| error.raised(py)));
                }
                Err(RecvTimeoutError::Timeout) => py.check_signals().inspect_err(|_| self.close(py))?,
            }
        }
    }

    /// Iterates without blocking the event loop.
    fn __aiter__<'py>(this: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("fathomfs._async")?.getattr("batches")?.call1((this,))
    }

    /// Returns a LazyFrame of Polars, which can be collected once.
    fn lazy<'py>(this: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("fathomfs.polars")?.getattr("lazy")?.call1((this,))
    }

    /// Hands the batches to a reader of Arrow streams, once.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore the request.
        let _ = requested_schema;
        let mut place = self.place();
        match std::mem::replace(&mut *place, SourcePlace::Taken) {
            SourcePlace::Here(source) if !source.is_forked() => {
                let stream = FFI_ArrowArrayStream::new(Box::new(source));
                PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
            }
            SourcePlace::Here(source) => {
                *place = SourcePlace::Here(source);
                Err(PyRuntimeError::new_err(FORKED))
            }
            other => {
                *place = other;
                Err(PyValueError::new_err(TAKEN))
            }
        }
    }

    /// The schema, for readers of Arrow schemas.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &DataType::Struct(self.schema.fields().clone()))
    }
}
