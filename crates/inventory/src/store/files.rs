//! Creates and renames files without replacing existing ones, and so that only their owner can read
//! them.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use fathom_walk::Errno;
use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};

/// Permission bits of the files: an inventory may have the names of files that others cannot list.
pub(super) const PRIVATE: u32 = 0o600;

/// Creates a new file that only its owner may read.
///
/// # Errors
/// If `path` exists, or the file cannot be created.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)
}

/// The most attempts to take a temporary file. An attempt is repeated only if its holder ends
/// between two system calls.
const TRIES: usize = 16;

/// Creates the temporary file `path`, which only its owner may read, locked (flock(2)) until it is
/// closed, however the process ends. One that a killed process has left is emptied and taken over:
/// it is private, has no other name, and nobody locks it.
///
/// # Errors
/// If another process is writing to it, if another file is there, or if it cannot be created.
pub fn create_part(path: &Path) -> io::Result<File> {
    create_part_with(path, PRIVATE)
}

/// As [`create_part`]. A file that was left may have the permission bits `mode`, which its owner
/// gives it before it has its final name.
pub(super) fn create_part_with(path: &Path, mode: u32) -> io::Result<File> {
    for _ in 0..TRIES {
        let (file, is_new) = match create_private(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match open_left(path, mode) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => (opened?, false),
            },
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => break,
            // Without locks nobody can tell whether it is in use.
            Err(_) if !is_new => return Err(Errno::EXIST.into()),
            Ok(()) | Err(_) => {}
        }
        // Between the calls the holder may have removed or renamed it.
        if is_at(&file, path)? {
            file.set_len(0)?;
            file.set_permissions(Permissions::from_mode(PRIVATE))?;
            return Ok(file);
        }
    }
    Err(io::Error::other("another process is writing to it"))
}

/// Opens a temporary file that a process has left. Any other file is refused.
fn open_left(path: &Path, mode: u32) -> io::Result<File> {
    let nofollow = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().write(true).custom_flags(nofollow.bits().cast_signed()).open(path);
    let foreign = || io::Error::new(io::ErrorKind::AlreadyExists, "it is there, and no run has left it");
    let file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => error,
        _ => foreign(),
    })?;
    let meta = file.metadata()?;
    let is_left = meta.is_file()
        && meta.nlink() == 1
        && meta.uid() == rustix::process::geteuid().as_raw()
        && meta.mode() & 0o7777 & !mode == 0;
    if is_left { Ok(file) } else { Err(foreign()) }
}

/// Returns whether `file` is the file at `path`.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(found) => {
            let held = file.metadata()?;
            Ok((held.dev(), held.ino()) == (found.dev(), found.ino()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a file that only its owner may read, and truncates it if it exists.
pub fn replace_private(path: &Path) -> io::Result<File> {
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
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
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
    fn a_temporary_file_that_nobody_locks_is_taken_over() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let first = create_part(&at("a.part")).unwrap();
        let busy = create_part(&at("a.part")).unwrap_err();
        assert_eq!(busy.to_string(), "another process is writing to it");
        fs::write(at("a.part"), "a half").unwrap();
        drop(first);
        let second = create_part(&at("a.part")).unwrap();
        assert_eq!(second.metadata().unwrap().len(), 0);
        // The holder gives it its final name.
        fs::rename(at("a.part"), at("a")).unwrap();
        drop(create_part(&at("a.part")).unwrap());
        assert!(at("a").exists());
    }

    #[test]
    fn another_file_is_no_temporary_one() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::write(at("public"), "mine").unwrap();
        fs::set_permissions(at("public"), fs::Permissions::from_mode(0o644)).unwrap();
        drop(create_private(&at("twice")).unwrap());
        fs::hard_link(at("twice"), at("other")).unwrap();
        fs::create_dir(at("dir")).unwrap();
        std::os::unix::fs::symlink("twice", at("link")).unwrap();
        rustix::fs::mknodat(CWD, at("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for name in ["public", "twice", "dir", "link", "fifo"] {
            let refused = create_part(&at(name)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{name}: {refused}");
        }
        assert_eq!(fs::read(at("public")).unwrap(), b"mine");
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
