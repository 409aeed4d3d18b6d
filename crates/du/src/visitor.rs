//! The half of a run that executes on the walk's workers: it reduces metadata to sums and selects
//! the entries that must be processed in order.
//!
//! A file with one link that gets no line only adds to its directory, in any order. A file that
//! must be looked up, or that gets a line, goes to the consumer in order, because the order decides
//! which of its links counts.

use std::sync::Arc;

use fathom_walk::{
    Emit, Entry, Errno, Fields, FileTime, FileType, Meta, Names, Node, OrderedVisitor, Visitor,
};

use crate::dedup::DedupRule;
use crate::options::{Follow, HardLinks, Measure, Options};
use crate::totals::Totals;
use fathom_text::time::TimeField;

/// A sequence of files in order, between two subdirectories.
#[derive(Debug, Default)]
pub(crate) struct FileRun {
    pub(crate) files: Vec<FileRecord>,
    /// The concatenated names of the files, if they get lines.
    pub(crate) names: Vec<u8>,
    /// The metadata of the files, if the report wants it.
    pub(crate) metas: Vec<Meta>,
}

/// One file of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRecord {
    pub(crate) totals: Totals,
    /// Device and inode number, if the file must be looked up before it counts.
    pub(crate) id: Option<(u64, u64)>,
    /// Length of its part of [`FileRun::names`], in bytes.
    pub(crate) name_len: u32,
}

/// An item that the workers send to the consumer.
#[derive(Debug)]
pub(crate) enum ScanItem {
    Sum(Totals),
    /// Empty where it stands for an entry that does not count.
    Files(FileRun),
    /// A symbolic link whose target does not exist, while links are followed.
    Dangling {
        name: Vec<u8>,
    },
}

/// The visitor: measures entries on the walk's workers.
#[derive(Clone, Debug)]
pub(crate) struct DuVisitor {
    pub(crate) options: Arc<Options>,
    /// The files that must be looked up before they count.
    pub(crate) dedup: DedupRule,
    /// Whether file sequences carry metadata.
    pub(crate) metas: bool,
}

impl DuVisitor {
    /// Returns the contribution of an inode.
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

    fn stamp(&self, meta: &Meta) -> FileTime {
        match self.options.time {
            None => Totals::NONE.newest,
            Some(TimeField::Mtime) => meta.mtime,
            Some(TimeField::Atime) => meta.atime,
            Some(TimeField::Ctime) => meta.ctime,
        }
    }

    /// Returns the key by which the file must be looked up before it counts; `None` if it just
    /// counts.
    pub(crate) fn id(&self, meta: &Meta) -> Option<(u64, u64)> {
        (self.options.links == HardLinks::Once && self.dedup.applies_to(meta)).then(|| meta.id())
    }

    /// Returns whether a directory that is reachable twice must be entered only once.
    pub(crate) fn enters_once(&self) -> bool {
        self.options.links == HardLinks::Once && !matches!(self.dedup, DedupRule::HardLinked)
    }

    /// Returns whether files at this depth get lines.
    pub(crate) fn gets_line(&self, depth: usize) -> bool {
        self.options.all && self.options.depth_max.is_none_or(|max| depth as u64 <= max)
    }

    /// Returns the error with which GNU du fails to reach an entry. Under `-L` GNU du uses whole
    /// paths, which are limited in length and in the number of symbolic links.
    fn unreachable_error(&self, dir: &Node, entry: &Entry<'_>) -> Option<Errno> {
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

    /// Returns whether the order of the entries below an operand affects nothing but the order of
    /// messages.
    pub(crate) fn is_total_only(&self) -> bool {
        let Options { all, depth_max, separate_dirs, time, follow, .. } = &*self.options;
        let listed = *all || *depth_max != Some(0) || *separate_dirs || self.metas;
        // The newest time depends on which entry is the first; symbolic links may form loops.
        !listed && time.is_none() && *follow != Follow::Always
    }

    /// Returns whether the excluded entries of a directory reach [`Visitor::entries`], to show that
    /// the directory is not empty: only then GNU du keeps the slash after an operand under `-L`.
    fn gets_excluded(&self, dir: &Node) -> bool {
        dir.depth() == 0 && self.options.follow == Follow::Always && !self.options.exclude.is_empty()
    }

    fn is_on_other_device(&self, dir: &Node, meta: &Meta) -> bool {
        self.options.one_file_system && dir.root_dev().is_some_and(|dev| dev != meta.dev)
    }
}

/// Maximum length of a path in bytes, including the closing NUL (PATH_MAX in limits.h).
const PATH_MAX: usize = 4096;
/// Maximum number of symbolic links that the kernel follows in one path (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Results gathered since the last subdirectory.
struct PendingItems<'g> {
    visitor: &'g DuVisitor,
    gets_lines: bool,
    sum: Totals,
    run: FileRun,
    bytes: u64,
}

