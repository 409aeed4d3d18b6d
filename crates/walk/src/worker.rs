//! Executes parts over a model: opens, lists, stats, lets the visitor see, publishes.

use std::cell::RefCell;
use std::future::Future;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fathom_io::{Dir, Errno, Fields, FileType, Follow, Meta, Model, Name, Names, offer, sys};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use rustc_hash::FxHashSet;

use crate::fds::Fds;
use crate::node::Node;
use crate::part::{DirState, Head, Job, Out, Part, Slot};
use crate::run::{Calls, Options};
use crate::schedule::Schedule;
use crate::visit::{Emit, Visit, entries};

/// Names read before they are given out, and the size past which they are ordered by inode (gnulib's fts).
const BATCH_NAMES: usize = 100_000;
const SORT_NAMES: usize = 10_000;
/// Names stat'ed in one part. From a cache or a disk neighbours come together, and workers that share a directory wait
/// for the same block; where each call is a round trip, each is best made by itself.
const CHUNK_NAMES: usize = 1024;
const CHUNK_NAMES_REMOTE: usize = 1;
/// A call that takes longer than this is a round trip, as a rule.
const ROUND_TRIP_NS: u64 = 400_000;
/// How long a worker waits for somebody to close a descriptor before it reports EMFILE.
const ROOM_WAIT: Duration = Duration::from_millis(2);
const ROOM_TRIES: usize = 200;

/// What all workers of a walk share.
pub(crate) struct Shared<V: Visit> {
    pub(crate) visit: V,
    pub(crate) options: Options,
    pub(crate) schedule: Schedule<V::Item>,
    pub(crate) fds: Fds,
    /// Directories listed so far, where one may be met twice.
    pub(crate) listed: Option<Mutex<FxHashSet<(u64, u64)>>>,
    /// Nanoseconds one stat takes, lately.
    pub(crate) stat_ns: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) directories: AtomicU64,
    pub(crate) busy: AtomicUsize,
    batches: AtomicU64,
    stats: AtomicU64,
}

impl<V: Visit> Shared<V> {
    pub(crate) fn new(visit: V, options: Options, workers_max: usize, fds_kept: usize) -> Self {
        Self {
            visit,
            options,
            schedule: Schedule::new(workers_max),
            fds: Fds::new(fds_kept),
            listed: options.once.then(Mutex::default),
            stat_ns: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            directories: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            batches: AtomicU64::new(0),
            stats: AtomicU64::new(0),
        }
    }

    /// Whether each call is a round trip, going by how long one takes.
    pub(crate) fn is_remote(&self) -> bool {
        self.stat_ns.load(Ordering::Relaxed) > ROUND_TRIP_NS
    }

    pub(crate) fn calls(&self) -> Calls {
        Calls {
            open: self.directories.load(Ordering::Relaxed),
            read: self.batches.load(Ordering::Relaxed),
            stat: self.stats.load(Ordering::Relaxed),
            reopen: self.fds.reopened(),
        }
    }
}

/// What a read came to.
struct Filled {
    /// Names read, whether or not anybody wants them.
    names: usize,
    /// Why reading ended early.
    error: Option<Errno>,
}

/// How reading a directory piece by piece ended.
enum Piecemeal {
    /// At its end, a batch's end, or for an error.
    Done(Filled),
    /// For want of a descriptor.
    NotPossible,
    /// Wide enough to be sorted as a whole.
    Unordered,
}

/// Buffers a part needs while it is executed.
struct Scratch<T> {
    names: Names,
    metas: Vec<Option<Result<Meta, Errno>>>,
    children: Vec<Arc<Part<T>>>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { names: Names::new(), metas: Vec::new(), children: Vec::new() }
    }
}

/// One worker: its number and its model.
pub(crate) struct Worker<V: Visit, M> {
    shared: Arc<Shared<V>>,
    number: usize,
    model: M,
    /// Directories under way at once.
    width: usize,
    scratch: RefCell<Vec<Scratch<V::Item>>>,
}

impl<V: Visit, M: Model> Worker<V, M> {
    pub(crate) fn new(shared: Arc<Shared<V>>, number: usize, model: M, width: usize) -> Self {
        Self { shared, number, model, width, scratch: RefCell::new(Vec::new()) }
    }

