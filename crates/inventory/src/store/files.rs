//! Creates and renames files without replacing existing ones, and so that only their owner can read
//! them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use fathom_walk::Errno;
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Permission bits of the files: an inventory may have the names of files that others cannot list.
const PRIVATE: u32 = 0o600;

/// Creates a new file that only its owner may read.
///
/// # Errors
/// If `path` exists, or the file cannot be created.
pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)
}

/// Opens a file that only its owner may read, and truncates it if it exists.
pub(crate) fn replace_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(path)
}

/// Renames `from` to `to`, unless `to` exists.
///
/// # Errors
/// As renameat2(2) with `RENAME_NOREPLACE`.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The kernel or the filesystem (NFS, for one) does not support the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => rename_where_free(from, to),
        renamed => Ok(renamed?),
    }
}

/// Renames without `RENAME_NOREPLACE`. link(2) never replaces a file. There is no such call for a
/// directory, but rename(2) replaces nothing but an empty directory by one.
fn rename_where_free(from: &Path, to: &Path) -> io::Result<()> {
    if from.symlink_metadata()?.is_file() {
        match fs::hard_link(from, to) {
            Ok(()) => return fs::remove_file(from),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            // The filesystem has no hard links.
            Err(_) => {}
        }
    }
    match to.symlink_metadata() {
        Ok(_) => Err(Errno::EXIST.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(from, to),
        Err(error) => Err(error),
    }
}

/// Syncs the directory that has `path`, so that its names survive a crash.
///
/// # Errors
/// As fsync(2).
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_directory(parent.unwrap_or(Path::new(".")))
}

/// Syncs a directory, so that the names in it survive a crash.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn existing_files_are_never_replaced() {
        for rename in [rename_new, rename_where_free] {
            let top = tempfile::tempdir().unwrap();
            let at = |name: &str| top.path().join(name);
            fs::write(at("file"), "old").unwrap();
            fs::create_dir(at("dir")).unwrap();
            std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
            drop(create_private(&at("new")).unwrap());
            fs::create_dir(at("newdir")).unwrap();
            for to in ["file", "dir", "dangling"] {
                for from in ["new", "newdir"] {
                    let refused = rename(&at(from), &at(to)).unwrap_err();
                    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{from} to {to}");
                }
            }
            assert_eq!(fs::read(at("file")).unwrap(), b"old");
            for (from, to) in [("new", "free"), ("newdir", "freedir")] {
                rename(&at(from), &at(to)).unwrap();
                assert!(at(to).exists() && !at(from).exists());
            }
        }
    }

    #[test]
    fn only_the_owner_may_read_a_file() {
        let top = tempfile::tempdir().unwrap();
        let foreign = |file: File| file.metadata().unwrap().permissions().mode() & 0o177;
        assert_eq!(foreign(create_private(&top.path().join("new")).unwrap()), 0);
        assert_eq!(foreign(replace_private(&top.path().join("other")).unwrap()), 0);
        assert!(create_private(&top.path().join("new")).is_err());
    }
}
