//! The entries of an inventory as a stream of record batches.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use crossbeam_channel::{Sender, bounded};
use fathom_inventory::store::{DirState, Inventory, Span};
use fathom_questions::replay::{ReplayEntry, ReplayReach, ReplayVisitor, replay};
use fathom_questions::top::QueryError;
use fathom_questions::usage::{UsageTarget, find};
use fathom_walk::{FileType, Meta};
use pyo3::prelude::*;

use crate::call;
use crate::columns::{BatchBuilder, Column, RowSource, nullable_schema};
use crate::error::{StreamError, of_query, raised};
use crate::predicate::{Predicate, Reach};
use crate::stream::EntryStream;
use crate::visitor::ListState;

/// Batches that may wait for the reader.
const BATCHES_MAX: usize = 4;
const ROWS_MAX: usize = 16 * 1024;
/// Rows of the first batch, so that a reader does not wait long for it.
const ROWS_FIRST: usize = 512;
const TEXT_BYTES_MAX: usize = 8 << 20;

/// Sends the batches of an inventory to the reader of a stream.
pub(crate) struct BatchSender {
    batches: Sender<RecordBatch>,
    state: Arc<ListState>,
}

impl BatchSender {
    /// Sends a batch, and breaks if the reader is gone.
    pub(crate) fn send(&self, batch: RecordBatch) -> ControlFlow<()> {
        if self.is_stopped() || self.batches.send(batch).is_err() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Returns whether the reader has closed the stream.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.stop.load(Ordering::Relaxed)
    }
}

/// Starts a thread that reads an inventory, and returns the stream of the batches that it sends.
pub(crate) fn stream(
    py: Python<'_>,
    schema: SchemaRef,
    is_complete: bool,
    work: impl FnOnce(&BatchSender) -> Result<(), StreamError> + Send + 'static,
) -> PyResult<EntryStream> {
    let (batches, receiver) = bounded(BATCHES_MAX);
    let state = Arc::new(ListState::default());
    let sender = BatchSender { batches, state: Arc::clone(&state) };
    let run = move || {
        let ended = work(&sender);
        let is_stopped = sender.is_stopped();
        let is_complete = is_complete && !is_stopped && ended.is_ok();
        sender.state.is_complete.store(is_complete, Ordering::Relaxed);
        // Pairs with the Acquire of the reader, which then sees whether it is complete.
        sender.state.has_ended.store(true, Ordering::Release);
        // A reader that is gone has ended the work with an error.
        if is_stopped { Ok(()) } else { ended }
    };
    let thread = thread::Builder::new().name("fathomfs".to_owned()).spawn(run);
    let thread =
        thread.map_err(|error| raised(py, error.raw_os_error().unwrap_or(0), "start a thread", None))?;
    Ok(EntryStream::new(schema, receiver, state, thread))
}

/// Returns the directories at and below `below`.
///
/// # Errors
/// `InventoryError` if the inventory has no such directory.
pub(crate) fn span(py: Python<'_>, inventory: &Arc<Inventory>, below: Option<Vec<u8>>) -> PyResult<Span> {
    let Some(below) = below else { return Ok(Span::ALL) };
    let inventory = Arc::clone(inventory);
    let found = call::read(py, None, move |_| find(&inventory, &below))?;
    match found.map_err(|error| of_query(py, &error))? {
        UsageTarget::Directory(root) => Ok(root.span),
        UsageTarget::File(_) => Err(of_query(py, &QueryError::Absent)),
    }
}

/// Starts a stream of the entries in `span` that `predicate` accepts.
pub(crate) fn entries(
    py: Python<'_>,
    inventory: Arc<Inventory>,
    columns: Vec<Column>,
    predicate: Predicate,
    span: Span,
) -> PyResult<EntryStream> {
    let schema = nullable_schema(&columns);
    let is_complete = inventory.manifest().completeness.is_complete();
    stream(py, Arc::clone(&schema), is_complete, move |sender| {
        let batch = BatchBuilder::new(&columns);
        let (rows_max, path) = (ROWS_FIRST, Vec::new());
        let visitor = EntryVisitor {
            columns: &columns,
            predicate: &predicate,
            schema,
            batch,
            rows_max,
            path,
            sender,
            is_over: false,
        };
        replay(&inventory, span, visitor).map_err(StreamError::Inventory)
    })
}

