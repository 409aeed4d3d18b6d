//! A live tree: it is walked while it is explored. Memory grows with the number of directories, not
//! with that of files: the files of a directory are read when it is listed.
//!
//! Owns: the walks, the sums of directories. Does not own: the order of rows, deletion.

mod links;
mod list;
mod tree;
mod walk;

use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fathom_inventory::Owners;
use fathom_io::{Errno, Fields, FileType, Follow, Model, availability};
use fathom_walk::{ConcurrencyHints, Options, run_unordered, spawn_thread};

use self::list::ListedEntry;
use self::tree::LiveTree;
use self::walk::{LiveVisitor, RunWalk, SharedTree, WalkControl, WalkRoots, file_row};
use super::joined;
use crate::source::{Place, PlacedRow, Row, RowState, Source, SourceError, SourceProgress, SumKey, SumRow};

/// The stack of the thread that starts a walk and helps it.
const STACK_BYTES: usize = 1 << 20;
/// The longest path that a directory can be walked again by, without the NUL (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4095;
/// Time between two looks at a flag of the caller, while a walk answers a question.
const CHECK: Duration = Duration::from_millis(10);
/// The number of rows that are completed under one lock.
const ROWS_PER_LOCK: usize = 4096;

/// The options of a live tree.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// The I/O model of walks.
    pub model: Model,
    /// The number of workers, instead of the model's own.
    pub threads: Option<usize>,
    /// The known concurrency of devices.
    pub hints: ConcurrencyHints,
    /// Whether a root that is a symbolic link is followed.
    pub follow_roots: Follow,
    /// Whether directories on other filesystems than that of their root are skipped.
    pub one_file_system: bool,
    /// Whether an inode with several names counts under each, as in `du -l`.
    pub count_links: bool,
    /// The names of owners, for summaries.
    pub owners: Owners,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            model: Model::Auto,
            threads: None,
            hints: ConcurrencyHints::default(),
            follow_roots: Follow::Yes,
            one_file_system: false,
            count_links: false,
            owners: Owners::default(),
        }
    }
}

/// A tree, or several, that are walked while they are explored. The sums are those of `fathom du`:
/// allocated blocks, directories included, and as the apparent size the lengths of regular files
/// and symbolic links.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use fathom_explore::source::{Place, Source};
/// use fathom_explore::sources::live::{LiveOptions, LiveSource};
///
/// let mut source = LiveSource::start(vec![c"src".into()], LiveOptions::default())?;
/// source.wait();
/// let root = &source.roots()[0];
/// assert!(root.amount.entries > 5 && root.amount.apparent > 1000);
/// let top = Place { root: 0, below: Vec::new() };
/// let rows = source.list(&top, &AtomicBool::new(false)).expect("src can be read");
/// assert!(rows.iter().any(|row| &row.name[..] == b"lib.rs"));
/// # Ok::<(), fathom_explore::source::SourceError>(())
/// ```
pub struct LiveSource {
    roots: Vec<CString>,
    options: LiveOptions,
    shared: Arc<SharedTree>,
    walks: Vec<RunningWalk>,
    is_paused: bool,
    run: Arc<RunWalk>,
}

impl std::fmt::Debug for LiveSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { roots, options, shared, walks, is_paused, run: _ } = self;
        f.debug_struct("LiveSource")
            .field("roots", roots)
            .field("options", options)
            .field("shared", shared)
            .field("walks", walks)
            .field("is_paused", is_paused)
            .finish_non_exhaustive()
    }
}

/// A walk that has been started.
#[derive(Debug)]
struct RunningWalk {
    control: Arc<WalkControl>,
    thread: JoinHandle<()>,
}

/// The places that a walk starts at.
struct WalkTops {
    paths: Vec<CString>,
    tops: Vec<u32>,
    follow: Follow,
    /// The device of the root, if the walk starts below it.
    device: Option<u64>,
}

impl LiveSource {
    /// Starts to walk `roots`.
    ///
    /// # Errors
    /// If the I/O model is not available here, or no thread can be started.
    pub fn start(roots: Vec<CString>, options: LiveOptions) -> Result<Self, SourceError> {
        availability::probe(options.model).map_err(|error| SourceError::Other(error.to_string()))?;
        Self::start_with(
            roots,
            options,
            Arc::new(|options, visitor, roots| run_unordered(options, visitor, roots, &mut |_| ())),
        )
    }

