//! The part of a run that the walk's workers do: from metadata to sums, and to the entries whose turn matters.
//!
//! A file that has one name and gets no line only adds to its directory, whenever. One that could be met again,
//! or that gets a line, goes to the consumer in order: which of its names counts depends on that.

use std::sync::Arc;

use fathom_walk::{Emit, Entry, Errno, Fields, FileType, Meta, Names, Node, Stamp, Visit};

use crate::again::Again;
use crate::options::{Follow, Links, Measure, Options};
use crate::totals::Totals;
use fathom_text::time::TimeField;

/// Entries in order, between two subdirectories.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) files: Vec<File>,
    /// The files' names, one after another, where they get lines.
    pub(crate) names: Vec<u8>,
    /// All that is known of the files, where that is wanted.
    pub(crate) metas: Vec<Meta>,
}

/// One file of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) totals: Totals,
    /// Set if the file counts only once and could be met again.
    pub(crate) id: Option<(u64, u64)>,
    /// Bytes of its name in the run's names.
    pub(crate) name_len: u32,
}

/// What the workers send.
#[derive(Debug)]
pub(crate) enum Item {
    Sum(Totals),
    Run(Run),
    Lost { name: Vec<u8>, errno: Option<Errno> },
}

/// How entries are measured.
#[derive(Clone, Debug)]
pub(crate) struct Gather {
    pub(crate) options: Arc<Options>,
    /// Which files could be met again.
    pub(crate) again: Again,
    /// Whether runs carry all that is known.
    pub(crate) metas: bool,
}

impl Gather {
    /// What an inode counts.
    pub(crate) fn totals(&self, meta: &Meta) -> Totals {
        let bytes = match self.options.measure {
            Measure::Usage | Measure::Inodes => meta.blocks.wrapping_mul(512),
            Measure::Apparent => match meta.file_type() {
                FileType::Regular | FileType::Symlink => u64::try_from(meta.size).unwrap_or(0),
                _ => 0,
            },
            Measure::Lengths if meta.file_type() == FileType::Regular => {
                u64::try_from(meta.size).unwrap_or(0)
            }
            Measure::Lengths => 0,
        };
        Totals::one(bytes, self.stamp(meta))
    }

    fn stamp(&self, meta: &Meta) -> Stamp {
        match self.options.time {
            None => Totals::NONE.newest,
            Some(TimeField::Modified) => meta.modified,
            Some(TimeField::Accessed) => meta.accessed,
            Some(TimeField::Changed) => meta.changed,
        }
    }

    /// What the file is to be looked up by before it counts, if anything.
    pub(crate) fn id(&self, meta: &Meta) -> Option<(u64, u64)> {
        (self.options.links == Links::Once && self.again.may_be(meta)).then(|| meta.id())
    }

    /// Whether a directory could be reached twice, and is to be entered once.
    pub(crate) fn enters_once(&self) -> bool {
        self.options.links == Links::Once && !matches!(self.again, Again::Linked)
    }

    /// Whether files at this depth get lines.
    pub(crate) fn has_line(&self, depth: usize) -> bool {
        self.options.all && self.options.depth_max.is_none_or(|max| depth as u64 <= max)
    }

    /// Why GNU du does not get to an entry: under `-L` it goes by whole paths, which may be so long
    /// and lead through so many links.
    fn too_far(&self, dir: &Node, entry: &Entry<'_>) -> Option<Errno> {
        if self.options.follow != Follow::Always {
            return None;
        }
        let is_link = entry.name.file_type == FileType::Symlink;
        let len = dir.path_len_with_slash() + entry.name.name.to_bytes_with_nul().len();
        if len > PATH_MAX {
            Some(Errno::NAMETOOLONG)
        } else {
            (dir.links() + usize::from(is_link) > LINKS_MAX).then_some(Errno::LOOP)
        }
    }

    /// Whether nothing depends on the order of what is below an operand, but messages.
    pub(crate) fn is_total_only(&self) -> bool {
        let Options { all, depth_max, separate_dirs, time, follow, .. } = &*self.options;
        let listed = *all || *depth_max != Some(0) || *separate_dirs || self.metas;
        // The newest time depends on which entry is the first; links may lead back up.
        !listed && time.is_none() && *follow != Follow::Always
    }

