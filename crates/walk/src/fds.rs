//! Directory descriptors kept for opening children, within a budget.
//!
//! A directory's descriptor is kept until its last child is open. Past the budget the one kept longest goes, which
//! in a depth-first walk is the shallowest; who needs it again reopens it from its nearest ancestor that is still
//! open, without following links, and compares device and inode number with what was there before.

use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fathom_io::{Dir, Errno, Fields, Follow, sys};

use crate::node::Node;

/// Descriptors one directory under way needs besides those kept: the base it is opened from, itself, and a hop when reopening.
const PER_UNIT: usize = 3;
/// Left to the rest of the process: standard streams, rings, runtimes, whatever a library opens for a moment.
const RESERVED: usize = 12;
/// More are never kept: past this a reopening is rare already.
const KEPT_MAX: usize = 1024;
/// Names joined for one hop of a reopening: few enough that the way back up a deep chain is short from the hop before.
const HOP_NAMES: usize = 256;
/// PATH_MAX without its closing NUL.
const HOP_BYTES: usize = 4096 - 1;

/// The base of directory-relative calls: a kept descriptor; for a root the working directory, or a descriptor of it.
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

/// How a descriptor limit is shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Directories that may be under way at once.
    pub(crate) units: usize,
    /// Descriptors that may be kept.
    pub(crate) kept: usize,
}

impl Budget {
    /// From RLIMIT_NOFILE and the number of directories wanted under way at once.
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
    /// The working directory the walk was started in, once a worker has left it; nothing if it cannot be opened.
    start: OnceLock<Option<Arc<OwnedFd>>>,
    /// Oldest first. Entries whose descriptor went already are passed over.
    order: Mutex<VecDeque<Arc<Node>>>,
}

impl Fds {
    pub(crate) fn new(kept_max: usize) -> Self {
        Self {
            kept_max,
            kept: AtomicUsize::new(0),
            reopened: AtomicU64::new(0),
            start: OnceLock::new(),
            order: Mutex::new(VecDeque::new()),
        }
    }

    fn order(&self) -> std::sync::MutexGuard<'_, VecDeque<Arc<Node>>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `fd` for `node` until [`Fds::release`] or until the budget wants it.
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

    /// Closes `node`'s descriptor, once nobody is using it; false if none was kept.
    pub(crate) fn release(&self, node: &Node) -> bool {
        let kept = node.take_fd().is_some();
        if kept {
            self.kept.fetch_sub(1, Ordering::Relaxed);
        }
        kept
    }

    /// Closes a kept descriptor because the process has run out of them; false if there is none.
    pub(crate) fn shed(&self) -> bool {
        self.close_oldest(&mut self.order())
    }

    /// One task less needs `node`'s descriptor.
    pub(crate) fn drop_user(&self, node: &Node) {
        if node.drop_user() {
            self.release(node);
        }
    }

    /// What `node` is to be opened from.
    pub(crate) fn base_of(&self, node: &Node) -> Result<Base, Errno> {
        node.parent().map_or_else(|| Ok(self.start()), |parent| self.open(parent).map(Base::Fd))
    }

    /// What roots are relative to.
    fn start(&self) -> Base {
        self.start.get().cloned().flatten().map_or(Base::Cwd, Base::Fd)
    }

    /// Whether workers may leave the working directory the walk was started in. Each asks first.
    pub(crate) fn may_leave_start(&self) -> bool {
        self.start.get_or_init(|| sys::open_path(sys::CWD, c".", Follow::Yes).ok().map(Arc::new)).is_some()
    }

    /// `node`'s descriptor, reopened where it was not kept.
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

    /// How many directories have been opened again.
    pub(crate) fn reopened(&self) -> u64 {
        self.reopened.load(Ordering::Relaxed)
    }

    /// Opens the first of `hop` from `base`; the last is a child of it, or a root.
    fn reopen(&self, base: Option<&Arc<OwnedFd>>, hop: Chain<'_, '_>) -> Result<OwnedFd, Errno> {
        self.reopened.fetch_add(1, Ordering::Relaxed);
        let target = hop[0];
        let fd = self.with_room(|| match base {
            None => sys::open_dir(self.start().as_fd(), target.name(), target.follow()).map(Dir::into_fd),
            Some(base) => sys::open_path(base.as_fd(), &join(hop), target.follow()),
        })?;
        let dir = Dir::from_fd(fd);
        let found = sys::stat_dir(&dir, Fields::IDENTITY)?.id();
        if target.id() == Some(found) { Ok(dir.into_fd()) } else { Err(Errno::STALE) }
    }

    /// Tries `open` again for as long as closing a kept descriptor may help it.
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

/// Directories one below the other, deepest first.
type Chain<'c, 'n> = &'c [&'n Arc<Node>];

/// Splits the next hop, deepest name first, off the top end of `closed`, which is deepest first too. A root is a hop of its own,
/// and so is a link that is followed: of those the kernel takes 40 in one path, and from the other names it is to follow none.
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
            // A FUSE server may give names as long as a path.
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
