//! Lookup of untrusted paths below a directory. One openat2(2) call looks up a path and also checks
//! that it does not leave the directory, so a concurrent rename or link cannot circumvent the
//! check.
//!
//! ```text
//! path ── openat2(RESOLVE_BENEATH) ──> file
//!              └── EXDEV ──> absolute: replaced by its text ──> openat2(RESOLVE_BENEATH) ──> ...
//! ```
//! Owns: the descriptor of the directory, the policy for links, lookups that do not wait. Does not
//! own: the meaning of a path, and which files may be read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::retry_on_intr;

use crate::{Errno, Meta, sys};

mod absolute;

/// Maximum number of attempts of a lookup that concurrent renames disturb (openat2(2), EAGAIN).
pub(crate) const ATTEMPTS: usize = 16;

/// Flags of a directory that is only the base of lookups.
const DIR_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The policy for symbolic links in a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Links {
    /// Links are followed if they stay below the directory. An absolute link does if its text
    /// begins with the path of the directory.
    #[default]
    Within,
    /// A path with a link is refused.
    Never,
    /// Links are followed to any target.
    Follow,
}

/// Whether a lookup may wait for a disk or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupMode {
    /// The lookup may wait.
    Blocking,
    /// The lookup uses only the caches of the kernel (`RESOLVE_CACHED`).
    Cached,
}

/// An open directory below which paths are looked up.
///
/// ```
/// use std::path::Path;
/// use fathom_io::Errno;
/// use fathom_io::beneath::{Beneath, Links, LookupMode};
///
/// let root = Beneath::new(Path::new("src"), Links::Within)?;
/// let file = root.open(b"sys/mod.rs", LookupMode::Blocking)?;
/// assert!(file.is_some());
/// let outside = root.open(b"../Cargo.toml", LookupMode::Blocking);
/// assert_eq!(outside.unwrap_err(), Errno::XDEV);
/// # Ok::<(), Errno>(())
/// ```
#[derive(Debug)]
pub struct Beneath {
    dir: OwnedFd,
    /// Device and inode number. While `dir` is open, a local filesystem does not reuse the number.
    id: (u64, u64),
    /// The absolute path by which the directory was opened.
    path: Option<PathBuf>,
    links: Links,
}

impl Beneath {
    /// Opens the directory `path`.
    ///
    /// # Errors
    /// As openat(2). ENOSYS if the kernel has no openat2(2) (Linux 5.6) or a filter forbids it.
    pub fn new(path: &Path, links: Links) -> Result<Self, Errno> {
        let dir = retry_on_intr(|| openat(CWD, path, DIR_FLAGS, Mode::empty()))?;
        let id = stat(dir.as_fd())?.id();
        let beneath = Self { dir, id, path: absolute::absolute(path), links };
        beneath.open(b".", LookupMode::Blocking)?;
        Ok(beneath)
    }

    /// Returns whether `path` currently leads to this directory. `None` if the answer would have to
    /// wait and `mode` is [`LookupMode::Cached`].
    ///
    /// # Errors
    /// As openat(2) of `path`.
    pub fn is_at(&self, path: &Path, mode: LookupMode) -> Result<Option<bool>, Errno> {
        let resolve = if mode == LookupMode::Cached { ResolveFlags::CACHED } else { ResolveFlags::empty() };
        match retry_on_intr(|| openat2(CWD, path, DIR_FLAGS, Mode::empty(), resolve)) {
            Err(errno) if mode == LookupMode::Cached && would_wait(errno) => Ok(None),
            Err(errno) => Err(errno),
            // A server may reuse the inode number of a removed directory. The removed directory
            // then has no metadata (ESTALE).
            Ok(there) => Ok(Some(stat(there.as_fd())?.id() == self.id && stat(self.dir()).is_ok())),
        }
    }

    /// Returns the descriptor of the directory, which is open with `O_PATH`.
    #[must_use]
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Opens `path`, which is relative and has no NUL, for reading. Returns `None` if the lookup
    /// would have to wait and `mode` is [`LookupMode::Cached`]. Does not wait for a fifo.
    ///
    /// # Errors
    /// As openat2(2). EXDEV for a path that leaves the directory, which is `None` with
    /// [`LookupMode::Cached`]; ELOOP for a link with [`Links::Never`].
    pub fn open(&self, path: &[u8], mode: LookupMode) -> Result<Option<OwnedFd>, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.look_up(path, flags, mode)
    }

    /// Reads the metadata of `path` without opening it for reading. Returns `None` as
    /// [`Beneath::open`] does.
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
            // EXDEV may be an absolute link that stays within. A lookup that may wait decides that.
            let is_final = !matches!(opened, Err(errno) if would_wait(errno) || errno == Errno::XDEV);
            return if is_final { opened.map(Some) } else { Ok(None) };
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

/// Returns whether a cached lookup failed because it would have to wait: the caches do not have the
/// path (EAGAIN), or the kernel does not know the flag (EINVAL, before Linux 5.12).
fn would_wait(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::INVAL)
}

/// Reads the metadata of an open file.
///
/// # Errors
/// As fstat(2).
///
/// ```
/// use std::os::fd::AsFd;
///
/// let file = std::fs::File::open("Cargo.toml")?;
/// assert!(fathom_io::beneath::stat(file.as_fd())?.size > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
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
    fn paths_that_leave_the_directory_are_refused() {
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
    fn is_at_recognizes_the_directory_after_a_rename() {
        let top = tree();
        let (path, away) = (top.path().join("root"), top.path().join("away"));
        let root = Beneath::new(&path, Links::Within).unwrap();
        assert_eq!(root.is_at(&path, LookupMode::Blocking), Ok(Some(true)));
        assert_eq!(root.is_at(&path, LookupMode::Cached), Ok(Some(true)));
        fs::rename(&path, &away).unwrap();
        assert_eq!(root.is_at(&path, LookupMode::Blocking), Err(Errno::NOENT));
        symlink("away", &path).unwrap();
        assert_eq!(root.is_at(&path, LookupMode::Blocking), Ok(Some(true)), "through a link");
        fs::remove_dir_all(&away).unwrap();
        fs::create_dir(&away).unwrap();
        assert_eq!(root.is_at(&path, LookupMode::Blocking), Ok(Some(false)));
    }

    #[test]
    fn links_follow_the_policy() {
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
    fn a_cached_lookup_finds_cached_paths() {
        let top = tree();
        let root = Beneath::new(&top.path().join("root"), Links::Within).unwrap();
        let meta = root.stat(b"dir/file", LookupMode::Blocking).unwrap().unwrap();
        assert_eq!((meta.size, FileType::from_mode(meta.mode)), (3, FileType::Regular));
        assert_eq!(root.stat(b"dir/file", LookupMode::Cached).unwrap(), Some(meta));
        assert!(root.open(b"outside", LookupMode::Cached).unwrap().is_none());
    }

    #[test]
    fn open_does_not_wait_for_a_fifo() {
        let top = tree();
        let fifo = top.path().join("root/fifo");
        rustix::fs::mknodat(CWD, &fifo, rustix::fs::FileType::Fifo, Mode::from(0o644), 0).unwrap();
        let root = Beneath::new(&top.path().join("root"), Links::Within).unwrap();
        let file = root.open(b"fifo", LookupMode::Blocking).unwrap().unwrap();
        assert_eq!(FileType::from_mode(stat(file.as_fd()).unwrap().mode), FileType::Fifo);
    }
}
