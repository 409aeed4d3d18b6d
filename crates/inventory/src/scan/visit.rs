//! The workers' side of a scan: rows straight from what the kernel says.

use std::collections::HashSet;
use std::sync::Arc;

use fathom_walk::{Emit, Entry, Errno, FileType, Meta, Names, Node, Opened, Reached, Visit};

use super::pace::Pace;
use super::past::Past;
use super::select::Selection;
use crate::fault::point;
use crate::store::{Also, Chunk, Extra};

/// Makes rows.
pub(crate) struct Maker {
    /// By root of the walk, what of it is known already.
    pub(super) known: Vec<Known>,
    pub(super) pace: Option<Arc<Pace>>,
    /// What an earlier inventory has.
    pub(super) past: Option<Arc<Past>>,
    pub(super) selection: Option<Arc<dyn Selection>>,
    /// Directories so many levels below a root are not read.
    pub(super) max_depth: Option<usize>,
    /// Columns that take system calls of their own.
    pub(super) also: Also,
}

/// What becomes rows.
pub(crate) enum Item {
    /// These.
    Rows(Box<Chunk>),
    /// Those that the earlier inventory has of its directory of this number.
    Past(u32),
    /// A directory that is not to be read.
    Skipped(Box<Skipped>),
}

/// A directory at the last level.
pub(crate) struct Skipped {
    pub(super) name: Vec<u8>,
    pub(super) meta: Result<Meta, Errno>,
    pub(super) extra: Option<Extra<'static>>,
}

/// What is noted of a directory that the earlier inventory has.
#[derive(Clone, Copy, Debug)]
struct Then {
    id: u32,
    unchanged: bool,
}

/// Names in a directory that an earlier run has written. A name stays known whatever is there by
/// now: a file in the place of a directory would otherwise be a second entry of that name.
#[derive(Debug, Default)]
pub(super) struct Known(pub(super) HashSet<Vec<u8>>);

impl Maker {
    fn is_known(&self, dir: &Node, entry: &Entry<'_>) -> bool {
        let known = if dir.depth() == 0 { self.known.get(dir.root_index()) } else { None };
        known.is_some_and(|known| known.0.contains(entry.name.name.to_bytes()))
    }

    /// The number in the earlier inventory of a directory that may be in it.
    fn then(&self, past: &Past, dir: &Node, meta: &Meta) -> Option<u32> {
        match dir.parent() {
            Some(parent) => past.child(parent.note::<Then>()?.id, dir.name().to_bytes()),
            None => past.find(dir.name().to_bytes()).or_else(|| past.find_inode(meta.id())),
        }
    }

    /// Levels of `dir` below its operand: an earlier run's directories are read again as roots, the
    /// innermost first.
    fn depth(&self, dir: &Node) -> usize {
        dir.depth() + self.known.len().saturating_sub(dir.root_index() + 1)
    }

    /// Whether an entry is left out whose name did not say so, as its type was not known.
    fn leaves_out(&self, dir: &Node, entry: &Entry<'_>) -> bool {
        let is_dir = entry.file_type() == FileType::Directory;
        entry.name.file_type == FileType::Unknown
            && self
                .selection
                .as_ref()
                .is_some_and(|selection| selection.leaves_out(dir, entry.name.name.to_bytes(), is_dir))
    }

    fn keep_pace(&self, entries: usize) {
        if let Some(pace) = &self.pace {
            pace.keep(entries);
        }
    }
}

impl Visit for Maker {
    type Item = Item;

    fn recall(&self, dir: &Arc<Node>, meta: &Meta, names: &mut Names) -> bool {
        let Some(past) = &self.past else { return false };
        let Some(id) = self.then(past, dir, meta) else { return false };
        let goes_on = dir.depth() == 0 && dir.root_index() < self.known.len();
        let unchanged = !goes_on && past.is_unchanged(id, meta) && past.subdirs(id, names).is_ok();
        dir.set_note(Then { id, unchanged });
        unchanged
    }

    fn reached(&self, dir: Reached<'_>) {
        if !self.also.is_empty() {
            dir.node.set_finding(Extra::ask(self.also, || dir.xattr_names(), || dir.project()));
        }
    }

