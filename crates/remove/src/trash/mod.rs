//! Moves targets to a trash on the same filesystem, by the Trash specification of freedesktop.org,
//! version 1.0. Nothing is ever copied.
//!
//! The order of the steps decides what a crash leaves behind: a file without information could not
//! be put back, so the information is written first. It is removed again only if the file is not in
//! the trash.

mod info;
mod place;

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_io::{Errno, FileType, Follow, Meta, beneath, fault, mounts, sys};
use rustix::fs::{AtFlags, RenameFlags, renameat, renameat_with, unlinkat};

use crate::failure::{RemovalCause, RemovalOperation, errno_of};
use crate::identity::Identity;
use crate::observer::RemovedEntry;
use crate::options::TrashOptions;
use crate::removal::{FIELDS, Removal, allocated};
use crate::target::{Location, Target};

use info::{TrashNames, info_name, info_text};
use place::{TrashDir, TrashDirs};

/// Moves targets to the trash, one after the other.
pub(crate) fn trash(removal: &Removal, targets: impl Iterator<Item = Target>, options: &TrashOptions) {
    let mut dirs = TrashDirs::new(options.home.clone());
    for target in targets {
        if removal.is_stopped() {
            return;
        }
        match trash_one(removal, &target, &mut dirs, &options.deletion_date) {
            Ok(entry) => removal.removed(&[entry]),
            Err(cause) => removal.target_failed(&target, RemovalOperation::Trash, cause),
        }
    }
}

fn trash_one(
    removal: &Removal,
    target: &Target,
    dirs: &mut TrashDirs,
    date: &str,
) -> Result<RemovedEntry, RemovalCause> {
    let location = target.split()?;
    let parent = location.open()?;
    let meta = sys::stat(parent.as_fd(), &location.name, Follow::No, FIELDS)?;
    admit(removal, target, &location, &meta, beneath::stat(parent.as_fd())?.dev)?;
    let original = original_dir(&location, &parent)?;
    let dir = dirs.of(meta.dev, &original)?;
    let original = original.join(OsStr::from_bytes(location.name.to_bytes()));
    if meta.file_type() == FileType::Directory && has_mount_below(&original)? {
        return Err(RemovalCause::MountInside);
    }
    let moved = Moved { parent: parent.as_fd(), location: &location, meta: &meta };
    moved.move_into(dir, &info_text(&dir.path_in_info(&original), date))?;
    if meta.file_type() == FileType::Directory {
        removal.sums.add_directory(None);
    } else {
        removal.sums.add_file(None);
    }
    let (path, file_type, allocated) = (target.path_bytes(), meta.file_type(), Some(allocated(&meta)));
    Ok(RemovedEntry { path, file_type, dev: meta.dev, ino: meta.ino, allocated })
}

/// Returns why a target must not be moved.
fn admit(
    removal: &Removal,
    target: &Target,
    location: &Location,
    meta: &Meta,
    dev_above: u64,
) -> Result<(), RemovalCause> {
    let (dev, ino) = meta.id();
    let is_directory = meta.file_type() == FileType::Directory;
    if !target.is_shown(meta) {
        Err(RemovalCause::Replaced)
    } else if location.is_directory && !is_directory {
        Err(Errno::NOTDIR.into())
    } else if is_directory && !removal.is_recursive {
        Err(Errno::ISDIR.into())
    } else if removal.protected.contains(&Identity { dev, ino }) {
        Err(RemovalCause::WorkingDirectory)
    } else if is_directory && (meta.mount_root == Some(true) || dev != dev_above) {
        Err(RemovalCause::MountPoint)
    } else {
        Ok(())
    }
}

/// Returns the path of an open directory, without symbolic links, for the information about the
/// original place.
fn original_dir(location: &Location, parent: &OwnedFd) -> Result<PathBuf, RemovalCause> {
    let path = location.dir_path().canonicalize().map_err(|error| errno_of(&error))?;
    if stat_path(&path)?.id() != beneath::stat(parent.as_fd())?.id() {
        return Err(RemovalCause::Replaced);
    }
    Ok(path)
}

/// Returns whether something is mounted below a directory: emptying the trash would delete it.
fn has_mount_below(dir: &Path) -> Result<bool, Errno> {
    let table = mounts::read().map_err(|_| Errno::OPNOTSUPP)?;
    let is_below = |point: &[u8]| {
        point.strip_prefix(dir.as_os_str().as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
    };
    Ok(table.iter().any(|mount| is_below(mount.point.to_bytes())))
}

fn stat_path(path: &Path) -> Result<Meta, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    sys::stat(sys::CWD, &path, Follow::No, FIELDS)
}

/// A target that is being moved.
struct Moved<'m> {
    parent: BorrowedFd<'m>,
    location: &'m Location,
    meta: &'m Meta,
}

impl Moved<'_> {
    /// Writes the information and moves the target, under a name that is free in the trash.
    fn move_into(&self, dir: &TrashDir, info: &str) -> Result<(), RemovalCause> {
        for name in TrashNames::new(&self.location.name, self.meta.ino) {
            let info_name = info_name(&name);
            match dir.write_info(&info_name, info) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(errno.into()),
            }
            fault::point("trash-info");
            let moved = rename_free((self.parent, self.own_name()), (dir.files.as_fd(), &name));
            fault::point("trash-renamed");
            let Err(errno) = moved else { return self.check(dir, &name, &info_name) };
            // Nothing has been moved, so the information is about nothing.
            unlinkat(&dir.info, &info_name, AtFlags::empty())?;
            match errno {
                Errno::EXIST => {}
                // The same filesystem, mounted twice.
                Errno::XDEV => return Err(RemovalCause::NoTrash),
                errno => return Err(errno.into()),
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Checks that the file that is in the trash now is the target. If it is another one, which a
    /// process has put in the place of the target, it goes back. Its information stays unless it is
    /// certain that the file is no longer in the trash.
    fn check(&self, dir: &TrashDir, name: &[u8], info_name: &[u8]) -> Result<(), RemovalCause> {
        let file = CString::new(name).map_err(|_| Errno::INVAL)?;
        let found = sys::stat(dir.files.as_fd(), &file, Follow::No, FIELDS)?;
        if found.id() == self.meta.id() {
            return Ok(());
        }
        if rename_free((dir.files.as_fd(), name), (self.parent, self.own_name())).is_ok() {
            unlinkat(&dir.info, info_name, AtFlags::empty())?;
        }
        Err(RemovalCause::Replaced)
    }

    fn own_name(&self) -> &[u8] {
        self.location.name.to_bytes()
    }
}

/// Renames, unless the new name exists.
fn rename_free(from: (BorrowedFd<'_>, &[u8]), to: (BorrowedFd<'_>, &[u8])) -> Result<(), Errno> {
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // The filesystem does not have the flag, as NFS. The information reserves the name among
        // all programs that use the trash.
        Err(Errno::INVAL | Errno::NOSYS) => match rustix::fs::statat(to.0, to.1, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => renameat(from.0, from.1, to.0, to.1),
            Ok(_) => Err(Errno::EXIST),
            Err(errno) => Err(errno),
        },
        renamed => renamed,
    }
}

/// Returns a function that opens the user's own trash for a device.
#[cfg(test)]
pub(crate) fn home_only(home: PathBuf) -> impl FnMut(u64) -> Option<TrashDir> {
    move |dev| TrashDirs::new(Some(home.clone())).open_home(dev)
}
