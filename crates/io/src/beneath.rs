//! Files below a directory, for who is told their paths by strangers: one openat2(2) looks a path up, and is the check that it does not
//! leave the directory, whatever is renamed or linked meanwhile.
//!
//! ```text
//! path ── openat2(RESOLVE_BENEATH) ──> file
//!              └── EXDEV ──> absolute: the link's text in its place ──> openat2(RESOLVE_BENEATH) ──> ...
//! ```
//! Owns: the directory's descriptor, what links may do, lookups that do not wait. Does not own: what a path means, which files may be
//! read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::retry_on_intr;

use crate::{Errno, Meta, sys};

mod absolute;

/// How often a lookup that somebody's rename disturbed is made again (openat2(2), EAGAIN).
pub(crate) const ATTEMPTS: usize = 16;

/// A descriptor of a directory that is only looked up from.
const DIR_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// What symbolic links in a path may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Lead to what is below the directory. An absolute one does if its text begins with the
    /// directory's path.
    #[default]
    Within,
    /// Nothing: a path with a link is refused.
    Never,
    /// Lead anywhere.
    Follow,
}

/// Whether a lookup may wait for a disk or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupMode {
    /// It may.
    Blocking,
    /// It answers from the kernel's caches, or not at all.
    Cached,
}

/// A directory and what is below it.
#[derive(Debug)]
pub struct Beneath {
    dir: OwnedFd,
    /// Device and inode number. While `dir` is open a local filesystem gives the number to no other
    /// directory.
    id: (u64, u64),
    /// The path it was opened by, from the top.
    path: Option<PathBuf>,
    links: Links,
}

impl Beneath {
    /// The directory `path`.
    ///
    /// # Errors
    /// As openat(2); `NOSYS` where the kernel has no openat2(2) (Linux 5.6) or something forbids it.
    pub fn new(path: &Path, links: Links) -> Result<Self, Errno> {
        let dir = retry_on_intr(|| openat(CWD, path, DIR_FLAGS, Mode::empty()))?;
        let id = stat(dir.as_fd())?.id();
        let beneath = Self { dir, id, path: absolute::absolute(path), links };
        beneath.open(b".", LookupMode::Blocking)?;
        Ok(beneath)
    }

    /// Whether `path` leads to this directory now; `None` if only a disk or a server could tell and
    /// must not be waited for.
    ///
    /// # Errors
    /// As openat(2) of `path`.
    pub fn is_at(&self, path: &Path, mode: LookupMode) -> Result<Option<bool>, Errno> {
        let resolve = if mode == LookupMode::Cached { ResolveFlags::CACHED } else { ResolveFlags::empty() };
        match retry_on_intr(|| openat2(CWD, path, DIR_FLAGS, Mode::empty(), resolve)) {
            Err(errno) if mode == LookupMode::Cached && would_wait(errno) => Ok(None),
            Err(errno) => Err(errno),
            // A server may have given the number of a removed directory to another one; the removed
            // one has no metadata then (ESTALE).
            Ok(there) => Ok(Some(stat(there.as_fd())?.id() == self.id && stat(self.dir()).is_ok())),
        }
    }

