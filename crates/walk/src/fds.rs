//! Directory descriptors that are kept to open children, within a budget.
//!
//! A directory's descriptor is kept until its last child is open. Above the budget the oldest one
//! is closed, which in a depth-first walk is the shallowest. If it is needed again, it is reopened
//! from its nearest ancestor that is still open, without following links, and device and inode
//! number are compared with those before.

use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fathom_io::{Dir, Errno, Fields, Follow, sys};

use crate::node::Node;

/// Descriptors that a directory being read needs besides the kept ones: the base that it is opened
/// from, itself, and a hop when reopening.
const PER_UNIT: usize = 3;
/// Descriptors left to the rest of the process: standard streams, rings, runtimes, files that a
/// library opens briefly.
const RESERVED: usize = 12;
/// The maximum of tries to open a directory while no descriptor is free, before EMFILE is reported.
const TRIES_MAX: usize = 200;
/// The maximum of kept descriptors. With more, reopening is rare already.
const KEPT_MAX: usize = 1024;
/// Names joined for one hop of a reopening. Few, so that each hop of a deep chain keeps a
/// descriptor from which the next one is near.
const HOP_NAMES: usize = 256;
/// PATH_MAX without its terminating NUL.
const HOP_BYTES: usize = 4096 - 1;

/// The base of directory-relative calls: a kept descriptor, or for a root the working directory.
#[derive(Debug)]
pub(crate) enum Base {
    Cwd,
    Fd(Arc<OwnedFd>),
}

impl AsFd for Base {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Cwd => sys::CWD,
            Self::Fd(fd) => fd.as_fd(),
        }
    }
}

/// The division of a descriptor limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// The number of directories that may be read at once.
    pub(crate) units: usize,
    /// The number of descriptors that may be kept.
    pub(crate) kept: usize,
}

impl Budget {
    /// Divides `limit` (RLIMIT_NOFILE), given the wanted number of directories read at once.
    pub(crate) fn new(limit: usize, units_wanted: usize) -> Self {
        let usable = limit.saturating_sub(RESERVED);
        let units = units_wanted.min((usable / (PER_UNIT + 1)).max(1));
        Self { units, kept: usable.saturating_sub(units * PER_UNIT).min(KEPT_MAX) }
    }
}

/// The kept descriptors.
#[derive(Debug)]
pub(crate) struct Fds {
    kept_max: usize,
    kept: AtomicUsize,
    reopened: AtomicU64,
    /// Whether a worker has waited for a descriptor in vain, and none has got one since.
    is_starved: AtomicBool,
    /// A descriptor of the initial working directory, once a worker has left it. `None` if it
    /// cannot be opened.
    start: OnceLock<Option<Arc<OwnedFd>>>,
    /// Oldest first. Entries whose descriptor is already closed are skipped.
    order: Mutex<VecDeque<Arc<Node>>>,
}

impl Fds {
    pub(crate) fn new(kept_max: usize) -> Self {
        Self {
            kept_max,
            kept: AtomicUsize::new(0),
            reopened: AtomicU64::new(0),
            is_starved: AtomicBool::new(false),
            start: OnceLock::new(),
            order: Mutex::new(VecDeque::new()),
        }
    }

    fn order(&self) -> std::sync::MutexGuard<'_, VecDeque<Arc<Node>>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `fd` for `node` until [`Fds::release`], or until the budget is exceeded.
    pub(crate) fn keep(&self, node: &Arc<Node>, fd: Arc<OwnedFd>) {
        if node.put_fd(fd).is_some() {
            return;
        }
        let mut order = self.order();
        order.push_back(node.clone());
        if self.kept.fetch_add(1, Ordering::Relaxed) >= self.kept_max {
            self.close_oldest(&mut order);
        }
        if order.len() > 2 * self.kept_max + 64 {
            order.retain(|node| node.fd().is_some());
        }
    }

    fn close_oldest(&self, order: &mut VecDeque<Arc<Node>>) -> bool {
        while let Some(node) = order.pop_front() {
            if self.release(&node) {
                return true;
            }
        }
        false
    }

