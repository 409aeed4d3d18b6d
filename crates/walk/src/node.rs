//! A directory of the walk: its name, its parent, and its descriptor while that is kept.

use std::any::Any;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use fathom_io::{Follow, Meta};

use crate::fds::Fds;

/// The number of ancestors that a directory is compared with before it is listed.
const NEAR: usize = 64;

/// The state that all directories below one root share.
#[derive(Debug)]
struct Root {
    index: usize,
    path_len: usize,
    dev: OnceLock<u64>,
    /// The directory that the path starts from, until the end of the root. `None` for the working
    /// directory.
    base: Mutex<Option<Arc<OwnedFd>>>,
    /// The kept descriptors of the walk. Dangling once the walk is over and no consumer opens
    /// entries.
    fds: Weak<Fds>,
}

/// A directory of the walk. Paths are built only on request.
#[derive(Debug)]
pub struct Node {
    parent: Option<Arc<Node>>,
    name: CString,
    depth: usize,
    path_len: usize,
    links: usize,
    root: Arc<Root>,
    follow: Follow,
    /// The end of its parent does not wait for it.
    is_apart: bool,
    /// The index of its device queue. Before it is opened, its parent's.
    device: AtomicUsize,
    /// Device and inode number, once opened.
    id: OnceLock<(u64, u64)>,
    fd: Mutex<Option<Arc<OwnedFd>>>,
    /// The number of tasks that will still need this directory's descriptor.
    users: AtomicUsize,
    /// In an unordered walk, the number of its own tasks that have not ended, including the one
    /// that lists it.
    tasks: AtomicUsize,
    /// In an unordered walk, the number of its subdirectories that have not ended, plus one for its
    /// own tasks.
    below: AtomicUsize,
    note: OnceLock<Box<dyn Any + Send + Sync>>,
    /// The finding of the visitor when the directory was reached.
    finding: OnceLock<Box<dyn Any + Send + Sync>>,
    /// The gatherer's state of this directory.
    gathered: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Node {
    pub(crate) fn root(path: CString, root: usize, follow: Follow, fds: Weak<Fds>) -> Self {
        Self::root_at(None, path, root, follow, fds)
    }

    /// Creates a root whose path starts from `base`.
    pub(crate) fn root_at(
        base: Option<Arc<OwnedFd>>,
        path: CString,
        root: usize,
        follow: Follow,
        fds: Weak<Fds>,
    ) -> Self {
        let (path_len, dev, base) = (path.to_bytes().len(), OnceLock::new(), Mutex::new(base));
        Self::new(None, path, 0, Arc::new(Root { index: root, path_len, dev, base, fds }), follow)
    }

    /// Returns a copy of this directory's root to which nothing refers yet.
    pub(crate) fn root_again(&self) -> Self {
        let root = self.chain().last().unwrap_or(self);
        let again = Self::new(None, root.name.clone(), 0, self.root.clone(), root.follow);
        root.id().into_iter().for_each(|id| again.set_id(id));
        again
    }

    pub(crate) fn child(parent: &Arc<Self>, name: &CStr, follow: Follow) -> Self {
        let depth = parent.depth + 1;
        Self::new(Some(parent.clone()), name.to_owned(), depth, parent.root.clone(), follow)
    }

    /// Creates a directory that a symbolic link in `parent` leads to.
    pub(crate) fn linked(parent: &Arc<Self>, name: &CStr) -> Self {
        let mut node = Self::child(parent, name, Follow::Yes);
        node.links += 1;
        node
    }

    /// Creates a directory that is walked although the end of its parent may have been reported.
    pub(crate) fn apart(parent: &Arc<Self>, name: &CStr) -> Self {
        let mut node = Self::child(parent, name, Follow::No);
        node.is_apart = true;
        node
    }

    fn new(parent: Option<Arc<Self>>, name: CString, depth: usize, root: Arc<Root>, follow: Follow) -> Self {
        let path_len =
            name.to_bytes().len() + parent.as_ref().map_or(0, |parent| parent.path_len_with_slash());
        let device = AtomicUsize::new(parent.as_ref().map_or(0, |parent| parent.device()));
        let links = parent.as_ref().map_or(0, |parent| parent.links);
        let (id, fd, users) = (OnceLock::new(), Mutex::new(None), AtomicUsize::new(0));
        let (tasks, below, note) = (AtomicUsize::new(1), AtomicUsize::new(1), OnceLock::new());
        let (finding, gathered) = (OnceLock::new(), OnceLock::new());
        Self {
            parent,
            name,
            depth,
            path_len,
            links,
            root,
            follow,
            is_apart: false,
            device,
            id,
            fd,
            users,
            tasks,
            below,
            note,
            finding,
            gathered,
        }
    }

    /// Returns the name in the parent directory, or for a root, its path as given.
    #[must_use]
    pub fn name(&self) -> &CStr {
        &self.name
    }

    /// Returns the same as [`Node::name`].
    #[must_use]
    pub fn file_name(&self) -> &OsStr {
        OsStr::from_bytes(self.name.to_bytes())
    }

    /// Returns the path from the root on, as [`Node::path_into`] writes it.
    #[must_use]
    pub fn to_path_buf(&self) -> PathBuf {
        let mut path = Vec::with_capacity(self.path_len);
        self.path_into(&mut path);
        PathBuf::from(OsString::from_vec(path))
    }

    /// Returns the path of the entry `name` of this directory, or without a name, of the directory.
    #[must_use]
    pub fn path_of(&self, name: Option<&CStr>) -> Vec<u8> {
        let mut path = Vec::with_capacity(self.path_len + 1);
        self.path_into(&mut path);
        if let Some(name) = name {
            if path.last() != Some(&b'/') {
                path.push(b'/');
            }
            path.extend_from_slice(name.to_bytes());
        }
        path
    }

    /// Returns the number of levels below the root, which has 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the length in bytes of the path that [`Node::path_into`] writes, with one slash at
    /// the end.
    #[must_use]
    pub fn path_len_with_slash(&self) -> usize {
        let slash = self.parent.is_none() && self.name.to_bytes().ends_with(b"/");
        self.path_len + usize::from(!slash)
    }

    /// Returns the number of symbolic links in the path below the root, as far as dirents show.
    #[must_use]
    pub fn links(&self) -> usize {
        self.links
    }

    /// Returns the index of the root, in the order given.
    #[must_use]
    pub fn root_index(&self) -> usize {
        self.root.index
    }

    /// Returns the length in bytes of the root's path as given.
    #[must_use]
    pub fn root_path_len(&self) -> usize {
        self.root.path_len
    }

    /// Returns the parent directory, or `None` for a root.
    #[must_use]
    pub fn parent(&self) -> Option<&Arc<Self>> {
        self.parent.as_ref()
    }

    /// Returns device and inode number, or `None` before the directory is opened.
    #[must_use]
    pub fn id(&self) -> Option<(u64, u64)> {
        self.id.get().copied()
    }

    /// Returns the device of the root, or `None` if it was never opened.
    #[must_use]
    pub fn root_dev(&self) -> Option<u64> {
        self.root.dev.get().copied()
    }

    /// Returns the note that [`Node::set_note`] attached.
    #[must_use]
    pub fn note<T: Any>(&self) -> Option<&T> {
        self.note.get()?.downcast_ref()
    }

    /// Attaches `note` to this directory for as long as anything below it is walked. The first note
    /// stays.
    pub fn set_note(&self, note: impl Any + Send + Sync) {
        let _ = self.note.set(Box::new(note));
    }

    /// Returns the finding that [`Node::set_finding`] attached.
    #[must_use]
    pub fn finding<T: Any>(&self) -> Option<&T> {
        self.finding.get()?.downcast_ref()
    }

    /// Attaches a finding of [`OrderedVisitor::reached`](crate::OrderedVisitor::reached). The first
    /// stays.
    pub fn set_finding(&self, finding: impl Any + Send + Sync) {
        let _ = self.finding.set(Box::new(finding));
    }

    /// Returns this directory, its parent, and so on to the root.
    pub fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |node| node.parent.as_deref())
    }

    /// Appends the path: the root's as given, then the names, with one slash between them.
    pub fn path_into(&self, out: &mut Vec<u8>) {
        let mut chain: Vec<&Self> = Vec::with_capacity(self.depth + 1);
        let mut node = Some(self);
        while let Some(here) = node {
            chain.push(here);
            node = here.parent.as_deref();
        }
        for (level, node) in chain.into_iter().rev().enumerate() {
            if level > 0 && out.last() != Some(&b'/') {
                out.push(b'/');
            }
            out.extend_from_slice(node.name.to_bytes());
        }
    }

    /// Closes the descriptor of this directory if the walk keeps it, for instance because the
    /// directory has been removed. A later call that needs the descriptor opens the directory
    /// again.
    pub fn close(&self) {
        if let Some(fds) = self.fds() {
            fds.release(self);
        }
    }

    /// Returns the state that the walk's gatherer keeps of this directory.
    pub(crate) fn gathered<T: Any>(&self) -> Option<&T> {
        self.gathered.get()?.downcast_ref()
    }

    pub(crate) fn set_gathered(&self, kept: impl Any + Send + Sync) {
        let _ = self.gathered.set(Box::new(kept));
    }

    /// Returns the kept descriptors of the walk, if they still exist.
    pub(crate) fn fds(&self) -> Option<Arc<Fds>> {
        self.root.fds.upgrade()
    }

    /// Returns the directory that the path of the root starts from, unless it is the working
    /// directory.
    pub(crate) fn root_base(&self) -> Option<Arc<OwnedFd>> {
        self.root.base.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes the directory that the path of the root starts from.
    pub(crate) fn release_root_base(&self) {
        self.root.base.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(crate) fn follow(&self) -> Follow {
        self.follow
    }

    pub(crate) fn set_id(&self, id: (u64, u64)) {
        // A directory whose listing was postponed is listed a second time and has its id already.
        let _ = self.id.set(id);
        if self.parent.is_none() {
            let _ = self.root.dev.set(id.0);
        }
    }

    pub(crate) fn is_apart(&self) -> bool {
        self.is_apart
    }

    pub(crate) fn device(&self) -> usize {
        self.device.load(Ordering::Relaxed)
    }

    pub(crate) fn set_device(&self, device: usize) {
        self.device.store(device, Ordering::Relaxed);
    }

    /// Whether this directory, whose id is known, is on another device than its parent, or has no
    /// parent.
    pub(crate) fn is_device_root(&self) -> bool {
        let dev = |node: &Self| node.id().map(|id| id.0);
        self.parent.as_deref().is_none_or(|parent| dev(parent) != dev(self))
    }

    /// Whether this directory, just opened, is one of its own ancestors. Compares [`NEAR`] levels:
    /// that finds loops of as many levels. The consumer compares all levels; this check keeps
    /// workers from following a loop ahead of it.
    pub(crate) fn is_loop(&self, meta: &Meta) -> bool {
        self.ancestors().take(NEAR).any(|ancestor| ancestor.id() == Some(meta.id()))
    }

    /// As [`Node::is_loop`], for any number of levels.
    pub(crate) fn is_loop_anywhere(&self, meta: &Meta) -> bool {
        self.ancestors().any(|ancestor| ancestor.id() == Some(meta.id()))
    }

    fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(self.parent.as_deref(), |node| node.parent.as_deref())
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.fd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fd(&self) -> Option<Arc<OwnedFd>> {
        self.slot().clone()
    }

    /// Keeps `fd`. Returns the descriptor kept before.
    pub(crate) fn put_fd(&self, fd: Arc<OwnedFd>) -> Option<Arc<OwnedFd>> {
        self.slot().replace(fd)
    }

    pub(crate) fn take_fd(&self) -> Option<Arc<OwnedFd>> {
        self.slot().take()
    }

    pub(crate) fn add_users(&self, count: usize) {
        self.users.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn expect_part(&self) {
        self.tasks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn expect_below(&self) {
        self.below.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the end of a task. Returns whether it was the last one.
    pub(crate) fn end_part(&self) -> bool {
        // AcqRel: the last task sees the effects of all others before it reports the end.
        self.tasks.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Notes the end of a subdirectory or of all own tasks. Returns whether everything below has
    /// ended.
    pub(crate) fn end_below(&self) -> bool {
        // AcqRel: the last one sees the effects of all others before it reports the end.
        self.below.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Notes that a task no longer needs the descriptor. Returns whether it was the last one.
    pub(crate) fn drop_user(&self) -> bool {
        // AcqRel: the last user closes the descriptor after all others have used it.
        self.users.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl Drop for Node {
    /// Drops the ancestors one by one: a chain of 100,000 would overflow the stack otherwise. The
    /// gatherer's state of a directory refers to the parent, so it is dropped while the parent is
    /// still held.
    fn drop(&mut self) {
        drop(self.gathered.take());
        let mut next = self.parent.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            drop(node.gathered.take());
            next = node.parent.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(len: usize) -> Arc<Node> {
        let mut node = Arc::new(Node::root(c"r/".to_owned(), 0, Follow::No, Weak::new()));
        for _ in 0..len {
            node = Arc::new(Node::child(&node, c"d", Follow::No));
        }
        node
    }

    #[test]
    fn a_chain_of_a_million_is_dropped_without_recursion() {
        assert_eq!(chain(1_000_000).depth(), 1_000_000);
    }

    #[test]
    fn a_path_does_not_double_the_slash_of_its_root() {
        let mut path = Vec::new();
        chain(2).path_into(&mut path);
        assert_eq!(path, b"r/d/d");
    }

    #[test]
    fn a_directory_that_is_one_of_its_ancestors_is_a_loop() {
        let node = chain(2);
        let (parent, root) = (node.parent().unwrap(), node.parent().unwrap().parent().unwrap());
        root.set_id((1, 10));
        parent.set_id((1, 11));
        let meta = |dev, ino| Meta { dev, ino, ..Meta::default() };
        assert!(node.is_loop(&meta(1, 10)));
        assert!(node.is_loop(&meta(1, 11)));
        assert!(!node.is_loop(&meta(1, 12)));
        assert!(!node.is_loop(&meta(2, 10)));
    }
}
