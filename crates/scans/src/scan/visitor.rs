//! The workers' side of a scan: converts entries to rows, directly from the kernel's answers.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_walk::fault::point;
use fathom_walk::{
    Emit, Entry, Errno, FileType, Meta, Names, Node, Opened, OrderedVisitor, Reached, Visitor,
};

use super::cut::Slice;
use super::earlier::EarlierDirs;
use super::rate_limit::RateLimiter;
use super::selection::{MarkFn, Selection};
use fathom_inventory::store::{OptionalColumns, OptionalValues, RowChunk};

/// Converts entries to rows.
pub(crate) struct RowVisitor {
    /// For each directory that a resumed scan reads again, by root of the walk, the names that are
    /// written already.
    pub(super) written: Vec<WrittenNames>,
    pub(super) rate_limit: Option<Arc<RateLimiter>>,
    /// The earlier inventory.
    pub(super) earlier: Option<Arc<EarlierDirs>>,
    pub(super) selection: Option<Arc<dyn Selection>>,
    /// The depth limit: directories this many levels below a root are not read.
    pub(super) max_depth: Option<usize>,
    /// The optional columns.
    pub(super) optional_columns: OptionalColumns,
    /// For each root, the slice of its names that is read.
    pub(super) slices: Vec<Option<Slice>>,
    /// Whether no more directories are entered; `None` unless the scan is one of a unit.
    pub(super) is_cut_due: Option<Arc<AtomicBool>>,
}

/// A result that a worker passes to the consumer.
pub(crate) enum ScanItem {
    /// Rows of a directory.
    Rows(Box<RowChunk>),
    /// The rows that the earlier inventory has of its directory of this number.
    Unchanged(u32),
    /// A directory that is not read.
    Skipped(Box<SkippedDir>),
}

/// A directory at the depth limit.
pub(crate) struct SkippedDir {
    pub(super) name: Vec<u8>,
    pub(super) meta: Result<Meta, Errno>,
    pub(super) optional_values: Option<OptionalValues<'static>>,
}

/// The counterpart of a directory in the earlier inventory.
#[derive(Clone, Copy, Debug)]
struct EarlierMatch {
    id: u32,
    unchanged: bool,
}

/// The names in a directory that an earlier run has written. A name stays written even if it has
/// another type by now: otherwise a file that replaced a directory would be a second entry of that
/// name.
#[derive(Debug, Default)]
pub(super) struct WrittenNames {
    pub(super) names: HashSet<Vec<u8>>,
    /// Whether the directory is marked as `ignored`.
    pub(super) ignored: bool,
}

impl RowVisitor {
    fn is_written(&self, dir: &Node, entry: &Entry<'_>) -> bool {
        let written = if dir.depth() == 0 { self.written.get(dir.root_index()) } else { None };
        written.is_some_and(|written| written.names.contains(entry.name.name.to_bytes()))
    }

    /// Returns the number of `dir` in the earlier inventory, if that may have it.
    fn find_earlier(&self, earlier: &EarlierDirs, dir: &Node, meta: &Meta) -> Option<u32> {
        match dir.parent() {
            Some(parent) => earlier.child(parent.note::<EarlierMatch>()?.id, dir.name().to_bytes()),
            None => earlier.find(dir.name().to_bytes()).or_else(|| earlier.find_inode(meta.id())),
        }
    }

    /// Returns the levels of `dir` below its operand. A resumed scan reads its open directories as
    /// roots, innermost first.
    fn depth(&self, dir: &Node) -> usize {
        dir.depth() + self.written.len().saturating_sub(dir.root_index() + 1)
    }

    /// Returns the slice of the names of `dir` that is read; `None` for all of them.
    fn slice(&self, dir: &Node) -> Option<Slice> {
        if dir.depth() == 0 { *self.slices.get(dir.root_index())? } else { None }
    }

    /// Returns whether an entry is left out whose type was unknown when its name was selected.
    fn leaves_out(&self, dir: &Node, entry: &Entry<'_>) -> bool {
        let is_dir = entry.file_type() == FileType::Directory;
        entry.name.file_type == FileType::Unknown
            && self
                .selection
                .as_ref()
                .is_some_and(|selection| selection.leaves_out(dir, entry.name.name.to_bytes(), is_dir))
    }

