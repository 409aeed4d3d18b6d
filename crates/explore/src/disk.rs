//! The space of the filesystem that a tree is on, and what takes it without a name.
//!
//! Owns: the numbers. Does not own: when they are read, and their words.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fathom_io::filesystem::Space;
use fathom_io::mounts::Mount;
use fathom_io::{filesystem, mounts};
use fathom_remove::{DeletedFile, OpenFiles};

/// Bytes of deleted files below which they are not worth a word.
const DELETED_BYTES_MIN: u64 = 1 << 20;
/// The number of deleted files that are named.
const DELETED_MAX: usize = 5;
/// The share of the used bytes, as a divisor, below which bytes in no file are metadata.
const METADATA_SHARE: u64 = 50;
/// Used bytes in no file that are metadata at any size.
const METADATA_BYTES: u64 = 8 << 20;

/// The space of a filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskSpace {
    /// The device of the filesystem (`st_dev`).
    pub dev: u64,
    /// The bytes of the filesystem.
    pub bytes: Space,
    /// The allocated bytes of files that have no name and that processes have open.
    pub deleted: u64,
    /// The largest of these files, each with the name of its process.
    pub largest_deleted: Vec<(DeletedFile, Vec<u8>)>,
    /// Whether all files of the filesystem, and no others, are in the tree.
    pub is_whole: bool,
}

impl DiskSpace {
    /// Reads the space of the filesystem of each root on this machine. `is_tree` tells whether the
    /// trees have all files below their roots, but for other filesystems if `is_single`.
    #[must_use]
    pub fn read(roots: &[Option<Vec<u8>>], is_tree: bool, is_single: bool) -> Vec<Option<Self>> {
        let open = OpenFiles::read();
        let of_root = |root: &Option<Vec<u8>>| {
            let root = Path::new(OsStr::from_bytes(root.as_deref()?));
            Self::of(root, &open, is_tree.then_some(is_single))
        };
        roots.iter().map(of_root).collect()
    }

    /// `skips_mounts` tells whether the tree has no other filesystems; `None` if it is not the
    /// whole tree.
    fn of(root: &Path, open: &OpenFiles, skips_mounts: Option<bool>) -> Option<Self> {
        let bytes = Space::of(root)?;
        let dev = root.metadata().ok()?.dev();
        let deleted = open.deleted(dev);
        let named = |file: &&DeletedFile| {
            ((*file).clone(), file.holder.program().unwrap_or_else(|| b"(ended)".to_vec()))
        };
        Some(Self {
            dev,
            bytes,
            deleted: deleted.iter().fold(0, |sum, file| sum.saturating_add(file.allocated)),
            largest_deleted: deleted.iter().take(DELETED_MAX).map(named).collect(),
            is_whole: skips_mounts.is_some_and(|skips| is_whole(root, dev, skips))
                && filesystem::counts_only_files(root),
        })
    }

    /// Returns whether the deleted files take enough to matter: programs always have small ones.
    pub(crate) fn is_much_deleted(&self) -> bool {
        let Space { size, free, .. } = self.bytes;
        self.deleted >= DELETED_BYTES_MIN && (self.deleted >= free / 10 || self.deleted >= size / 100)
    }

    /// Returns the used bytes that are in no file of the tree, whose files have `allocated` bytes,
    /// and in no deleted one; `None` if metadata of the filesystem may take them.
    pub(crate) fn unexplained(&self, allocated: u64) -> Option<u64> {
        let bytes = self.bytes.used.saturating_sub(allocated).saturating_sub(self.deleted);
        (self.is_whole && bytes > METADATA_BYTES.max(self.bytes.used / METADATA_SHARE)).then_some(bytes)
    }
}

/// Returns whether `root` is the top of the filesystem `dev` and not a directory of it that is
/// mounted alone; with other mounts below it only if these are skipped. False without a mount
/// table.
fn is_whole(root: &Path, dev: u64, skips_mounts: bool) -> bool {
    let (Ok(root), Ok(mounts)) = (root.canonicalize(), mounts::read()) else { return false };
    let point = |mount: &Mount| Path::new(OsStr::from_bytes(mount.point.as_bytes())).to_owned();
    let top = mounts.iter().rfind(|mount| point(mount) == root);
    let is_below = |mount: &Mount| point(mount) != root && point(mount).starts_with(&root);
    top.is_some_and(|top| top.dev == dev && !top.is_part) && (skips_mounts || !mounts.iter().any(is_below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_files_matter_on_a_full_filesystem_or_if_they_are_a_hundredth_of_it() {
        let space = |size_mib: u64, free_mib: u64, deleted: u64| {
            let bytes = Space { size: size_mib << 20, free: free_mib << 20, ..Space::default() };
            DiskSpace { bytes, deleted, ..DiskSpace::default() }.is_much_deleted()
        };
        assert!(!space(250_000, 70_000, 16 << 10) && !space(250_000, 0, 16 << 10));
        assert!(space(250_000, 0, 3 << 20) && space(250_000, 20, 3 << 20) && !space(250_000, 40, 3 << 20));
        assert!(space(250, 200, 3 << 20) && !space(250_000, 70_000, 350 << 20));
    }

    #[test]
    fn bytes_in_no_file_are_told_when_they_are_more_than_metadata() {
        let mib = |count: u64| count << 20;
        let bytes = Space { used: mib(2000), ..Space::default() };
        let space = DiskSpace { bytes, deleted: mib(300), is_whole: true, ..DiskSpace::default() };
        assert_eq!(space.unexplained(mib(1000)), Some(mib(700)));
        assert_eq!(space.unexplained(mib(1665)), None, "35 MiB of 2000 may be metadata");
        assert_eq!(space.unexplained(mib(3000)), None);
        let part = DiskSpace { is_whole: false, ..space };
        assert_eq!(part.unexplained(mib(1000)), None, "other trees may have them");
    }
}