    /// The directory itself, as a path only.
    #[must_use]
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Opens `path`, relative and without NUL, to read: `None` if that would have to wait, and must not. Never waits for a fifo.
    ///
    /// # Errors
    /// As openat2(2): `XDEV` for a path that leaves the directory, `LOOP` for a link where there may be none. With
    /// [`LookupMode::Cached`] both are a `None`, too.
    pub fn open(&self, path: &[u8], mode: LookupMode) -> Result<Option<OwnedFd>, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.look_up(path, flags, mode)
    }

    /// The metadata of `path`, which is not opened; `None` as [`Beneath::open`] has it.
    ///
    /// # Errors
    /// As openat2(2) and statx(2).
    pub fn stat(&self, path: &[u8], mode: LookupMode) -> Result<Option<Meta>, Errno> {
        let file = self.look_up(path, OFlags::PATH | OFlags::CLOEXEC, mode)?;
        file.map(|file| stat(file.as_fd())).transpose()
    }

    fn look_up(&self, path: &[u8], flags: OFlags, mode: LookupMode) -> Result<Option<OwnedFd>, Errno> {
        if mode == LookupMode::Cached {
            let resolve = self.resolve(mode);
            let opened = retry_on_intr(|| openat2(&self.dir, path, flags, Mode::empty(), resolve));
            // Whether a link that leads out comes back is for a lookup that may wait.
            let is_told = !matches!(opened, Err(errno) if would_wait(errno) || errno == Errno::XDEV);
            return if is_told { opened.map(Some) } else { Ok(None) };
        }
        match self.open_beneath(path, flags) {
            Err(Errno::XDEV) if self.links == Links::Within => self.open_by_text(path, flags).map(Some),
            opened => opened.map(Some),
        }
    }

    fn open_beneath(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = self.resolve(LookupMode::Blocking);
        for _ in 0..ATTEMPTS {
            match retry_on_intr(|| openat2(&self.dir, path, flags, Mode::empty(), resolve)) {
                Err(Errno::AGAIN) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    pub(crate) fn resolve(&self, mode: LookupMode) -> ResolveFlags {
        let links = match self.links {
            Links::Within => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Links::Never => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS,
            Links::Follow => ResolveFlags::NO_MAGICLINKS,
        };
        match mode {
            LookupMode::Blocking => links,
            LookupMode::Cached => links | ResolveFlags::CACHED,
        }
    }
}

/// Whether a lookup that must not wait was refused for that: the kernel's caches do not have it, or it does not know the flag (before
/// Linux 5.12).
fn would_wait(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::INVAL)
}

/// The metadata of an open file.
///
/// # Errors
/// As fstat(2).
pub fn stat(file: BorrowedFd<'_>) -> Result<Meta, Errno> {
    sys::stat_open(file)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::FileType;

    fn tree() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("root");
        fs::create_dir_all(root.join("dir/deep")).unwrap();
        fs::write(top.path().join("secret"), "no").unwrap();
        fs::write(root.join("dir/file"), "yes").unwrap();
        symlink("dir/file", root.join("inside")).unwrap();
        symlink("dir", root.join("way")).unwrap();
        symlink("../secret", root.join("outside")).unwrap();
        symlink("../../secret", root.join("dir/outside")).unwrap();
        symlink(root.join("dir/file"), root.join("absolute")).unwrap();
        top
    }

    fn opened(root: &Beneath, path: &str) -> Result<(), Errno> {
        root.open(path.as_bytes(), LookupMode::Blocking).map(|file| assert!(file.is_some()))
    }

    #[test]
    fn paths_stay_below() {
        let top = tree();
        let root = Beneath::new(&top.path().join("root"), Links::Within).unwrap();
        for path in ["dir/file", "inside", "way/file", "dir", ".", "absolute"] {
            assert_eq!(opened(&root, path), Ok(()), "{path}");
        }
        for path in ["outside", "dir/outside", "way/outside", "../secret", "/etc/passwd", ".."] {
            assert_eq!(opened(&root, path), Err(Errno::XDEV), "{path}");
        }
        assert_eq!(opened(&root, "none"), Err(Errno::NOENT));
    }

    #[test]
    fn a_directory_is_known_again() {
        let top = tree();
        let (path, away) = (top.path().join("root"), top.path().join("away"));
        let root = Beneath::new(&path, Links::Within).unwrap();
        assert_eq!(root.is_at(&path, LookupMode::Blocking), Ok(Some(true)));
        assert_eq!(root.is_at(&path, LookupMode::Cached), Ok(Some(true)));
        fs::rename(&path, &away).unwrap();
        assert_eq!(root.is_at(&path, LookupMode::Blocking), Err(Errno::NOENT));
        symlink("away", &path).unwrap();
        assert_eq!(root.is_at(&path, LookupMode::Blocking), Ok(Some(true)), "by another way");
        fs::remove_dir_all(&away).unwrap();
        fs::create_dir(&away).unwrap();
        assert_eq!(root.is_at(&path, LookupMode::Blocking), Ok(Some(false)));
    }

    #[test]
    fn links_are_as_the_policy_has_them() {
        let top = tree();
        let root = Beneath::new(&top.path().join("root"), Links::Never).unwrap();
        assert_eq!(opened(&root, "inside"), Err(Errno::LOOP));
        assert_eq!(opened(&root, "way/file"), Err(Errno::LOOP));
        assert_eq!(opened(&root, "dir/file"), Ok(()));
        let root = Beneath::new(&top.path().join("root"), Links::Follow).unwrap();
        assert_eq!(opened(&root, "outside"), Ok(()));
        assert_eq!(opened(&root, "absolute"), Ok(()));
    }

    #[test]
    fn what_is_cached_is_there_at_once() {
        let top = tree();
        let root = Beneath::new(&top.path().join("root"), Links::Within).unwrap();
        let meta = root.stat(b"dir/file", LookupMode::Blocking).unwrap().unwrap();
        assert_eq!((meta.size, FileType::from_mode(meta.mode)), (3, FileType::Regular));
        assert_eq!(root.stat(b"dir/file", LookupMode::Cached).unwrap(), Some(meta));
        assert!(root.open(b"outside", LookupMode::Cached).unwrap().is_none());
    }

    #[test]
    fn a_fifo_is_not_waited_for() {
        let top = tree();
        let fifo = top.path().join("root/fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::from(0o644), 0).unwrap();
        let root = Beneath::new(&top.path().join("root"), Links::Within).unwrap();
        let file = root.open(b"fifo", LookupMode::Blocking).unwrap().unwrap();
        assert_eq!(FileType::from_mode(stat(file.as_fd()).unwrap().mode), FileType::Fifo);
    }
}