    /// Returns a function that decides which entries of `dir` are marked as `ignored`: all, if it
    /// is itself. `None` if the scan has no such column.
    fn marks<'a>(&'a self, dir: &'a Node) -> Option<MarkFn<'a>> {
        let marks = |selection: &'a Arc<dyn Selection>| {
            if is_ignored(dir) {
                return Box::new(|_: &[u8], _| true) as MarkFn<'a>;
            }
            selection.marks(dir).unwrap_or_else(|| Box::new(|_, _| false))
        };
        self.selection.as_ref().filter(|_| self.optional_columns.ignored).map(marks)
    }

    /// Returns whether a directory that was reached is marked as `ignored`.
    fn is_marked(&self, dir: &Node) -> Option<bool> {
        let name = dir.name().to_bytes();
        match dir.parent() {
            Some(parent) => self.marks(parent).map(|mut marks| marks(name, true)),
            None => {
                let written = self.written.get(dir.root_index());
                self.optional_columns.ignored.then(|| written.is_some_and(|written| written.ignored))
            }
        }
    }

    fn throttle(&self, entries: usize) {
        if let Some(rate_limit) = &self.rate_limit {
            rate_limit.wait(entries);
        }
    }
}

impl Visitor for RowVisitor {
    type Item = ScanItem;
    type Local = ();

    fn recall(&self, dir: &Arc<Node>, meta: &Meta, names: &mut Names) -> bool {
        let Some(earlier) = &self.earlier else { return false };
        let Some(id) = self.find_earlier(earlier, dir, meta) else { return false };
        let is_resumed = dir.depth() == 0 && dir.root_index() < self.written.len();
        let is_part = is_resumed || self.slice(dir).is_some();
        let unchanged = !is_part && earlier.is_unchanged(id, meta) && earlier.subdirs(id, names).is_ok();
        dir.set_note(EarlierMatch { id, unchanged });
        unchanged
    }

    fn opened(&self, dir: Opened<'_>) -> usize {
        // Rules in a directory that is marked do not matter.
        let selection = self.selection.as_ref().filter(|_| !is_ignored(dir.node));
        selection.map_or(0, |selection| selection.inspect(&dir))
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        if let Some(slice) = self.slice(dir) {
            names.retain(|name| slice.has(name.name.to_bytes()));
        }
        self.selection.as_ref().inspect(|selection| selection.select(dir, names));
    }

    fn entries<'a>(
        &self,
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, ScanItem>,
    ) {
        if let Some(EarlierMatch { id, unchanged: true }) = dir.note() {
            emit.item(ScanItem::Unchanged(*id));
            entries.for_each(|entry| emit.descend(&entry));
            return self.throttle(1);
        }
        let mut columns = ValueReader { columns: self.optional_columns, marks: self.marks(dir) };
        let (mut plain, mut ordered) = (Vec::new(), Vec::new());
        for entry in entries.filter(|entry| !self.is_written(dir, entry) && !self.leaves_out(dir, entry)) {
            if is_order_free(&entry) { &mut plain } else { &mut ordered }.push(entry);
        }
        self.throttle(plain.len() + ordered.len());
        // Names with a common beginning are next to each other: they take half the space.
        plain.sort_unstable_by_key(|entry| entry.name.name.to_bytes());
        if !plain.is_empty() {
            let chunk = chunk(&plain, &mut columns);
            emit.measure(chunk.sums.blocks.saturating_mul(512));
            emit.item(ScanItem::Rows(chunk));
        }
        let is_dir = |entry: &Entry<'_>| entry.file_type() == FileType::Directory;
        for run in ordered.chunk_by(|left, right| is_dir(left) == is_dir(right)) {
            if is_dir(&run[0]) && self.max_depth.is_some_and(|max| self.depth(dir) + 1 >= max) {
                run.iter().for_each(|entry| emit.item_at(entry, skipped(entry, &mut columns)));
            } else if is_dir(&run[0]) {
                run.iter().for_each(|entry| emit.descend(entry));
            } else {
                let chunk = chunk(run, &mut columns);
                emit.measure(chunk.sums.blocks.saturating_mul(512));
                emit.item_at(&run[0], ScanItem::Rows(chunk));
            }
        }
    }
}

