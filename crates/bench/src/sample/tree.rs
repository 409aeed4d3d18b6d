//! Samples of a tree: `walk` reads all names below a directory, `stat` takes the metadata of all of them as well.

use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use fathom_io::sys::usage;
use fathom_io::{Choice, Errno};
use fathom_walk::{
    Below, Descend, Enter, Entry, Fields, FileType, Follow, Gather, Leaps, Meta, Names, NextRoot, Node,
    Options, Roots,
};

use super::spec::{Deed, Failure, Method, Spec};
use super::spent;
use crate::lang::Answer;

/// What has been found.
#[derive(Debug, Default)]
struct Count {
    entries: AtomicU64,
    bytes: AtomicU64,
    error: Mutex<Option<Errno>>,
}

/// Counts, on the workers.
struct Counter {
    count: Arc<Count>,
    stats: bool,
}

/// Entries and bytes that a worker has not added yet.
type Share = (u64, u64);

impl Counter {
    fn fail(&self, errno: Errno) {
        self.count.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(errno);
    }
}

impl Gather for Counter {
    type Local = Share;

    fn select(&self, _: &Arc<Node>, names: &mut Names) {
        names.skip_stat_if(|name| !self.stats && name.file_type != FileType::Unknown);
    }

    fn enter(&self, _: &mut Share, _: Enter<'_>) -> Descend {
        Descend::Yes
    }

    fn entries<'a>(
        &self,
        share: &mut Share,
        _: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        below: &mut Below<'_, '_>,
    ) {
        for entry in entries {
            share.0 += 1;
            match entry.meta {
                Some(Ok(meta)) if meta.file_type() == FileType::Regular => {
                    share.1 += meta.size.unsigned_abs()
                }
                _ => {}
            }
            if entry.file_type() == FileType::Directory {
                below.descend(&entry);
            }
        }
    }

    fn failed(&self, _: &mut Share, failure: fathom_walk::Failure<'_>) {
        self.fail(failure.errno);
    }

    fn root_file(&self, _: &mut Share, _: &Arc<Node>, _: &Meta) {
        self.fail(Errno::NOTDIR);
    }

    fn flush(&self, share: &mut Share) {
        let (entries, bytes) = std::mem::take(share);
        self.count.entries.fetch_add(entries, Relaxed);
        self.count.bytes.fetch_add(bytes, Relaxed);
    }
}

struct Root(Option<std::ffi::CString>);

impl Roots for Root {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.0.take().map_or(NextRoot::End, NextRoot::Path)
    }
}

/// The model of the walk, and its workers.
fn choice(spec: &Spec) -> (Choice, Option<usize>) {
    match spec.method {
        Method::Threads => (Choice::Threads(Some(spec.threads)), None),
        Method::Uring => (Choice::Uring(Some(spec.depth)), Some(spec.threads)),
        Method::AsyncSeq => (Choice::AsyncSeq, None),
        Method::AsyncPar => (Choice::AsyncPar, None),
        Method::Auto => (Choice::Auto, None),
        _ => (Choice::Sync, None),
    }
}

fn options(spec: &Spec, stats: bool) -> Options {
    let (choice, threads) = choice(spec);
    Options {
        choice,
        threads,
        roots: Follow::Yes,
        links: Follow::No,
        fields: if stats { Fields::ALL } else { Fields::IDENTITY },
        stat_dirs: stats,
        once: false,
        loose: false,
        workers_max: None,
        fds_max: None,
        whole: false,
        leaps: Leaps::default(),
    }
}

/// Walks the tree at the path of `spec`. The operations are the entries, the bytes the sizes of regular files.
pub(super) fn walk(spec: &Spec) -> Result<Answer, Failure> {
    let stats = spec.deed == Deed::Stat;
    let root = std::ffi::CString::new(spec.path.as_os_str().as_bytes());
    let root = root.map_err(|error| Failure::io("walk", &spec.path, error.into()))?;
    let found = Arc::new(Count::default());
    let counter = Counter { count: found.clone(), stats };
    let (before, start) = (usage(), Instant::now());
    let summary = fathom_walk::gather(options(spec, stats), counter, &mut Root(Some(root)), &mut |_| {});
    let (seconds, after) = (start.elapsed().as_secs_f64(), usage());
    let summary = summary.map_err(|error| Failure::Refused(error.to_string()))?;
    let error = found.error.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(errno) = error {
        return Err(Failure::io("walk", &spec.path, errno.into()));
    }
    let usage = spent(&before, &after);
    let workers = summary.workers_over_time.iter().map(|(_, count)| *count).max().unwrap_or(1);
    Ok(Answer {
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
        ..Answer::default()
    })
}
