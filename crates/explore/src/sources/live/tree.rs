//! The directories of a live tree, with the sums of everything below each: about a hundred bytes
//! and the name of each directory, nothing of a file. The sums of all directories above change with
//! each batch of entries, so at any time they cover all that has been read.
//!
//! A directory that is removed, or replaced by a rescan, is *retired*: batches for it are ignored.
//! Its index is used again once no walk is left that may refer to it.

use fathom_io::{FileType, Meta};
use fathom_remove::Identity;

use super::links::{LinkChange, LinkedInodes};
use crate::source::{Amount, Place, Row, RowState, SourceProgress};
use crate::sources::largest::LargestFiles;
use crate::sources::summary::FileSummary;
use crate::sources::{identity_of, mtime_of, sizes_of, uid_of};

/// The index of no directory.
pub(super) const NONE: u32 = u32::MAX;
/// Most files in the set of the largest ones.
pub(super) const LARGEST_MAX: usize = 1000;
/// The bytes of unused names from which on names are moved together.
const UNUSED_NAME_BYTES: usize = 64 << 10;

/// A directory; or a root, which may be any file.
#[derive(Clone, Copy, Debug)]
struct LiveDir {
    parent: u32,
    first_child: u32,
    next_sibling: u32,
    name_len: u32,
    name_start: usize,
    sums: Amount<u64>,
    newest_mtime_s: Option<i64>,
    identity: Identity,
    links: u64,
    uid: Option<u32>,
    gid: u32,
    file_type: FileType,
    state: RowState,
    /// Whether it counts in the sums of the directories above.
    is_counted: bool,
    /// Whether some of its own entries are missing.
    has_gap: bool,
    /// Whether some of its own entries are left out by a pattern.
    has_excluded: bool,
    /// Whether all of its own entries have been counted.
    is_read: bool,
    /// Whether it has names of inodes with several names.
    has_links: bool,
    is_retired: bool,
}

/// The directories of all roots, and the sums across directories.
#[derive(Debug)]
pub(super) struct LiveTree {
    dirs: Vec<LiveDir>,
    names: Vec<u8>,
    unused_name_bytes: usize,
    roots: Vec<u32>,
    /// The sums of all roots.
    total: Amount<u64>,
    /// Indices that can be used again.
    unused: Vec<u32>,
    /// Retired directories to which a walk may refer.
    retired: Vec<u32>,
    walks: usize,
    pub(super) linked: LinkedInodes,
    pub(super) largest: LargestFiles<u32>,
    pub(super) summary: FileSummary,
    /// Whether `summary` lacks changes since the first walk.
    pub(super) is_summary_stale: bool,
    entries: u64,
    failures: u64,
    version: u64,
}

