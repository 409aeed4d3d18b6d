//! The visitor of a list: workers build record batches and send them to a bounded channel.

use std::convert::Infallible;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use crossbeam_channel::Sender;
use fathom_du::exclude::Exclude;
use fathom_walk::{
    Descend, Emit, Enter, Entry, Failure, FileType, Meta, Names, NextRoot, Node, RootSource,
    UnorderedVisitor, Visitor,
};

use crate::columns::{BatchBuilder, Column, RowSource};
use crate::predicate::Predicate;
use crate::problem::Problem;

/// Rows of a full batch.
const ROWS_MAX: usize = 16 * 1024;
/// Rows of the first batch of a worker, so that a reader does not wait long for it.
const ROWS_FIRST: usize = 512;
/// Bytes of paths in a full batch.
const TEXT_BYTES_MAX: usize = 8 << 20;
/// Problems that are kept. More are counted.
const PROBLEMS_MAX: usize = 10_000;

/// The entries that a list has.
#[derive(Clone, Debug)]
pub(crate) struct ListSelection {
    pub(crate) columns: Vec<Column>,
    pub(crate) exclude: Exclude,
    pub(crate) predicate: Predicate,
    pub(crate) one_file_system: bool,
    /// Directories at this depth are not read; the entries of the root are at depth 1.
    pub(crate) depth_max: usize,
}

/// The state of a list that its reader sees.
#[derive(Debug, Default)]
pub(crate) struct ListState {
    pub(crate) stop: AtomicBool,
    /// Whether the walk has ended, and has read everything.
    pub(crate) is_complete: AtomicBool,
    pub(crate) has_ended: AtomicBool,
    pub(crate) problem_count: AtomicU64,
    problems: Mutex<Vec<Problem>>,
}

impl ListState {
    /// Returns the problems so far.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone();
        problems.sort_by(|one, other| one.path.cmp(&other.path));
        problems
    }

    fn record(&self, problem: Problem) {
        self.problem_count.fetch_add(1, Ordering::Relaxed);
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if problems.len() < PROBLEMS_MAX {
            problems.push(problem);
        }
    }
}

/// The only root.
pub(crate) struct ListRoot {
    pub(crate) root: Option<CString>,
    pub(crate) state: Arc<ListState>,
}

impl RootSource for ListRoot {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.root.take().map_or(NextRoot::End, NextRoot::Path)
    }

    fn stopped(&mut self) -> bool {
        self.state.stop.load(Ordering::Relaxed)
    }
}

/// The batch of a worker.
pub(crate) struct WorkerBatch {
    /// Created with the first row.
    batch: Option<BatchBuilder>,
    rows_max: usize,
    path: Vec<u8>,
}

impl Default for WorkerBatch {
    fn default() -> Self {
        Self { batch: None, rows_max: ROWS_FIRST, path: Vec::new() }
    }
}

/// The visitor.
pub(crate) struct ListVisitor {
    pub(crate) selection: ListSelection,
    pub(crate) schema: SchemaRef,
    /// Whether a column or a condition needs metadata.
    pub(crate) needs_meta: bool,
    pub(crate) batches: Sender<RecordBatch>,
    pub(crate) state: Arc<ListState>,
}

impl ListVisitor {
    /// Adds the row if the predicate accepts it.
    fn push(&self, local: &mut WorkerBatch, row: &RowSource<'_>) {
        if !self.selection.predicate.accepts(row.path, row.file_type, row.meta) {
            return;
        }
        let batch = local.batch.get_or_insert_with(|| BatchBuilder::new(&self.selection.columns));
        batch.push(row);
    }

    fn send_if_full(&self, local: &mut WorkerBatch) {
        let is_full =
            |batch: &BatchBuilder| batch.rows() >= local.rows_max || batch.text_bytes() >= TEXT_BYTES_MAX;
        if local.batch.as_ref().is_some_and(is_full) {
            self.send(local);
            local.rows_max = (local.rows_max * 2).min(ROWS_MAX);
        }
    }

