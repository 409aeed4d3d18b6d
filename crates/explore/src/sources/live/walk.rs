//! The walk that fills a [`LiveTree`]: on threads of its own, unordered. Workers add the sums of a
//! batch of entries to its directory and to all above, under one lock.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fathom_inventory::store::{EXTENSION_BYTES, name_extension};
use fathom_walk::{
    Descend, Emit, Enter, Entry, Errno, Error, Failure, FileType, Found, Meta, Names, NextRoot, Node,
    Operation, Options, RootSource, Summary, UnorderedVisitor, Visitor,
};

use super::NameFilter;
use super::tree::LiveTree;
use crate::source::{Amount, Row, RowState};
use crate::sources::summary::{FileSummary, SummedFile};
use crate::sources::{ctime_of, identity_of, mtime_of, sizes_of, uid_of};

/// The number of files that a worker sums up by itself before it adds them to the common summary.
const SUMMARY_FILES: u64 = 4096;

/// The state that the source and all walks share.
#[derive(Debug)]
pub(super) struct SharedTree {
    tree: Mutex<LiveTree>,
    /// A copy of [`LargestFiles::least`](crate::sources::largest::LargestFiles::least), for workers
    /// that do not hold the lock.
    least_large: AtomicU64,
    /// The bytes and the number of the files that a search has found.
    found: [AtomicU64; 3],
    /// The time of the start, in seconds since 1970.
    now_s: i64,
}

impl SharedTree {
    pub(super) fn new(tree: LiveTree, now_s: i64) -> Self {
        Self { tree: Mutex::new(tree), least_large: AtomicU64::new(0), found: Default::default(), now_s }
    }

    pub(super) fn now_s(&self) -> i64 {
        self.now_s
    }

    /// Returns the sums of the files that a search has found.
    pub(super) fn found(&self) -> Amount<u64> {
        let [apparent, allocated, entries] =
            self.found.each_ref().map(|number| number.load(Ordering::Relaxed));
        Amount { apparent, allocated, entries }
    }