    fn start_with(roots: Vec<CString>, options: LiveOptions, run: Arc<RunWalk>) -> Result<Self, SourceError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let tree = LiveTree::new(roots.iter().map(|root| root.to_bytes()));
        let tops = WalkTops {
            paths: roots.clone(),
            tops: tree.roots().to_vec(),
            follow: options.follow_roots,
            device: None,
        };
        let shared = Arc::new(SharedTree::new(tree, i64::try_from(now.as_secs()).unwrap_or(i64::MAX)));
        let mut source = Self { roots, options, shared, walks: Vec::new(), is_paused: false, run };
        source.walk(tops)?;
        Ok(source)
    }

    /// Waits until nothing is walked any more.
    pub fn wait(&mut self) {
        for walk in self.walks.drain(..) {
            // A walk that panicked has ended as well; its directories are incomplete.
            let _ = walk.thread.join();
        }
    }

    /// Starts a walk on a thread of its own.
    fn walk(&mut self, tops: WalkTops) -> Result<(), SourceError> {
        let WalkTops { paths, tops, follow, device } = tops;
        let control = Arc::new(WalkControl::default());
        control.pause(self.is_paused);
        let visitor = LiveVisitor {
            shared: self.shared.clone(),
            control: control.clone(),
            tops: tops.clone(),
            one_file_system: self.options.one_file_system,
            device,
            count_links: self.options.count_links,
        };
        let mut roots = WalkRoots { paths: paths.into_iter(), control: control.clone() };
        let options = Options::default()
            .model(self.options.model)
            .threads(self.options.threads)
            .hints(self.options.hints.clone())
            .follow_roots(follow)
            .fields(Fields::ALL)
            .unordered_chunks(true);
        let (run, shared) = (self.run.clone(), self.shared.clone());
        self.shared.tree().begin_walk();
        let ending = EndOfWalk { shared, tops };
        let work = move || {
            let ending = ending;
            if run(options, visitor, &mut roots).is_err() {
                ending.shared.tree().note_failure();
            }
        };
        let thread = spawn_thread("explore", STACK_BYTES, 0, work)
            .map_err(|error| SourceError::Other(format!("cannot walk: {error}")))?;
        self.walks.retain(|walk| !walk.thread.is_finished());
        self.walks.push(RunningWalk { control, thread });
        Ok(())
    }

    /// Walks `path` apart from this source, to answer a question. Returns what was found.
    fn survey(
        &self,
        paths: Vec<CString>,
        follow_roots: Follow,
        cancelled: &AtomicBool,
    ) -> Result<Self, SourceError> {
        let options = LiveOptions { follow_roots, ..self.options.clone() };
        let mut survey = Self::start_with(paths, options, self.run.clone())?;
        let (done, ended) = sync_channel(1);
        std::thread::scope(|scope| {
            let walks = std::mem::take(&mut survey.walks);
            let controls: Vec<_> = walks.iter().map(|walk| walk.control.clone()).collect();
            scope.spawn(move || {
                walks.into_iter().for_each(|walk| drop(walk.thread.join()));
                let _ = done.send(());
            });
            while ended.recv_timeout(CHECK) == Err(RecvTimeoutError::Timeout) {
                if cancelled.load(Ordering::Relaxed) {
                    controls.iter().for_each(|control| control.stop());
                }
            }
        });
        if cancelled.load(Ordering::Relaxed) { Err(SourceError::Cancelled) } else { Ok(survey) }
    }

    /// Returns the path of a directory for the system; `None` if there is no such root, or if the
    /// path is too long.
    fn path(&self, place: &Place) -> Option<CString> {
        let mut path = self.roots.get(place.root)?.to_bytes().to_vec();
        if !place.below.is_empty() {
            path.push(b'/');
            path.extend_from_slice(&place.below);
        }
        CString::new(path).ok().filter(|path| path.to_bytes().len() <= PATH_BYTES_MAX)
    }

    fn follow(&self, place: &Place) -> Follow {
        if place.below.is_empty() { self.options.follow_roots } else { Follow::No }
    }

    fn is_linked(&self, row: &Row) -> bool {
        row.links > 1 && !self.options.count_links
    }

    /// Completes the rows of subdirectories with their sums.
    fn complete(&self, place: &Place, rows: &mut [Row]) {
        let hasher = RandomState::new();
        let (dir, known) = {
            let tree = self.shared.tree();
            let Some(dir) = tree.find(place) else { return };
            let known: HashMap<u64, u32> =
                tree.children(dir).map(|child| (hasher.hash_one(tree.name(child)), child)).collect();
            (dir, known)
        };
        for rows in rows.chunks_mut(ROWS_PER_LOCK) {
            let tree = self.shared.tree();
            for row in rows.iter_mut().filter(|row| row.file_type == FileType::Directory) {
                let found = known.get(&hasher.hash_one(&row.name[..])).copied();
                // Since the lock was released, the directory may have become another one.
                let is_it = |child: &u32| {
                    !tree.is_retired(*child)
                        && tree.parent(*child) == Some(dir)
                        && tree.name(*child) == &row.name[..]
                };
                match found.filter(is_it) {
                    Some(child) => {
                        let found = tree.row(child);
                        (row.amount, row.state) = (found.amount, found.state);
                        row.newest_mtime_s = row.newest_mtime_s.max(found.newest_mtime_s);
                    }
                    None if tree.is_retired(dir) || tree.state(dir) == RowState::Walking => {
                        row.state = RowState::Walking;
                    }
                    None => row.state = RowState::Partial,
                }
            }
        }
    }

    /// Returns the largest files that are known below `place`, and whether no larger one is
    /// unknown.
    fn known_largest(&self, place: &Place, count: usize) -> (Vec<PlacedRow>, bool) {
        let tree = self.shared.tree();
        let Some(top) = tree.find(place) else { return (Vec::new(), false) };
        let below = tree.largest.iter().filter(|(dir, _)| tree.is_within(*dir, top));
        let placed = below
            .filter_map(|(dir, row)| tree.place(*dir).map(|place| PlacedRow { place, row: row.clone() }));
        let rows: Vec<_> = placed.take(count).collect();
        let is_walking = tree.state(top) == RowState::Walking;
        let is_all = is_walking || rows.len() == count || tree.largest.has_all();
        (rows, is_all)
    }
}

