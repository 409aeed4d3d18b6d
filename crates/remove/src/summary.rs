//! Sums of a removal. The filesystem gets the blocks of an inode back with its last link, so the
//! links of each inode with several are counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fathom_io::Meta;

/// Bytes in a block of `st_blocks` (stat(2)).
const BLOCK_BYTES: u64 = 512;

/// The result of a removal, or of a dry run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovalSummary {
    /// Entries that are no directories: each link of an inode counts.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Allocated bytes of the removed entries: each inode counts once. 0 unless
    /// [measured](crate::RemovalOptions::measure).
    pub allocated: u64,
    /// Allocated bytes that the filesystem gets back: those of inodes all of whose links were
    /// removed. 0 unless [measured](crate::RemovalOptions::measure), and for the trash.
    pub freed: u64,
    /// Number of failures.
    pub failures: u64,
    /// Whether the removal was stopped before its end.
    pub stopped: bool,
}

/// The links of an inode with several.
#[derive(Clone, Copy, Debug)]
struct LinkCount {
    removed: u64,
    /// The highest number of links that a thread has seen.
    links: u64,
    allocated: u64,
}

/// The sums so far, which several threads add to.
#[derive(Debug, Default)]
pub(crate) struct RemovalSums {
    files: AtomicU64,
    directories: AtomicU64,
    /// Allocated bytes of inodes with one link, and of directories.
    allocated: AtomicU64,
    failures: AtomicU64,
    /// By device and inode number. Memory grows with inodes that have several links only.
    linked: Mutex<HashMap<(u64, u64), LinkCount>>,
}

impl RemovalSums {
    /// Notes the links of an inode before one of them is removed: a thread that finds one link left
    /// then knows the inode.
    pub(crate) fn note_links(&self, meta: &Meta) {
        if meta.nlink > 1 {
            let allocated = meta.blocks.saturating_mul(BLOCK_BYTES);
            let mut linked = self.linked();
            let count = linked.entry(meta.id()).or_insert(LinkCount { removed: 0, links: 0, allocated });
            count.links = count.links.max(meta.nlink);
        }
    }

    /// Adds a removed entry that was not a directory, with its metadata from before.
    pub(crate) fn add_file(&self, meta: Option<&Meta>) {
        self.files.fetch_add(1, Ordering::Relaxed);
        let Some(meta) = meta else { return };
        match self.linked().get_mut(&meta.id()) {
            Some(count) => count.removed += 1,
            None => {
                self.allocated.fetch_add(meta.blocks.saturating_mul(BLOCK_BYTES), Ordering::Relaxed);
            }
        }
    }

    fn linked(&self) -> MutexGuard<'_, HashMap<(u64, u64), LinkCount>> {
        self.linked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a directory.
    pub(crate) fn add_directory(&self, allocated: Option<u64>) {
        self.directories.fetch_add(1, Ordering::Relaxed);
        self.allocated.fetch_add(allocated.unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn add_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn summary(&self, stopped: bool) -> RemovalSummary {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let linked = self.linked();
        let removed = || linked.values().filter(|count| count.removed > 0);
        let whole = removed().filter(|count| count.removed >= count.links);
        let sum = |counts: &mut dyn Iterator<Item = &LinkCount>| -> u64 {
            counts.map(|count| count.allocated).sum()
        };
        let (all, whole) = (sum(&mut removed()), sum(&mut { whole }));
        RemovalSummary {
            files: of(&self.files),
            directories: of(&self.directories),
            allocated: of(&self.allocated) + all,
            freed: of(&self.allocated) + whole,
            failures: of(&self.failures),
            stopped,
        }
    }
}