impl LiveTree {
    /// Creates a tree of roots that have not been read.
    pub(super) fn new<'a>(roots: impl Iterator<Item = &'a [u8]>, largest_max: usize) -> Self {
        let mut tree = Self {
            dirs: Vec::new(),
            names: Vec::new(),
            unused_name_bytes: 0,
            roots: Vec::new(),
            total: Amount::default(),
            unused: Vec::new(),
            retired: Vec::new(),
            walks: 0,
            linked: LinkedInodes::default(),
            largest: LargestFiles::new(largest_max),
            summary: FileSummary::default(),
            is_summary_stale: false,
            entries: 0,
            failures: 0,
            version: 0,
        };
        for root in roots {
            let dir = tree.create(NONE, root);
            tree.roots.push(dir);
        }
        tree
    }

    pub(super) fn roots(&self) -> &[u32] {
        &self.roots
    }

    /// Returns the sums of all roots, with each inode once.
    pub(super) fn total(&self) -> Amount<u64> {
        self.total
    }

    pub(super) fn progress(&self) -> SourceProgress {
        SourceProgress {
            entries: self.entries,
            allocated: self.total.allocated,
            failures: self.failures,
            finished: self.walks == 0,
            version: self.version,
        }
    }

    /// Returns the directory at `place`, if it has been found.
    pub(super) fn find(&self, place: &Place) -> Option<u32> {
        let mut dir = *self.roots.get(place.root)?;
        for name in place.below.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            dir = self.child(dir, name)?;
        }
        Some(dir)
    }

    /// Returns whether a directory that has not been found is below one that is being walked.
    pub(super) fn is_being_walked(&self, place: &Place) -> bool {
        let Some(mut dir) = self.roots.get(place.root).copied() else { return false };
        let names = place.below.split(|byte| *byte == b'/');
        for name in names {
            let Some(child) = self.child(dir, name) else { break };
            dir = child;
        }
        self.state(dir) == RowState::Walking
    }

    pub(super) fn child(&self, dir: u32, name: &[u8]) -> Option<u32> {
        self.children(dir).find(|child| self.name(*child) == name)
    }

    /// Iterates over the subdirectories that have been found.
    pub(super) fn children(&self, dir: u32) -> impl Iterator<Item = u32> {
        let next = |dir: u32| Some(dir).filter(|dir| *dir != NONE);
        let first = next(self.dirs[dir as usize].first_child);
        std::iter::successors(first, move |child| next(self.dirs[*child as usize].next_sibling))
    }

    pub(super) fn name(&self, dir: u32) -> &[u8] {
        let LiveDir { name_start, name_len, .. } = self.dirs[dir as usize];
        &self.names[name_start..name_start + name_len as usize]
    }

    /// Returns the place of a directory.
    pub(super) fn place(&self, dir: u32) -> Option<Place> {
        let (mut names, mut at) = (Vec::new(), dir);
        while self.dirs[at as usize].parent != NONE {
            names.push(self.name(at));
            at = self.dirs[at as usize].parent;
        }
        names.reverse();
        let root = self.roots.iter().position(|root| *root == at)?;
        Some(Place { root, below: names.join(&b'/') })
    }

    /// Returns whether `dir` is `top` or below it.
    pub(super) fn is_within(&self, dir: u32, top: u32) -> bool {
        self.chain(dir).any(|above| above == top)
    }

    pub(super) fn state(&self, dir: u32) -> RowState {
        self.dirs[dir as usize].state
    }

    /// Returns whether all entries of a directory itself have been counted.
    pub(super) fn is_read(&self, dir: u32) -> bool {
        self.dirs[dir as usize].is_read
    }

    pub(super) fn is_retired(&self, dir: u32) -> bool {
        self.dirs[dir as usize].is_retired
    }

    pub(super) fn device(&self, dir: u32) -> u64 {
        self.dirs[dir as usize].identity.dev
    }

    pub(super) fn parent(&self, dir: u32) -> Option<u32> {
        Some(self.dirs[dir as usize].parent).filter(|parent| *parent != NONE)
    }

    /// Returns the row of a directory.
    pub(super) fn row(&self, dir: u32) -> Row {
        let LiveDir {
            identity, file_type, links, uid, gid, sums, newest_mtime_s, state, has_excluded, ..
        } = self.dirs[dir as usize];
        let is_excluded = has_excluded && state == RowState::Complete;
        Row {
            name: self.name(dir).into(),
            identity,
            ctime: None,
            file_type,
            links,
            uid,
            gid,
            amount: sums,
            shared: self.linked.shared(dir),
            newest_mtime_s,
            growth: None,
            state: if is_excluded { RowState::Excluded } else { state },
        }
    }

    /// Returns the number of directories for which there is memory.
    #[cfg(test)]
    pub(super) fn records(&self) -> usize {
        self.dirs.len()
    }

    /// Iterates over a directory and those above it.
    fn chain(&self, dir: u32) -> impl Iterator<Item = u32> {
        let above = |dir: u32| Some(dir).filter(|dir| *dir != NONE);
        std::iter::successors(above(dir), move |dir| above(self.dirs[*dir as usize].parent))
    }

    /// Returns a directory and everything below it, parents first.
    pub(super) fn subtree(&self, top: u32) -> Vec<u32> {
        let (mut found, mut at) = (vec![top], 0);
        while let Some(dir) = found.get(at).copied() {
            found.extend(self.children(dir));
            at += 1;
        }
        found
    }
}