/// Notes the end of a walk when it is dropped, also by a panic.
struct EndOfWalk {
    shared: Arc<SharedTree>,
    tops: Vec<u32>,
}

impl Drop for EndOfWalk {
    fn drop(&mut self) {
        self.shared.tree().end_walk(&self.tops);
    }
}

impl Drop for LiveSource {
    fn drop(&mut self) {
        self.stop();
        self.wait();
    }
}

/// Returns the row of an entry that was listed; `None` if it no longer exists.
fn listed_row(entry: &ListedEntry<'_>) -> Option<Row> {
    match &entry.meta {
        Ok(meta) => Some(file_row(entry.name, meta)),
        Err(Errno::NOENT) => None,
        Err(_) => {
            let meta = fathom_io::Meta { ino: entry.ino, ..fathom_io::Meta::default() };
            let row = file_row(entry.name, &meta);
            Some(Row { file_type: entry.file_type, state: RowState::Unreadable, ..row })
        }
    }
}

impl Source for LiveSource {
    fn roots(&mut self) -> Vec<Row> {
        let tree = self.shared.tree();
        tree.roots().iter().map(|root| tree.row(*root)).collect()
    }

    fn list(&mut self, place: &Place, cancelled: &AtomicBool) -> Result<Vec<Row>, SourceError> {
        let root = self.roots.get(place.root).ok_or(SourceError::Os("find", Errno::NOENT))?;
        let mut rows = Vec::new();
        let mut with = |entry: ListedEntry<'_>| rows.extend(listed_row(&entry));
        list::list(root, self.options.follow_roots, &place.below, cancelled, &mut with)?;
        self.complete(place, &mut rows);
        Ok(rows)
    }

    fn progress(&self) -> SourceProgress {
        self.shared.tree().progress()
    }

    fn stop(&mut self) {
        self.walks.iter().for_each(|walk| walk.control.stop());
    }

    fn pause(&mut self, paused: bool) {
        self.is_paused = paused;
        self.walks.iter().for_each(|walk| walk.control.pause(paused));
    }

    fn rescan(&mut self, place: &Place) -> bool {
        let Some(path) = self.path(place) else { return false };
        let mut tree = self.shared.tree();
        let Some(dir) = tree.find(place) else { return tree.is_being_walked(place) };
        let device = (!place.below.is_empty()).then(|| tree.device(tree.roots()[place.root]));
        let top = tree.renew(dir);
        drop(tree);
        let follow = self.follow(place);
        self.walk(WalkTops { paths: vec![path], tops: vec![top], follow, device }).is_ok()
    }

    fn removed(&mut self, place: &Place, row: &Row) {
        let is_linked = self.is_linked(row);
        let mut tree = self.shared.tree();
        let Some(dir) = tree.find(place) else { return };
        if row.file_type == FileType::Directory {
            let child = tree.child(dir, &row.name);
            child.into_iter().for_each(|child| tree.remove_dir(child));
        } else {
            tree.remove_file(dir, row, is_linked);
        }
    }

    fn largest(
        &mut self,
        place: &Place,
        count: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<PlacedRow>, SourceError> {
        let (rows, is_all) = self.known_largest(place, count);
        let path = self.path(place).filter(|_| !is_all);
        let Some(path) = path else { return Ok(rows) };
        let survey = self.survey(vec![path], self.follow(place), cancelled)?;
        let top = Place { root: 0, below: Vec::new() };
        let (mut rows, _) = survey.known_largest(&top, count);
        for row in &mut rows {
            let below = joined(&place.below, &row.place.below);
            row.place = Place { root: place.root, below };
        }
        Ok(rows)
    }

    fn sums(&mut self, key: SumKey, cancelled: &AtomicBool) -> Result<Vec<SumRow>, SourceError> {
        let is_current = {
            let tree = self.shared.tree();
            !tree.is_summary_stale || !tree.progress().finished
        };
        if is_current {
            return Ok(self.shared.tree().summary.rows(key, &self.options.owners));
        }
        let survey = self.survey(self.roots.clone(), self.options.follow_roots, cancelled)?;
        let summary = std::mem::take(&mut survey.shared.tree().summary);
        let rows = summary.rows(key, &self.options.owners);
        let mut tree = self.shared.tree();
        if tree.progress().finished {
            (tree.summary, tree.is_summary_stale) = (summary, false);
        }
        Ok(rows)
    }

    fn local_root(&self, root: usize) -> Option<Vec<u8>> {
        self.roots.get(root).map(|root| root.to_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests;