    fn send(&self, local: &mut WorkerBatch) {
        let Some(batch) = local.batch.as_mut().filter(|batch| batch.rows() > 0) else { return };
        let sent = batch.finish(&self.schema).ok().is_some_and(|batch| self.batches.send(batch).is_ok());
        if !sent {
            // The reader is gone.
            self.state.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Visitor for ListVisitor {
    type Item = Infallible;
    type Local = WorkerBatch;

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        let ListSelection { exclude, predicate, .. } = &self.selection;
        let (mut path, mut scratch) = (Vec::new(), Vec::new());
        if exclude.needs_path() || predicate.needs_path() {
            dir.path_into(&mut path);
        }
        if !exclude.is_empty() {
            names.retain(|name| !exclude.matches_below(&path, name.name.to_bytes(), &mut scratch));
        }
        if predicate.needs_names() {
            let reach = predicate.reach(&path);
            names.retain(|name| {
                let may_be_read = matches!(name.file_type, FileType::Directory | FileType::Unknown);
                (may_be_read || predicate.accepts_type(name.file_type))
                    && reach.includes(name.name.to_bytes())
            });
        }
        names.skip_stat_of(|file_type| {
            file_type != FileType::Unknown && !(self.needs_meta && predicate.accepts_type(file_type))
        });
    }

    fn entries<'a>(
        &self,
        local: &mut WorkerBatch,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        let mut path = std::mem::take(&mut local.path);
        path.clear();
        dir.path_into(&mut path);
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        let (dir_len, depth) = (path.len(), dir.depth() + 1);
        for entry in entries {
            let meta = match entry.meta {
                Some(Err(errno)) => {
                    emit.failed(&entry, errno);
                    continue;
                }
                Some(Ok(meta)) => Some(meta),
                None => None,
            };
            let (name, file_type) = (entry.name.name.to_bytes(), entry.file_type());
            path.truncate(dir_len);
            path.extend_from_slice(name);
            self.push(
                local,
                &RowSource { path: &path, name_len: name.len(), depth, ino: entry.name.ino, file_type, meta },
            );
            if file_type == FileType::Directory && depth < self.selection.depth_max {
                emit.descend(&entry);
            }
            self.send_if_full(local);
        }
        local.path = path;
    }
}

impl UnorderedVisitor for ListVisitor {
    fn enter(&self, _local: &mut WorkerBatch, enter: Enter<'_>) -> Descend {
        let node = enter.node;
        let ListSelection { predicate, one_file_system, depth_max, .. } = &self.selection;
        let is_elsewhere = *one_file_system && node.root_dev().is_some_and(|dev| dev != enter.meta.dev);
        let is_root = node.depth() == 0;
        // Other directories are among the names of their parents, and were selected there.
        let is_unwanted = is_root && (*depth_max == 0 || !predicate.reaches(node.name().to_bytes()));
        if is_elsewhere || is_unwanted { Descend::No } else { Descend::Yes }
    }

    fn failed(&self, _local: &mut WorkerBatch, failure: Failure<'_>) {
        let path = failure.node.path_of(failure.name);
        let (operation, errno) = (failure.operation.to_string(), failure.errno);
        self.state.record(Problem { path, operation, errno });
    }

    /// A root that is no directory is the only row.
    fn root_file(&self, local: &mut WorkerBatch, root: &Arc<Node>, meta: &Meta) {
        let path = root.name().to_bytes();
        let name_len = path.rsplit(|byte| *byte == b'/').next().map_or(path.len(), <[u8]>::len);
        let (file_type, ino, meta) = (meta.file_type(), meta.ino, Some(meta));
        self.push(local, &RowSource { path, name_len, depth: 0, ino, file_type, meta });
    }

    fn flush(&self, local: &mut WorkerBatch) {
        self.send(local);
    }
}