    /// Closes `node`'s descriptor once no call uses it. Returns false if none was kept.
    pub(crate) fn release(&self, node: &Node) -> bool {
        let kept = node.take_fd().is_some();
        if kept {
            self.kept.fetch_sub(1, Ordering::Relaxed);
        }
        kept
    }

    /// Closes a kept descriptor because the process has run out of them. Returns false if there is
    /// none.
    pub(crate) fn shed(&self) -> bool {
        self.close_oldest(&mut self.order())
    }

    /// Notes that one task less needs `node`'s descriptor.
    pub(crate) fn drop_user(&self, node: &Node) {
        if node.drop_user() {
            self.release(node);
        }
    }

    /// Returns the base from which `node` is opened.
    pub(crate) fn base_of(&self, node: &Node) -> Result<Base, Errno> {
        node.parent().map_or_else(|| Ok(self.base_of_root(node)), |parent| self.open(parent).map(Base::Fd))
    }

    /// Returns the base from which a root is opened.
    fn base_of_root(&self, root: &Node) -> Base {
        root.root_base().map_or_else(|| self.start(), Base::Fd)
    }

    /// Returns the base of roots without a base of their own.
    fn start(&self) -> Base {
        self.start.get().cloned().flatten().map_or(Base::Cwd, Base::Fd)
    }

    /// Whether workers may leave the initial working directory. Each worker calls this first.
    pub(crate) fn may_leave_start(&self) -> bool {
        self.start.get_or_init(|| sys::open_path(sys::CWD, c".", Follow::Yes).ok().map(Arc::new)).is_some()
    }

    /// Returns `node`'s descriptor, reopened if it was not kept.
    ///
    /// # Errors
    /// As openat2(2); ESTALE if another directory is now where `node` was.
    pub(crate) fn open(&self, node: &Arc<Node>) -> Result<Arc<OwnedFd>, Errno> {
        let mut closed = Vec::new();
        let mut at = Some(node);
        let mut base = None;
        while let Some(here) = at {
            base = here.fd();
            if base.is_some() {
                break;
            }
            closed.push(here);
            at = here.parent();
        }
        let mut rest = closed.as_slice();
        while let Some((hop, above)) = next_hop(rest) {
            let fd = Arc::new(self.reopen(base.as_ref(), hop)?);
            self.keep(hop[0], fd.clone());
            (base, rest) = (Some(fd), above);
        }
        Ok(base.expect("either a descriptor was found or the last hop made one"))
    }

    /// Returns how often a worker tries again to open a directory while no descriptor is free: not
    /// at all if waiting has been in vain.
    pub(crate) fn tries(&self) -> usize {
        // Relaxed, as below: a worker that reads an old value waits in vain, or not at all.
        if self.is_starved.load(Ordering::Relaxed) { 0 } else { TRIES_MAX }
    }

    /// Notes whether the last of these tries has failed, too.
    pub(crate) fn note_starved(&self, is_starved: bool) {
        if self.is_starved.load(Ordering::Relaxed) != is_starved {
            self.is_starved.store(is_starved, Ordering::Relaxed);
        }
    }

    /// Returns the number of directories that were reopened.
    pub(crate) fn reopened(&self) -> u64 {
        self.reopened.load(Ordering::Relaxed)
    }

    /// Opens the first directory of `hop` from `base`. The last one is a child of `base`, or a
    /// root.
    fn reopen(&self, base: Option<&Arc<OwnedFd>>, hop: Chain<'_, '_>) -> Result<OwnedFd, Errno> {
        self.reopened.fetch_add(1, Ordering::Relaxed);
        let target = hop[0];
        let fd = self.with_room(|| match base {
            None => sys::open_dir(self.base_of_root(target).as_fd(), target.name(), target.follow())
                .map(Dir::into_fd),
            Some(base) => sys::open_path(base.as_fd(), &join(hop), target.follow()),
        })?;
        let dir = Dir::from_fd(fd);
        let found = sys::stat_dir(&dir, Fields::IDENTITY)?.id();
        if target.id() == Some(found) { Ok(dir.into_fd()) } else { Err(Errno::STALE) }
    }