    fn opened(&self, dir: Opened<'_>) -> usize {
        self.selection.as_ref().map_or(0, |selection| selection.opened(&dir))
    }

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        self.selection.as_ref().inspect(|selection| selection.select(dir, names));
    }

    fn entries<'a>(
        &self,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Item>,
    ) {
        if let Some(Then { id, unchanged: true }) = dir.note() {
            emit.item(Item::Past(*id));
            entries.for_each(|entry| emit.descend(&entry));
            return self.keep_pace(1);
        }
        let (mut plain, mut ordered) = (Vec::new(), Vec::new());
        for entry in entries.filter(|entry| !self.is_known(dir, entry) && !self.leaves_out(dir, entry)) {
            if is_plain(&entry) { &mut plain } else { &mut ordered }.push(entry);
        }
        self.keep_pace(plain.len() + ordered.len());
        // Names that begin alike are next to each other: they take half the room.
        plain.sort_unstable_by_key(|entry| entry.name.name.to_bytes());
        if !plain.is_empty() {
            let chunk = chunk(&plain, self.also);
            emit.measure(chunk.sums.blocks.saturating_mul(512));
            emit.item(Item::Rows(chunk));
        }
        let is_dir = |entry: &Entry<'_>| entry.file_type() == FileType::Directory;
        for run in ordered.chunk_by(|left, right| is_dir(left) == is_dir(right)) {
            if is_dir(&run[0]) && self.max_depth.is_some_and(|max| self.depth(dir) + 1 >= max) {
                run.iter().for_each(|entry| emit.item_at(entry, skipped(entry, self.also)));
            } else if is_dir(&run[0]) {
                run.iter().for_each(|entry| emit.descend(entry));
            } else {
                let chunk = chunk(run, self.also);
                emit.measure(chunk.sums.blocks.saturating_mul(512));
                emit.item_at(&run[0], Item::Rows(chunk));
            }
        }
    }

    fn weight(item: &Item) -> usize {
        match item {
            Item::Rows(chunk) => size_of::<Chunk>() + chunk.heap_bytes(),
            Item::Past(_) => 0,
            Item::Skipped(skipped) => {
                let xattrs = skipped.extra.as_ref().and_then(|extra| extra.xattrs.as_deref());
                size_of::<Skipped>() + skipped.name.len() + xattrs.map_or(0, str::len)
            }
        }
    }
}

/// Whether it is no matter where in its directory an entry comes: it is no directory and has no other name that counts in its place.
fn is_plain(entry: &Entry<'_>) -> bool {
    let is_linked = matches!(entry.meta, Some(Ok(meta)) if meta.nlink > 1);
    entry.file_type() != FileType::Directory && !is_linked
}

fn skipped(dir: &Entry<'_>, also: Also) -> Item {
    let name = dir.name.name.to_bytes().to_vec();
    let meta = dir.meta.map_or(Err(Errno::INVAL), |meta| meta.copied());
    Item::Skipped(Box::new(Skipped { name, meta, extra: extra(dir, also) }))
}

/// The columns that were asked for, of an entry of which the rest is known.
fn extra(entry: &Entry<'_>, also: Also) -> Option<Extra<'static>> {
    if also.is_empty() {
        return None;
    }
    if !matches!(entry.meta, Some(Ok(_))) {
        return Some(Extra::default());
    }
    point("asking");
    Some(Extra::ask(also, || entry.xattr_names(), || entry.project()))
}

fn chunk(files: &[Entry<'_>], also: Also) -> Box<Chunk> {
    let mut chunk = Box::<Chunk>::default();
    chunk.reserve(files.len());
    files.iter().for_each(|entry| add(&mut chunk, entry, also));
    chunk
}

fn add(chunk: &mut Chunk, entry: &Entry<'_>, also: Also) {
    let file_type = entry.file_type();
    let link = if file_type == FileType::Symlink { entry.read_link().ok() } else { None };
    let link = link.as_deref().map_or(&b""[..], |link| link.to_bytes());
    let meta = entry.meta.unwrap_or(Err(Errno::INVAL));
    chunk.push(entry.name.name.to_bytes(), file_type, meta, link);
    extra(entry, also).iter().for_each(|extra| chunk.push_extra(extra));
}
