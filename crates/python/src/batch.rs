//! A batch of entries: a value for Python and for Arrow readers, which can be pickled.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    StructArray, TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::columns::ZONE;

/// Returns a schema for a reader of Arrow schemas.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, data_type: &DataType) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(data_type).map_err(|error| failed(&error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn failed(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// Returns the names of the columns.
pub(crate) fn names(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// The types of columns, with the words for them in pickles.
fn types() -> [(&'static str, DataType); 7] {
    [
        ("text", DataType::Utf8),
        ("bytes", DataType::Binary),
        ("int64", DataType::Int64),
        ("uint32", DataType::UInt32),
        ("uint64", DataType::UInt64),
        ("float64", DataType::Float64),
        ("time", DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into()))),
    ]
}

fn word(data_type: &DataType) -> &'static str {
    types().iter().find(|(_, known)| known == data_type).map_or("", |(word, _)| word)
}

fn data_type(word: &str) -> PyResult<DataType> {
    let found = types().into_iter().find(|(known, _)| *known == word);
    found
        .map(|(_, data_type)| data_type)
        .ok_or_else(|| PyValueError::new_err(format!("unknown type of a column: {word:?}")))
}

/// Returns the array of values of a type.
fn array(data_type: &DataType, values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    Ok(match data_type {
        DataType::Utf8 => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
        DataType::Binary => {
            let values: Vec<Option<Vec<u8>>> = values.extract()?;
            Arc::new(values.into_iter().collect::<BinaryArray>())
        }
        DataType::Int64 => Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)),
        DataType::UInt32 => Arc::new(UInt32Array::from(values.extract::<Vec<Option<u32>>>()?)),
        DataType::UInt64 => Arc::new(UInt64Array::from(values.extract::<Vec<Option<u64>>>()?)),
        DataType::Float64 => Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)),
        _ => {
            let values: Vec<Option<i64>> = values.extract()?;
            Arc::new(TimestampMicrosecondArray::from(values).with_timezone(ZONE))
        }
    })
}

/// A class, and the arguments with which it makes a pickled batch.
type PickledBatch<'py> = (Bound<'py, PyAny>, (Vec<PickledColumn<'py>>, usize));

/// A column as it is pickled: its name, its type, whether values may be missing, and the values.
type PickledColumn<'py> = (String, String, bool, Bound<'py, PyAny>);

/// Entries of a list.
#[pyclass(frozen, eq, module = "fathomfs")]
#[derive(PartialEq)]
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
    /// Makes a batch of what [`EntryBatch::__reduce__`] returns.
    #[new]
    fn of_columns(columns: Vec<PickledColumn<'_>>, rows: usize) -> PyResult<Self> {
        let field = |(name, word, is_nullable, _): &PickledColumn<'_>| {
            Ok(Field::new(name, data_type(word)?, *is_nullable))
        };
        let fields = columns.iter().map(field).collect::<PyResult<Vec<_>>>()?;
        let array = |(column, field): (&PickledColumn<'_>, &Field)| array(field.data_type(), &column.3);
        let arrays = columns.iter().zip(&fields).map(array).collect::<PyResult<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
        Ok(Self { batch: batch.map_err(|error| PyValueError::new_err(error.to_string()))? })
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<PickledBatch<'py>> {
        let (py, batch) = (this.py(), &this.get().batch);
        let column = |field: &Arc<Field>| {
            let values = this.get().column(py, field.name())?;
            Ok((
                field.name().clone(),
                word(field.data_type()).to_owned(),
                field.is_nullable(),
                values.into_any(),
            ))
        };
        let columns = batch.schema().fields().iter().map(column).collect::<PyResult<Vec<_>>>()?;
        Ok((this.get_type().into_any(), (columns, batch.num_rows())))
    }

    fn __repr__(&self) -> String {
        let columns = names(&self.batch.schema()).join(", ");
        format!("<EntryBatch: {} rows, columns {columns}>", self.batch.num_rows())
    }

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
