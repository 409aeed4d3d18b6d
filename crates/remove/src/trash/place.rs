//! The directory of the trash for a filesystem: the user's own, or one at the top of the mount.

use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use fathom_io::{Errno, FileType, beneath};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::process::geteuid;

use super::stat_path;
use crate::failure::{RemovalCause, errno_of};

/// The mode of directories in the trash, and of information files.
const DIR_MODE: Mode = Mode::RWXU;
const INFO_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The sticky bit, and the bits by which others may write (inode(7)).
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// An open trash.
#[derive(Debug)]
pub(crate) struct TrashDir {
    pub(super) info: OwnedFd,
    pub(super) files: OwnedFd,
    /// The top of the mount that it is for; `None` for the user's own trash.
    top: Option<PathBuf>,
}

impl TrashDir {
    /// Returns the original path as the information has it: relative to the top of the mount.
    pub(super) fn path_in_info(&self, original: &Path) -> Vec<u8> {
        let relative = self.top.as_ref().and_then(|top| original.strip_prefix(top).ok());
        relative.unwrap_or(original).as_os_str().as_bytes().to_vec()
    }

    /// Creates an information file.
    ///
    /// # Errors
    /// EEXIST if the name is taken. If the file cannot be written, it is removed again.
    pub(super) fn write_info(&self, name: &[u8], text: &str) -> Result<(), Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.info, name, flags, INFO_MODE)?);
        file.write_all(text.as_bytes()).map_err(|error| {
            // The first failure is the one that is reported.
            let _ = unlinkat(&self.info, name, AtFlags::empty());
            errno_of(&error)
        })
    }
}

/// The trashes in use, by device.
#[derive(Debug)]
pub(super) struct TrashDirs {
    home: Option<PathBuf>,
    open: Vec<(u64, PathBuf, TrashDir)>,
}

impl TrashDirs {
    pub(super) fn new(home: Option<PathBuf>) -> Self {
        Self { home, open: Vec::new() }
    }

    /// Returns the trash for files of the device `dev` in the directory `dir`.
    ///
    /// # Errors
    /// [`RemovalCause::NoTrash`] if none can be created there, [`RemovalCause::UnsafeTrash`] if one
    /// is there that other users could manipulate.
    pub(super) fn of(&mut self, dev: u64, dir: &Path) -> Result<&TrashDir, RemovalCause> {
        let top = top_of(dir, dev)?;
        let known = self.open.iter().position(|(of, at, _)| (*of, at) == (dev, &top));
        let index = match known {
            Some(index) => index,
            None => {
                let opened = self.open_home(dev).map_or_else(|| open_at_top(&top, dev), Ok)?;
                self.open.push((dev, top, opened));
                self.open.len() - 1
            }
        };
        Ok(&self.open[index].2)
    }

    /// Opens the user's own trash, if that is on the device.
    pub(super) fn open_home(&self, dev: u64) -> Option<TrashDir> {
        let home = self.home.as_ref()?;
        let existing = home.ancestors().find_map(|path| stat_following(path).ok())?;
        if existing.dev != dev {
            return None;
        }
        DirBuilder::new().recursive(true).mode(DIR_MODE.bits()).create(home).ok()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        open_trash(openat(CWD, home, flags, Mode::empty()).ok()?, dev, None).ok()
    }
}

fn stat_following(path: &Path) -> Result<fathom_io::Meta, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    beneath::stat(openat(CWD, path, flags, Mode::empty())?.as_fd())
}

/// Returns the topmost directory above `dir` that is on the same mount.
fn top_of(dir: &Path, dev: u64) -> Result<PathBuf, Errno> {
    let mut top = dir;
    for above in dir.ancestors() {
        let meta = stat_path(above)?;
        if meta.dev != dev {
            break;
        }
        top = above;
        if meta.mount_root == Some(true) {
            break;
        }
    }
    Ok(top.to_owned())
}

/// Opens `.Trash/UID` or else `.Trash-UID` in the top directory of a mount.
fn open_at_top(top: &Path, dev: u64) -> Result<TrashDir, RemovalCause> {
    let uid = geteuid().as_raw();
    let shared = top.join(".Trash");
    let is_usable =
        |meta: fathom_io::Meta| meta.file_type() == FileType::Directory && meta.mode & STICKY != 0;
    if stat_path(&shared).is_ok_and(is_usable)
        && let Ok(found) = create_and_open(&shared.join(uid.to_string()), top, dev)
    {
        return Ok(found);
    }
    create_and_open(&top.join(format!(".Trash-{uid}")), top, dev)
}

fn create_and_open(path: &Path, top: &Path, dev: u64) -> Result<TrashDir, RemovalCause> {
    let opened = make_dir(CWD, path.as_os_str().as_bytes());
    let opened = opened.map_err(|errno| match errno {
        Errno::LOOP | Errno::NOTDIR => RemovalCause::UnsafeTrash,
        _ => RemovalCause::NoTrash,
    });
    open_trash(opened?, dev, Some(top.to_owned()))
}

/// Opens the directories in a trash, if only this user can write there.
fn open_trash(trash: OwnedFd, dev: u64, top: Option<PathBuf>) -> Result<TrashDir, RemovalCause> {
    let meta = beneath::stat(trash.as_fd())?;
    if meta.dev != dev {
        return Err(RemovalCause::NoTrash);
    }
    if meta.uid != geteuid().as_raw() || meta.mode & WRITABLE_BY_OTHERS != 0 {
        return Err(RemovalCause::UnsafeTrash);
    }
    let inside = |name: &[u8]| make_dir(trash.as_fd(), name);
    Ok(TrashDir { info: inside(b"info")?, files: inside(b"files")?, top })
}

/// Opens a directory, which is created if it does not exist. A symbolic link is refused.
fn make_dir(at: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    match mkdirat(&at, name, DIR_MODE) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}