    /// Executes parts until the walk stops.
    pub(crate) fn run(&self) {
        let schedule = &self.shared.schedule;
        self.model.run(async {
            if self.width == 1 {
                while let Some(part) = schedule.next(self.number, true) {
                    self.execute(part).await;
                }
                return;
            }
            let mut under_way = FuturesUnordered::new();
            loop {
                while under_way.len() < self.width {
                    let Some(part) = schedule.next(self.number, under_way.is_empty()) else { break };
                    under_way.push(self.execute(part));
                }
                if under_way.next().await.is_none() || schedule.is_stopped() {
                    return;
                }
            }
        });
        schedule.pass_on_stop();
    }

    async fn execute(&self, part: Arc<Part<V::Item>>) {
        let mut scratch = self.scratch.borrow_mut().pop().unwrap_or_default();
        self.shared.busy.fetch_add(1, Ordering::Relaxed);
        if part.is_abandoned() {
            self.let_go(&part.job);
        } else {
            let mut out = self.perform(&part.job, &mut scratch).await;
            out.weight += size_of::<Out<V::Item>>() + weight_of::<V>(&out.slots);
            self.publish(&part, out, &mut scratch);
        }
        self.shared.schedule.finish();
        self.shared.busy.fetch_sub(1, Ordering::Relaxed);
        self.scratch.borrow_mut().push(scratch);
    }

    /// Nobody waits for the outcome: only the directory's descriptor is let go.
    fn let_go(&self, job: &Job) {
        match job {
            Job::Root(_) => {}
            Job::List(node) | Job::Relist(node) => {
                node.parent().inspect(|parent| self.shared.fds.drop_user(parent));
            }
            Job::More(node, _) | Job::Stat(node, ..) => self.shared.fds.drop_user(node),
        }
    }

    fn publish(&self, part: &Arc<Part<V::Item>>, out: Out<V::Item>, scratch: &mut Scratch<V::Item>) {
        let schedule = &self.shared.schedule;
        self.announce(out.parts().skip(out.given_out), &mut scratch.children);
        // The weight first: the consumer may take the outcome, and its weight off, before `publish` returns.
        let weight = out.weight;
        schedule.add_weight(weight);
        match part.publish(out) {
            Ok(()) => {
                schedule.push(self.number, &mut scratch.children);
                schedule.published(part);
            }
            Err(out) => {
                schedule.drop_weight(weight);
                for child in scratch.children.drain(..) {
                    self.let_go(&child.job);
                    schedule.finish();
                }
                schedule.abandon(out.slots);
            }
        }
    }

