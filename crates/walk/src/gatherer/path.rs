//! Paths of what was found: views of them, their order, and opening what they lead to relative to
//! its directory.

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

/// Descriptors kept while something is opened after the walk and all its inboxes are gone.
const KEPT: usize = 8;

/// The path of an entry, a directory or a root: a reference to a directory, which many share, and a
/// name in it.
///
/// Two paths are equal if they are written the same. A directory comes before what is in it, and
/// that before everything whose path only begins with the same characters, as with
/// [`std::path::Path`].
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

    /// The path of a directory, without a reference to that.
    pub(super) fn apart(node: &Node) -> Self {
        match node.parent() {
            Some(parent) => Self::new(parent, Some(node.name())),
            None => Self { dir: Arc::new(node.root_again()), name: None },
        }
    }

    /// Returns the directory it is in; `None` for a root.
    #[must_use]
    pub fn parent(&self) -> Option<&Arc<Node>> {
        if self.name.is_some() { Some(&self.dir) } else { self.dir.parent() }
    }

    /// Returns its name in its directory; of a root, the path it was added by.
    #[must_use]
    pub fn name(&self) -> &CStr {
        self.name.as_deref().unwrap_or(self.dir.name())
    }

    /// Returns the same as [`EntryPath::name`].
    #[must_use]
    pub fn file_name(&self) -> &OsStr {
        OsStr::from_bytes(self.name().to_bytes())
    }

    /// Returns the number of levels below the root, which is at 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.dir.depth() + usize::from(self.name.is_some())
    }

    /// Returns the tree it is in.
    #[must_use]
    pub fn root(&self) -> RootId {
        RootId(self.dir.root_index())
    }

    /// Appends the whole path, without recursion and whatever its length.
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

    /// Returns the path below the root; an empty one for the root.
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

    /// Opens its directory, unless that is still open, and returns it with the name, for calls such
    /// as unlinkat(2). No symbolic link is followed on the way there, unless the walk followed it.
    ///
    /// # Errors
    /// As openat2(2); ESTALE if another directory is now where its directory was.
    pub fn at(&self) -> io::Result<At<'_>> {
        let base = self.base(&self.fds())?;
        Ok(At { base, name: self.name() })
    }

    /// Opens it for reading, relative to its directory as [`EntryPath::at`] does. Never waits for a
    /// fifo or a device.
    ///
    /// # Errors
    /// As openat2(2); ESTALE if another directory is now where its directory was, ELOOP if it is a
    /// symbolic link that is not to be followed.
    pub fn open(&self, follow: Follow) -> io::Result<File> {
        let fds = self.fds();
        let base = self.base(&fds)?;
        Ok(fds.with_room(|| sys::open_file(base.as_fd(), self.name(), follow))?.into())
    }

    /// Takes its metadata, relative to its directory as [`EntryPath::at`] does.
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

    /// The path's bytes from its end to its start.
    fn rev_bytes(&self) -> impl Iterator<Item = u8> {
        let own = self.name.iter().map(|name| name.to_bytes());
        let above = self.dir.chain().map(|node| node.name().to_bytes());
        let mut names = own.chain(above).peekable();
        iter::from_fn(move || {
            let name = names.next()?;
            // A root whose path ends in a slash needs no separator behind it.
            let slash = names.peek().is_some_and(|above| !above.ends_with(b"/"));
            Some(name.iter().rev().copied().chain(slash.then_some(b'/')))
        })
        .flatten()
    }
}

impl fmt::Display for EntryPath {
    /// Writes the whole path on one line: control characters are escaped, other bytes that are no
    /// text replaced.
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
    /// In blocks of a fixed length, so that it does not matter where the names in the path begin.
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
            // A slash comes before everything else; no path has a NUL.
            bytes.iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect()
        };
        match (&self.name, &other.name) {
            (Some(name), Some(other_name)) if Arc::ptr_eq(&self.dir, &other.dir) => name.cmp(other_name),
            _ => sort(&self.bytes()).cmp(&sort(&other.bytes())),
        }
    }
}

/// An open directory and a name in it, for calls such as unlinkat(2). For a root it is the
/// directory that relative roots start from.
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
