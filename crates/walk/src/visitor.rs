//! The interfaces that the caller of a walk implements: a [`Visitor`] runs on the workers, a
//! [`Consumer`] receives the results of an ordered walk on the calling thread, and a [`RootSource`]
//! supplies the roots.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use fathom_io::{Errno, Fields, FileType, Follow, Meta, Name, Names, sys};

use crate::failure::Failure;
use crate::node::Node;
use crate::task::{Batch, Found, Job, OutputItem, Task};

/// Processes directories and entries on the workers, several at once. It is an [`OrderedVisitor`]
/// or an [`UnorderedVisitor`] as well.
///
/// A call that waits, for a full channel or a slow pipe, blocks its worker and, in time, all of
/// them: no queue grows meanwhile.
///
/// Examples are at [`run`](crate::run) and [`run_unordered`](crate::run_unordered).
pub trait Visitor: Send + Sync + 'static {
    /// The results for the consumer of an ordered walk. An unordered walk has no consumer: its
    /// visitors use [`Infallible`].
    type Item: Send + 'static;

    /// The state of one worker, for instance a buffer. Each worker starts with the default.
    type Local: Default;

    /// Inspects a directory that has been opened, before any of its names is selected; only with
    /// [`Options::inspect_directories`](crate::Options::inspect_directories). Returns roughly how
    /// many bytes of memory it keeps for the directory from now on.
    fn opened(&self, _dir: Opened<'_>) -> usize {
        0
    }

    /// Returns whether the contents of an open directory are known, so that it need not be read. If
    /// so, `names` has been filled with the entries for [`Visitor::entries`], which come all at
    /// once and without metadata.
    fn recall(&self, _dir: &Arc<Node>, _meta: &Meta, _names: &mut Names) -> bool {
        false
    }

    /// Drops names that are not needed, before their metadata is read.
    fn select(&self, _dir: &Arc<Node>, _names: &mut Names) {}

    /// Processes a batch of entries of `dir`: all of a small directory, a range of a wide one; in
    /// traversal order in an ordered walk. Passes an entry whose metadata could not be read to
    /// [`Emit::failed`], unless it can do without.
    fn entries<'a>(
        &self,
        local: &mut Self::Local,
        dir: &Arc<Node>,
        entries: impl Iterator<Item = Entry<'a>>,
        emit: &mut Emit<'_, Self::Item>,
    );
}

/// The visitor of an ordered walk ([`run`](crate::run)). The items that [`Visitor::entries`] emits,
/// and all that happens to directories, reach the [`Consumer`] in traversal order.
pub trait OrderedVisitor: Visitor {
    /// Inspects a directory that has been reached, before it is read. The consumer that
    /// [enters](Consumer::enter) it gets the result by [`Node::set_finding`].
    fn reached(&self, _dir: Reached<'_>) {}

    /// Returns whether directories are read before the consumer [enters](Consumer::enter) them. If
    /// not, a directory that is reached is opened only, and read once it has been entered: little
    /// is read in vain where most are not. Called for each directory.
    fn reads_ahead(&self) -> bool {
        true
    }

    /// Returns roughly how many bytes of memory an item takes. The walk bounds the sum for the
    /// items that wait for the consumer.
    fn weight(_item: &Self::Item) -> usize {
        0
    }
}

/// The visitor of an unordered walk ([`run_unordered`](crate::run_unordered)). The workers call it
/// for what happens to directories when it happens: [`enter`](Self::enter) before the entries of a
/// directory, [`leave`](Self::leave) after the last of them, [`done`](Self::done) after everything
/// below it.
pub trait UnorderedVisitor: Visitor<Item = Infallible> {
    /// Returns whether a directory that was reached is wanted, before it is read. A
    /// [`Found::Readable`] one may still fail to be read. Any other is not read; if it is wanted,
    /// that is a [failure](Self::failed).
    fn enter(&self, _local: &mut Self::Local, _enter: Enter<'_>) -> Descend {
        Descend::Yes
    }

