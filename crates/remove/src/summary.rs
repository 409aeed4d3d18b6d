//! Sums of a removal. The filesystem gets the blocks of an inode back with its last link, so the
//! links of each inode with several are counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_io::Meta;

use crate::identity::Identity;
use crate::open_files::{FileHolder, OpenFiles};
use crate::options::RemovalLimit;
use crate::removal::allocated;

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
    /// Allocated bytes that the filesystem gets back: the bytes of inodes all of whose links were
    /// removed, without `held` if that is known. 0 unless
    /// [measured](crate::RemovalOptions::measure), and for the trash.
    pub freed: u64,
    /// Allocated bytes that the filesystem gets back when processes have closed the files, if
    /// [they are known](crate::RemovalOptions::open_files).
    pub held: u64,
    /// A process that has the largest of these files open.
    pub holder: Option<FileHolder>,
    /// Number of failures.
    pub failures: u64,
    /// The most that a removal after this dry run would try to remove: what was counted, and what
    /// could not be looked into. A [limit](crate::RemovalOptions::limit) on what a user was shown.
    pub possible: RemovalLimit,
    /// Whether the removal was stopped before its end.
    pub stopped: bool,
    /// Whether it was stopped because there was more than its
    /// [limit](crate::RemovalOptions::limit).
    pub exceeded: bool,
}

/// Adds bytes. A filesystem, of FUSE for example, may say anything about its files, so the sum
/// saturates.
fn add_bytes(sum: &AtomicU64, bytes: u64) {
    let add = |sum: u64| Some(sum.saturating_add(bytes));
    let _ = sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
}

/// The links of an inode with several.
#[derive(Clone, Copy, Debug)]
struct LinkCount {
    removed: u64,
    /// The highest number of links that a thread has seen.
    links: u64,
    allocated: u64,
}

/// An open file: its allocated bytes, and a process that has it open. Of equal files, one whose
/// process has a lower number is larger.
type HeldFile = (u64, std::cmp::Reverse<FileHolder>);

/// The sums so far, which several threads add to.
#[derive(Debug)]
pub(crate) struct RemovalSums {
    files: AtomicU64,
    directories: AtomicU64,
    /// Allocated bytes of inodes with one link, and of directories.
    allocated: AtomicU64,
    failures: AtomicU64,
    possible_files: AtomicU64,
    possible_directories: AtomicU64,
    /// Allocated bytes of open inodes with one link.
    held: AtomicU64,
    /// The largest of them, with a process that has it open.
    largest_held: Mutex<Option<HeldFile>>,
    open_files: Option<Arc<OpenFiles>>,
    /// By device and inode number. Memory grows with inodes that have several links only.
    linked: Mutex<HashMap<(u64, u64), LinkCount>>,
}

impl RemovalSums {
    pub(crate) fn new(open_files: Option<Arc<OpenFiles>>) -> Self {
        let zero = AtomicU64::default;
        Self {
            files: zero(),
            directories: zero(),
            allocated: zero(),
            failures: zero(),
            possible_files: zero(),
            possible_directories: zero(),
            held: zero(),
            largest_held: Mutex::default(),
            open_files,
            linked: Mutex::default(),
        }
    }

    /// Returns the process that has an inode open.
    fn holder(&self, (dev, ino): (u64, u64)) -> Option<FileHolder> {
        self.open_files.as_ref()?.holder(Identity { dev, ino })
    }

    /// Notes the links of an inode before one of them is removed: a thread that finds one link left
    /// then knows the inode.
    pub(crate) fn note_links(&self, meta: &Meta) {
        if meta.nlink > 1 {
            let allocated = allocated(meta);
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
                add_bytes(&self.allocated, allocated(meta));
                if let Some(holder) = self.holder(meta.id()) {
                    add_bytes(&self.held, allocated(meta));
                    let mut largest = self.largest_held.lock().unwrap_or_else(PoisonError::into_inner);
                    *largest = (*largest).max(Some((allocated(meta), std::cmp::Reverse(holder))));
                }
            }
        }
    }

    fn linked(&self) -> MutexGuard<'_, HashMap<(u64, u64), LinkCount>> {
        self.linked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a directory.
    pub(crate) fn add_directory(&self, allocated: Option<u64>) {
        self.directories.fetch_add(1, Ordering::Relaxed);
        add_bytes(&self.allocated, allocated.unwrap_or(0));
    }

    pub(crate) fn add_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what a removal after this dry run would try to remove.
    pub(crate) fn add_possible(&self, files: u64, directories: u64) {
        self.possible_files.fetch_add(files, Ordering::Relaxed);
        self.possible_directories.fetch_add(directories, Ordering::Relaxed);
    }

    pub(crate) fn summary(&self, stopped: bool) -> RemovalSummary {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let linked = self.linked();
        let removed = || linked.iter().filter(|(_, count)| count.removed > 0);
        let whole = || removed().filter(|(_, count)| count.removed >= count.links);
        let held = || whole().filter_map(|(id, count)| Some((self.holder(*id)?, count)));
        let sum = |single: &AtomicU64, counts: &mut dyn Iterator<Item = &LinkCount>| {
            counts.map(|count| count.allocated).fold(of(single), u64::saturating_add)
        };
        let largest = *self.largest_held.lock().unwrap_or_else(PoisonError::into_inner);
        let linked_held = held().map(|(holder, count)| (count.allocated, std::cmp::Reverse(holder)));
        let holder = linked_held.chain(largest).max().map(|(_, holder)| holder.0);
        let whole_bytes = sum(&self.allocated, &mut whole().map(|(_, count)| count));
        let held_bytes = sum(&self.held, &mut held().map(|(_, count)| count));
        RemovalSummary {
            files: of(&self.files),
            directories: of(&self.directories),
            allocated: sum(&self.allocated, &mut removed().map(|(_, count)| count)),
            freed: whole_bytes.saturating_sub(held_bytes),
            held: held_bytes,
            holder,
            failures: of(&self.failures),
            possible: RemovalLimit {
                files: of(&self.possible_files),
                directories: of(&self.possible_directories),
            },
            stopped,
            exceeded: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_files_that_claim_to_be_huge_saturate() {
        for nlink in [1, 2] {
            let sums = RemovalSums::new(None);
            for ino in 1..=3 {
                let meta = Meta { ino, nlink, blocks: u64::MAX / 512, ..Meta::default() };
                sums.note_links(&meta);
                (0..nlink).for_each(|_| sums.add_file(Some(&meta)));
                sums.add_directory(Some(u64::MAX / 2));
            }
            let summary = sums.summary(false);
            assert_eq!((summary.allocated, summary.freed), (u64::MAX, u64::MAX), "{nlink}");
        }
    }
}
