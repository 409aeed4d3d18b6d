//! A live tree: it is walked while it is explored. Memory grows with the number of directories, not
//! with the number of files: the files of a directory are read when it is listed.
//!
//! Owns: the walks, the sums of directories. Does not own: the order of rows, deletion.

mod links;
mod list;
mod tree;
mod walk;

use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fathom_inventory::Owners;
use fathom_io::{Errno, Fields, FileType, Follow, Model, Names, availability};
use fathom_walk::{ConcurrencyHints, NextRoot, Options, run_unordered, spawn_thread};

use self::list::ListedEntry;
use self::tree::{LARGEST_MAX, LiveTree};
use self::walk::{Admits, LiveVisitor, RunWalk, SharedTree, WalkControl, WalkRoots, file_row};
use super::inventory::older::OlderInventory;
use super::joined;
use crate::source::{
    FileSearch, FoundFiles, Place, PlacedRow, Row, RowState, RowSums, Source, SourceError, SourceProgress,
    SumKey, SumRow,
};

/// The stack of the thread that starts a walk and helps it.
const STACK_BYTES: usize = 1 << 20;
/// Time between two looks at a flag of the caller, while a walk answers a question.
const CHECK: Duration = Duration::from_millis(2);
/// Most entries below a directory that is walked again only because the sizes of a file in it are
/// not known for sure.
const REPAIRED_ENTRIES_MAX: u64 = 100_000;
/// The number of rows that are completed under one lock.
const ROWS_PER_LOCK: usize = 4096;

/// A function that drops the names which are left out of the names in a directory, of which it gets
/// the path as shown.
pub type DropNames = dyn Fn(&[u8], &mut Names) + Send + Sync;

/// A shared [`DropNames`].
#[derive(Clone)]
pub struct NameFilter(pub Arc<DropNames>);

impl std::fmt::Debug for NameFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NameFilter")
    }
}

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
    /// Whether directories on other filesystems than their root's are skipped.
    pub one_file_system: bool,
    /// The names that are left out, with everything below them, if there are any.
    pub names: Option<NameFilter>,
    /// Whether an inode with several names counts under each, as in `du -l`.
    pub count_links: bool,
    /// The names of owners, for summaries.
    pub owners: Owners,
    /// An older inventory. Rows have their growth since then.
    pub since: Option<PathBuf>,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self {
            model: Model::Auto,
            threads: None,
            hints: ConcurrencyHints::default(),
            follow_roots: Follow::Yes,
            one_file_system: false,
            names: None,
            count_links: false,
            owners: Owners::default(),
            since: None,
        }
    }
}

/// A tree, or several, that are walked while they are explored. The sums equal the sums of `fathom
/// du`: allocated blocks, directories included, and as the apparent size the lengths of regular
/// files and symbolic links.
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
    older: Option<OlderInventory>,
    run: Arc<RunWalk>,
    /// The test of the search that the source was made for.
    admits: Option<Admits>,
}

impl std::fmt::Debug for LiveSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { roots, options, shared, walks, is_paused, older, run: _, admits } = self;
        f.debug_struct("LiveSource")
            .field("roots", roots)
            .field("options", options)
            .field("shared", shared)
            .field("walks", walks)
            .field("is_paused", is_paused)
            .field("older", older)
            .field("admits", admits)
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
    roots: Vec<NextRoot>,
    tops: Vec<u32>,
    follow: Follow,
    /// The device of the root, if the walk starts below it.
    device: Option<u64>,
    /// The path of the directory above, if the walk starts below a root.
    above: Vec<u8>,
}

/// A place that a walk can start at: its name, how it is reached, and the path of the directory
/// above.
type ReachedPlace = (CString, NextRoot, Vec<u8>);

