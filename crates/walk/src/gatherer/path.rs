//! Paths of entries: their parts, their order, and system calls on an entry relative to its
//! directory.

use std::cmp::Ordering;
use std::ffi::{CStr, CString, OsStr};
use std::fmt;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io;
use std::iter;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

use fathom_io::{Errno, Fields, Follow, Meta, sys};

use super::message::RootId;
use crate::fds::{Base, Fds};
use crate::node::Node;

/// Descriptors kept while an entry is opened after the walk and all its inboxes have been dropped.
const KEPT: usize = 8;

/// The path of an entry, a directory or a root: a reference to a directory, which many paths share,
/// and a name in it.
///
/// Two paths are equal if their bytes are. A directory sorts before its entries, and these sort
/// before every other path that begins with the same characters, as with [`std::path::Path`].
///
/// ```
/// use std::io::Read;
/// use fathom_walk::gatherer::Builder;
/// use fathom_walk::{Fields, Follow};
///
/// for item in Builder::new().walk(["Cargo.toml"])? {
///     let path = item?.path;
///     assert_eq!(path.to_string(), "Cargo.toml");
///     assert_eq!((path.depth(), path.root().index()), (0, 0));
///     let mut text = String::new();
///     path.open(Follow::No)?.read_to_string(&mut text)?;
///     assert_eq!(path.stat(Follow::No, Fields::SIZE)?.size as usize, text.len());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct EntryPath {
    dir: Arc<Node>,
    /// `None` for `dir` itself.
    name: Option<Box<CStr>>,
}

impl EntryPath {
    pub(super) fn new(dir: &Arc<Node>, name: Option<&CStr>) -> Self {
        Self { dir: dir.clone(), name: name.map(|name| CString::from(name).into_boxed_c_str()) }
    }

    /// Returns the path of a directory, without a reference to that directory.
    pub(super) fn apart(node: &Node) -> Self {
        match node.parent() {
            Some(parent) => Self::new(parent, Some(node.name())),
            None => Self { dir: Arc::new(node.root_again()), name: None },
        }
    }

    /// Returns the path of a directory of the walk.
    #[must_use]
    pub fn of_dir(dir: &Arc<Node>) -> Self {
        Self { dir: dir.clone(), name: None }
    }

    /// Returns the directory that contains the entry; `None` for a root.
    #[must_use]
    pub fn parent(&self) -> Option<&Arc<Node>> {
        if self.name.is_some() { Some(&self.dir) } else { self.dir.parent() }
    }

    /// Returns the name of the entry in its directory; for a root, the path that was added.
    #[must_use]
    pub fn name(&self) -> &CStr {
        self.name.as_deref().unwrap_or(self.dir.name())
    }

    /// Returns [`EntryPath::name`] as an [`OsStr`].
    #[must_use]
    pub fn file_name(&self) -> &OsStr {
        OsStr::from_bytes(self.name().to_bytes())
    }

