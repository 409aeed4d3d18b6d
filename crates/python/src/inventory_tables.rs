//! The tables of an inventory, and changes between two, as streams of record batches whose columns
//! have the names of docs/inventory.md.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use fathom_inventory::store::Span;
use fathom_inventory::store::{Inventory, Table, TableRows, ValueKind};
use fathom_questions::diff::{Change, DiffOptions, InodeInfo, NumericField, Sides, diff};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::columns::ZONE;
use crate::error::StreamError;
use crate::inventory_entries::{BatchSender, stream};
use crate::stream::EntryStream;

/// Changes of a batch.
const CHANGES_MAX: usize = 4096;

/// A column and the kind of its values.
type NamedKind = (&'static str, ValueKind);

/// The columns of changes. Those with a prefix have the values of the old or of the new inventory.
const CHANGE_COLUMNS: [NamedKind; 20] = [
    ("change", ValueKind::Text),
    ("path", ValueKind::Text),
    ("path_raw", ValueKind::Bytes),
    ("old_path", ValueKind::Text),
    ("old_path_raw", ValueKind::Bytes),
    ("fields", ValueKind::Text),
    ("old_type", ValueKind::Text),
    ("new_type", ValueKind::Text),
    ("old_size", ValueKind::Number),
    ("new_size", ValueKind::Number),
    ("old_blocks", ValueKind::Number),
    ("new_blocks", ValueKind::Number),
    ("old_mtime", ValueKind::Time),
    ("new_mtime", ValueKind::Time),
    ("old_mode", ValueKind::Number),
    ("new_mode", ValueKind::Number),
    ("old_uid", ValueKind::Number),
    ("new_uid", ValueKind::Number),
    ("old_gid", ValueKind::Number),
    ("new_gid", ValueKind::Number),
];

/// A value of a row.
enum Value<'a> {
    Number(Option<i64>),
    Text(Option<&'a [u8]>),
}

/// The growing values of a column.
enum ValueBuilder {
    Number(Int64Builder),
    Time(TimestampMicrosecondBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl ValueBuilder {
    fn new(kind: ValueKind) -> Self {
        match kind {
            ValueKind::Time => Self::Time(TimestampMicrosecondBuilder::new().with_timezone(ZONE)),
            ValueKind::Text => Self::Text(StringBuilder::new()),
            ValueKind::Bytes => Self::Bytes(BinaryBuilder::new()),
            _ => Self::Number(Int64Builder::new()),
        }
    }

    /// Adds a value. A value of another kind is none.
    fn push(&mut self, value: &Value<'_>) {
        match (self, value) {
            (Self::Number(values), Value::Number(value)) => values.append_option(*value),
            (Self::Time(values), Value::Number(value)) => values.append_option(*value),
            (Self::Text(values), Value::Text(value)) => {
                values.append_option(value.map(String::from_utf8_lossy));
            }
            (Self::Bytes(values), Value::Text(value)) => values.append_option(*value),
            (Self::Number(values), Value::Text(_)) => values.append_null(),
            (Self::Time(values), Value::Text(_)) => values.append_null(),
            (Self::Text(values), Value::Number(_)) => values.append_null(),
            (Self::Bytes(values), Value::Number(_)) => values.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Number(values) => ArrayBuilder::finish(values),
            Self::Time(values) => ArrayBuilder::finish(values),
            Self::Text(values) => ArrayBuilder::finish(values),
            Self::Bytes(values) => ArrayBuilder::finish(values),
        }
    }
}

/// Finds the columns `names`, all of them if there are none.
///
/// # Errors
/// `ValueError` for a name that no column has.
fn columns(known: &[NamedKind], names: Option<Vec<String>>) -> PyResult<Vec<NamedKind>> {
    let Some(names) = names else { return Ok(known.to_vec()) };
    let find = |name: &String| {
        let found = known.iter().find(|(column, _)| column == name).copied();
        found.ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            PyValueError::new_err(format!("unknown column {name:?}: the columns are {}", names.join(", ")))
        })
    };
    names.iter().map(find).collect()
}

fn schema(columns: &[NamedKind]) -> SchemaRef {
    let data_type = |kind| match kind {
        ValueKind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        ValueKind::Text => DataType::Utf8,
        ValueKind::Bytes => DataType::Binary,
        _ => DataType::Int64,
    };
    let field = |(name, kind): &NamedKind| Field::new(*name, data_type(*kind), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// Starts a stream of the rows of `table` whose directories are in `span`.
pub(crate) fn rows(
    py: Python<'_>,
    inventory: Arc<Inventory>,
    table: Table,
    names: Option<Vec<String>>,
    span: Span,
) -> PyResult<EntryStream> {
    let columns = columns(&table.columns().collect::<Vec<_>>(), names)?;
    let (schema, is_complete) = (schema(&columns), inventory.manifest().completeness.is_complete());
    stream(py, Arc::clone(&schema), is_complete, move |sender| {
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        let each = &mut |rows: &TableRows| {
            let batch = batch(&columns, &schema, rows.count(), |column, row| match columns[column].1 {
                ValueKind::Text | ValueKind::Bytes => Value::Text(rows.text(column, row)),
                _ => Value::Number(rows.number(column, row)),
            });
            batch.map_or(ControlFlow::Break(()), |batch| sender.send(batch))
        };
        inventory.each_rows(table, span, &names, each).map_err(StreamError::Inventory)
    })
}

/// Makes a batch of `rows` rows. `value` is given the index of a column and a row.
fn batch<'a>(
    columns: &[NamedKind],
    schema: &SchemaRef,
    rows: usize,
    value: impl Fn(usize, usize) -> Value<'a>,
) -> Result<RecordBatch, ArrowError> {
    let array = |(at, (_, kind)): (usize, &NamedKind)| {
        let mut builder = ValueBuilder::new(*kind);
        (0..rows).for_each(|row| builder.push(&value(at, row)));
        builder.finish()
    };
    let arrays = columns.iter().enumerate().map(array).collect();
    // A batch without columns has rows, too.
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)
}

/// Starts a stream of the changes from `old` to `new`, by path.
pub(crate) fn changes(
    py: Python<'_>,
    old: Arc<Inventory>,
    new: Arc<Inventory>,
    names: Option<Vec<String>>,
    below: Option<Vec<u8>>,
) -> PyResult<EntryStream> {
    let columns = columns(&CHANGE_COLUMNS, names)?;
    let schema = schema(&columns);
    let is_complete = [&old, &new].iter().all(|one| one.manifest().completeness.is_complete());
    stream(py, Arc::clone(&schema), is_complete, move |sender| {
        let options = DiffOptions { below, scratch: std::env::temp_dir() };
        let mut pending = Vec::new();
        let mut each = |change: &Change| {
            pending.push(change.clone());
            if pending.len() < CHANGES_MAX {
                return ControlFlow::Continue(());
            }
            send_changes(sender, &columns, &schema, &mut pending)
        };
        let sides = Sides { old: &*old, new: &*new };
        diff(&sides, &options, &mut each).map_err(StreamError::Query)?;
        let _ = send_changes(sender, &columns, &schema, &mut pending);
        Ok(())
    })
}

fn send_changes(
    sender: &BatchSender,
    columns: &[NamedKind],
    schema: &SchemaRef,
    changes: &mut Vec<Change>,
) -> ControlFlow<()> {
    let fields: Vec<String> = changes
        .iter()
        .map(|change| change.fields().iter().map(|field| field.word()).collect::<Vec<_>>().join(","))
        .collect();
    let value = |column: usize, row: usize| {
        let change = &changes[row];
        match columns[column].0 {
            "change" => Value::Text(Some(change.kind.word().as_bytes())),
            "path" | "path_raw" => Value::Text(Some(&change.path)),
            "old_path" | "old_path_raw" => Value::Text(change.from.as_deref()),
            "fields" => Value::Text((!fields[row].is_empty()).then_some(fields[row].as_bytes())),
            name => side_value(change, name),
        }
    };
    let made = batch(columns, schema, changes.len(), value);
    changes.clear();
    match made {
        Ok(batch) if batch.num_rows() == 0 => ControlFlow::Continue(()),
        Ok(batch) => sender.send(batch),
        Err(_) => ControlFlow::Break(()),
    }
}

/// Returns the value of a column of one side.
fn side_value<'a>(change: &'a Change, name: &str) -> Value<'a> {
    let (side, name) = name.split_once('_').unwrap_or_default();
    let info: Option<&InodeInfo> = if side == "old" { change.old.as_ref() } else { change.new.as_ref() };
    let field = match name {
        "type" => return Value::Text(info.map(|info| std::slice::from_ref(&info.letter))),
        "size" => NumericField::Size,
        "blocks" => NumericField::Blocks,
        "mtime" => NumericField::Mtime,
        "mode" => NumericField::Mode,
        "uid" => NumericField::Uid,
        _ => NumericField::Gid,
    };
    Value::Number(info.and_then(|info| info.number(field)))
}
