//! The visitor that removes entries on the workers of an unordered walk: entries that are no
//! directories when their names have been read, a directory when everything in it is gone.
//!
//! A worker removes all entries of a directory, or of a batch of a wide one, because unlinkat(2)
//! takes the lock of the directory: a second thread would only wait for it.

use std::convert::Infallible;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use fathom_io::{Errno, Fields, FileType, Follow, Meta, Names, sys};
use fathom_walk::gatherer::EntryPath;
use fathom_walk::{Descend, Emit, Enter, Entry, Failure, Found, Node, UnorderedVisitor, Visitor};
use rustix::fs::{AtFlags, unlinkat};

use crate::failure::{RemovalCause, RemovalFailure, RemovalOperation, errno_of};
use crate::identity::Identity;
use crate::observer::{Observer, RemovedEntry};
use crate::options::{RemovalAction, RemovalOptions};
use crate::running::{RunningTarget, RunningTargets};
use crate::shared_places::SharedPlaces;
use crate::summary::RemovalSums;

/// Number of names from which on they are sorted by inode number, as gnulib's fts does: on a disk,
/// neighbouring inodes share blocks.
const SORT_NAMES: usize = 4096;
/// Bytes in a block of `st_blocks` (stat(2)).
const BLOCK_BYTES: u64 = 512;
/// Bytes of paths from which on removed entries are reported before the end of their batch: deep
/// paths are long.
const PATH_BYTES_MAX: usize = 1 << 20;
/// The indices of [`Removal::left`].
const FILES: usize = 0;
const DIRECTORIES: usize = 1;
/// The error of a removal beyond the limit, which unlinkat(2) does not have.
const EXCEEDED: Errno = Errno::CANCELED;
/// The metadata that is read of entries.
pub(crate) const FIELDS: Fields = Fields::BLOCKS.union(Fields::TIMES);

/// The state of a removal.
pub(crate) struct Removal {
    pub(crate) is_dry_run: bool,
    pub(crate) is_recursive: bool,
    pub(crate) ignore_missing: bool,
    pub(crate) measures: bool,
    pub(crate) protected: Vec<Identity>,
    /// The places of targets, in a dry run.
    pub(crate) places: SharedPlaces,
    /// How many files and directories may still be removed.
    left: Option<[AtomicU64; 2]>,
    has_exceeded: AtomicBool,
    stop: Arc<AtomicBool>,
    pub(crate) targets: RunningTargets,
    pub(crate) sums: RemovalSums,
    pub(crate) observer: Arc<dyn Observer>,
    wants_entries: bool,
}

impl Removal {
    pub(crate) fn new(options: &RemovalOptions, observer: Arc<dyn Observer>) -> Self {
        let is_dry_run = options.action == RemovalAction::DryRun;
        Self {
            is_dry_run,
            is_recursive: options.recursive,
            ignore_missing: options.ignore_missing,
            measures: options.measure || is_dry_run,
            protected: options.protected.clone(),
            places: SharedPlaces::default(),
            left: options.limit.map(|limit| [limit.files, limit.directories].map(AtomicU64::new)),
            has_exceeded: AtomicBool::new(false),
            stop: options.stop.clone(),
            targets: RunningTargets::default(),
            sums: RemovalSums::new(options.open_files.clone()),
            wants_entries: observer.wants_entries(),
            observer,
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.has_exceeded()
    }

    /// Returns whether there is more than the limit.
    pub(crate) fn has_exceeded(&self) -> bool {
        self.has_exceeded.load(Ordering::Relaxed)
    }

    /// Removes one of the files or directories that may be removed.
    ///
    /// # Errors
    /// The errors of unlinkat(2); [`EXCEEDED`] if none is left: the removal stops.
    fn unlink_counted(&self, at: impl AsFd, name: &CStr, kind: usize, flags: AtFlags) -> Result<(), Errno> {
        let Some(left) = &self.left else { return unlinkat(at, name, flags) };
        let take = |left: u64| left.checked_sub(1);
        // The counters publish no data, so no ordering is needed.
        if left[kind].fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            self.has_exceeded.store(true, Ordering::Relaxed);
            return Err(EXCEEDED);
        }
        // A further walk may try again what is still there.
        unlinkat(at, name, flags).inspect_err(|_| {
            left[kind].fetch_add(1, Ordering::Relaxed);
        })
    }

