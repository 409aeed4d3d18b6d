//! `fathomfs.list`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use crossbeam_channel::bounded;
use fathom_du::exclude::Exclude;
use fathom_walk::{Fields, Follow, Options, run_unordered};
use pyo3::prelude::*;

use crate::columns::{parse_columns, schema};
use crate::du::{model, path};
use crate::error::{StreamError, raised};
use crate::predicate::{Conditions, Predicate};
use crate::stream::EntryStream;
use crate::visitor::{ListRoot, ListSelection, ListState, ListVisitor};

/// Batches that may wait for the reader.
const BATCHES_MAX: usize = 8;

/// Starts a list of the entries below `path`.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are those of the Python function")]
#[pyo3(signature = (path, columns, conditions, exclude, one_file_system, max_depth, threads, io, follow_root=false))]
pub(crate) fn list(
    py: Python<'_>,
    path: Vec<u8>,
    columns: Vec<String>,
    conditions: Option<Conditions>,
    exclude: Vec<Vec<u8>>,
    one_file_system: bool,
    max_depth: Option<usize>,
    threads: Option<usize>,
    io: &str,
    follow_root: bool,
) -> PyResult<EntryStream> {
    let root = self::path(path)?;
    let columns = parse_columns(&columns)?;
    let predicate = conditions.map(Predicate::new).transpose()?.unwrap_or_default();
    let fields = columns.iter().filter_map(|column| column.fields());
    let fields = fields.chain(predicate.fields()).reduce(Fields::union);
    let mut patterns = Exclude::default();
    exclude.iter().for_each(|pattern| patterns.add(pattern));
    let walk = Options::default()
        .model(model(io)?)
        .threads(threads)
        .follow_roots(if follow_root { Follow::Yes } else { Follow::No })
        .fields(fields.unwrap_or(Fields::IDENTITY))
        .stat_dirs(fields.is_some())
        .unordered_chunks(true);
    let (batches, receiver) = bounded(BATCHES_MAX);
    let (schema, state) = (schema(&columns), Arc::new(ListState::default()));
    let depth_max = max_depth.unwrap_or(usize::MAX);
    let selection = ListSelection { columns, exclude: patterns, predicate, one_file_system, depth_max };
    let visitor = ListVisitor {
        selection,
        schema: Arc::clone(&schema),
        needs_meta: fields.is_some(),
        batches,
        state: Arc::clone(&state),
    };
    let mut roots = ListRoot { root: Some(root), state: Arc::clone(&state) };
    let work = move || {
        let state = Arc::clone(&roots.state);
        let ended = run_unordered(walk, visitor, &mut roots, &mut |_| ());
        let is_complete = ended.as_ref().is_ok_and(|summary| summary.complete);
        let has_problems = state.problem_count.load(Ordering::Relaxed) > 0;
        state.is_complete.store(is_complete && !has_problems, Ordering::Relaxed);
        // Pairs with the Acquire of the reader, which then sees whether it is complete.
        state.has_ended.store(true, Ordering::Release);
        ended.map(drop).map_err(StreamError::Walk)
    };
    let thread = thread::Builder::new().name("fathomfs".to_owned()).spawn(work);
    let thread =
        thread.map_err(|error| raised(py, error.raw_os_error().unwrap_or(0), "start a thread", None))?;
    Ok(EntryStream::new(schema, receiver, state, thread))
}