    fn is_foreign(&self, dir: &Node, meta: &Meta) -> bool {
        self.options.one_file_system && dir.root_dev().is_some_and(|dev| dev != meta.dev)
    }
}

/// Bytes of a path the kernel takes, with its closing NUL (PATH_MAX in limits.h).
const PATH_MAX: usize = 4096;
/// Symbolic links that the kernel follows in one path (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// What has been gathered since the last subdirectory.
struct Pending<'g> {
    gather: &'g Gather,
    lines: bool,
    sum: Totals,
    run: Run,
    bytes: u64,
}

impl Pending<'_> {
    fn file(&mut self, name: &[u8], meta: &Meta) {
        let (totals, id) = (self.gather.totals(meta), self.gather.id(meta));
        self.bytes = self.bytes.saturating_add(totals.bytes);
        if !self.lines && id.is_none() {
            self.sum.add(&totals);
            return;
        }
        let mut name_len = 0;
        if self.lines {
            self.run.names.extend_from_slice(name);
            name_len = u32::try_from(name.len()).unwrap_or(u32::MAX);
            if self.gather.metas {
                self.run.metas.push(*meta);
            }
        }
        self.run.files.push(File { totals, id, name_len });
    }

    fn end_run(&mut self, emit: &mut Emit<'_, Item>) {
        if !self.run.files.is_empty() {
            emit.item(Item::Run(std::mem::take(&mut self.run)));
        }
        // Which entry is the first of all makes a difference to times.
        if self.gather.options.time.is_some() {
            self.end_sum(emit);
        }
    }

    fn end_sum(&mut self, emit: &mut Emit<'_, Item>) {
        if self.sum.inodes > 0 {
            emit.item(Item::Sum(std::mem::replace(&mut self.sum, Totals::NONE)));
        }
    }
}

impl Visit for Gather {
    type Item = Item;

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        let exclude = &self.options.exclude;
        if exclude.is_empty() {
            return;
        }
        let (mut path, mut scratch) = (Vec::new(), Vec::new());
        if exclude.needs_path() {
            dir.path_into(&mut path);
        }
        names.retain(|name| !exclude.matches_below(&path, name.name.to_bytes(), &mut scratch));
    }

    fn entries<'a>(
        &self,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Item>,
    ) {
        let lines = self.has_line(dir.depth() + 1);
        let mut pending = Pending { gather: self, lines, sum: Totals::NONE, run: Run::default(), bytes: 0 };
        for entry in entries {
            if let Some(errno) = self.too_far(dir, &entry) {
                pending.end_run(emit);
                let name = entry.name.name.to_bytes().to_vec();
                emit.item_at(&entry, Item::Lost { name, errno: Some(errno) });
                continue;
            }
            match entry.meta {
                Some(Err(errno)) => {
                    pending.end_run(emit);
                    // A link that is followed, is there, and leads nowhere.
                    let dangling = self.options.follow == Follow::Always
                        && (errno, entry.name.file_type) == (Errno::NOENT, FileType::Symlink)
                        && entry.stat(fathom_walk::Follow::No, Fields::IDENTITY).is_ok();
                    let name = entry.name.name.to_bytes().to_vec();
                    emit.item_at(&entry, Item::Lost { name, errno: (!dangling).then_some(errno) });
                }
                Some(Ok(meta)) if self.is_foreign(dir, meta) => {}
                Some(Ok(meta)) if entry.file_type() != FileType::Directory => {
                    pending.file(entry.name.name.to_bytes(), meta);
                }
                _ => {
                    pending.end_run(emit);
                    emit.descend(&entry);
                }
            }
        }
        pending.end_run(emit);
        // For progress: whatever is met twice is in it twice.
        emit.measure(pending.bytes);
        pending.end_sum(emit);
    }

    fn weight(item: &Item) -> usize {
        match item {
            Item::Sum(_) => 0,
            Item::Run(run) => {
                run.files.capacity() * size_of::<File>()
                    + run.names.capacity()
                    + run.metas.capacity() * size_of::<Meta>()
            }
            Item::Lost { name, .. } => name.capacity(),
        }
    }
}