    /// Receives a failure. Every failure comes here, once, and is counted in
    /// [`Progress::failures`](crate::Progress::failures).
    fn failed(&self, _local: &mut Self::Local, _failure: Failure<'_>) {}

    /// All entries of a directory that was to be read have been processed.
    fn leave(&self, _local: &mut Self::Local, _node: &Arc<Node>) {}

    /// No further call concerns this root or directory, or anything below it.
    fn done(&self, _local: &mut Self::Local, _node: &Arc<Node>) {}

    /// Receives a root that is not a directory.
    fn root_file(&self, _local: &mut Self::Local, _root: &Arc<Node>, _meta: &Meta) {}

    /// The worker has no task, or the walk ends. Data that this worker has buffered should be
    /// written.
    fn flush(&self, _local: &mut Self::Local) {}
}

/// Supplies the roots of a walk, on the calling thread.
pub trait RootSource {
    /// Returns the next root. Waits for it only if `wait`; then the walk has no other work.
    fn next_root(&mut self, wait: bool) -> NextRoot;
    /// Returns whether the walk must stop now.
    fn stopped(&mut self) -> bool {
        false
    }
}

/// Receives the results of an ordered walk, on the calling thread: a directory, its items and
/// subdirectories, the end of the directory; root after root. [`run`](crate::run) has an example.
pub trait Consumer<T>: RootSource {
    /// Receives a [`NextRoot::Note`] at its place among the roots.
    fn note(&mut self, _root: usize) {}
    /// Receives a root that is not a directory.
    fn root_file(&mut self, root: &Arc<Node>, meta: &Meta);
    /// Receives a directory before its entries, and returns whether they are wanted. If so, and if
    /// the directory is not [`Found::Readable`], a [failure](Consumer::failed) follows.
    fn enter(&mut self, enter: Enter<'_>) -> Descend;
    /// Receives an item of the directory that was entered last and not left.
    fn item(&mut self, item: T);
    /// Receives a failure, at its place in traversal order: after the [enter](Consumer::enter) of a
    /// directory that cannot be read, before the [leave](Consumer::leave) of one that could be read
    /// in part only, in place of a root or directory of which nothing is known, in place of an
    /// entry.
    fn failed(&mut self, failure: Failure<'_>);
    /// Receives the directory that was entered last and not left, after its entries. A
    /// [`Found::Loop`] is not left.
    fn leave(&mut self, node: &Arc<Node>);
    /// Called while no result is ready: output can be flushed without delaying anything.
    fn idle(&mut self) {}
}

/// A directory that has been opened, with its first names.
#[derive(Clone, Copy, Debug)]
pub struct Opened<'a> {
    /// The directory.
    pub node: &'a Arc<Node>,
    /// Its names; of a very wide directory, the first ones.
    pub names: &'a Names,
    /// Whether these are all names.
    pub all: bool,
    /// The open directory. Names must be resolved relative to it, because the current directory of
    /// a worker may be any.
    pub at: BorrowedFd<'a>,
}

/// A directory that was reached: open, or if it cannot be opened, its name in its parent.
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
    /// Metadata; `None` if it was not requested, and for a directory whose own task reads it.
    pub meta: Option<Result<&'a Meta, Errno>>,
    /// The directory that it is in.
    at: BorrowedFd<'a>,
}

impl Entry<'_> {
    /// Returns the open directory that it is in, for calls such as unlinkat(2).
    #[must_use]
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.at
    }

    /// Returns the type in the metadata, or else in the dirent.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        match self.meta {
            Some(Ok(meta)) => meta.file_type(),
            _ => self.name.file_type,
        }
    }

    /// Reads metadata of the entry, or of the target of the link if it is followed.
    ///
    /// # Errors
    /// As fstatat(2).
    pub fn stat(&self, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
        sys::stat(self.at, self.name.name, follow, fields)
    }

    /// Opens the entry for reading, without waiting for a fifo or a device.
    ///
    /// # Errors
    /// As openat(2); ELOOP for a symbolic link that is not to be followed.
    pub fn open(&self, follow: Follow) -> Result<OwnedFd, Errno> {
        sys::open_file(self.at, self.name.name, follow)
    }

    /// Returns the target of the symbolic link.
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

    /// Returns the security context, if there is one.
    ///
    /// # Errors
    /// As getxattr(2).
    pub fn context(&self, follow: Follow) -> Result<Option<Vec<u8>>, Errno> {
        sys::security_context(self.at, self.name.name, follow)
    }
}

/// Receives the results of [`Visitor::entries`].
#[derive(Debug)]
pub struct Emit<'a, T> {
    pub(crate) dir: &'a Arc<Node>,
    pub(crate) follow: Follow,
    pub(crate) slots: &'a mut Vec<OutputItem<T>>,
    pub(crate) measured: u64,
    pub(crate) failures: usize,
    pub(crate) batch: Batch,
}

impl<T> Emit<'_, T> {
    /// Sends an item to the consumer; with
    /// [`Options::unordered_chunks`](crate::Options::unordered_chunks), at any time before the
    /// directory is left.
    pub fn item(&mut self, item: T) {
        self.slots.push(OutputItem::Item(item));
    }

    /// Sends an item to the consumer in the order of the entries, whatever the options.
    pub fn item_at(&mut self, entry: &Entry<'_>, item: T) {
        self.put(entry, OutputItem::Item(item));
    }

    /// Reports that the metadata of an entry could not be read: to [`Consumer::failed`] at the
    /// place of the entry in the order, or in an unordered walk to
    /// [`UnorderedVisitor::failed`], after this batch.
    pub fn failed(&mut self, entry: &Entry<'_>, errno: Errno) {
        self.failures += 1;
        self.put(entry, OutputItem::Failed(entry.name.name.to_owned(), errno));
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

    /// Walks the directory `entry`. `begin` is called before any worker gets the directory.
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

/// Returns the entries of `range` with their metadata. If `metas` is empty, no entry has metadata.
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

/// A directory that was reached.
#[derive(Clone, Copy, Debug)]
pub struct Enter<'a> {
    /// The directory.
    pub node: &'a Arc<Node>,
    /// Its metadata, from the open directory if it could be opened.
    pub meta: &'a Meta,
    /// Whether it could be read.
    pub found: Found,
}

/// Whether the entries of a directory are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descend {
    /// The entries are wanted.
    Yes,
    /// The directory is skipped: no item, failure or leave follows.
    No,
}

/// The next root, if there is one.
#[derive(Debug)]
#[non_exhaustive]
pub enum NextRoot {
    /// Walk this path.
    Path(CString),
    /// Walk this path, which starts from an open directory. That stays open until the end of the
    /// root.
    At(Arc<OwnedFd>, CString),
    /// No path to walk, but a call of [`Consumer::note`] at this place in the order. Ignored in an
    /// unordered walk.
    Note,
    /// Walk the directory of this name in a directory that was entered before, and that was not
    /// descended into from there. The end of its ancestors does not wait for it. Ignored in an
    /// ordered walk.
    Below(Arc<Node>, CString),
    /// No root is known yet.
    NotNow,
    /// There are no more roots.
    End,
}
