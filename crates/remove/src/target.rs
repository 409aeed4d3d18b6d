//! A selected file or directory, and how its parent directory is opened: beneath the root, through
//! no symbolic link.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use fathom_io::{Errno, Fields, FileTime, FileType, Follow, Meta, sys};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::retry_on_intr;

use crate::failure::RemovalCause;
use crate::identity::Identity;

/// Maximum length in bytes of the part of a path that one call looks up: `PATH_MAX` without NUL.
const HOP_BYTES: usize = 4095;
/// Maximum number of attempts of a lookup that concurrent renames disturb (openat2(2), EAGAIN).
const ATTEMPTS: usize = 16;
/// Flags of a directory that is only the base of other calls.
const DIR_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// The resolution of a path below a root.
const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// A file or directory that is to be removed.
///
/// ```
/// use fathom_remove::Target;
///
/// assert_eq!(Target::path("a/b").path_bytes(), b"a/b");
/// assert_eq!(Target::below("a", b"b/c").path_bytes(), b"a/b/c");
/// assert_eq!(Target::listed("./a/b").path_bytes(), b"./a/b");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The directory that the user named. Symbolic links in this path are followed.
    root: PathBuf,
    /// The path below the root, in which no symbolic link is followed; empty for the root itself.
    below: Vec<u8>,
    /// The path as it was listed, for messages.
    listed: Option<Vec<u8>>,
    /// Whether a slash at the end of the path says that the target is a directory.
    is_directory: bool,
    identity: Option<Identity>,
    ctime: Option<FileTime>,
}