    fn add_found(&self, amount: &Amount<u64>) {
        let Amount { apparent, allocated, entries } = *amount;
        // The walk's end, which joins its threads, orders these before they are read.
        for (number, more) in self.found.iter().zip([apparent, allocated, entries]) {
            let add = |sum: u64| Some(sum.saturating_add(more));
            let _ = number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }

    pub(super) fn tree(&self) -> MutexGuard<'_, LiveTree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops and pauses a walk.
#[derive(Debug, Default)]
pub(super) struct WalkControl {
    is_stopped: AtomicBool,
    /// Whether the flag in the mutex may be set, so that workers need not take it.
    may_be_paused: AtomicBool,
    is_paused: Mutex<bool>,
    changed: Condvar,
    /// The number of workers that wait for the end of the pause.
    #[cfg(test)]
    pub(super) waiting: AtomicU64,
}

impl WalkControl {
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        // Workers that wait check the flag under this lock.
        let _paused = self.lock();
        self.changed.notify_all();
    }

    pub(super) fn pause(&self, paused: bool) {
        let mut is_paused = self.lock();
        *is_paused = paused;
        self.may_be_paused.store(paused, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_paused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the walk is paused.
    fn wait(&self) {
        // The flag may be seen late: then one more batch is counted.
        if !self.may_be_paused.load(Ordering::Relaxed) {
            return;
        }
        let mut paused = self.lock();
        #[cfg(test)]
        self.waiting.fetch_add(1, Ordering::Relaxed);
        while *paused && !self.is_stopped() {
            paused = self.changed.wait(paused).unwrap_or_else(PoisonError::into_inner);
        }
        #[cfg(test)]
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a walk with the roots to its end.
pub(super) type RunWalk =
    dyn Fn(Options, LiveVisitor, &mut WalkRoots) -> Result<Summary, Error> + Send + Sync;

/// The places that a walk starts at.
#[derive(Debug)]
pub(super) struct WalkRoots {
    pub(super) roots: std::vec::IntoIter<NextRoot>,
    pub(super) control: Arc<WalkControl>,
}

impl RootSource for WalkRoots {
    fn next_root(&mut self, _wait: bool) -> NextRoot {
        self.roots.next().unwrap_or(NextRoot::End)
    }

    fn stopped(&mut self) -> bool {
        self.control.is_stopped()
    }
}

/// The index of a directory in the tree, attached to its node.
#[derive(Clone, Copy, Debug)]
struct DirIndex(u32);

/// Counts entries on the workers of a walk.
#[derive(Debug)]
pub(super) struct LiveVisitor {
    pub(super) shared: Arc<SharedTree>,
    pub(super) control: Arc<WalkControl>,
    /// The directories that the walk starts at, in the order of its roots.
    pub(super) tops: Vec<u32>,
    /// Whether other filesystems are skipped.
    pub(super) one_file_system: bool,
    /// The device of the root, if the walk starts below it.
    pub(super) device: Option<u64>,
    /// The path of the directory above, if the walk starts below a root.
    pub(super) above: Vec<u8>,
    /// The names that are left out.
    pub(super) names: Option<NameFilter>,
    /// Whether each name of an inode counts.
    pub(super) count_links: bool,
    /// Whether a file is one of those that are searched for; `None` if everything is summed up.
    pub(super) admits: Option<Admits>,
}

/// The test of a search.
#[derive(Clone)]
pub(super) struct Admits(pub(super) Arc<dyn Fn(&Row) -> bool + Send + Sync>);

impl std::fmt::Debug for Admits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Admits")
    }
}

/// The sums of one batch of entries.
#[derive(Debug, Default)]
struct BatchSums {
    amount: Amount<u64>,
    newest_mtime_s: Option<i64>,
    entries: u64,
}

impl BatchSums {
    /// Counts an entry that is not a directory. The sizes of an inode with several names count
    /// apart.
    fn count(&mut self, sizes: Amount<u64>, meta: &Meta) {
        self.amount.add(&sizes.with_itself());
        self.newest_mtime_s = self.newest_mtime_s.max(Some(meta.mtime.sec));
    }
}

impl LiveVisitor {
    fn is_elsewhere(&self, node: &Node, meta: &Meta) -> bool {
        self.one_file_system && self.device.or(node.root_dev()).is_some_and(|dev| dev != meta.dev)
    }

    fn is_linked(&self, meta: &Meta) -> bool {
        meta.nlink > 1 && !self.count_links
    }

    /// Returns the index of a directory that is one of the roots of the walk, or was entered.
    fn index(&self, node: &Node) -> Option<u32> {
        match node.parent() {
            None => self.tops.get(node.root_index()).copied(),
            Some(_) => node.note::<DirIndex>().map(|index| index.0),
        }
    }

    /// Counts a batch of names of inodes with several names. Keeps the first name of each.
    fn count_linked(&self, dir: u32, linked: &mut Vec<(&[u8], &Meta)>, sums: &mut BatchSums) {
        if linked.is_empty() {
            return;
        }
        let mut tree = self.shared.tree();
        let is_retired = tree.is_retired(dir);
        linked.retain(|(_, meta)| {
            sums.count(Amount::default(), meta);
            !is_retired && tree.add_link(identity_of(meta), sizes_of(meta), meta.nlink, dir)
        });
    }

    /// Adds a file to what is known across directories.
    fn summarize(&self, dir: u32, name: &[u8], meta: &Meta, summary: &mut FileSummary) {
        if let Some(admits) = &self.admits {
            return self.search(dir, file_row(name, meta), admits);
        }
        let sizes = sizes_of(meta);
        let mut buffer = [0; EXTENSION_BYTES];
        let extension = name_extension(name, &mut buffer);
        let file = SummedFile { extension, uid: uid_of(meta), mtime_s: mtime_of(meta), sizes };
        summary.add(&file, self.shared.now_s);
        // Relaxed: a bound that is too low costs one look under the lock.
        if sizes.allocated >= self.shared.least_large.load(Ordering::Relaxed) {
            self.push_large(dir, file_row(name, meta));
        }
    }

    /// Adds a file to what a search has found, if it is searched for.
    fn search(&self, dir: u32, row: Row, Admits(admits): &Admits) {
        if !admits(&row) {
            return;
        }
        self.shared.add_found(&row.amount.with_itself());
        if row.amount.allocated >= self.shared.least_large.load(Ordering::Relaxed) {
            self.push_large(dir, row);
        }
    }

    fn push_large(&self, dir: u32, row: Row) {
        let mut tree = self.shared.tree();
        if !tree.is_retired(dir) {
            tree.largest.push(dir, row);
            self.shared.least_large.store(tree.largest.least(), Ordering::Relaxed);
        }
    }

    fn flush_summary(&self, summary: &mut FileSummary) {
        if summary.files() > 0 {
            self.shared.tree().summary.merge(summary);
        }
    }

    /// Notes that a root of the walk cannot be reached.
    fn lose_top(&self, tree: &mut LiveTree, top: u32) {
        if tree.is_retired(top) {
            return;
        }
        if tree.parent(top).is_some() {
            tree.remove_dir(top);
        } else {
            tree.set_state(top, RowState::Unreadable);
        }
    }
}

/// Returns the row of an entry that is not a directory.
pub(super) fn file_row(name: &[u8], meta: &Meta) -> Row {
    Row {
        name: name.into(),
        identity: identity_of(meta),
        ctime: ctime_of(meta),
        file_type: meta.file_type(),
        links: meta.nlink,
        uid: uid_of(meta),
        gid: meta.gid,
        amount: sizes_of(meta),
        shared: 0,
        newest_mtime_s: mtime_of(meta),
        growth: None,
        state: RowState::Complete,
    }
}

impl Visitor for LiveVisitor {
    type Item = Infallible;
    /// The files that have not been added to the common summary.
    type Local = FileSummary;

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        let Some(filter) = &self.names else { return };
        let mut path = self.above.clone();
        if !path.is_empty() && !path.ends_with(b"/") {
            path.push(b'/');
        }
        dir.path_into(&mut path);
        let found = names.len();
        (filter.0)(&path, names);
        if names.len() < found
            && let Some(index) = self.index(dir)
        {
            self.shared.tree().note_excluded(index);
        }
    }

    fn entries<'a>(
        &self,
        summary: &mut FileSummary,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        self.control.wait();
        let Some(index) = self.index(dir).filter(|_| !self.control.is_stopped()) else { return };
        let (mut sums, mut linked) = (BatchSums::default(), Vec::new());
        for entry in entries {
            match entry.meta {
                Some(Err(errno)) => emit.failed(&entry, errno),
                Some(Ok(meta)) if entry.file_type() != FileType::Directory => {
                    sums.entries += 1;
                    let name = entry.name.name.to_bytes();
                    match self.is_elsewhere(dir, meta) {
                        true => {}
                        false if self.is_linked(meta) => linked.push((name, meta)),
                        false => {
                            sums.count(sizes_of(meta), meta);
                            self.summarize(index, name, meta, summary);
                        }
                    }
                }
                _ => emit.descend(&entry),
            }
        }
        self.count_linked(index, &mut linked, &mut sums);
        linked.into_iter().for_each(|(name, meta)| self.summarize(index, name, meta, summary));
        if sums.entries > 0 {
            let mut tree = self.shared.tree();
            tree.add(index, &sums.amount, sums.newest_mtime_s);
            tree.note_entries(sums.entries);
        }
        if summary.files() >= SUMMARY_FILES {
            self.flush_summary(summary);
        }
    }
}

impl UnorderedVisitor for LiveVisitor {
    fn enter(&self, _summary: &mut FileSummary, enter: Enter<'_>) -> Descend {
        self.control.wait();
        let Enter { node, meta, found } = enter;
        if self.control.is_stopped() {
            return Descend::No;
        }
        let mut tree = self.shared.tree();
        let index = match node.parent() {
            None => self.index(node).filter(|top| !tree.is_retired(*top)),
            Some(parent) => self.index(parent).and_then(|dir| tree.add_child(dir, node.name().to_bytes())),
        };
        let Some(index) = index else { return Descend::No };
        node.set_note(DirIndex(index));
        tree.set_meta(index, meta);
        if found == Found::Loop || self.is_elsewhere(node, meta) {
            tree.set_state(index, RowState::Skipped);
            return Descend::No;
        }
        tree.count(index, meta);
        Descend::Yes
    }