/// Changes by a walk.
impl LiveTree {
    /// Notes that a walk begins, which refers to directories by their indices until
    /// [`LiveTree::end_walk`].
    pub(super) fn begin_walk(&mut self) {
        self.walks += 1;
        self.version += 1;
    }

    /// Notes the end of the walk of `tops`. Directories that it has not finished are incomplete.
    pub(super) fn end_walk(&mut self, tops: &[u32]) {
        for top in tops.iter().copied() {
            if self.is_retired(top) || self.state(top) != RowState::Walking {
                continue;
            }
            for dir in self.subtree(top).into_iter().rev() {
                let found = &mut self.dirs[dir as usize];
                if found.state == RowState::Walking {
                    found.has_gap = true;
                    found.state = RowState::Partial;
                }
            }
            self.settle_above(top);
        }
        self.walks = self.walks.saturating_sub(1);
        self.version += 1;
        self.reuse_retired();
    }

    /// Adds a subdirectory, which is being walked from now on. Returns `None` if the directory is
    /// retired, or if there are too many directories.
    pub(super) fn add_child(&mut self, parent: u32, name: &[u8]) -> Option<u32> {
        let has_room = self.dirs.len() < NONE as usize || !self.unused.is_empty();
        if self.is_retired(parent) || !has_room {
            return None;
        }
        let dir = self.create(parent, name);
        let before = std::mem::replace(&mut self.dirs[parent as usize].first_child, dir);
        self.dirs[dir as usize].next_sibling = before;
        Some(dir)
    }

    /// Adds a directory that was made since its parent was walked. Returns `None` if that is
    /// unknown.
    pub(super) fn add_new(&mut self, place: &Place) -> Option<u32> {
        let (above, name) = place.parent()?;
        let parent = self.find(&above)?;
        self.add_child(parent, name)
    }

    /// Sets the metadata of a directory, or of a root that is any file.
    pub(super) fn set_meta(&mut self, dir: u32, meta: &Meta) {
        let found = &mut self.dirs[dir as usize];
        found.identity = identity_of(meta);
        (found.links, found.uid, found.gid) = (meta.nlink, uid_of(meta), meta.gid);
        (found.file_type, found.newest_mtime_s) = (meta.file_type(), mtime_of(meta));
        self.entries += 1;
        self.version += 1;
    }

    /// Counts the inode of a directory, or of a root that is any file, in it and in those above.
    pub(super) fn count(&mut self, dir: u32, meta: &Meta) {
        let sizes = sizes_of(meta);
        self.dirs[dir as usize].sums.add(&sizes);
        self.dirs[dir as usize].is_counted = true;
        match self.parent(dir) {
            Some(parent) => self.add(parent, &sizes.with_itself(), mtime_of(meta)),
            None => self.total.add(&sizes),
        }
    }

    pub(super) fn set_state(&mut self, dir: u32, state: RowState) {
        self.dirs[dir as usize].state = state;
        self.version += 1;
    }

    /// Adds to the sums of a directory and of all above.
    pub(super) fn add(&mut self, dir: u32, amount: &Amount<u64>, newest_mtime_s: Option<i64>) {
        if self.is_retired(dir) {
            return;
        }
        let mut at = dir;
        while let Some(found) = self.dirs.get_mut(at as usize) {
            found.sums.add(amount);
            found.newest_mtime_s = found.newest_mtime_s.max(newest_mtime_s);
            at = found.parent;
        }
        self.total.add(amount);
        self.version += 1;
    }

    /// Adds the sizes of a name of an inode with several names where they do not count yet. Returns
    /// whether it is the first name.
    pub(super) fn add_link(&mut self, identity: Identity, sizes: Amount<u64>, links: u64, dir: u32) -> bool {
        self.dirs[dir as usize].has_links = true;
        let dirs = &self.dirs;
        let change = self.linked.add(identity, sizes, links, dir, |dir| dirs[dir as usize].parent);
        self.apply(change, Amount::add);
        change.is_only
    }

