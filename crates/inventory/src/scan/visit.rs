//! The workers' side of a scan: rows straight from what the kernel says.

use std::collections::HashSet;
use std::sync::Arc;

use fathom_walk::{Emit, Entry, Errno, FileType, Meta, Names, Node, Visit};

use super::pace::Pace;
use super::past::Past;
use crate::store::Chunk;

/// Makes rows.
pub(crate) struct Maker {
    /// By root of the walk, what of it is known already.
    pub(super) known: Vec<Known>,
    pub(super) pace: Option<Pace>,
    /// What an earlier inventory has.
    pub(super) past: Option<Arc<Past>>,
}

/// What becomes rows.
pub(crate) enum Item {
    /// These.
    Rows(Box<Chunk>),
    /// Those that the earlier inventory has of its directory of this number.
    Past(u32),
}

/// What is noted of a directory that the earlier inventory has.
#[derive(Clone, Copy, Debug)]
struct Then {
    id: u32,
    unchanged: bool,
}

/// Names in a directory that an earlier run has written.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) dirs: HashSet<Vec<u8>>,
    pub(super) files: HashSet<Vec<u8>>,
}

impl Maker {
    fn is_known(&self, dir: &Node, entry: &Entry<'_>) -> bool {
        let known = if dir.depth() == 0 { self.known.get(dir.root_index()) } else { None };
        let is_dir = entry.file_type() == FileType::Directory;
        known.is_some_and(|known| {
            let names = if is_dir { &known.dirs } else { &known.files };
            names.contains(entry.name.name.to_bytes())
        })
    }

    /// The number in the earlier inventory of a directory that may be in it.
    fn then(&self, past: &Past, dir: &Node) -> Option<u32> {
        match dir.parent() {
            Some(parent) => past.child(parent.note::<Then>()?.id, dir.name().to_bytes()),
            None => past.find(dir.name().to_bytes()),
        }
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
        let Some(id) = self.then(past, dir) else { return false };
        let goes_on = dir.depth() == 0 && dir.root_index() < self.known.len();
        let unchanged = !goes_on && past.is_unchanged(id, meta);
        dir.set_note(Then { id, unchanged });
        if unchanged {
            past.subdirs(id, names);
        }
        unchanged
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
        for entry in entries.filter(|entry| !self.is_known(dir, entry)) {
            if is_plain(&entry) { &mut plain } else { &mut ordered }.push(entry);
        }
        self.keep_pace(plain.len() + ordered.len());
        // Names that begin alike are next to each other: they take half the room.
        plain.sort_unstable_by_key(|entry| entry.name.name.to_bytes());
        if !plain.is_empty() {
            let chunk = chunk(&plain);
            emit.measure(chunk.sums.blocks.saturating_mul(512));
            emit.item(Item::Rows(chunk));
        }
        let is_dir = |entry: &Entry<'_>| entry.file_type() == FileType::Directory;
        for run in ordered.chunk_by(|left, right| is_dir(left) == is_dir(right)) {
            if is_dir(&run[0]) {
                run.iter().for_each(|entry| emit.descend(entry));
            } else {
                let chunk = chunk(run);
                emit.measure(chunk.sums.blocks.saturating_mul(512));
                emit.item_at(&run[0], Item::Rows(chunk));
            }
        }
    }

    fn weight(item: &Item) -> usize {
        match item {
            Item::Rows(chunk) => size_of::<Chunk>() + chunk.heap_bytes(),
            Item::Past(_) => 0,
        }
    }
}

/// Whether it is no matter where in its directory an entry comes: it is no directory and has no other name that counts in its place.
fn is_plain(entry: &Entry<'_>) -> bool {
    let is_linked = matches!(entry.meta, Some(Ok(meta)) if meta.nlink > 1);
    entry.file_type() != FileType::Directory && !is_linked
}

fn chunk(files: &[Entry<'_>]) -> Box<Chunk> {
    let mut chunk = Box::<Chunk>::default();
    chunk.reserve(files.len());
    files.iter().for_each(|entry| add(&mut chunk, entry));
    chunk
}

fn add(chunk: &mut Chunk, entry: &Entry<'_>) {
    let file_type = entry.file_type();
    let link = if file_type == FileType::Symlink { entry.read_link().ok() } else { None };
    let link = link.as_deref().map_or(&b""[..], |link| link.to_bytes());
    let meta = entry.meta.unwrap_or(Err(Errno::INVAL));
    chunk.push(entry.name.name.to_bytes(), file_type, meta, link);
}