impl Target {
    /// Creates a target from a path. A symbolic link at its end is the target itself; those before
    /// are followed.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        let root = path.into();
        let is_directory = root.as_os_str().as_bytes().ends_with(b"/");
        Self { root, below: Vec::new(), listed: None, is_directory, identity: None, ctime: None }
    }

    /// Creates a target from a root and a path below it, of any length, without a slash at either
    /// end.
    pub fn below(root: impl Into<PathBuf>, below: impl Into<Vec<u8>>) -> Self {
        Self { below: below.into(), is_directory: false, ..Self::path(root) }
    }

    /// Creates a target from a path that a program has listed: below the working directory, or
    /// below `/` if it is absolute. Anybody who may write to a directory in it could have put a
    /// symbolic link there since, so none is followed in any component.
    pub fn listed(path: impl Into<Vec<u8>>) -> Self {
        let path = path.into();
        let root = if path.starts_with(b"/") { "/" } else { "" };
        match names(&path) {
            // A path without a name is refused as it is.
            below if below.is_empty() => Self::path(OsStr::from_bytes(&path)),
            below => Self::listed_at(root, below, path),
        }
    }

    /// Creates a target from a path that a program has listed below `root`: it begins with `root`
    /// and a slash. No symbolic link is followed behind that.
    ///
    /// # Errors
    /// [`RemovalCause::Outside`] if the path does not begin so.
    ///
    /// ```
    /// use fathom_remove::{RemovalCause, Target};
    ///
    /// assert!(Target::listed_below("/srv/", "/srv/a/b").is_ok());
    /// assert_eq!(Target::listed_below("/srv", "/srv2/a"), Err(RemovalCause::Outside));
    /// ```
    pub fn listed_below(root: impl Into<PathBuf>, path: impl Into<Vec<u8>>) -> Result<Self, RemovalCause> {
        let (root, path) = (root.into(), path.into());
        let prefix = root.as_os_str().as_bytes();
        let prefix = &prefix[..len_without_slashes(prefix)];
        let below =
            path.strip_prefix(prefix).filter(|below| below.starts_with(b"/") && !root.as_os_str().is_empty());
        match below.map(names) {
            Some(below) if !below.is_empty() => Ok(Self::listed_at(root, below, path)),
            _ => Err(RemovalCause::Outside),
        }
    }

    fn listed_at(root: impl Into<PathBuf>, below: Vec<u8>, path: Vec<u8>) -> Self {
        let is_directory = path.ends_with(b"/");
        Self { listed: Some(path), is_directory, ..Self::below(root, below) }
    }

    /// Sets the inode that was shown to the user. Any other one is left alone.
    #[must_use]
    pub fn identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Sets the change time that was shown to the user, for an inode whose number may be reused. A
    /// file that has been changed since is left alone.
    #[must_use]
    pub fn ctime(self, ctime: FileTime) -> Self {
        Self { ctime: Some(ctime), ..self }
    }

    /// Sets the inode that is at the path now as the one that is shown to the user. The path is
    /// looked up as it is for a removal, so it may have any length.
    ///
    /// # Errors
    /// Why the target cannot be removed: for example, it does not exist, or it is another inode
    /// than an [identity](Self::identity) that was set before.
    ///
    /// ```
    /// use fathom_remove::{RemovalCause, Target};
    ///
    /// assert!(Target::path("src").shown_now().is_ok());
    /// let missing = Target::path("src/nonexistent").shown_now();
    /// assert_eq!(missing, Err(RemovalCause::Os(fathom_remove::Errno::NOENT)));
    /// ```
    pub fn shown_now(self) -> Result<Self, RemovalCause> {
        let location = self.split()?;
        let parent = location.open()?;
        let (dev, ino) = sys::stat(parent.as_fd(), &location.name, Follow::No, Fields::IDENTITY)?.id();
        let found = Identity { dev, ino };
        if self.identity.is_some_and(|shown| shown != found) {
            return Err(RemovalCause::Replaced);
        }
        Ok(self.identity(found))
    }

    /// Returns the whole path, for messages.
    #[must_use]
    pub fn path_bytes(&self) -> Vec<u8> {
        if let Some(listed) = &self.listed {
            return listed.clone();
        }
        let mut path = self.root.as_os_str().as_bytes().to_vec();
        if !self.below.is_empty() {
            if path.last() != Some(&b'/') {
                path.push(b'/');
            }
            path.extend_from_slice(&self.below);
        }
        path
    }

    /// Returns whether this inode is the one that was shown, as far as that is known. The change
    /// time of a directory changes with its entries, so it is not compared.
    pub(crate) fn is_shown(&self, meta: &Meta) -> bool {
        let same = self.identity.is_none_or(|shown| (shown.dev, shown.ino) == meta.id());
        let is_directory = meta.file_type() == FileType::Directory;
        same && (is_directory || self.ctime.is_none_or(|shown| shown == meta.ctime))
    }

    /// Splits the path into the path of the directory and the name in it.
    ///
    /// # Errors
    /// For a path that does not end in a name: an empty one, `/`, or one that ends in `.` or `..`.
    pub(crate) fn split(&self) -> Result<Location, RemovalCause> {
        if self.below.is_empty() {
            let path = self.root.as_os_str().as_bytes();
            let (parent, name) = split_last(path);
            let (root, is_directory) = (parent.to_vec(), self.is_directory);
            return Ok(Location { root, above: Vec::new(), name: file_name(name)?, is_directory });
        }
        let (above, name) = split_last(&self.below);
        let is_name = |part: &[u8]| !part.is_empty() && part != b"." && part != b"..";
        if !above.is_empty() && !above.split(|byte| *byte == b'/').all(is_name) {
            return Err(RemovalCause::Outside);
        }
        let root = self.root.as_os_str().as_bytes().to_vec();
        Ok(Location { root, above: above.to_vec(), name: file_name(name)?, is_directory: self.is_directory })
    }
}

/// Splits a path at its last slash, after slashes at its end. The first part keeps a slash if it is
/// the root directory.
fn split_last(path: &[u8]) -> (&[u8], &[u8]) {
    let path = if path.starts_with(b"/") && len_without_slashes(path) == 0 {
        b"/"
    } else {
        &path[..len_without_slashes(path)]
    };
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (
            &path[..len_without_slashes(&path[..slash]).max(usize::from(path[0] == b'/'))],
            &path[slash + 1..],
        ),
        None => (b"", path),
    }
}