    fn apply(&mut self, change: LinkChange, operation: fn(&mut Amount<u64>, &Amount<u64>)) {
        let mut at = change.dir;
        while at != change.end {
            let Some(found) = self.dirs.get_mut(at as usize) else { break };
            operation(&mut found.sums, &change.sizes);
            at = found.parent;
        }
        if change.is_only {
            operation(&mut self.total, &change.sizes);
        }
    }

    /// Computes what directories share with others, unless that is known, or changes while
    /// something is being walked.
    pub(super) fn find_shared(&mut self) {
        if self.walks == 0 {
            let dirs = &self.dirs;
            self.linked.find_shared(|dir| dirs[dir as usize].parent);
        }
    }

    pub(super) fn note_entries(&mut self, count: u64) {
        self.entries += count;
    }

    pub(super) fn note_failure(&mut self) {
        self.failures += 1;
        self.version += 1;
    }

    /// Notes that entries of a directory are missing.
    pub(super) fn note_gap(&mut self, dir: u32) {
        self.dirs[dir as usize].has_gap = true;
    }

    /// Notes that entries of a directory are left out by a pattern.
    pub(super) fn note_excluded(&mut self, dir: u32) {
        self.dirs[dir as usize].has_excluded = true;
    }

    /// Notes that all entries of a directory have been counted.
    pub(super) fn note_read(&mut self, dir: u32) {
        self.dirs[dir as usize].is_read = true;
    }

    /// Notes that everything below a directory has been walked.
    pub(super) fn finish(&mut self, dir: u32) {
        if self.is_retired(dir) {
            return;
        }
        if self.state(dir) == RowState::Walking {
            self.dirs[dir as usize].state = self.settled(dir);
        }
        self.settle_above(dir);
        self.version += 1;
    }

    /// Corrects the states of finished directories above `dir`, which has changed.
    fn settle_above(&mut self, dir: u32) {
        let mut at = dir;
        while let Some(parent) = self.parent(at) {
            let old = self.state(parent);
            if !matches!(old, RowState::Complete | RowState::Partial) {
                break;
            }
            let new = self.settled(parent);
            if old == new {
                break;
            }
            self.dirs[parent as usize].state = new;
            at = parent;
        }
    }

    /// Returns the state of a directory of which nothing is being walked.
    fn settled(&self, dir: u32) -> RowState {
        let is_incomplete =
            |child: u32| matches!(self.state(child), RowState::Partial | RowState::Unreadable);
        let has_gap = self.dirs[dir as usize].has_gap || self.children(dir).any(is_incomplete);
        if has_gap { RowState::Partial } else { RowState::Complete }
    }

    fn create(&mut self, parent: u32, name: &[u8]) -> u32 {
        let dir = LiveDir {
            parent,
            first_child: NONE,
            next_sibling: NONE,
            name_len: name.len() as u32,
            name_start: self.names.len(),
            sums: Amount::default(),
            newest_mtime_s: None,
            identity: Identity { dev: 0, ino: 0 },
            links: 0,
            uid: None,
            gid: 0,
            file_type: FileType::Directory,
            state: RowState::Walking,
            is_counted: false,
            has_gap: false,
            has_excluded: false,
            is_read: false,
            has_links: false,
            is_retired: false,
        };
        self.names.extend_from_slice(name);
        match self.unused.pop() {
            Some(index) => {
                self.dirs[index as usize] = dir;
                index
            }
            None => {
                self.dirs.push(dir);
                (self.dirs.len() - 1) as u32
            }
        }
    }
}

/// Changes by the user.
impl LiveTree {
    /// Replaces a directory by an unread one of the same name, which is returned.
    pub(super) fn renew(&mut self, dir: u32) -> u32 {
        let LiveDir { parent, identity, .. } = self.dirs[dir as usize];
        let name = self.name(dir).to_vec();
        let new = match self.roots.iter().position(|root| *root == dir) {
            Some(at) => {
                let new = self.create(NONE, &name);
                self.roots[at] = new;
                new
            }
            None => self.add_child(parent, &name).unwrap_or(dir),
        };
        self.dirs[new as usize].identity = identity;
        if new != dir {
            self.remove_dir(dir);
        }
        new
    }

    /// Takes a directory out of its parent, with everything below it.
    pub(super) fn remove_dir(&mut self, dir: u32) {
        self.remove_dirs(&[dir]);
    }

