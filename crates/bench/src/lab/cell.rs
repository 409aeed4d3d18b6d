//! The work all arms of a comparison do.

use std::path::PathBuf;

use crate::arms::Arm;
use crate::sample::{Deed, Spec};

/// What the page cache has of the file before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// All of it.
    Warm,
    /// Nothing.
    Cold,
    /// It makes no difference.
    Any,
}

impl Cache {
    /// The column's word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Any => "none",
        }
    }
}

/// A workload with everything that is the same for all arms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What is done.
    pub deed: Deed,
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of an operation.
    pub block: usize,
    /// Files of the tree, for workloads of trees.
    pub files: u64,
    /// Whether the page cache is passed by.
    pub direct: bool,
    /// Whether an fdatasync at the end is within the time.
    pub sync: bool,
    /// What the page cache has before.
    pub cache: Cache,
    /// Of data and order.
    pub seed: u64,
}

impl Cell {
    /// As reports call it: `write 1 GiB in 4 KiB blocks`.
    #[must_use]
    pub fn label(&self) -> String {
        let name = self.deed.name();
        let mut label = if self.deed.is_of_tree() {
            format!("{name} {} files", self.files)
        } else if self.deed.is_of_small_files() {
            format!("{name} {} of {} each", binary(self.size), binary(self.block as u64))
        } else {
            format!("{name} {} in {} blocks", binary(self.size), binary(self.block as u64))
        };
        for (said, words) in [
            (self.direct, ", O_DIRECT"),
            (self.sync, ", synced"),
            (self.cache == Cache::Warm, ", warm"),
            (self.cache == Cache::Cold, ", cold"),
        ] {
            if said {
                label.push_str(words);
            }
        }
        label
    }

    /// Whether the same files will do for both: trees and small files look the same to all who read them.
    pub(super) fn has_files_of(&self, other: &Self) -> bool {
        let kind = |cell: &Self| (cell.deed.is_of_tree(), cell.deed.is_of_small_files(), cell.deed.writes());
        let of_tree = self.deed.is_of_tree();
        kind(self) == kind(other)
            && if of_tree { self.files == other.files } else { self.shape() == other.shape() }
    }

    fn shape(&self) -> (u64, u64, Option<usize>) {
        (self.seed, self.size, self.deed.is_of_small_files().then_some(self.block))
    }

    /// What `arm` is to do with the file at `path`.
    #[must_use]
    pub fn spec(&self, arm: &Arm, path: PathBuf, generation: u64) -> Spec {
        Spec {
            deed: self.deed,
            method: arm.method,
            path,
            size: self.size,
            block: self.block,
            threads: arm.threads,
            depth: arm.depth,
            batch: arm.batch,
            completion: arm.completion,
            direct: self.direct,
            seed: self.seed,
            generation,
        }
    }
}

/// A size in the largest binary unit that it is a multiple of.
fn binary(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(unit, _)| bytes.is_multiple_of(*unit) && bytes > 0);
    unit.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{} {name}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_do_for_another_state_or_workload_of_the_same_kind() {
        let cell = |deed, size, files, cache| Cell {
            deed,
            size,
            block: 4096,
            files,
            direct: false,
            sync: false,
            cache,
            seed: 1,
        };
        let read = cell(Deed::Read, 1 << 20, 0, Cache::Warm);
        assert!(read.has_files_of(&cell(Deed::RandomRead, 1 << 20, 9, Cache::Cold)));
        assert!(!read.has_files_of(&cell(Deed::Read, 2 << 20, 0, Cache::Warm)));
        assert!(!read.has_files_of(&cell(Deed::Write, 1 << 20, 0, Cache::Any)));
        assert!(!read.has_files_of(&Cell { seed: 2, ..read.clone() }));
        let walk = cell(Deed::Walk, 0, 100, Cache::Warm);
        assert!(walk.has_files_of(&cell(Deed::Stat, 7, 100, Cache::Cold)));
        assert!(!walk.has_files_of(&cell(Deed::Stat, 0, 101, Cache::Cold)));
        let small = cell(Deed::SmallFiles, 1 << 20, 0, Cache::Warm);
        assert!(!small.has_files_of(&Cell { block: 8192, ..small.clone() }));
        assert!(small.has_files_of(&Cell { deed: Deed::Serve, ..small.clone() }));
    }

    #[test]
    fn labels_say_what_differs() {
        let mut cell = Cell {
            deed: Deed::Write,
            size: 1 << 30,
            block: 4096,
            files: 100,
            direct: false,
            sync: false,
            cache: Cache::Any,
            seed: 1,
        };
        assert_eq!(cell.label(), "write 1 GiB in 4 KiB blocks");
        (cell.deed, cell.size, cell.cache, cell.direct) = (Deed::RandomRead, 1000, Cache::Cold, true);
        assert_eq!(cell.label(), "random-read 1000 B in 4 KiB blocks, O_DIRECT, cold");
        (cell.deed, cell.direct) = (Deed::Stat, false);
        assert_eq!(cell.label(), "stat 100 files, cold");
        (cell.deed, cell.size) = (Deed::Serve, 40 << 20);
        assert_eq!(cell.label(), "serve 40 MiB of 4 KiB each, cold");
    }
}
