//! The workers' side of a scan: rows straight from what the kernel says.

use std::collections::HashSet;
use std::sync::Arc;

use fathom_walk::{Emit, Entry, Errno, FileType, Node, Visit};

use super::pace::Pace;
use crate::store::Chunk;

/// Makes rows.
pub(crate) struct Maker {
    /// By root of the walk, what of it is known already.
    pub(super) known: Vec<Known>,
    pub(super) pace: Option<Pace>,
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
}

impl Visit for Maker {
    type Item = Box<Chunk>;

    fn entries<'a>(
        &self,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Box<Chunk>>,
    ) {
        let (mut dirs, mut files) = (Vec::new(), Vec::new());
        for entry in entries.filter(|entry| !self.is_known(dir, entry)) {
            if entry.file_type() == FileType::Directory { &mut dirs } else { &mut files }.push(entry);
        }
        if let Some(pace) = &self.pace {
            pace.keep(dirs.len() + files.len());
        }
        if !files.is_empty() {
            let chunk = chunk(&mut files);
            emit.measure(chunk.sums.blocks.saturating_mul(512));
            emit.item(chunk);
        }
        dirs.iter().for_each(|entry| emit.descend(entry));
    }

    fn weight(item: &Box<Chunk>) -> usize {
        size_of::<Chunk>() + item.heap_bytes()
    }
}

fn chunk(files: &mut [Entry<'_>]) -> Box<Chunk> {
    // Names that begin alike are next to each other: they take half the room.
    files.sort_unstable_by_key(|entry| entry.name.name.to_bytes());
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
