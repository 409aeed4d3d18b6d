//! The sources: a live tree that is being walked, and an inventory.
//!
//! Owns: rows, sums of directories, summaries, the largest files. Does not own: marks, sorting,
//! filters, the terminal.

pub mod inventory;
mod largest;
pub mod live;
mod summary;
#[cfg(test)]
pub(crate) mod test_tree;

use fathom_io::{Fields, FileTime, FileType, Meta};
use fathom_remove::Identity;

use crate::source::Amount;

impl Amount<u64> {
    /// Adds `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        self.apparent = self.apparent.saturating_add(other.apparent);
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.entries = self.entries.saturating_add(other.entries);
    }

    /// Subtracts `other`; no sum falls below 0.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.apparent = self.apparent.saturating_sub(other.apparent);
        self.allocated = self.allocated.saturating_sub(other.allocated);
        self.entries = self.entries.saturating_sub(other.entries);
    }

    /// Returns the sums with one entry more: what an entry adds to the directories above it.
    pub(crate) fn with_itself(self) -> Self {
        Self { entries: self.entries.saturating_add(1), ..self }
    }

    /// Returns the growth from `old` to these sums.
    pub(crate) fn since(&self, old: &Self) -> Amount<i64> {
        let growth = |new: u64, old: u64| {
            let growth = i128::from(new) - i128::from(old);
            growth.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        };
        Amount {
            apparent: growth(self.apparent, old.apparent),
            allocated: growth(self.allocated, old.allocated),
            entries: growth(self.entries, old.entries),
        }
    }
}

/// Returns the sizes of an inode as `fathom du` counts them: allocated blocks of 512 bytes, and the
/// lengths of regular files and symbolic links. Directories have no apparent size.
pub(crate) fn sizes_of(meta: &Meta) -> Amount<u64> {
    let has_length = matches!(meta.file_type(), FileType::Regular | FileType::Symlink);
    Amount {
        apparent: if has_length { u64::try_from(meta.size).unwrap_or(0) } else { 0 },
        allocated: meta.blocks.saturating_mul(512),
        entries: 0,
    }
}

/// Returns the identity of an inode.
pub(crate) fn identity_of(meta: &Meta) -> Identity {
    Identity { dev: meta.dev, ino: meta.ino }
}

/// Returns the change time of a row ([`Row::ctime`](crate::source::Row)). A time of 0 is unknown.
pub(crate) fn ctime_of(meta: &Meta) -> Option<FileTime> {
    let is_stable = meta.file_type() != FileType::Directory && meta.nlink == 1;
    Some(meta.ctime).filter(|ctime| is_stable && *ctime != FileTime::default())
}

/// Returns the path `rest`, which is relative to `below`, relative to the root.
pub(crate) fn joined(below: &[u8], rest: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if below.is_empty() || rest.is_empty() { b"" } else { b"/" };
    [below, slash, rest].concat()
}

/// Returns the owner, if it is known.
pub(crate) fn uid_of(meta: &Meta) -> Option<u32> {
    meta.has(Fields::OWNER).then_some(meta.uid)
}

/// Returns the time of modification in seconds since 1970, if it is known.
pub(crate) fn mtime_of(meta: &Meta) -> Option<i64> {
    meta.has(Fields::TIMES).then_some(meta.mtime.sec)
}