    /// Counts and reports a failure.
    pub(crate) fn failed(&self, failure: RemovalFailure) {
        self.sums.add_failure();
        self.observer.failed(&failure);
    }

    /// Reports entries that are gone.
    pub(crate) fn removed(&self, entries: &[RemovedEntry]) {
        if self.wants_entries && !entries.is_empty() {
            self.observer.removed(entries);
        }
    }

    /// Returns why a target, or a directory below one, must not be removed.
    fn admit(&self, running: &RunningTarget, node: &Node, meta: &Meta) -> Result<(), RemovalCause> {
        if node.parent().is_none() {
            let (dev, ino) = meta.id();
            if !running.target.is_shown(meta) {
                return Err(RemovalCause::Replaced);
            }
            if !self.is_recursive {
                return Err(Errno::ISDIR.into());
            }
            if self.protected.contains(&Identity { dev, ino }) {
                return Err(RemovalCause::WorkingDirectory);
            }
        }
        let is_mount = meta.mount_root == Some(true) || meta.dev != running.dev;
        if is_mount { Err(RemovalCause::MountPoint) } else { Ok(()) }
    }

    /// Removes an entry that is not a directory. Returns its metadata, if it was measured.
    fn unlink(&self, at: BorrowedFd<'_>, name: &CStr, known: Option<Meta>) -> Result<Option<Meta>, Errno> {
        if self.is_dry_run {
            // Before its metadata is read, which the removal does not need.
            self.sums.add_possible(1, 0);
        }
        let meta = match known {
            None if self.measures => Some(sys::stat(at, name, Follow::No, FIELDS)?),
            known => known.filter(|_| self.measures),
        };
        if let Some(meta) = &meta {
            self.sums.note_links(meta);
        }
        if self.is_dry_run {
            fathom_io::fault::point("remove-count");
        } else {
            fathom_io::fault::point("remove-unlink");
            self.unlink_counted(at, name, FILES, AtFlags::empty())?;
        }
        self.sums.add_file(meta.as_ref());
        Ok(meta)
    }

    /// Removes a target that is not a directory.
    fn unlink_target(&self, running: &RunningTarget, root: &Arc<Node>) -> Result<RemovedEntry, RemovalCause> {
        if running.is_directory {
            return Err(Errno::NOTDIR.into());
        }
        let path = EntryPath::of_dir(root);
        let at = path.at().map_err(|error| errno_of(&error))?;
        let meta = sys::stat(at.as_fd(), at.name(), Follow::No, FIELDS)?;
        if !running.target.is_shown(&meta) {
            return Err(RemovalCause::Replaced);
        }
        self.unlink(at.as_fd(), at.name(), Some(meta))?;
        let (path, file_type, allocated) = (running.path.clone(), meta.file_type(), Some(allocated(&meta)));
        Ok(RemovedEntry { path, file_type, dev: meta.dev, ino: meta.ino, allocated })
    }

    /// Removes an empty directory, if it is still this inode.
    fn remove_dir(&self, running: &RunningTarget, node: &Arc<Node>, dir: &Meta) -> Result<(), RemovalCause> {
        if !self.is_dry_run {
            let path = EntryPath::of_dir(node);
            let at = path.at().map_err(|error| errno_of(&error))?;
            if sys::stat(at.as_fd(), at.name(), Follow::No, Fields::IDENTITY)?.id() != dir.id() {
                return Err(RemovalCause::Replaced);
            }
            fathom_io::fault::point("remove-rmdir");
            self.unlink_counted(&at, at.name(), DIRECTORIES, AtFlags::REMOVEDIR)?;
            running.has_removed.store(true, Ordering::Relaxed);
        }
        self.sums.add_directory(self.measures.then(|| allocated(dir)));
        if self.wants_entries {
            let (path, file_type) = (path_of(running, node, None), FileType::Directory);
            let allocated = self.measures.then(|| allocated(dir));
            self.removed(&[RemovedEntry { path, file_type, dev: dir.dev, ino: dir.ino, allocated }]);
        }
        Ok(())
    }