/// Joins the names of a path, without those before the last that stand for the directory itself.
fn names(path: &[u8]) -> Vec<u8> {
    let (above, last) = split_last(path);
    let above = above.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    above.chain([last].into_iter().filter(|last| !last.is_empty())).collect::<Vec<_>>().join(&b'/')
}

/// Returns the length of a path up to the slashes at its end.
fn len_without_slashes(path: &[u8]) -> usize {
    path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1)
}

fn file_name(name: &[u8]) -> Result<CString, RemovalCause> {
    match name {
        b"." | b".." => Err(RemovalCause::DotName),
        b"" => Err(RemovalCause::RootDirectory),
        name => CString::new(name).map_err(|_| Errno::INVAL.into()),
    }
}

/// The place of a target: a directory and a name in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Location {
    root: Vec<u8>,
    above: Vec<u8>,
    pub(crate) name: CString,
    /// Whether a slash at the end of the path says that the target is a directory.
    pub(crate) is_directory: bool,
}

impl Location {
    /// Returns whether both are in the same directory.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (&self.root, &self.above) == (&other.root, &other.above)
    }

    /// Returns the path of the directory.
    pub(crate) fn dir_path(&self) -> PathBuf {
        let root = PathBuf::from(OsStr::from_bytes(if self.root.is_empty() { b"." } else { &self.root }));
        if self.above.is_empty() { root } else { root.join(OsStr::from_bytes(&self.above)) }
    }

    /// Opens the directory with `O_PATH`.
    ///
    /// # Errors
    /// As openat2(2); [`RemovalCause::Link`] for a symbolic link below the root (ELOOP),
    /// [`RemovalCause::Outside`] for a path that leaves it (EXDEV).
    pub(crate) fn open(&self) -> Result<OwnedFd, RemovalCause> {
        let root = if self.root.is_empty() { b"." } else { &self.root[..] };
        let root = open_hops(CWD, root, ResolveFlags::empty())?;
        if self.above.is_empty() {
            return Ok(root);
        }
        open_hops(root.as_fd(), &self.above, BENEATH).map_err(|errno| match errno {
            Errno::LOOP => RemovalCause::Link,
            Errno::XDEV => RemovalCause::Outside,
            errno => errno.into(),
        })
    }
}

/// Opens a directory by a path of any length.
fn open_hops(at: BorrowedFd<'_>, path: &[u8], resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    let (mut base, mut rest) = (None::<OwnedFd>, path);
    loop {
        let (hop, next) = next_hop(rest)?;
        let opened = open_dir(base.as_ref().map_or(at, AsFd::as_fd), hop, resolve)?;
        if next.is_empty() {
            return Ok(opened);
        }
        (base, rest) = (Some(opened), next);
    }
}

/// Splits off as much of a path as one call can look up.
fn next_hop(path: &[u8]) -> Result<(&[u8], &[u8]), Errno> {
    if path.len() <= HOP_BYTES {
        return Ok((path, b""));
    }
    let slash = path[..=HOP_BYTES].iter().rposition(|byte| *byte == b'/').filter(|at| *at > 0);
    let (hop, rest) = path.split_at(slash.ok_or(Errno::NAMETOOLONG)?);
    let start = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
    Ok((hop, &rest[start..]))
}

