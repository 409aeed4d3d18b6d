//! The space that is left on the filesystem of an inventory's trees, if it is the filesystem that
//! was scanned.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::scan::host;
use fathom_inventory::store::{DirState, Error, Inventory, Table};
use fathom_questions::diff::Sides;

/// The space of a filesystem, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesystemSpace {
    /// The size of the filesystem.
    pub total: u64,
    /// The space that users other than root may still use.
    pub available: u64,
}

/// Returns the space of the filesystem that has all directories of the new inventory, as it is now.
/// The inner error is the reason why it, or the growth on it, is unknown: the new inventory is of
/// another machine, one is of several filesystems, or a root is not the directory that was scanned.
///
/// # Errors
/// If an inventory is damaged.
pub fn free_space(inventories: &Sides<&Inventory>) -> Result<Result<FilesystemSpace, &'static str>, Error> {
    if inventories.new.manifest().host != host() {
        return Ok(Err("the inventory was made on another machine"));
    }
    let (before, ScannedDirs { roots, devices }) = (dirs(inventories.old)?, dirs(inventories.new)?);
    if devices.len() > 1 || before.devices.len() > 1 {
        return Ok(Err("the trees are on several file systems"));
    }
    let is_there = |root: &ScannedRoot| {
        let found = Path::new(OsStr::from_bytes(&root.path)).symlink_metadata();
        found.is_ok_and(|found| (found.dev(), found.ino()) == (root.dev, root.ino))
    };
    match roots.first() {
        Some(root) if roots.iter().all(is_there) => {
            let space = rustix::fs::statvfs(Path::new(OsStr::from_bytes(&root.path)));
            Ok(space.map_err(|_| "the file system does not report it").and_then(|space| {
                let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
                let (total, available) = (bytes(space.f_blocks), bytes(space.f_bavail));
                // Network filesystems and pseudo filesystems may have no size.
                if total > 0 {
                    Ok(FilesystemSpace { total, available })
                } else {
                    Err("the file system does not report it")
                }
            }))
        }
        _ => Ok(Err("the scanned directory is gone or was replaced")),
    }
}

/// A root directory, as it was scanned.
struct ScannedRoot {
    path: Vec<u8>,
    dev: u64,
    ino: u64,
}

/// The roots of an inventory, and the devices of its directories.
#[derive(Default)]
struct ScannedDirs {
    roots: Vec<ScannedRoot>,
    /// Two devices of directories, if there are several.
    devices: BTreeSet<i64>,
}

fn dirs(inventory: &Inventory) -> Result<ScannedDirs, Error> {
    let mut found = ScannedDirs::default();
    inventory.each(Table::Dirs, |group| {
        let (dev, ino, depth) = (group.numbers("dev")?, group.numbers("ino")?, group.numbers("depth")?);
        let (names, state) = ([group.texts("name")?, group.texts("name_raw")?], group.texts("state")?);
        for row in 0..group.rows() {
            // A mount point that was left out has a device, but no sizes.
            let is_skipped = state.get(row) == Some(DirState::Skipped.word().as_bytes());
            if !is_skipped && found.devices.len() < 2 {
                found.devices.extend(dev.get(row));
            }
            if depth.or_zero()[row] == 0 {
                let path = names[1].get(row).or(names[0].get(row)).unwrap_or_default().to_vec();
                let [dev, ino] = [&dev, &ino].map(|column| column.or_zero()[row].cast_unsigned());
                found.roots.push(ScannedRoot { path, dev, ino });
            }
        }
        Ok(())
    })?;
    Ok(found)
}