impl LiveSource {
    /// Starts to walk `roots`.
    ///
    /// # Errors
    /// If the I/O model is not available here, no thread can be started, or the older inventory
    /// cannot be read.
    pub fn start(roots: Vec<CString>, options: LiveOptions) -> Result<Self, SourceError> {
        availability::probe(options.model).map_err(|error| SourceError::Other(error.to_string()))?;
        Self::start_with(
            roots,
            options,
            Arc::new(|options, visitor, roots| run_unordered(options, visitor, roots, &mut |_| ())),
        )
    }

    fn start_with(roots: Vec<CString>, options: LiveOptions, run: Arc<RunWalk>) -> Result<Self, SourceError> {
        let paths = roots.iter().cloned().map(NextRoot::Path).collect();
        Self::start_at(roots, paths, Vec::new(), options, run, None)
    }

    /// Starts to walk `roots`, which are reached at `places`; with a search, for that only.
    fn start_at(
        roots: Vec<CString>,
        places: Vec<NextRoot>,
        above: Vec<u8>,
        options: LiveOptions,
        run: Arc<RunWalk>,
        search: Option<&FileSearch>,
    ) -> Result<Self, SourceError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let tree = LiveTree::new(
            roots.iter().map(|root| root.to_bytes()),
            search.map_or(LARGEST_MAX, |search| search.count_max),
        );
        let tops = WalkTops {
            roots: places,
            tops: tree.roots().to_vec(),
            follow: options.follow_roots,
            device: None,
            above,
        };
        let shared = Arc::new(SharedTree::new(tree, i64::try_from(now.as_secs()).unwrap_or(i64::MAX)));
        let older = options.since.as_deref().map(OlderInventory::open).transpose()?;
        let admits = search.map(|search| Admits(search.admits.clone()));
        let mut source =
            Self { roots, options, shared, walks: Vec::new(), is_paused: false, older, run, admits };
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
        let WalkTops { roots, tops, follow, device, above } = tops;
        let control = Arc::new(WalkControl::default());
        control.pause(self.is_paused);
        let visitor = LiveVisitor {
            shared: self.shared.clone(),
            control: control.clone(),
            tops: tops.clone(),
            one_file_system: self.options.one_file_system,
            device,
            above,
            names: self.options.names.clone(),
            count_links: self.options.count_links,
            admits: self.admits.clone(),
        };
        let mut roots = WalkRoots { roots: roots.into_iter(), control: control.clone() };
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

    /// Walks places apart from this source, to answer a question. Returns what was found.
    fn survey(
        &self,
        places: Vec<(CString, NextRoot)>,
        above: Vec<u8>,
        follow_roots: Follow,
        cancelled: &AtomicBool,
        search: Option<(&FileSearch, &mut dyn FnMut(u64))>,
    ) -> Result<Self, SourceError> {
        let mut options = LiveOptions { follow_roots, since: None, ..self.options.clone() };
        // Each name is searched for.
        options.count_links |= search.is_some();
        let (search, mut progress) = search.unzip();
        let (names, roots) = places.into_iter().unzip();
        let mut survey = Self::start_at(names, roots, above, options, self.run.clone(), search)?;
        while survey.walks.iter().any(|walk| !walk.thread.is_finished()) {
            if cancelled.load(Ordering::Relaxed) {
                survey.stop();
                return Err(SourceError::Cancelled);
            }
            if let Some(progress) = &mut progress {
                progress(survey.shared.tree().progress().entries);
            }
            std::thread::park_timeout(CHECK);
        }
        Ok(survey)
    }

    /// Returns the largest files of a survey that was made of the directory `place`.
    fn surveyed(&self, place: &Place, count: usize) -> Vec<PlacedRow> {
        let top = Place { root: 0, below: Vec::new() };
        let (mut rows, _) = self.known_largest(&top, count).unwrap_or_default();
        for row in &mut rows {
            let below = joined(&place.below, &row.place.below);
            row.place = Place { root: place.root, below };
        }
        rows
    }

