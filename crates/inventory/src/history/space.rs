//! The space that is left on the filesystem of an inventory's trees, if it is the filesystem that
//! was scanned.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::scan::host;
use crate::store::{Error, Inventory, Table};

/// The space of a filesystem, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesystemSpace {
    /// The size of the filesystem.
    pub total: u64,
    /// The space that users other than root may still use.
    pub available: u64,
}

/// Returns the space of the filesystem that has all root directories of `inventory`, as it is now.
/// The inner error is the reason why it is unknown: the inventory is of another machine, of several
/// filesystems, or a root is not the directory that was scanned.
///
/// # Errors
/// If the inventory is damaged.
pub fn free_space(inventory: &Inventory) -> Result<Result<FilesystemSpace, &'static str>, Error> {
    if inventory.manifest().host != host() {
        return Ok(Err("the inventory is of another machine"));
    }
    let roots = roots(inventory)?;
    let devices: BTreeSet<u64> = roots.iter().map(|root| root.dev).collect();
    if devices.len() > 1 {
        return Ok(Err("the trees are on several filesystems"));
    }
    let is_there = |root: &ScannedRoot| {
        let found = Path::new(OsStr::from_bytes(&root.path)).symlink_metadata();
        found.is_ok_and(|found| (found.dev(), found.ino()) == (root.dev, root.ino))
    };
    match roots.first() {
        Some(root) if roots.iter().all(is_there) => {
            let space = rustix::fs::statvfs(Path::new(OsStr::from_bytes(&root.path)));
            Ok(space.map_err(|_| "the filesystem does not say").and_then(|space| {
                let bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
                let (total, available) = (bytes(space.f_blocks), bytes(space.f_bavail));
                // Network filesystems and pseudo filesystems may have no size.
                if total > 0 {
                    Ok(FilesystemSpace { total, available })
                } else {
                    Err("the filesystem does not say")
                }
            }))
        }
        _ => Ok(Err("the scanned directory is not there, or is another one")),
    }
}

/// A root directory, as it was scanned.
struct ScannedRoot {
    path: Vec<u8>,
    dev: u64,
    ino: u64,
}

fn roots(inventory: &Inventory) -> Result<Vec<ScannedRoot>, Error> {
    let mut found = Vec::new();
    inventory.each(Table::Dirs, |group| {
        let depth = group.numbers("depth")?;
        if !depth.or_zero().contains(&0) {
            return Ok(());
        }
        let (dev, ino) = (group.numbers("dev")?, group.numbers("ino")?);
        let names = [group.texts("name")?, group.texts("name_raw")?];
        for row in (0..group.rows()).filter(|row| depth.or_zero()[*row] == 0) {
            let path = names[1].get(row).or(names[0].get(row)).unwrap_or_default().to_vec();
            let [dev, ino] = [&dev, &ino].map(|column| column.or_zero()[row].cast_unsigned());
            found.push(ScannedRoot { path, dev, ino });
        }
        Ok(())
    })?;
    Ok(found)
}