    /// Repeats `open` while closing a kept descriptor may help.
    pub(crate) fn with_room<T>(&self, mut open: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
        loop {
            match open() {
                Err(Errno::MFILE | Errno::NFILE) if self.shed() => {}
                result => return result,
            }
        }
    }
}

impl Drop for Fds {
    /// Closes the kept descriptors: their directories may be referenced after the walk has ended,
    /// and would keep them open.
    fn drop(&mut self) {
        while self.shed() {}
    }
}

/// Directories, each below the next one.
type Chain<'c, 'n> = &'c [&'n Arc<Node>];

/// Splits the next hop off the top end of `closed`. Both are deepest first. A root is a hop of its
/// own, and so is a followed link: the kernel follows at most 40 in one path, and must not follow
/// the other names.
fn next_hop<'c, 'n>(closed: Chain<'c, 'n>) -> Option<(Chain<'c, 'n>, Chain<'c, 'n>)> {
    let plain = |node: &Node| node.parent().is_some() && node.follow() == Follow::No;
    let top = closed.last()?;
    let mut bytes = top.name().to_bytes().len();
    let mut len = 1;
    for below in closed.iter().rev().skip(1).take(HOP_NAMES - 1) {
        bytes += 1 + below.name().to_bytes().len();
        if !plain(top) || !plain(below) || bytes > HOP_BYTES {
            break;
        }
        len += 1;
    }
    let (rest, hop) = closed.split_at(closed.len() - len);
    Some((hop, rest))
}

fn join(hop: Chain<'_, '_>) -> CString {
    let names: Vec<&[u8]> = hop.iter().rev().map(|node| node.name().to_bytes()).collect();
    CString::new(names.join(&b'/')).expect("joined from C strings")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_leaves_room_to_work() {
        for limit in [0, 16, 20, 32, 256, 1024, 1 << 20] {
            for wanted in [1, 2, 64, 4096] {
                let budget = Budget::new(limit, wanted);
                assert!((1..=wanted).contains(&budget.units));
                assert!(
                    limit < 20 || RESERVED + budget.units * PER_UNIT + budget.kept <= limit,
                    "{limit} {wanted}"
                );
            }
        }
    }

    #[test]
    fn hops_cover_a_chain_once_each_within_path_max() {
        let mut nodes = vec![Arc::new(Node::root(c"root".to_owned(), 0, Follow::No, std::sync::Weak::new()))];
        for number in 0..1000 {
            let parent = nodes.last().unwrap();
            // A FUSE server may return names as long as a path.
            let name = CString::new(vec![b'x'; if number % 9 == 0 { 4000 } else { 200 }]).unwrap();
            nodes.push(Arc::new(Node::child(parent, &name, Follow::No)));
        }
        let closed: Vec<&Arc<Node>> = nodes.iter().rev().collect();
        let (mut rest, mut count) = (closed.as_slice(), 0);
        while let Some((hop, above)) = next_hop(rest) {
            assert!(join(hop).as_bytes_with_nul().len() <= 4096);
            count += hop.len();
            rest = above;
        }
        assert_eq!(count, closed.len());
    }

    #[test]
    fn a_link_that_is_followed_is_a_hop_of_its_own() {
        let mut nodes = vec![Arc::new(Node::root(c"root".to_owned(), 0, Follow::No, std::sync::Weak::new()))];
        for follow in [Follow::No, Follow::No, Follow::Yes, Follow::Yes, Follow::No, Follow::No] {
            nodes.push(Arc::new(Node::child(nodes.last().unwrap(), c"d", follow)));
        }
        let closed: Vec<&Arc<Node>> = nodes.iter().rev().collect();
        let (mut rest, mut lens) = (closed.as_slice(), Vec::new());
        while let Some((hop, above)) = next_hop(rest) {
            lens.push(hop.len());
            rest = above;
        }
        assert_eq!(lens, [1, 2, 1, 1, 2]);
    }
}
