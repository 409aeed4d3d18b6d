//! What a caller of the walk supplies: [`Visit`] runs on the workers and sees batches of entries in no order;
//! [`Consume`] runs on the calling thread and sees everything in traversal order.

use std::ffi::{CStr, CString};
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use fathom_io::{Errno, Fields, FileType, Follow, Meta, Name, Names, Stamp, sys};

use crate::node::Node;
use crate::task::{Batch, Job, OutputItem, Task};

/// Turns entries into items, on the workers.
pub trait Visit: Send + Sync + 'static {
    /// What the consumer gets for entries that are not directories to descend into.
    type Item: Send + 'static;

    /// Looks at a directory that has been opened, before any of its names are selected; only with
    /// [`Options::inspect_directories`](crate::Options::inspect_directories). Returns how many bytes of memory, roughly, it now keeps for it.
    fn opened(&self, _dir: Opened<'_>) -> usize {
        0
    }

    /// Looks at a directory that was reached, before it is read, and perhaps notes something about it
    /// ([`Node::set_finding`]) for the consumer that [enters](Consume::enter) it.
    fn reached(&self, _dir: Reached<'_>) {}

    /// Knows what is in a directory that has been opened, so that it is not read: fills `names` with what
    /// [`Visit::entries`] is to see of it, all at once and without metadata, and says so.
    fn recall(&self, _dir: &Arc<Node>, _meta: &Meta, _names: &mut Names) -> bool {
        false
    }

    /// Drops names nobody wants to know of, before their metadata is taken.
    fn select(&self, _dir: &Arc<Node>, _names: &mut Names) {}

    /// Sees a batch of the entries of `dir`: all of a small directory, a range of a wide one, in traversal order.
    fn entries<'a>(
        &self,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Self::Item>,
    );

    /// Bytes of memory behind an item, roughly: what waits for its turn is bounded by it.
    fn weight(item: &Self::Item) -> usize;
}

/// A directory that has been opened and begun to be read.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// The directory.
    pub node: &'a Arc<Node>,
    /// Its names; the first ones of a very wide directory.
    pub names: &'a Names,
    /// Whether there are no more.
    pub all: bool,
    /// Where names in it lead to. A worker's current directory may be any: no path leads there.
    pub at: BorrowedFd<'a>,
}

/// A directory that was reached: open, or where it cannot be opened, its name in the one above.
#[derive(Clone, Copy, Debug)]
pub struct Reached<'a> {
    /// The directory.
    pub node: &'a Arc<Node>,
    pub(crate) at: BorrowedFd<'a>,
    /// Empty for `at` itself.
    pub(crate) name: &'a CStr,
}

impl Reached<'_> {
    /// Returns the names of its extended attributes, as [`Entry::xattr_names`].
    ///
    /// # Errors
    /// As flistxattr(2).
    pub fn xattr_names(&self) -> Result<Option<Vec<u8>>, Errno> {
        sys::xattr_names(self.at, self.name)
    }

    /// Returns its project, as [`Entry::project`].
    ///
    /// # Errors
    /// As file_getattr(2), or as openat(2) and ioctl_fs(2).
    pub fn project(&self) -> Result<Option<u32>, Errno> {
        sys::project(self.at, self.name, FileType::Directory)
    }
}

/// One entry of a directory.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Name, inode number and type from the dirent.
    pub name: Name<'a>,
    /// Metadata; `None` for a directory whose own task takes it.
    pub meta: Option<Result<&'a Meta, Errno>>,
    /// The directory it is in. A worker's current directory may be any: no path leads there.
    at: BorrowedFd<'a>,
}

impl Entry<'_> {
    /// The best known type: the metadata's, or else the dirent's.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        match self.meta {
            Some(Ok(meta)) => meta.file_type(),
            _ => self.name.file_type,
        }
    }

    /// These fields of it, or of what it leads to.
    ///
    /// # Errors
    /// As fstatat(2).
    pub fn stat(&self, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
        sys::stat(self.at, self.name.name, follow, fields)
    }

    /// Opens it for reading, without waiting for a fifo or a device.
    ///
    /// # Errors
    /// As openat(2); ELOOP for a symbolic link that is not to be followed.
    pub fn open(&self, follow: Follow) -> Result<OwnedFd, Errno> {
        sys::open_file(self.at, self.name.name, follow)
    }

    /// What the symbolic link holds.
    ///
    /// # Errors
    /// As readlinkat(2).
    pub fn read_link(&self) -> Result<CString, Errno> {
        sys::read_link(self.at, self.name.name)
    }

    /// Returns the names of its extended attributes, each with a NUL behind it; `None` where its
    /// filesystem has no such attributes.
    ///
    /// # Errors
    /// As llistxattr(2).
    pub fn xattr_names(&self) -> Result<Option<Vec<u8>>, Errno> {
        sys::xattr_names(self.at, self.name.name)
    }

    /// Returns its project, by which quotas are counted; `None` where its filesystem has none.
    ///
    /// # Errors
    /// As file_getattr(2), or as openat(2) and ioctl_fs(2).
    pub fn project(&self) -> Result<Option<u32>, Errno> {
        sys::project(self.at, self.name.name, self.file_type())
    }

    /// When it was made, where that is kept.
    ///
    /// # Errors
    /// As statx(2).
    pub fn born(&self, follow: Follow) -> Result<Option<Stamp>, Errno> {
        sys::born(self.at, self.name.name, follow)
    }

    /// Its security context, if it has one.
    ///
    /// # Errors
    /// As getxattr(2).
    pub fn context(&self, follow: Follow) -> Result<Option<Vec<u8>>, Errno> {
        sys::context(self.at, self.name.name, follow)
    }
}