    /// Returns a directory, which a walk reaches by the directory above, which is
    /// opened name by name, so that no symbolic link below the root is followed.
    fn reach(&self, place: &Place) -> Result<ReachedPlace, SourceError> {
        let root = self.roots.get(place.root).ok_or(SourceError::Os("find", Errno::NOENT))?;
        let Some((above, name)) = place.parent() else {
            return Ok((root.clone(), NextRoot::Path(root.clone()), Vec::new()));
        };
        let open = || {
            let name = list::name_in_directory(name)?;
            let dir = list::open(root, self.options.follow_roots, &above.below)?;
            let dir = dir.as_fd().try_clone_to_owned();
            let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
            let above = joined_path(root, &above.below);
            Ok((name.clone(), NextRoot::At(Arc::new(dir.map_err(errno)?), name), above))
        };
        open().map_err(|errno| SourceError::Os("open directory", errno))
    }

    fn follow(&self, place: &Place) -> Follow {
        if place.below.is_empty() { self.options.follow_roots } else { Follow::No }
    }

    /// Completes the rows of subdirectories with their sums.
    fn complete(&self, place: &Place, rows: &mut [Row]) {
        let hasher = RandomState::new();
        let (dir, known) = {
            let mut tree = self.shared.tree();
            tree.find_shared();
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
                        (row.amount, row.shared, row.state) = (found.amount, found.shared, found.state);
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
    /// unknown; `None` if there is no such directory.
    fn known_largest(&self, place: &Place, count: usize) -> Option<(Vec<PlacedRow>, bool)> {
        let tree = self.shared.tree();
        let top = tree.find(place)?;
        let below = tree.largest.iter().filter(|(dir, _)| tree.is_within(*dir, top));
        let placed = below
            .filter_map(|(dir, row)| tree.place(*dir).map(|place| PlacedRow { place, row: row.clone() }));
        let rows: Vec<_> = placed.take(count).collect();
        let is_walking = tree.state(top) == RowState::Walking;
        let is_all = is_walking || rows.len() == count || tree.largest.has_all();
        Some((rows, is_all))
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
    /// Stops the walks, and does not wait for them: a call to a server may take long.
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the path of a directory as it is shown.
fn joined_path(root: &CString, below: &[u8]) -> Vec<u8> {
    let mut path = root.to_bytes().to_vec();
    if !below.is_empty() && !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(below);
    path
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
        let mut rows: Vec<_> = tree.roots().iter().map(|root| tree.row(*root)).collect();
        drop(tree);
        self.older.iter().for_each(|older| rows.iter_mut().for_each(|row| older.set_root_growth(row)));
        rows
    }

    fn list(&mut self, place: &Place, cancelled: &AtomicBool) -> Result<Vec<Row>, SourceError> {
        let root = self.roots.get(place.root).ok_or(SourceError::Os("find", Errno::NOENT))?;
        let mut rows = Vec::new();
        let mut with = |entry: ListedEntry<'_>| rows.extend(listed_row(&entry));
        let select = |names: &mut Names| {
            let filter = self.options.names.as_ref();
            filter.into_iter().for_each(|filter| (filter.0)(&joined_path(root, &place.below), names));
        };
        list::list(root, &place.below, self.options.follow_roots, &select, cancelled, &mut with)?;
        self.complete(place, &mut rows);
        if let Some(older) = &mut self.older {
            // A pattern that leaves names out may differ from the pattern of the older inventory.
            let are_all = self.options.names.is_none();
            older.set_growth(root.to_bytes(), &place.below, &mut rows, are_all, cancelled)?;
        }
        Ok(rows)
    }

    fn row_sums(&mut self, place: Option<&Place>) -> RowSums {
        let tree = self.shared.tree();
        let dir = place.and_then(|place| tree.find(place));
        let total = match place {
            Some(_) => dir.filter(|dir| tree.is_read(*dir)).map(|dir| tree.row(dir).amount),
            None => Some(tree.total()),
        };
        let is_walked = match dir {
            Some(dir) => tree.row(dir).state != RowState::Walking,
            None => tree.progress().finished,
        };
        drop(tree);
        let roots: Vec<_> = self.roots.iter().map(|root| root.to_bytes().to_vec()).collect();
        let older = self.older.as_mut().filter(|_| is_walked);
        let growth = older.and_then(|older| older.growth(&roots, place, &total?));
        RowSums { total, growth, counts_names: self.options.count_links, found: None }
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

    fn rescan(&mut self, place: &Place) -> Result<(), SourceError> {
        // Without the lock, because a server may answer late.
        let (_, root, above) = self.reach(place)?;
        let is_known = self.shared.tree().find(place).is_some();
        if !is_known {
            list::open(&self.roots[place.root], self.options.follow_roots, &place.below)
                .map_err(|errno| SourceError::Os("open directory", errno))?;
        }
        let mut tree = self.shared.tree();
        let top = match tree.find(place) {
            Some(dir) => tree.renew(dir),
            None if tree.is_being_walked(place) => return Ok(()),
            None => tree.add_new(place).ok_or(SourceError::Os("walk", Errno::NOENT))?,
        };
        let device = (!place.below.is_empty()).then(|| tree.device(tree.roots()[place.root]));
        drop(tree);
        let follow = self.follow(place);
        self.walk(WalkTops { roots: vec![root], tops: vec![top], follow, device, above })
    }

    fn removed(&mut self, gone: &[(Place, Row)]) {
        let now_s = self.shared.now_s();
        let (mut dirs, mut uncertain) = (Vec::new(), Vec::new());
        let mut tree = self.shared.tree();
        for (place, row) in gone {
            let Some(dir) = tree.find(place) else { continue };
            if row.file_type == FileType::Directory {
                dirs.extend(tree.child(dir, &row.name));
                continue;
            }
            // A file may not have been counted yet, or with another size, before it was modified.
            let is_same =
                row.newest_mtime_s.is_some_and(|newest| newest <= now_s) || tree.linked.knows(row.identity);
            let is_sure = is_same && tree.is_read(dir);
            if is_sure || tree.row(dir).amount.entries > REPAIRED_ENTRIES_MAX {
                tree.remove_file(dir, row);
            } else {
                uncertain.push(place.clone());
            }
        }
        tree.remove_dirs(&dirs);
        drop(tree);
        uncertain.sort_unstable();
        uncertain.dedup();
        for place in uncertain {
            // A directory that cannot be reached is no longer there, or keeps its sums.
            let _ = self.rescan(&place);
        }
    }

    fn largest(
        &mut self,
        place: &Place,
        count: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<PlacedRow>, SourceError> {
        let count = count.min(LARGEST_MAX);
        let known = self.known_largest(place, count);
        let (rows, is_all) = known.ok_or(SourceError::Os("find", Errno::NOENT))?;
        if is_all {
            return Ok(rows);
        }
        let (name, root, above) = self.reach(place)?;
        let survey = self.survey(vec![(name, root)], above, self.follow(place), cancelled, None)?;
        Ok(survey.surveyed(place, count))
    }

    fn search(
        &mut self,
        place: &Place,
        search: &FileSearch,
        cancelled: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<FoundFiles, SourceError> {
        let (name, root, above) = self.reach(place)?;
        let search_with = Some((search, progress));
        let mut survey =
            self.survey(vec![(name, root)], above, self.follow(place), cancelled, search_with)?;
        survey.wait();
        let total = survey.shared.found();
        Ok(FoundFiles { files: survey.surveyed(place, search.count_max), total })
    }

    fn sums(&mut self, key: SumKey, cancelled: &AtomicBool) -> Result<Vec<SumRow>, SourceError> {
        let is_current = {
            let tree = self.shared.tree();
            !tree.is_summary_stale || !tree.progress().finished
        };
        if is_current {
            return Ok(self.shared.tree().summary.rows(key, &self.options.owners));
        }
        let roots = self.roots.iter().map(|root| (root.clone(), NextRoot::Path(root.clone())));
        let survey = self.survey(roots.collect(), Vec::new(), self.options.follow_roots, cancelled, None)?;
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