    /// Puts `parts`, given in traversal order, into `children` in the order they are to be executed in.
    fn announce<'p>(
        &self,
        parts: impl Iterator<Item = &'p Arc<Part<V::Item>>>,
        children: &mut Vec<Arc<Part<V::Item>>>,
    ) where
        V::Item: 'p,
    {
        children.extend(parts.cloned());
        if self.shared.is_remote() {
            // What is below a directory takes longer than a file beside it.
            children.sort_by_key(|child| matches!(child.job, Job::Stat(..)));
        }
        // The next batch of a very wide directory is read while the second half of this one is stat'ed.
        if children.last().is_some_and(|child| matches!(child.job, Job::More(..))) {
            let half = children.len() / 2;
            children[half..].rotate_right(1);
        }
        self.shared.schedule.announce(self.number, children);
    }

    async fn perform(&self, job: &Job, scratch: &mut Scratch<V::Item>) -> Out<V::Item> {
        match job {
            Job::Root(node) | Job::List(node) => self.list(node, false, scratch).await,
            Job::Relist(node) => self.list(node, true, scratch).await,
            Job::More(node, cookie) => {
                let out = self.more(node, *cookie, scratch).await;
                self.shared.fds.drop_user(node);
                out
            }
            Job::Stat(node, names, range) => {
                let mut out = Out::new(None);
                match self.shared.fds.open(node) {
                    Ok(fd) => {
                        self.stat(node, fd.as_fd(), names, range.clone(), &mut scratch.metas, &mut out).await;
                    }
                    Err(errno) => out.error = Some(errno),
                }
                node.add_users(out.parts().count());
                self.shared.fds.drop_user(node);
                out
            }
        }
    }

    async fn stat_one(&self, at: std::os::fd::BorrowedFd<'_>, node: &Node) -> Result<Meta, Errno> {
        let (mut names, mut metas) = (Names::new(), Vec::with_capacity(1));
        names.push(node.name(), 0, FileType::Unknown);
        let fields = self.shared.options.fields.and(Fields::FRESH);
        self.model.stat(at, &names, 0..1, node.follow(), fields, &mut metas).await;
        metas.pop().flatten().unwrap_or(Err(Errno::IO))
    }

    /// Opens, identifies and lists a directory.
    async fn list(&self, node: &Arc<Node>, again: bool, scratch: &mut Scratch<V::Item>) -> Out<V::Item> {
        self.shared.directories.fetch_add(1, Ordering::Relaxed);
        let opened = self.open(node).await;
        node.parent().inspect(|parent| self.shared.fds.drop_user(parent));
        let (dir, meta) = match opened {
            Ok(opened) => opened,
            Err(head) => return Out::new(Some(head)),
        };
        node.set_id(meta.id());
        let mut out = Out::new(None);
        let state = if node.is_loop(&meta) {
            DirState::Loop
        } else if !again && self.is_listed(&meta) {
            DirState::PutOff
        } else {
            match self.fill(node, dir, 0, scratch, &mut out).await {
                Filled { names: 0, error: Some(errno) } => DirState::Unreadable(errno),
                filled => {
                    out.error = filled.error;
                    DirState::Listed
                }
            }
        };
        out.head = Some(Head::Dir { node: node.clone(), meta, state });
        out
    }

    fn is_listed(&self, meta: &Meta) -> bool {
        self.shared
            .listed
            .as_ref()
            .is_some_and(|listed| !listed.lock().unwrap_or_else(PoisonError::into_inner).insert(meta.id()))
    }

    /// Opens `node`, or tells what is there instead.
    async fn open(&self, node: &Arc<Node>) -> Result<(Dir, Meta), Head> {
        let base = match self.shared.fds.base_of(node) {
            Ok(base) => base,
            Err(errno) => return Err(Head::Lost(node.clone(), errno)),
        };
        let opened = self.first_guess(self.open_at(base.as_fd(), node)).await;
        let refused = match opened {
            Ok(dir) => match self.stat_dir(&dir).await {
                Ok(meta) => return Ok((dir, meta)),
                Err(errno) => errno,
            },
            Err(errno) => errno,
        };
        match self.stat_one(base.as_fd(), node).await {
            Ok(meta) if meta.file_type() == FileType::Directory || node.parent().is_some() => {
                Err(Head::Dir { node: node.clone(), meta, state: DirState::Unreadable(refused) })
            }
            Err(errno) if node.parent().is_some() => Err(Head::Lost(node.clone(), errno)),
            other => {
                self.shared.entries.fetch_add(1, Ordering::Relaxed);
                Err(Head::File(other))
            }
        }
    }

    async fn stat_dir(&self, dir: &Dir) -> Result<Meta, Errno> {
        self.shared.stats.fetch_add(1, Ordering::Relaxed);
        let fields = self.shared.options.fields;
        let meta = self.model.stat_dir(dir, fields).await?;
        if meta.mount_root == Some(true) {
            self.model.stat_dir(dir, fields.and(Fields::FRESH)).await
        } else {
            Ok(meta)
        }
    }

    /// Opens `node`; where the process is out of descriptors, closes kept ones and waits for other workers'.
    async fn open_at(&self, at: std::os::fd::BorrowedFd<'_>, node: &Node) -> Result<Dir, Errno> {
        for _ in 0..ROOM_TRIES {
            match self.model.open(at, node.name(), node.follow()).await {
                Err(Errno::MFILE | Errno::NFILE) if !self.shared.schedule.is_stopped() => {
                    if !self.shared.fds.shed() {
                        std::thread::sleep(ROOM_WAIT);
                    }
                }
                result => return result,
            }
        }
        self.model.open(at, node.name(), node.follow()).await
    }

    async fn more(&self, node: &Arc<Node>, cookie: u64, scratch: &mut Scratch<V::Item>) -> Out<V::Item> {
        let mut out = Out::new(None);
        match self.reopen(node, cookie).await {
            Ok(dir) => out.error = self.fill(node, dir, cookie, scratch, &mut out).await.error,
            Err(errno) => out.error = Some(errno),
        }
        out
    }

    async fn reopen(&self, node: &Arc<Node>, cookie: u64) -> Result<Dir, Errno> {
        let fd = self.shared.fds.open(node)?;
        let dir = self.shared.fds.with_room(|| sys::open_dir(fd.as_fd(), c".", Follow::No))?;
        sys::seek(&dir, cookie)?;
        Ok(dir)
    }

    /// Reads a batch of a directory that stands at `cookie`, and makes slots of it, or parts that will.
    async fn fill(
        &self,
        node: &Arc<Node>,
        dir: Dir,
        cookie: u64,
        scratch: &mut Scratch<V::Item>,
        out: &mut Out<V::Item>,
    ) -> Filled {
        self.shared.batches.fetch_add(1, Ordering::Relaxed);
        if self.chunk_names() == CHUNK_NAMES_REMOTE {
            match self.fill_piecemeal(node, &dir, scratch, out).await {
                Piecemeal::Done(filled) => {
                    self.model.close(dir).await;
                    return filled;
                }
                Piecemeal::NotPossible => {}
                Piecemeal::Unordered => {
                    self.shared.schedule.abandon(out.slots.drain(..));
                    (out.given_out, out.weight) = (0, 0);
                    if let Err(errno) = sys::seek(&dir, cookie) {
                        return Filled { names: 0, error: Some(errno) };
                    }
                }
            }
        }
        scratch.names.clear();
        let more = self.model.read(&dir, &mut scratch.names, BATCH_NAMES).await;
        let filled = Filled { names: scratch.names.len(), error: more.err() };
        self.batch(node, dir, more == Ok(true), scratch, out).await;
        filled
    }

    /// Where each call is a round trip: gives parts of what one call returned to others before making the next call.
    async fn fill_piecemeal(
        &self,
        node: &Arc<Node>,
        dir: &Dir,
        scratch: &mut Scratch<V::Item>,
        out: &mut Out<V::Item>,
    ) -> Piecemeal {
        let Ok(fd) = dir.as_fd().try_clone_to_owned() else { return Piecemeal::NotPossible };
        node.add_users(1);
        self.shared.fds.keep(node, Arc::new(fd));
        let mut total = 0;
        let ended = loop {
            scratch.names.clear();
            let more = self.model.read_some(dir, &mut scratch.names, BATCH_NAMES - total).await;
            total += scratch.names.len();
            if total > SORT_NAMES && self.is_sorted(dir) {
                break Piecemeal::Unordered;
            }
            let cookie = scratch.names.cookie();
            self.select(node, &mut scratch.names);
            out.weight += scratch.names.heap_bytes();
            let names = Arc::new(std::mem::take(&mut scratch.names));
            self.share(node, names, CHUNK_NAMES_REMOTE, &mut scratch.metas, out);
            let full = total >= BATCH_NAMES;
            if full && more == Ok(true) {
                out.slots.push(Slot::Rest(Part::new(Job::More(node.clone(), cookie))));
            }
            self.give_out(node, scratch, out);
            match more {
                Ok(true) if !full => {}
                _ => break Piecemeal::Done(Filled { names: total, error: more.err() }),
            }
        };
        self.shared.fds.drop_user(node);
        ended
    }

    /// Gives out the parts in `out` that have not been yet, ahead of `out` itself.
    fn give_out(&self, node: &Arc<Node>, scratch: &mut Scratch<V::Item>, out: &mut Out<V::Item>) {
        self.announce(out.parts().skip(out.given_out), &mut scratch.children);
        node.add_users(scratch.children.len());
        out.given_out += scratch.children.len();
        self.shared.schedule.push(self.number, &mut scratch.children);
    }

    /// Makes slots of the batch in `scratch.names`, or parts that will.
    async fn batch(
        &self,
        node: &Arc<Node>,
        dir: Dir,
        more: bool,
        scratch: &mut Scratch<V::Item>,
        out: &mut Out<V::Item>,
    ) {
        let names = &mut scratch.names;
        let cookie = names.cookie();
        if names.len() > SORT_NAMES && self.is_sorted(&dir) {
            names.sort_by_inode();
        }
        self.select(node, names);
        let chunk = self.chunk_names();
        if names.len() <= chunk {
            self.stat(node, dir.as_fd(), names, 0..names.len(), &mut scratch.metas, out).await;
        } else {
            out.weight += names.heap_bytes();
            self.share(node, Arc::new(std::mem::take(names)), chunk, &mut scratch.metas, out);
        }
        if more {
            out.slots.push(Slot::Rest(Part::new(Job::More(node.clone(), cookie))));
        }
        let users = out.parts().count();
        if users > 0 {
            node.add_users(users);
            self.shared.fds.keep(node, Arc::new(dir.into_fd()));
        } else {
            self.model.close(dir).await;
        }
    }

    /// Makes parts of a batch. Directories whose metadata can wait are seen by the visitor at once where calls are
    /// slow: what is below them is the longest way still to go.
    fn share(
        &self,
        node: &Arc<Node>,
        names: Arc<Names>,
        chunk: usize,
        metas: &mut Vec<Option<Result<Meta, Errno>>>,
        out: &mut Out<V::Item>,
    ) {
        let apart = chunk < CHUNK_NAMES;
        let mut start = 0;
        while start < names.len() {
            let stat = names.get(start).stat;
            let limit = names.len().min(start + chunk);
            let end =
                (start + 1..limit).find(|index| apart && names.get(*index).stat != stat).unwrap_or(limit);
            if stat || !apart {
                out.slots.push(Slot::Rest(Part::new(Job::Stat(node.clone(), names.clone(), start..end))));
            } else {
                metas.clear();
                metas.resize(end - start, None);
                self.visit(node, &names, start..end, metas, out);
            }
            start = end;
        }
    }

    /// Whether a very wide batch of this directory is taken in order of inode numbers.
    fn is_sorted(&self, dir: &Dir) -> bool {
        let follows = self.shared.options.links == Follow::Yes;
        follows || sys::fs_magic(dir.as_fd()).is_none_or(offer::inode_sort_pays)
    }

    /// Thins out a batch before its metadata is taken.
    fn select(&self, node: &Arc<Node>, names: &mut Names) {
        self.shared.visit.select(node, names);
        if !self.shared.options.stat_dirs {
            names.skip_stat(FileType::Directory);
        }
    }

    /// How many names are stat'ed in one part.
    fn chunk_names(&self) -> usize {
        let chunk = if self.shared.is_remote() { CHUNK_NAMES_REMOTE } else { CHUNK_NAMES };
        chunk.max(M::BATCH)
    }

    async fn stat(
        &self,
        node: &Arc<Node>,
        at: std::os::fd::BorrowedFd<'_>,
        names: &Names,
        range: std::ops::Range<usize>,
        metas: &mut Vec<Option<Result<Meta, Errno>>>,
        out: &mut Out<V::Item>,
    ) {
        let Options { links, fields, .. } = self.shared.options;
        let count = names.range(range.clone()).filter(|name| name.stat).count();
        self.timed(count, self.model.stat(at, names, range.clone(), links, fields, metas)).await;
        self.shared.stats.fetch_add(count as u64, Ordering::Relaxed);
        self.visit(node, names, range, metas, out);
    }

    fn visit(
        &self,
        node: &Arc<Node>,
        names: &Names,
        range: std::ops::Range<usize>,
        metas: &[Option<Result<Meta, Errno>>],
        out: &mut Out<V::Item>,
    ) {
        self.shared.entries.fetch_add(range.len() as u64, Ordering::Relaxed);
        let links = self.shared.options.links;
        let is_dir = |name: &Name<'_>| name.file_type == FileType::Directory;
        out.slots.reserve(names.range(range.clone()).filter(is_dir).count() + 1);
        let mut emit = Emit { dir: node, follow: links, slots: &mut out.slots };
        self.shared.visit.entries(node, entries(names, range, metas), &mut emit);
    }

    /// Before anything has been stat'ed, opening the first directory tells what kind of storage it is on.
    async fn first_guess<R>(&self, open: impl Future<Output = R>) -> R {
        let first = self.shared.stat_ns.load(Ordering::Relaxed) == 0;
        self.timed(usize::from(first), open).await
    }

    /// Notes how long one of `count` calls took.
    async fn timed<R>(&self, count: usize, calls: impl Future<Output = R>) -> R {
        if count == 0 {
            return calls.await;
        }
        let start = Instant::now();
        let result = calls.await;
        let new = u64::try_from(start.elapsed().as_nanos() / count as u128).unwrap_or(u64::MAX);
        let old = self.shared.stat_ns.load(Ordering::Relaxed);
        let mean = if old == 0 { new } else { (7 * (old / 8)).saturating_add(new / 8) };
        self.shared.stat_ns.store(mean, Ordering::Relaxed);
        result
    }
}

fn weight_of<V: Visit>(slots: &[Slot<V::Item>]) -> usize {
    let part = size_of::<Part<V::Item>>() + size_of::<Node>() + 32;
    let item = |slot: &Slot<V::Item>| match slot {
        Slot::Item(item) => V::weight(item),
        Slot::Dir(_) | Slot::Rest(_) => part,
    };
    slots.iter().map(item).sum::<usize>() + size_of_val(slots)
}
