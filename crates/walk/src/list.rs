//! How a worker opens a directory, reads it and takes the metadata of its entries: in one go where that costs little, in
//! parts for several workers where the directory is wide or each call is a round trip.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use fathom_io::{Dir, Errno, Fields, FileType, Follow, Meta, Model, Names, offer, sys};

use crate::node::Node;
use crate::part::{DirState, Head, Job, Out, Part, Slot};
use crate::visit::{Emit, Visit, entries};
use crate::worker::{Scratch, Worker};

/// Names read before they are given out, and the size past which they are ordered by inode (gnulib's fts).
const BATCH_NAMES: usize = 100_000;
const SORT_NAMES: usize = 10_000;
/// Names stat'ed in one part. From a cache or a disk neighbours come together, and workers that share a directory wait
/// for the same block; where each call is a round trip, each is best made by itself.
const CHUNK_NAMES: usize = 1024;
const CHUNK_NAMES_REMOTE: usize = 1;
/// From so many names on, going into a directory costs less than what each name is found faster from there.
const ENTER_NAMES: usize = 6;
/// Names weigh so much less than what waits for its turn: a directory has two batches at most under way.
const NAMES_SHARE: usize = 4;
/// How long a worker waits for somebody to close a descriptor before it reports EMFILE.
const ROOM_WAIT: Duration = Duration::from_millis(2);
const ROOM_TRIES: usize = 200;

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

impl<V: Visit, M: Model> Worker<V, M> {
    async fn stat_one(&self, at: BorrowedFd<'_>, node: &Node) -> Result<Meta, Errno> {
        let (mut names, mut metas) = (Names::new(), Vec::with_capacity(1));
        names.push(node.name(), 0, FileType::Unknown);
        let fields = self.shared.options.fields.and(Fields::FRESH);
        self.model.stat(at, &names, 0..1, node.follow(), fields, &mut metas).await;
        metas.pop().flatten().unwrap_or(Err(Errno::IO))
    }

    /// Opens, identifies and lists a directory.
    pub(crate) async fn list(
        &self,
        node: &Arc<Node>,
        again: bool,
        scratch: &mut Scratch<V::Item>,
    ) -> Out<V::Item> {
        self.tally(node).directories.add(1);
        let start = Instant::now();
        let opened = self.open(node).await;
        node.parent().inspect(|parent| self.shared.fds.drop_user(parent));
        let (dir, meta) = match opened {
            Ok(opened) => opened,
            Err(head) => return Out::new(Some(head)),
        };
        node.set_id(meta.id());
        if node.is_device_root() {
            node.set_lane(self.shared.schedule.lanes.of(meta.dev));
            let lane = self.shared.lane(node);
            lane.set_local(self.model.magic(&dir).is_some_and(offer::is_local));
            lane.guess(start.elapsed().as_nanos());
        }
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
        let refused = match self.open_at(base.as_fd(), node).await {
            Ok(dir) => match self.stat_dir(node, &dir).await {
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
                self.tally(node).entries.add(1);
                Err(Head::File(other))
            }
        }
    }

    async fn stat_dir(&self, node: &Node, dir: &Dir) -> Result<Meta, Errno> {
        self.tally(node).stats.add(1);
        let fields = self.shared.options.fields;
        let meta = self.model.stat_dir(dir, fields).await?;
        if meta.mount_root == Some(true) {
            self.model.stat_dir(dir, fields.and(Fields::FRESH)).await
        } else {
            Ok(meta)
        }
    }

    /// Opens `node`; where the process is out of descriptors, closes kept ones and waits for other workers'.
    async fn open_at(&self, at: BorrowedFd<'_>, node: &Node) -> Result<Dir, Errno> {
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

    pub(crate) async fn more(
        &self,
        node: &Arc<Node>,
        cookie: u64,
        scratch: &mut Scratch<V::Item>,
    ) -> Out<V::Item> {
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
        self.tally(node).batches.add(1);
        if self.chunk_names(node) == CHUNK_NAMES_REMOTE {
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
            out.weight += scratch.names.heap_bytes() / NAMES_SHARE;
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
        let chunk = self.chunk_names(node);
        if names.len() <= chunk {
            self.stat(node, dir.as_fd(), names, 0..names.len(), &mut scratch.metas, out).await;
        } else {
            out.weight += names.heap_bytes() / NAMES_SHARE;
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
    fn chunk_names(&self, node: &Node) -> usize {
        let chunk = if self.shared.lane(node).is_remote() { CHUNK_NAMES_REMOTE } else { CHUNK_NAMES };
        chunk.max(M::BATCH)
    }

    pub(crate) async fn stat(
        &self,
        node: &Arc<Node>,
        at: BorrowedFd<'_>,
        names: &Names,
        range: std::ops::Range<usize>,
        metas: &mut Vec<Option<Result<Meta, Errno>>>,
        out: &mut Out<V::Item>,
    ) {
        let links = self.shared.options.links;
        let count = names.count_stat(range.clone());
        let (at, fields) = self.come_near(node, at, count);
        let start = Instant::now();
        self.model.stat(at, names, range.clone(), links, fields, metas).await;
        if let Some(each) = start.elapsed().as_nanos().checked_div(count as u128) {
            self.shared.lane(node).note(each);
        }
        self.tally(node).stats.add(count as u64);
        self.visit(node, names, range, metas, out);
    }

    /// The cheapest way to the metadata of `count` names in `at`: from where, and what for.
    fn come_near<'f>(&self, node: &Node, at: BorrowedFd<'f>, count: usize) -> (BorrowedFd<'f>, Fields) {
        let fields = self.shared.options.fields;
        // On a filesystem of others, going there may take a call to them.
        if !self.shared.lane(node).is_local() {
            return (at, fields);
        }
        let near = count >= ENTER_NAMES && self.shared.fds.may_leave_start() && self.model.enter(at);
        (if near { sys::CWD } else { at }, fields.and(Fields::LOCAL))
    }

    fn visit(
        &self,
        node: &Arc<Node>,
        names: &Names,
        range: std::ops::Range<usize>,
        metas: &[Option<Result<Meta, Errno>>],
        out: &mut Out<V::Item>,
    ) {
        self.tally(node).entries.add(range.len() as u64);
        let links = self.shared.options.links;
        if out.slots.is_empty() {
            out.slots.reserve_exact(names.count_of(range.clone(), FileType::Directory) + 1);
        }
        let mut emit = Emit { dir: node, follow: links, slots: &mut out.slots, measured: 0 };
        self.shared.visit.entries(node, entries(names, range, metas), &mut emit);
        self.tally(node).measured.add(emit.measured);
    }
}