impl PendingItems<'_> {
    fn file(&mut self, name: &[u8], meta: &Meta) {
        let (totals, id) = (self.visitor.totals(meta), self.visitor.id(meta));
        self.bytes = self.bytes.saturating_add(totals.bytes);
        if !self.gets_lines && id.is_none() {
            self.sum.add(&totals);
            return;
        }
        let mut name_len = 0;
        if self.gets_lines {
            self.run.names.extend_from_slice(name);
            name_len = u32::try_from(name.len()).unwrap_or(u32::MAX);
            if self.visitor.metas {
                self.run.metas.push(*meta);
            }
        }
        self.run.files.push(FileRecord { totals, id, name_len });
    }

    fn flush_files(&mut self, emit: &mut Emit<'_, ScanItem>) {
        if !self.run.files.is_empty() {
            emit.item(ScanItem::Files(std::mem::take(&mut self.run)));
        }
        // With times, the position of the first entry of a run matters: keep sums in order too.
        if self.visitor.options.time.is_some() {
            self.flush_sum(emit);
        }
    }

    fn flush_sum(&mut self, emit: &mut Emit<'_, ScanItem>) {
        if self.sum.inodes > 0 {
            emit.item(ScanItem::Sum(std::mem::replace(&mut self.sum, Totals::NONE)));
        }
    }
}

impl Visitor for DuVisitor {
    type Item = ScanItem;
    type Local = ();

    fn select(&self, dir: &Arc<Node>, names: &mut Names) {
        let exclude = &self.options.exclude;
        if exclude.is_empty() || self.gets_excluded(dir) {
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
        (): &mut (),
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, ScanItem>,
    ) {
        let gets_lines = self.gets_line(dir.depth() + 1);
        let mut pending =
            PendingItems { visitor: self, gets_lines, sum: Totals::NONE, run: FileRun::default(), bytes: 0 };
        let (mut path, mut scratch) = (Vec::new(), Vec::new());
        let gets_excluded = self.gets_excluded(dir);
        if gets_excluded {
            dir.path_into(&mut path);
        }
        for entry in entries {
            let name = entry.name.name.to_bytes();
            if gets_excluded && self.options.exclude.matches_below(&path, name, &mut scratch) {
                emit.item(ScanItem::Files(FileRun::default()));
                continue;
            }
            if let Some(errno) = self.unreachable_error(dir, &entry) {
                pending.flush_files(emit);
                emit.failed(&entry, errno);
                continue;
            }
            match entry.meta {
                Some(Err(errno)) => {
                    pending.flush_files(emit);
                    // The link exists but its target does not.
                    let dangling = self.options.follow == Follow::Always
                        && (errno, entry.name.file_type) == (Errno::NOENT, FileType::Symlink)
                        && entry.stat(fathom_walk::Follow::No, Fields::IDENTITY).is_ok();
                    if dangling {
                        emit.item_at(&entry, ScanItem::Dangling { name: name.to_vec() });
                    } else {
                        emit.failed(&entry, errno);
                    }
                }
                Some(Ok(meta)) if self.is_on_other_device(dir, meta) => {
                    emit.item(ScanItem::Files(FileRun::default()));
                }
                Some(Ok(meta)) if entry.file_type() != FileType::Directory => {
                    pending.file(name, meta);
                }
                _ => {
                    pending.flush_files(emit);
                    emit.descend(&entry);
                }
            }
        }
        pending.flush_files(emit);
        // For progress only: files with several links are counted more than once.
        emit.measure(pending.bytes);
        pending.flush_sum(emit);
    }
}

impl OrderedVisitor for DuVisitor {
    fn weight(item: &ScanItem) -> usize {
        match item {
            ScanItem::Sum(_) => 0,
            ScanItem::Files(run) => {
                run.files.capacity() * size_of::<FileRecord>()
                    + run.names.capacity()
                    + run.metas.capacity() * size_of::<Meta>()
            }
            ScanItem::Dangling { name } => name.capacity(),
        }
    }
}