fn open_dir(at: BorrowedFd<'_>, path: &[u8], resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
    for _ in 0..ATTEMPTS {
        match retry_on_intr(|| openat2(at, path, DIR_FLAGS, Mode::empty(), resolve)) {
            Err(Errno::AGAIN) => {}
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_into_directory_and_name() {
        for (path, expected) in [
            ("a", ("", "a")),
            ("a/", ("", "a")),
            ("a//b//", ("a", "b")),
            ("/a", ("/", "a")),
            ("//a", ("/", "a")),
            ("/a/b", ("/a", "b")),
            ("./a", (".", "a")),
            ("../a", ("..", "a")),
        ] {
            let found = Target::path(path).split().unwrap();
            let expected = (expected.0.as_bytes().to_vec(), CString::new(expected.1).unwrap());
            assert_eq!((found.root, found.name), expected, "{path}");
        }
    }

    #[test]
    fn a_path_that_ends_in_no_name_is_refused() {
        for (path, cause) in [
            (".", RemovalCause::DotName),
            ("..", RemovalCause::DotName),
            ("a/..", RemovalCause::DotName),
            ("a/./", RemovalCause::DotName),
            ("/", RemovalCause::RootDirectory),
            ("///", RemovalCause::RootDirectory),
        ] {
            assert_eq!(Target::path(path).split(), Err(cause), "{path}");
        }
        for below in ["../a", "a/../b", "/a", "a//b/c", "./a"] {
            assert_eq!(Target::below("r", below).split(), Err(RemovalCause::Outside), "{below}");
        }
        assert_eq!(Target::below("r", "a/..").split(), Err(RemovalCause::DotName));
    }

    #[test]
    fn a_listed_path_is_below_the_working_directory_or_the_root_directory() {
        for (path, expected) in [
            ("a", ("", "", "a", false)),
            ("./a//b/./c/", ("", "a/b", "c", true)),
            ("/a", ("/", "", "a", false)),
            ("//a/b/c", ("/", "a/b", "c", false)),
        ] {
            let target = Target::listed(path);
            let Location { root, above, name, is_directory } = target.split().unwrap();
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            let found = (text(root), text(above), text(name.into_bytes()), is_directory);
            let (root, above, name, is_directory) = expected;
            assert_eq!(found, (root.into(), above.into(), name.into(), is_directory), "{path}");
            assert_eq!(target.path_bytes(), path.as_bytes());
        }
        for (path, cause) in [
            ("../a", RemovalCause::Outside),
            ("a/../../b/c", RemovalCause::Outside),
            ("/../a", RemovalCause::Outside),
            ("a/..", RemovalCause::DotName),
            ("a/.", RemovalCause::DotName),
            (".", RemovalCause::DotName),
            ("./", RemovalCause::DotName),
            ("/", RemovalCause::RootDirectory),
        ] {
            assert_eq!(Target::listed(path).split(), Err(cause), "{path}");
        }
    }

    #[test]
    fn a_path_listed_below_a_root_begins_with_it() {
        let split =
            |root: &str, path: &str| Target::listed_below(root, path).and_then(|target| target.split());
        for (root, path, above) in
            [("/srv", "/srv/a/b", "a"), ("..", "../a/b", "a"), ("/", "/a/b", "a"), ("r//", "r/b", "")]
        {
            let location = split(root, path).unwrap();
            assert_eq!((&*location.root, &*location.above), (root.as_bytes(), above.as_bytes()), "{path}");
        }
        for (root, path) in
            [("/srv", "/srv2/a"), ("/srv", "a"), ("r", "r"), ("r", "r/../a"), ("r", "./r/a"), ("", "/a")]
        {
            assert_eq!(split(root, path), Err(RemovalCause::Outside), "{root} {path}");
        }
        assert_eq!(split("r", "r/"), Err(RemovalCause::Outside));
        assert_eq!(split("r", "r/./"), Err(RemovalCause::DotName));
    }

    #[test]
    fn hops_cover_a_long_path_within_path_max() {
        let path = vec!["x".repeat(200); 100].join("/").into_bytes();
        let (mut rest, mut names) = (&path[..], Vec::new());
        while !rest.is_empty() {
            let (hop, next) = next_hop(rest).unwrap();
            assert!(hop.len() <= HOP_BYTES);
            names.push(hop);
            rest = next;
        }
        assert_eq!(names.join(&b'/'), path);
        assert_eq!(next_hop(&[b'x'; HOP_BYTES + 1]), Err(Errno::NAMETOOLONG));
    }
}