    /// Returns the number of levels below the root, whose depth is 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.dir.depth() + usize::from(self.name.is_some())
    }

    /// Returns the tree that contains the entry.
    #[must_use]
    pub fn root(&self) -> RootId {
        RootId(self.dir.root_index())
    }

    /// Appends the whole path, of any length, without recursion.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.dir.path_into(out);
        if let Some(name) = &self.name {
            if out.last() != Some(&b'/') {
                out.push(b'/');
            }
            out.extend_from_slice(name.to_bytes());
        }
    }

    /// Returns the whole path.
    #[must_use]
    pub fn to_path_buf(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(self.bytes()))
    }

    /// Returns the path relative to the root; an empty path for the root.
    #[must_use]
    pub fn below_root(&self) -> PathBuf {
        let mut names: Vec<&OsStr> =
            self.name.iter().map(|name| OsStr::from_bytes(name.to_bytes())).collect();
        names.extend(self.dir.chain().filter(|node| node.parent().is_some()).map(Node::file_name));
        names.into_iter().rev().collect()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    /// Opens the directory of the entry, unless it is still open, and returns it with the name, for
    /// calls such as unlinkat(2). Follows only those symbolic links that the walk followed.
    ///
    /// # Errors
    /// As openat2(2); ESTALE if another directory is now where its directory was.
    pub fn at(&self) -> io::Result<At<'_>> {
        let base = self.base(&self.fds())?;
        Ok(At { base, name: self.name() })
    }

    /// Opens the entry for reading, relative to its directory as [`EntryPath::at`] does. Never
    /// waits for a fifo or a device.
    ///
    /// # Errors
    /// As openat2(2); ESTALE if another directory is now where its directory was, ELOOP if it is a
    /// symbolic link that is not to be followed.
    pub fn open(&self, follow: Follow) -> io::Result<File> {
        let fds = self.fds();
        let base = self.base(&fds)?;
        Ok(fds.with_room(|| sys::open_file(base.as_fd(), self.name(), follow))?.into())
    }

    /// Reads the metadata of the entry, relative to its directory as [`EntryPath::at`] does.
    ///
    /// # Errors
    /// As openat2(2) and statx(2); ESTALE if another directory is now where its directory was.
    pub fn stat(&self, follow: Follow, fields: Fields) -> io::Result<Meta> {
        let base = self.base(&self.fds())?;
        Ok(sys::stat(base.as_fd(), self.name(), follow, fields)?)
    }

    fn fds(&self) -> Arc<Fds> {
        self.dir.fds().unwrap_or_else(|| Arc::new(Fds::new(KEPT)))
    }

    fn base(&self, fds: &Fds) -> Result<Base, Errno> {
        match self.name {
            Some(_) => fds.with_room(|| fds.open(&self.dir)).map(Base::Fd),
            None => fds.with_room(|| fds.base_of(&self.dir)),
        }
    }

    /// Returns the bytes of the path from the last one to the first.
    fn rev_bytes(&self) -> impl Iterator<Item = u8> {
        let own = self.name.iter().map(|name| name.to_bytes());
        let above = self.dir.chain().map(|node| node.name().to_bytes());
        let mut names = own.chain(above).peekable();
        iter::from_fn(move || {
            let name = names.next()?;
            // The path of a root may end in a slash, which is the separator then.
            let slash = names.peek().is_some_and(|above| !above.ends_with(b"/"));
            Some(name.iter().rev().copied().chain(slash.then_some(b'/')))
        })
        .flatten()
    }
}

impl fmt::Display for EntryPath {
    /// Writes the whole path on one line: control characters are escaped, and bytes that are not
    /// UTF-8 are replaced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.bytes()).escape_debug())
    }
}

impl fmt::Debug for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl PartialEq for EntryPath {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.dir, &other.dir) {
            return self.name == other.name;
        }
        self.rev_bytes().eq(other.rev_bytes())
    }
}

impl Eq for EntryPath {}

impl Hash for EntryPath {
    /// Hashes blocks of a fixed length, so that equal paths have the same hash wherever their names
    /// begin.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (mut block, mut filled) = ([0; 128], 0);
        for byte in self.rev_bytes() {
            block[filled] = byte;
            filled += 1;
            if filled == block.len() {
                state.write(&block);
                filled = 0;
            }
        }
        state.write(&block[..filled]);
        state.write_u8(0xff);
    }
}

impl PartialOrd for EntryPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EntryPath {
    fn cmp(&self, other: &Self) -> Ordering {
        let sort = |bytes: &[u8]| -> Vec<u8> {
            // A slash sorts before all other bytes; a path has no NUL.
            bytes.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect()
        };
        match (&self.name, &other.name) {
            (Some(name), Some(other_name)) if Arc::ptr_eq(&self.dir, &other.dir) => name.cmp(other_name),
            _ => sort(&self.bytes()).cmp(&sort(&other.bytes())),
        }
    }
}

/// An open directory and a name in it, for calls such as unlinkat(2). For a root, the directory
/// that relative paths start from.
#[derive(Debug)]
pub struct At<'a> {
    base: Base,
    name: &'a CStr,
}

impl At<'_> {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &CStr {
        self.name
    }
}

impl AsFd for At<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.base.as_fd()
    }
}