/// The visitor that makes batches of entries.
struct EntryVisitor<'a> {
    columns: &'a [Column],
    predicate: &'a Predicate,
    schema: SchemaRef,
    batch: BatchBuilder,
    rows_max: usize,
    path: Vec<u8>,
    sender: &'a BatchSender,
    /// Whether the reader is gone.
    is_over: bool,
}

impl EntryVisitor<'_> {
    fn push(&mut self, item: &ReplayEntry<'_>) {
        let entry = &item.entry;
        self.path.clear();
        entry.write_path(&mut self.path);
        let (file_type, meta) = (entry.file_type(), entry.meta);
        if !self.predicate.accepts(&self.path, file_type, meta) {
            return;
        }
        let path = &self.path[..];
        // The name of an operand is its whole path.
        let name_len = path.rsplit(|byte| *byte == b'/').next().map_or(path.len(), <[u8]>::len);
        // An inventory has no numbers but inode numbers.
        self.batch.push(&RowSource { path, name_len, depth: entry.depth, ino: 0, file_type, meta });
        if self.batch.rows() >= self.rows_max || self.batch.text_bytes() >= TEXT_BYTES_MAX {
            self.send();
            self.rows_max = (self.rows_max * 2).min(ROWS_MAX);
        }
    }

    fn send(&mut self) {
        if self.batch.rows() > 0 {
            let sent = self.batch.finish(&self.schema).map(|batch| self.sender.send(batch));
            self.is_over |= !matches!(sent, Ok(ControlFlow::Continue(())));
        }
    }
}

impl ReplayVisitor for EntryVisitor<'_> {
    fn needs_metadata(&self) -> bool {
        self.predicate.fields().is_some() || self.columns.iter().any(|column| column.fields().is_some())
    }

    fn needs_dir_metadata(&self) -> bool {
        self.needs_metadata() && self.predicate.accepts_type(FileType::Directory)
    }

    fn needs_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| is_made_of(*column, name)) || self.filters_by_column(name)
    }

    fn filters_by_column(&self, name: &str) -> bool {
        Column::ALL.into_iter().any(|column| self.predicate.needs(column) && is_made_of(column, name))
    }

    fn accepts(&self, file_type: FileType, meta: Option<&Meta>) -> bool {
        self.predicate.accepts_values(file_type, meta)
    }

    fn reach(&self, path: &[u8]) -> ReplayReach {
        match self.predicate.reach(path) {
            Reach::All => ReplayReach::All,
            Reach::Some(_) => ReplayReach::Some,
            Reach::None => ReplayReach::None,
        }
    }

    fn entry(&mut self, item: &ReplayEntry<'_>) {
        self.push(item);
    }

    fn enter(&mut self, item: &ReplayEntry<'_>, _state: DirState) {
        self.push(item);
    }

    fn end(&mut self) {
        self.send();
    }

    fn should_continue(&mut self) -> bool {
        !self.is_over && !self.sender.is_stopped()
    }
}

/// Returns whether the values of `column` are made of the column `name` of the tables.
fn is_made_of(column: Column, name: &str) -> bool {
    match column {
        Column::Path | Column::PathRaw | Column::Name | Column::NameRaw => false,
        Column::Type | Column::Depth | Column::DirentIno => false,
        Column::Allocated => name == "blocks",
        Column::StMtime => matches!(name, "mtime" | "mtime_ns"),
        Column::StCtime => matches!(name, "ctime" | "ctime_ns"),
        _ => column.name() == name,
    }
}
