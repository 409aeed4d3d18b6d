//! Samples of a tree: `walk` reads all names below a directory, `stat` also reads the metadata of
//! every entry.

use std::convert::Infallible;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use fathom_io::sys::usage;
use fathom_io::{Errno, Model};
use fathom_walk::{
    Emit, Entry, Fields, FileType, Follow, Meta, Names, NextRoot, Node, Options, RootSource, Summary,
    UnorderedVisitor, Visitor, gatherer,
};

use super::spec::{SampleError, SampleSpec};
use super::usage_between;
use crate::Workload;
use crate::lang::Measurement;
use crate::machine::own_peak_memory_bytes;

/// Totals of a walk, shared by its workers.
#[derive(Debug, Default)]
struct TreeTotals {
    entries: AtomicU64,
    bytes: AtomicU64,
    error: Mutex<Option<Errno>>,
}

/// The visitor of the walk, which counts entries and bytes on the workers.
struct TreeCounter {
    count: Arc<TreeTotals>,
    stats: bool,
    /// Whether what cannot be read below the root is left out: the tree is the user's own.
    skips: bool,
}

/// Entries and bytes that a worker has not added to the totals yet.
type LocalTotals = (u64, u64);

impl TreeCounter {
    fn fail(&self, errno: Errno) {
        self.count.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(errno);
    }
}

impl Visitor for TreeCounter {
    type Item = Infallible;
    type Local = LocalTotals;

    fn select(&self, _: &Arc<Node>, names: &mut Names) {
        names.skip_stat_if(|name| !self.stats && name.file_type != FileType::Unknown);
    }

    fn entries<'a>(
        &self,
        share: &mut LocalTotals,
        _: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        for entry in entries {
            share.0 += 1;
            match entry.meta {
                Some(Ok(meta)) if meta.file_type() == FileType::Regular => {
                    share.1 += meta.size.unsigned_abs()
                }
                Some(Err(errno)) => emit.failed(&entry, errno),
                _ => {}
            }
            if entry.file_type() == FileType::Directory {
                emit.descend(&entry);
            }
        }
    }
}

impl UnorderedVisitor for TreeCounter {
    fn failed(&self, _: &mut LocalTotals, failure: fathom_walk::Failure<'_>) {
        let is_root = failure.node.parent().is_none() && failure.name.is_none();
        if is_root || !self.skips {
            self.fail(failure.errno);
        }
    }

    fn root_file(&self, _: &mut LocalTotals, _: &Arc<Node>, _: &Meta) {
        self.fail(Errno::NOTDIR);
    }

    fn flush(&self, share: &mut LocalTotals) {
        let (entries, bytes) = std::mem::take(share);
        self.count.entries.fetch_add(entries, Relaxed);
        self.count.bytes.fetch_add(bytes, Relaxed);
    }
}

struct SingleRoot(Option<std::ffi::CString>);

impl RootSource for SingleRoot {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.0.take().map_or(NextRoot::End, NextRoot::Path)
    }
}

/// Returns the model of the walk and its number of workers.
fn model_and_threads(spec: &SampleSpec) -> (Model, Option<usize>) {
    match spec.model.unwrap_or_default() {
        Model::Threads(_) => (Model::Threads(Some(spec.threads)), None),
        Model::Uring(_) => (Model::Uring(Some(spec.depth)), Some(spec.threads)),
        model => (model, None),
    }
}

fn options(spec: &SampleSpec, stats: bool) -> Options {
    let (model, threads) = model_and_threads(spec);
    Options::default()
        .model(model)
        .threads(threads)
        .follow_roots(Follow::Yes)
        .fields(if stats { Fields::ALL } else { Fields::IDENTITY })
        .stat_dirs(stats)
}

/// Gathers the tree at the path of `spec`: workers send entries to this thread, which counts them.
fn gather(spec: &SampleSpec, stats: bool, counter: &TreeCounter) -> Result<Summary, fathom_walk::Error> {
    let builder = gatherer::Builder::new().workers(spec.threads).backlog(spec.backlog).metadata(stats);
    let mut walk = builder.walk([&spec.path])?;
    let mut share = LocalTotals::default();
    for item in &mut walk {
        let item = match item {
            Ok(item) => item,
            Err(failed) => {
                let is_root = failed.path.depth() == 0;
                if is_root || !counter.skips {
                    counter.fail(failed.errno);
                }
                continue;
            }
        };
        share.0 += 1;
        if let Some(meta) = item.meta.filter(|meta| meta.file_type() == FileType::Regular) {
            share.1 += meta.size.unsigned_abs();
        }
    }
    counter.flush(&mut share);
    walk.finish()
}

/// Walks the tree at the path of `spec`. The operations are the entries, the bytes are the sizes of
/// regular files.
pub(super) fn walk(spec: &SampleSpec) -> Result<Measurement, SampleError> {
    let stats = spec.workload == Workload::Stat;
    let root = std::ffi::CString::new(spec.path.as_os_str().as_bytes());
    let root = root.map_err(|error| SampleError::io("walk", &spec.path, error.into()))?;
    let found = Arc::new(TreeTotals::default());
    let counter = TreeCounter { count: found.clone(), stats, skips: !spec.has_pattern };
    let (before, start) = (usage(), Instant::now());
    let summary = if spec.backlog > 0 {
        gather(spec, stats, &counter)
    } else {
        fathom_walk::run_unordered(options(spec, stats), counter, &mut SingleRoot(Some(root)), &mut |_| {})
    };
    let (seconds, after) = (start.elapsed().as_secs_f64(), usage());
    let summary = summary.map_err(|error| SampleError::Refused(error.to_string()))?;
    let error = found.error.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(errno) = error {
        return Err(SampleError::io("walk", &spec.path, errno.into()));
    }
    let usage = usage_between(&before, &after);
    let workers = summary.workers_over_time.iter().map(|(_, count)| *count).max().unwrap_or(1);
    Ok(Measurement {
        seconds,
        sync_s: seconds,
        close_s: seconds,
        ops: found.entries.load(Relaxed),
        bytes: found.bytes.load(Relaxed),
        in_flight_max: workers as u64,
        cpu_user_s: usage.cpu_user.as_secs_f64(),
        cpu_sys_s: usage.cpu.saturating_sub(usage.cpu_user).as_secs_f64(),
        switches: Some(usage.waits),
        switches_forced: Some(usage.preemptions),
        memory_bytes: Some(own_peak_memory_bytes()),
        ..Measurement::default()
    })
}