    /// Reports a failure below a target, and keeps all directories that contain the entry.
    fn entry_failed(
        &self,
        running: &RunningTarget,
        node: &Arc<Node>,
        name: Option<&CStr>,
        operation: RemovalOperation,
        cause: RemovalCause,
    ) {
        mark(node, |state| &state.is_kept);
        self.report(running, node, name, operation, cause);
    }

    fn report(
        &self,
        running: &RunningTarget,
        node: &Arc<Node>,
        name: Option<&CStr>,
        operation: RemovalOperation,
        cause: RemovalCause,
    ) {
        let path = path_of(running, node, name);
        if running.is_new(&path, cause) {
            self.failed(RemovalFailure { path, operation, cause });
        }
    }

    /// Removes a directory in which everything is gone.
    fn leave_dir(&self, node: &Arc<Node>, state: &DirState) {
        if self.is_stopped() || state.is_kept.load(Ordering::Relaxed) {
            return;
        }
        if self.is_dry_run {
            self.sums.add_possible(0, 1);
            if state.is_unknown.load(Ordering::Relaxed) {
                return;
            }
        }
        match self.remove_dir(&state.running, node, &state.meta) {
            Ok(()) | Err(RemovalCause::Os(Errno::NOENT | EXCEEDED)) => {}
            Err(RemovalCause::Os(Errno::NOTEMPTY | Errno::EXIST)) => {
                mark(node, |state| &state.is_kept);
                let mut left = state.running.left.lock().unwrap_or_else(PoisonError::into_inner);
                left.get_or_insert_with(|| path_of(&state.running, node, None));
            }
            Err(cause) => self.entry_failed(&state.running, node, None, RemovalOperation::Remove, cause),
        }
    }
}

/// The visitor of a removal.
pub(crate) struct Remover(pub(crate) Arc<Removal>);

/// The state of a directory that is being removed.
struct DirState {
    running: Arc<RunningTarget>,
    meta: Meta,
    /// Whether something in it could not be removed.
    is_kept: AtomicBool,
    /// Whether a directory in it could not be read in a dry run: if that is empty, it goes.
    is_unknown: AtomicBool,
}

/// Sets a flag of a directory and of all that contain it.
fn mark(node: &Node, flag: fn(&DirState) -> &AtomicBool) {
    for state in node.chain().filter_map(Node::note::<DirState>) {
        // The thread that set the flag before sets the flags of the directories above.
        if flag(state).swap(true, Ordering::Relaxed) {
            return;
        }
    }
}

fn path_of(running: &RunningTarget, node: &Node, name: Option<&CStr>) -> Vec<u8> {
    [&running.path, &node.path_of(name)[node.root_path_len()..]].concat()
}

pub(crate) fn allocated(meta: &Meta) -> u64 {
    meta.blocks.saturating_mul(BLOCK_BYTES)
}

impl Remover {
    /// Returns the target that a directory belongs to.
    fn running(&self, node: &Node) -> Option<Arc<RunningTarget>> {
        match node.parent() {
            None => self.0.targets.of_root(node.root_index()),
            Some(parent) => parent.note::<DirState>().map(|state| state.running.clone()),
        }
    }

    /// Removes an entry of `dir`. Returns the event, if it is wanted.
    fn entry(&self, entry: &Entry<'_>, dir: &Arc<Node>, state: &DirState) -> Option<RemovedEntry> {
        let (removal, name) = (&self.0, entry.name.name);
        let known = entry.meta.and_then(Result::ok).copied();
        match removal.unlink(entry.dir(), name, known) {
            Ok(meta) => {
                state.running.has_removed.store(true, Ordering::Relaxed);
                removal.wants_entries.then(|| RemovedEntry {
                    path: path_of(&state.running, dir, Some(name)),
                    file_type: entry.file_type(),
                    dev: meta.map_or(state.meta.dev, |meta| meta.dev),
                    ino: meta.map_or(entry.name.ino, |meta| meta.ino),
                    allocated: meta.as_ref().map(allocated),
                })
            }
            // Another process removed it, or it stays.
            Err(Errno::NOENT | EXCEEDED) => None,
            Err(errno) => {
                let operation = RemovalOperation::Remove;
                removal.entry_failed(&state.running, dir, Some(name), operation, errno.into());
                None
            }
        }
    }
}