    fn failed(&self, _summary: &mut FileSummary, failure: Failure<'_>) {
        let Failure { node, name, operation, errno } = failure;
        let mut tree = self.shared.tree();
        tree.note_failure();
        match (operation, self.index(node)) {
            (Operation::Access, Some(top)) if node.parent().is_none() => self.lose_top(&mut tree, top),
            (Operation::Open, Some(dir)) => tree.set_state(dir, RowState::Unreadable),
            // An entry that no longer exists is not missing.
            (Operation::Stat | Operation::Access, _) if errno == Errno::NOENT => {}
            (Operation::Access, None) if name.is_none() => {
                let parent = node.parent().and_then(|parent| self.index(parent));
                parent.into_iter().for_each(|dir| tree.note_gap(dir));
            }
            (_, Some(dir)) => tree.note_gap(dir),
            _ => {}
        }
    }

    fn leave(&self, _summary: &mut FileSummary, node: &Arc<Node>) {
        if let Some(dir) = self.index(node) {
            self.shared.tree().note_read(dir);
        }
    }

    fn done(&self, _summary: &mut FileSummary, node: &Arc<Node>) {
        let Some(dir) = self.index(node) else { return };
        let mut tree = self.shared.tree();
        // After a stop nothing more is counted: an end says nothing about the directory.
        if !self.control.is_stopped() {
            tree.finish(dir);
        }
    }

    fn root_file(&self, summary: &mut FileSummary, root: &Arc<Node>, meta: &Meta) {
        let Some(top) = self.index(root) else { return };
        let mut tree = self.shared.tree();
        if tree.is_retired(top) {
            return;
        }
        let Some(parent) = tree.parent(top) else {
            tree.set_meta(top, meta);
            tree.set_state(top, RowState::Complete);
            let is_linked = self.is_linked(meta);
            if !is_linked {
                tree.count(top, meta);
            }
            if !is_linked || tree.add_link(identity_of(meta), sizes_of(meta), meta.nlink, top) {
                let name = tree.name(top);
                let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
                let mut buffer = [0; EXTENSION_BYTES];
                let extension = name_extension(name, &mut buffer);
                let (uid, mtime_s, sizes) = (uid_of(meta), mtime_of(meta), sizes_of(meta));
                summary.add(&SummedFile { extension, uid, mtime_s, sizes }, self.shared.now_s);
            }
            return;
        };
        // The directory was replaced by a file before it was walked again.
        tree.remove_dir(top);
        let mut sums = BatchSums::default();
        if self.is_linked(meta) {
            tree.add_link(identity_of(meta), sizes_of(meta), meta.nlink, parent);
            sums.count(Amount::default(), meta);
        } else {
            sums.count(sizes_of(meta), meta);
        }
        tree.add(parent, &sums.amount, mtime_of(meta));
    }

    fn flush(&self, summary: &mut FileSummary) {
        self.flush_summary(summary);
    }
}