/// Where [`Visit::entries`] puts what it makes of them, in order.
#[derive(Debug)]
pub struct Emit<'a, T> {
    pub(crate) dir: &'a Arc<Node>,
    pub(crate) follow: Follow,
    pub(crate) slots: &'a mut Vec<OutputItem<T>>,
    pub(crate) measured: u64,
    pub(crate) batch: Batch,
}

impl<T> Emit<'_, T> {
    /// Sends an item to the consumer; with
    /// [`Options::unordered_chunks`](crate::Options::unordered_chunks), at any time before it leaves the
    /// directory.
    pub fn item(&mut self, item: T) {
        self.slots.push(OutputItem::Item(item));
    }

    /// Sends an item to the consumer in the order of the entries, whatever the walk.
    pub fn item_at(&mut self, entry: &Entry<'_>, item: T) {
        self.put(entry, OutputItem::Item(item));
    }

    fn put(&mut self, entry: &Entry<'_>, slot: OutputItem<T>) {
        self.slots.push(match self.batch {
            Batch::InOrder => slot,
            Batch::Loose => OutputItem::Held(entry.name.ino, Box::new(slot)),
        });
    }

    /// Adds to [`Progress::measured`](crate::Progress), at once.
    pub fn measure(&mut self, amount: u64) {
        self.measured = self.measured.wrapping_add(amount);
    }

    /// Walks the directory `entry`, at this place in the order.
    pub fn descend(&mut self, entry: &Entry<'_>) {
        self.descend_with(entry, |_| ());
    }

    /// The same; `begin` sees the directory before any worker does.
    pub(crate) fn descend_with(&mut self, entry: &Entry<'_>, begin: impl FnOnce(&Node)) {
        let name = entry.name.name;
        let node = match entry.name.file_type {
            FileType::Directory => Node::child(self.dir, name, Follow::No),
            FileType::Symlink if self.follow == Follow::Yes => Node::linked(self.dir, name),
            _ => Node::child(self.dir, name, self.follow),
        };
        begin(&node);
        self.put(entry, OutputItem::Dir(Task::new(Job::List(Arc::new(node)))));
    }
}

/// The entries of `range`, whose metadata is `metas`; of an empty slice, none has any.
pub(crate) fn entries<'a>(
    at: BorrowedFd<'a>,
    names: &'a Names,
    range: Range<usize>,
    metas: &'a [Option<Result<Meta, Errno>>],
) -> impl Iterator<Item = Entry<'a>> {
    let start = range.start;
    range.map(move |index| {
        let meta = metas.get(index - start).and_then(Option::as_ref);
        let meta = meta.map(|meta| meta.as_ref().map_err(|errno| *errno));
        Entry { name: names.get(index), meta, at }
    })
}

/// What was found where a directory should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A directory that could be read, or a first task of which could be.
    Readable,
    /// A directory that cannot be opened or read.
    Unreadable(Errno),
    /// A directory that is one of its own ancestors; it is not descended into.
    Loop,
}

/// A directory reached.
#[derive(Clone, Copy, Debug)]
pub struct Enter<'a> {
    /// The directory.
    pub node: &'a Arc<Node>,
    /// Its metadata, taken from the open directory where it could be opened.
    pub meta: &'a Meta,
    /// Whether it could be read.
    pub found: Found,
}

/// Whether a directory's entries are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descend {
    /// They are; [`Consume::leave`] follows them.
    Yes,
    /// They are not; neither items nor [`Consume::leave`] follow.
    No,
}

/// The next root, if there is one.
#[derive(Debug)]
pub enum NextRoot {
    /// Walk this.
    Path(CString),
    /// Nothing to walk, but [`Consume::note`] wants its turn in the order.
    Note,
    /// Walk the directory of this name in one that was entered before, and from which it was not gone on to. The end of those above
    /// it does not wait for it. Passed over in a walk in order.
    Below(Arc<Node>, CString),
    /// None is known without waiting for it.
    NotNow,
    /// There are no more.
    End,
}

/// Takes everything in traversal order: a directory, its items and subdirectories, the directory again; root after root.
pub trait Consume<T> {
    /// The next root. Waits for it only if `wait`.
    fn next_root(&mut self, wait: bool) -> NextRoot;
    /// The turn of a [`NextRoot::Note`].
    fn note(&mut self, _root: usize) {}
    /// A root that is no directory, or cannot be accessed.
    fn root_file(&mut self, root: usize, meta: Result<Meta, Errno>);
    /// A directory, before its entries. One that is a [`Found::Loop`] is not descended into whatever this says.
    fn enter(&mut self, enter: Enter<'_>) -> Descend;
    /// A subdirectory that can be neither opened nor stat'ed.
    fn lost(&mut self, node: &Node, errno: Errno);
    /// An item of the directory entered last and not left.
    fn item(&mut self, item: T);
    /// The directory entered last and not left, after its entries. `error` is why reading it ended early.
    fn leave(&mut self, error: Option<Errno>);
    /// Nothing is ready: a good time to flush.
    fn idle(&mut self) {}
    /// Whether to stop now.
    fn stopped(&mut self) -> bool {
        false
    }
}
