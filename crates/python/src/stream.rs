//! The stream of record batches of a list, for Python and for the Arrow C stream interface
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::error::StreamError;
use crate::problem::Problem;
use crate::visitor::ListState;

/// Time between two looks at signals.
const LOOK: Duration = Duration::from_millis(50);

type WalkThread = JoinHandle<Result<(), StreamError>>;

/// The batches that are not yet taken. Dropping it ends the walk.
struct BatchSource {
    schema: SchemaRef,
    receiver: Receiver<RecordBatch>,
    thread: Option<WalkThread>,
    state: Arc<ListState>,
}

impl Drop for BatchSource {
    fn drop(&mut self) {
        // The workers also notice that the channel has no receiver, but only when they send.
        self.state.stop.store(true, Ordering::Relaxed);
    }
}

impl BatchSource {
    /// Returns the error of a walk that has ended.
    fn end(&mut self) -> Result<(), StreamError> {
        // A panic of a worker is an error of the walk; the thread itself has nothing that panics.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(Ok(()))
    }
}

impl Iterator for BatchSource {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.receiver.recv() {
            Ok(batch) => Some(Ok(batch)),
            Err(_) => self.end().err().map(|error| Err(ArrowError::ExternalError(Box::new(error)))),
        }
    }
}

impl RecordBatchReader for BatchSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// A list, as batches of entries in the order in which they are found.
#[pyclass(frozen, module = "fathomfs")]
pub(crate) struct EntryStream {
    /// `None` when the batches have been taken or the stream is closed.
    source: Mutex<Option<BatchSource>>,
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
        };
        Self { source: Mutex::new(Some(source)), state, schema }
    }

    fn take(&self) -> Option<BatchSource> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put_back(&self, source: BatchSource) {
        let mut place = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have closed the stream meanwhile: it sets the flag before it locks.
        if !self.state.stop.load(Ordering::Relaxed) {
            *place = Some(source);
        }
    }
}

#[pymethods]
impl EntryStream {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The first problems so far, by path.
    #[getter]
    fn errors(&self) -> Vec<Problem> {
        self.state.problems()
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
        self.state.stop.store(true, Ordering::Relaxed);
        let source = self.take();
        py.detach(|| drop(source));
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
        let end = || PyStopIteration::new_err(());
        let mut source = self.take().ok_or_else(end)?;
        loop {
            let received = py.detach(|| source.receiver.recv_timeout(LOOK));
            match received {
                Ok(batch) => {
                    self.put_back(source);
                    return Ok(EntryBatch::new(batch));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = py.detach(|| source.end());
                    return Err(ended.err().map_or_else(end, |error| error.raised(py)));
                }
                // The source is dropped with an error, which ends the walk.
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
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
        let source = self.take().ok_or_else(|| PyValueError::new_err("the entries were taken before"))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(source)), c"arrow_array_stream")
    }

    /// The schema, for readers of Arrow schemas.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &DataType::Struct(self.schema.fields().clone()))
    }
}

fn schema_capsule<'py>(py: Python<'py>, data_type: &DataType) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(data_type).map_err(|error| failed(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn failed(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Entries of a list.
#[pyclass(frozen, module = "fathomfs")]
pub(crate) struct EntryBatch {
    batch: RecordBatch,
}

impl EntryBatch {
    pub(crate) fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }

    /// Returns the rows.
    pub(crate) fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    fn array(&self, name: &str) -> PyResult<&ArrayRef> {
        self.batch.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

#[pymethods]
impl EntryBatch {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Returns the values of a column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let array = self.array(name)?;
        match array.data_type() {
            DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter()),
            DataType::Binary => PyList::new(py, array.as_binary::<i32>().iter()),
            DataType::Int64 => PyList::new(py, array.as_primitive::<Int64Type>().iter()),
            DataType::UInt32 => PyList::new(py, array.as_primitive::<UInt32Type>().iter()),
            DataType::UInt64 => PyList::new(py, array.as_primitive::<UInt64Type>().iter()),
            DataType::Float64 => PyList::new(py, array.as_primitive::<Float64Type>().iter()),
            _ => PyList::new(py, array.as_primitive::<TimestampMicrosecondType>().iter()),
        }
    }

    /// Returns the values of a column of bytes as `os.fsdecode` decodes them.
    fn decoded<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let array = self.array(name)?.as_binary_opt::<i32>();
        let values = array.ok_or_else(|| PyValueError::new_err(format!("column {name:?} has no bytes")))?;
        PyList::new(py, values.iter().map(|value| value.map(OsStr::from_bytes)))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let rows = StructArray::from(self.batch.clone());
        let schema = schema_capsule(py, rows.data_type())?;
        let array = FFI_ArrowArray::new(&rows.to_data());
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }
}