impl Visitor for Remover {
    type Item = Infallible;
    type Local = Vec<RemovedEntry>;

    fn select(&self, _dir: &Arc<Node>, names: &mut Names) {
        if self.0.is_dry_run {
            return;
        }
        if names.len() >= SORT_NAMES {
            names.sort_by_inode();
        }
        // The walk times the metadata call of one entry, which tells a slow mount from a disk.
        let mut is_timed = false;
        names.skip_stat_if(|name| match name.file_type {
            FileType::Unknown => false,
            FileType::Directory => true,
            _ => std::mem::replace(&mut is_timed, true),
        });
    }

    fn entries<'a>(
        &self,
        batch: &mut Self::Local,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Infallible>,
    ) {
        let Some(state) = dir.note::<DirState>() else { return };
        let mut path_bytes = 0;
        for entry in entries.take_while(|_| !self.0.is_stopped()) {
            if !self.0.places.meet(state.meta.id(), entry.name.name) {
                continue;
            }
            match (entry.file_type(), entry.meta) {
                (FileType::Directory, _) => emit.descend(&entry),
                (FileType::Unknown, Some(Err(errno))) => emit.failed(&entry, errno),
                _ => batch
                    .extend(self.entry(&entry, dir, state).inspect(|entry| path_bytes += entry.path.len())),
            }
            if path_bytes >= PATH_BYTES_MAX {
                self.0.removed(batch);
                batch.clear();
                path_bytes = 0;
            }
        }
        self.0.removed(batch);
        batch.clear();
    }
}

impl UnorderedVisitor for Remover {
    fn enter(&self, _batch: &mut Self::Local, Enter { node, meta, found }: Enter<'_>) -> Descend {
        let Some(running) = self.running(node) else { return Descend::No };
        if let Err(cause) = self.0.admit(&running, node, meta) {
            self.0.entry_failed(&running, node, None, RemovalOperation::Remove, cause);
            return Descend::No;
        }
        if found == Found::Readable {
            let [is_kept, is_unknown] = [false, false].map(AtomicBool::new);
            node.set_note(DirState { running, meta: *meta, is_kept, is_unknown });
        } else if self.0.is_dry_run {
            self.0.sums.add_possible(0, 1);
        } else if self.0.remove_dir(&running, node, meta).is_ok() {
            // An empty directory can be removed without permission to read it.
            return Descend::No;
        }
        Descend::Yes
    }

    fn failed(&self, _batch: &mut Self::Local, Failure { node, name, operation, errno }: Failure<'_>) {
        let own = node.note::<DirState>().map(|state| state.running.clone());
        let Some(running) = own.or_else(|| self.running(node)) else { return };
        if node.parent().is_none() && name.is_none() && node.id().is_none() {
            let operation = match operation {
                fathom_walk::Operation::Access => RemovalOperation::Remove,
                other => RemovalOperation::Walk(other),
            };
            self.0.target_failed(&running.target, operation, errno.into());
        } else if self.0.is_dry_run && name.is_none() {
            mark(node, |state| &state.is_unknown);
            self.0.report(&running, node, name, RemovalOperation::Walk(operation), errno.into());
        } else if errno != Errno::NOENT {
            self.0.entry_failed(&running, node, name, RemovalOperation::Walk(operation), errno.into());
        }
    }

    fn done(&self, _batch: &mut Self::Local, node: &Arc<Node>) {
        if let Some(state) = node.note::<DirState>() {
            self.0.leave_dir(node, state);
            // While it is open, the filesystem does not get its blocks back.
            node.close();
        }
        if node.parent().is_none()
            && let Some(path) = self.0.targets.end(node.root_index())
        {
            let (operation, cause) = (RemovalOperation::Remove, Errno::NOTEMPTY.into());
            self.0.failed(RemovalFailure { path, operation, cause });
        }
    }

    fn root_file(&self, _batch: &mut Self::Local, root: &Arc<Node>, _meta: &Meta) {
        let Some(running) = self.running(root) else { return };
        match self.0.unlink_target(&running, root) {
            Ok(entry) => self.0.removed(&[entry]),
            Err(RemovalCause::Os(EXCEEDED)) => {}
            Err(cause) => self.0.target_failed(&running.target, RemovalOperation::Remove, cause),
        }
    }
}