    /// Takes directories out of their parents, with everything below them.
    pub(super) fn remove_dirs(&mut self, removed: &[u32]) {
        if removed.is_empty() {
            return;
        }
        let (mut tops, mut has_links) = (Vec::new(), false);
        for dir in removed.iter().copied() {
            if !self.is_retired(dir) {
                has_links |= self.retire(dir);
                tops.push(dir);
            }
        }
        let dirs = &self.dirs;
        self.largest.retain(|dir, _| !dirs[*dir as usize].is_retired);
        if has_links {
            // All inodes with several names are looked at: once, for all directories. Then the sums
            // of those that go have nothing that counts elsewhere.
            let parent = |dir: u32| dirs[dir as usize].parent;
            let changes = self.linked.remove_dirs(|dir| dirs[dir as usize].is_retired, parent);
            changes.into_iter().for_each(|change| self.apply(change, Amount::subtract));
        }
        for dir in tops {
            let LiveDir { parent, sums, is_counted, .. } = self.dirs[dir as usize];
            match parent {
                NONE => self.total.subtract(&sums),
                parent if is_counted => self.subtract(parent, &sums.with_itself()),
                _ => {}
            }
        }
        self.is_summary_stale = true;
        self.version += 1;
        self.reuse_retired();
    }

    /// Retires a directory with everything below it. Returns whether an inode with several names
    /// has one there.
    fn retire(&mut self, dir: u32) -> bool {
        if let Some(parent) = self.parent(dir) {
            self.unlink_child(parent, dir);
        }
        let mut has_links = false;
        for gone in self.subtree(dir) {
            let record = &mut self.dirs[gone as usize];
            record.is_retired = true;
            has_links |= record.has_links;
            self.unused_name_bytes += record.name_len as usize;
            self.retired.push(gone);
        }
        has_links
    }

    /// Takes a file out of the directory `dir`, if that has been read: until then, the file may not
    /// have been counted.
    pub(super) fn remove_file(&mut self, dir: u32, row: &Row) {
        if !self.is_read(dir) {
            return;
        }
        // The number of links in the row may have changed since the file was counted.
        let dirs = &self.dirs;
        let change = self.linked.remove(row.identity, dir, |dir| dirs[dir as usize].parent);
        if let Some(change) = change {
            self.apply(change, Amount::subtract);
        }
        let sizes = if change.is_some() { Amount::default() } else { row.amount };
        self.subtract(dir, &sizes.with_itself());
        self.largest.retain(|of, file| *of != dir || file.name != row.name);
        self.is_summary_stale = true;
        self.version += 1;
    }

    fn subtract(&mut self, dir: u32, amount: &Amount<u64>) {
        let mut at = dir;
        while let Some(found) = self.dirs.get_mut(at as usize) {
            found.sums.subtract(amount);
            at = found.parent;
        }
        self.total.subtract(amount);
    }

    fn unlink_child(&mut self, parent: u32, child: u32) {
        let next = self.dirs[child as usize].next_sibling;
        let before = self.children(parent).find(|at| self.dirs[*at as usize].next_sibling == child);
        match before {
            Some(before) => self.dirs[before as usize].next_sibling = next,
            None => self.dirs[parent as usize].first_child = next,
        }
    }

    /// Makes retired directories available, unless a walk may refer to them.
    fn reuse_retired(&mut self) {
        if self.walks > 0 {
            return;
        }
        self.unused.append(&mut self.retired);
        if self.unused_name_bytes > UNUSED_NAME_BYTES.max(self.names.len() / 2) {
            self.move_names_together();
        }
    }

    fn move_names_together(&mut self) {
        let mut names = Vec::with_capacity(self.names.len() - self.unused_name_bytes);
        for dir in self.dirs.iter_mut().filter(|dir| !dir.is_retired) {
            let name = dir.name_start..dir.name_start + dir.name_len as usize;
            dir.name_start = names.len();
            names.extend_from_slice(&self.names[name]);
        }
        (self.names, self.unused_name_bytes) = (names, 0);
    }
}
