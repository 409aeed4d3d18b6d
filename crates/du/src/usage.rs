//! The usage of one tree, allocated and apparent at once, without lines: the entries may come in
//! any order, so the walk has none. Counts what [`scan`](crate::scan::scan) counts.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fathom_walk::{
    Descend, Emit, Enter, Entry, Errno, Error, Failure, Fields, FileType, Meta, Names, NextRoot, Node,
    Operation, Options, Progress, RootSource, Summary, UnorderedVisitor, Visitor, run_unordered,
};

use crate::exclude::Exclude;
use crate::scan::Engine;

/// Problems that are kept. More are counted.
const PROBLEMS_MAX: usize = 10_000;

/// The options of a count.
#[derive(Clone, Debug, Default)]
pub struct UsageOptions {
    /// Whether directories on other filesystems than the root's are left out.
    pub one_file_system: bool,
    /// The names that are excluded.
    pub exclude: Exclude,
    /// The I/O model.
    pub engine: Engine,
}

/// The usage of a tree. An inode with several names counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes allocated on disk, directories included.
    pub bytes: u64,
    /// The lengths of regular files and symbolic links.
    pub apparent: u64,
    /// Entries that are not directories.
    pub files: u64,
    /// Directories, with the root.
    pub dirs: u64,
}

impl Usage {
    fn add(&mut self, meta: &Meta) {
        self.bytes = self.bytes.saturating_add(meta.blocks.wrapping_mul(512));
        if matches!(meta.file_type(), FileType::Regular | FileType::Symlink) {
            self.apparent = self.apparent.saturating_add(u64::try_from(meta.size).unwrap_or(0));
        }
        *(if meta.file_type() == FileType::Directory { &mut self.dirs } else { &mut self.files }) += 1;
    }

    fn add_all(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.apparent = self.apparent.saturating_add(other.apparent);
        self.files += other.files;
        self.dirs += other.dirs;
    }
}

/// An entry that could not be counted, or only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageProblem {
    /// The path, from the root as given.
    pub path: Vec<u8>,
    /// The operation that failed.
    pub operation: Operation,
    /// The cause.
    pub errno: Errno,
}

/// The result of a count.
#[derive(Clone, Debug)]
pub struct UsageOutcome {
    /// The usage of what was found.
    pub usage: Usage,
    /// The first problems, sorted by path.
    pub problems: Vec<UsageProblem>,
    /// The number of all problems.
    pub problem_count: u64,
    /// The summary of the walk. It is incomplete if the count was stopped.
    pub summary: Summary,
}

/// Counts the tree `root`, until `stop` is set. `watch` is called every few milliseconds;
/// [`Progress::measured`] is the number of allocated bytes so far.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::AtomicBool;
/// use fathom_du::usage::{UsageOptions, usage};
///
/// let stop = Arc::new(AtomicBool::new(false));
/// let found = usage(c"src".into(), UsageOptions::default(), &stop, &mut |_| ())?;
/// assert!(found.usage.apparent > 0 && found.usage.dirs >= 1 && found.problems.is_empty());
/// let missing = usage(c"missing".into(), UsageOptions::default(), &stop, &mut |_| ())?;
/// assert_eq!(missing.problem_count, 1);
/// # Ok::<(), fathom_walk::Error>(())
/// ```
///
/// # Errors
/// If the I/O model is not available here.
pub fn usage(
    root: CString,
    options: UsageOptions,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress),
) -> Result<UsageOutcome, Error> {
    let UsageOptions { one_file_system, exclude, engine } = options;
    let walk = Options::default()
        .model(engine.model)
        .threads(engine.threads)
        .hints(engine.hints)
        .fields(Fields::SIZE.union(Fields::BLOCKS).union(Fields::IDENTITY))
        .unordered_chunks(true);
    let is_excluded = exclude.matches(root.to_bytes());
    let found = Arc::new(FoundUsage::default());
    let visitor = UsageVisitor { one_file_system, exclude, found: found.clone() };
    let mut roots = UsageRoot { root: (!is_excluded).then_some(root), stop };
    let summary = run_unordered(walk, visitor, &mut roots, watch)?;
    let usage = *lock(&found.usage);
    let mut problems = std::mem::take(&mut *lock(&found.problems));
    problems.kept.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(UsageOutcome { usage, problems: problems.kept, problem_count: problems.count, summary })
}

/// The only root.
struct UsageRoot<'a> {
    root: Option<CString>,
    stop: &'a AtomicBool,
}

impl RootSource for UsageRoot<'_> {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.root.take().map_or(NextRoot::End, NextRoot::Path)
    }

    fn stopped(&mut self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The state that all workers share.
#[derive(Debug, Default)]
struct FoundUsage {
    usage: Mutex<Usage>,
    /// Device and inode number of files with several names.
    linked: Mutex<HashSet<(u64, u64)>>,
    problems: Mutex<Problems>,
}

#[derive(Debug, Default)]
struct Problems {
    kept: Vec<UsageProblem>,
    count: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct UsageVisitor {
    one_file_system: bool,
    exclude: Exclude,
    found: Arc<FoundUsage>,
}

impl UsageVisitor {
    fn is_elsewhere(&self, node: &Node, meta: &Meta) -> bool {
        self.one_file_system && node.root_dev().is_some_and(|dev| dev != meta.dev)
    }

    /// Counts an entry that is not a directory, unless it was counted under another name.
    fn count(&self, usage: &mut Usage, meta: &Meta) {
        if meta.nlink <= 1 || lock(&self.found.linked).insert(meta.id()) {
            usage.add(meta);
        }
    }
}

impl Visitor for UsageVisitor {
    type Item = Infallible;
    /// The usage since the last flush.
    type Local = Usage;

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        if self.exclude.is_empty() {
            return;
        }
        let (mut path, mut scratch) = (Vec::new(), Vec::new());
        if self.exclude.needs_path() {
            dir.path_into(&mut path);
        }
        names.retain(|name| !self.exclude.matches_below(&path, name.name.to_bytes(), &mut scratch));
    }

    fn entries<'a>(
        &self,
        usage: &mut Usage,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        let before = usage.bytes;
        for entry in entries {
            match entry.meta {
                Some(Err(errno)) => emit.failed(&entry, errno),
                Some(Ok(meta)) if entry.file_type() != FileType::Directory => {
                    if !self.is_elsewhere(dir, meta) {
                        self.count(usage, meta);
                    }
                }
                _ => emit.descend(&entry),
            }
        }
        emit.measure(usage.bytes - before);
    }
}

impl UnorderedVisitor for UsageVisitor {
    fn enter(&self, usage: &mut Usage, enter: Enter<'_>) -> Descend {
        if self.is_elsewhere(enter.node, enter.meta) {
            return Descend::No;
        }
        usage.add(enter.meta);
        Descend::Yes
    }

    fn failed(&self, _usage: &mut Usage, failure: Failure<'_>) {
        let mut problems = lock(&self.found.problems);
        problems.count += 1;
        if problems.kept.len() < PROBLEMS_MAX {
            let Failure { node, name, operation, errno } = failure;
            let path = node.path_of(name);
            problems.kept.push(UsageProblem { path, operation, errno });
        }
    }

    fn root_file(&self, usage: &mut Usage, _root: &Arc<Node>, meta: &Meta) {
        self.count(usage, meta);
    }

    fn flush(&self, usage: &mut Usage) {
        lock(&self.found.usage).add_all(&std::mem::take(usage));
    }
}