impl OrderedVisitor for RowVisitor {
    fn reads_ahead(&self) -> bool {
        // Another unit reads the directories that the cut leaves.
        self.is_cut_due.as_ref().is_none_or(|is_due| !is_due.load(Ordering::Relaxed))
    }

    fn reached(&self, dir: Reached<'_>) {
        if !self.optional_columns.is_empty() {
            let values = OptionalValues::read(self.optional_columns, || dir.xattr_names(), || dir.project());
            dir.node.set_finding(values.ignored(self.is_marked(dir.node)));
        }
    }

    fn weight(item: &ScanItem) -> usize {
        match item {
            ScanItem::Rows(chunk) => size_of::<RowChunk>() + chunk.heap_bytes(),
            ScanItem::Unchanged(_) => 0,
            ScanItem::Skipped(skipped) => {
                let xattrs = skipped
                    .optional_values
                    .as_ref()
                    .and_then(|optional_values| optional_values.xattrs.as_deref());
                size_of::<SkippedDir>() + skipped.name.len() + xattrs.map_or(0, str::len)
            }
        }
    }
}

/// Returns whether an entry may be moved within its directory: it is not a directory, and it is not
/// one of several names, of which the first in the walk counts.
fn is_order_free(entry: &Entry<'_>) -> bool {
    let is_linked = matches!(entry.meta, Some(Ok(meta)) if meta.nlink > 1);
    entry.file_type() != FileType::Directory && !is_linked
}

fn skipped(dir: &Entry<'_>, columns: &mut ValueReader<'_>) -> ScanItem {
    let name = dir.name.name.to_bytes().to_vec();
    let meta = dir.meta.map_or(Err(Errno::INVAL), |meta| meta.copied());
    ScanItem::Skipped(Box::new(SkippedDir { name, meta, optional_values: columns.read(dir) }))
}

/// Returns whether a directory that was reached is marked as `ignored`.
fn is_ignored(dir: &Node) -> bool {
    dir.finding::<OptionalValues<'static>>().and_then(|values| values.ignored).unwrap_or_default()
}

/// Reads the optional columns of the entries of a directory.
struct ValueReader<'a> {
    columns: OptionalColumns,
    marks: Option<MarkFn<'a>>,
}

impl ValueReader<'_> {
    fn read(&mut self, entry: &Entry<'_>) -> Option<OptionalValues<'static>> {
        if self.columns.is_empty() {
            return None;
        }
        let mut values = OptionalValues::default();
        if matches!(entry.meta, Some(Ok(_))) {
            point("asking");
            values = OptionalValues::read(self.columns, || entry.xattr_names(), || entry.project());
        }
        let is_dir = entry.file_type() == FileType::Directory;
        let ignored = self.marks.as_mut().map(|marks| marks(entry.name.name.to_bytes(), is_dir));
        Some(values.ignored(ignored))
    }
}

fn chunk(files: &[Entry<'_>], columns: &mut ValueReader<'_>) -> Box<RowChunk> {
    let mut chunk = Box::<RowChunk>::default();
    chunk.reserve(files.len());
    files.iter().for_each(|entry| add(&mut chunk, entry, columns));
    chunk
}

fn add(chunk: &mut RowChunk, entry: &Entry<'_>, columns: &mut ValueReader<'_>) {
    let file_type = entry.file_type();
    let link = if file_type == FileType::Symlink { entry.read_link().ok() } else { None };
    let link = link.as_deref().map_or(&b""[..], |link| link.to_bytes());
    let meta = entry.meta.unwrap_or(Err(Errno::INVAL));
    chunk.push(entry.name.name.to_bytes(), file_type, meta, link);
    columns.read(entry).iter().for_each(|optional_values| chunk.push_optional(optional_values));
}
