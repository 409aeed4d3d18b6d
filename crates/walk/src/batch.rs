//! How a worker reads an open directory and takes the metadata of its entries: in one go where that costs little, in tasks for
//! several workers where the directory is wide or each call is a round trip.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use fathom_io::{Dir, Errno, Fields, FileType, Follow, Meta, MetadataModel, Names, offer, sys};

use crate::failure::{Failure, Operation};
use crate::node::Node;
use crate::task::{Batch, Job, NameRange, OutputItem, Resume, SharedNames, Task, TaskOutput};
use crate::visitor::{Emit, Opened, Visitor, entries};
use crate::worker::{Scratch, ThreadOwner, Worker};

/// Names read before they are given out, and the size past which they are ordered by inode (gnulib's fts).
const BATCH_NAMES: usize = 100_000;
const SORT_NAMES: usize = 10_000;
/// Names read before they are given out where no more have to be ordered together.
const LOOSE_NAMES: usize = 8_192;
/// Names stat'ed in one task. From a cache or a disk neighbours come together, and workers that share a directory wait
/// for the same block; where each call is a round trip, each is best made by itself, unless every worker has something to wait
/// for already: a few in a row cost less of the processor then, which such a client may be short of.
const CHUNK_NAMES: usize = 1024;
const CHUNK_NAMES_REMOTE: usize = 1;
const CHUNK_NAMES_PLENTY: usize = 4;
/// As long as that is not known, there should not be much to be sorry for.
const CHUNK_NAMES_UNKNOWN: usize = 16;
/// From so many names on, going into a directory costs less than what each name is found faster from there.
const ENTER_NAMES: usize = 6;
/// Names weigh so much less than what waits for its turn: a directory has two batches at most under way.
const NAMES_SHARE: usize = 4;

/// What a read came to.
pub(crate) struct Filled {
    /// Names read, whether or not anybody wants them.
    pub(crate) names: usize,
    /// Why reading ended early.
    pub(crate) error: Option<Errno>,
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

/// A batch for several workers.
struct Lot {
    names: Arc<Names>,
    /// How many of them are one task.
    chunk: usize,
    batch: Batch,
}

impl<D: Visitor, M: MetadataModel> Worker<D, M> {
    /// Reads a batch of a directory that stands at `resume`, and makes slots of it, or tasks that will.
    pub(crate) async fn fill(
        &self,
        node: &Arc<Node>,
        dir: Dir,
        resume: Resume,
        scratch: &mut Scratch<D::Item>,
        out: &mut TaskOutput<D::Item>,
    ) -> Filled {
        self.tally(node).batches.add(1);
        if self.shared.device(node).is_remote() && M::BATCH == 1 && !self.shared.options.inspect_directories {
            match self.fill_piecemeal(node, &dir, scratch, out).await {
                Piecemeal::Done(filled) => {
                    self.model.close(dir).await;
                    return filled;
                }
                Piecemeal::NotPossible => {}
                Piecemeal::Unordered => {
                    self.shared.schedule.abandon(out.slots.drain(..));
                    (out.given_out, out.weight) = (0, 0);
                    if let Err(errno) = sys::seek(&dir, resume.cookie) {
                        return Filled { names: 0, error: Some(errno) };
                    }
                }
            }
        }
        scratch.names.clear();
        scratch.names.end_at(self.shared.device(node).end_cookie());
        let (more, batch) = self.read(&dir, resume, &mut scratch.names).await;
        let filled = Filled { names: scratch.names.len(), error: more.err() };
        if self.shared.options.inspect_directories && resume.cookie == 0 {
            let (names, at) = (&scratch.names, dir.as_fd());
            out.weight += self.shared.visitor.opened(Opened { node, names, all: more == Ok(false), at });
        }
        let rest = (more == Ok(true)).then(|| Resume {
            cookie: scratch.names.cookie(),
            names: if batch == Batch::Loose { (resume.names + filled.names) % BATCH_NAMES } else { 0 },
        });
        self.batch(node, dir, batch, rest, scratch, out).await;
        filled
    }

    /// Reads all names that are ordered together, or where that is enough, some of them; whether there are more, of any.
    async fn read(&self, dir: &Dir, resume: Resume, names: &mut Names) -> (Result<bool, Errno>, Batch) {
        let rest = BATCH_NAMES - resume.names;
        let loose = if resume.names > 0 { Batch::Loose } else { Batch::InOrder };
        let more = self.model.read(dir, names, rest.min(LOOSE_NAMES)).await;
        if !self.shared.is_ordered && more == Ok(true) {
            return (more, Batch::Loose);
        }
        if more != Ok(true) || loose == Batch::Loose || !self.is_sorted(dir) {
            return (more, loose);
        }
        let all = 0..names.len();
        let waiting =
            names.count_of(all.clone(), FileType::Directory) + names.count_of(all, FileType::Unknown);
        // Whole directories held back could be many, and would wait long.
        if self.shared.options.unordered_chunks && waiting == 0 {
            return (more, Batch::Loose);
        }
        (self.model.read(dir, names, rest).await, Batch::InOrder)
    }

    /// Where each call is a round trip: gives tasks of what one call returned to others before making the next call.
    async fn fill_piecemeal(
        &self,
        node: &Arc<Node>,
        dir: &Dir,
        scratch: &mut Scratch<D::Item>,
        out: &mut TaskOutput<D::Item>,
    ) -> Piecemeal {
        let Ok(fd) = dir.as_fd().try_clone_to_owned() else { return Piecemeal::NotPossible };
        node.add_users(1);
        self.shared.fds.keep(node, Arc::new(fd));
        let mut total = 0;
        let ended = loop {
            scratch.names.clear();
            let more = self.model.read_some(dir, &mut scratch.names, BATCH_NAMES - total).await;
            total += scratch.names.len();
            if self.shared.is_ordered && total > SORT_NAMES && self.is_sorted(dir) {
                break Piecemeal::Unordered;
            }
            let cookie = scratch.names.cookie();
            self.select(node, &mut scratch.names);
            out.weight += scratch.names.heap_bytes() / NAMES_SHARE;
            let names = Arc::new(std::mem::take(&mut scratch.names));
            let chunk = self.chunk_names(node);
            let lot = Lot { names, chunk, batch: Batch::InOrder };
            self.share(node, dir.as_fd(), lot, &mut scratch.metas, out);
            let full = total >= BATCH_NAMES;
            if full && more == Ok(true) {
                let resume = Resume { cookie, names: 0 };
                out.slots.push(OutputItem::Rest(Task::new(Job::More(node.clone(), resume))));
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

    /// Gives out the tasks in `out` that have not been yet, ahead of `out` itself.
    fn give_out(&self, node: &Arc<Node>, scratch: &mut Scratch<D::Item>, out: &mut TaskOutput<D::Item>) {
        self.announce(out.tasks().skip(out.given_out), &mut scratch.children);
        node.add_users(scratch.children.len());
        out.given_out += scratch.children.len();
        self.shared.schedule.push(&mut scratch.children, scratch.origin);
    }

    /// Makes slots of the batch in `scratch.names`, or tasks that will.
    async fn batch(
        &self,
        node: &Arc<Node>,
        dir: Dir,
        batch: Batch,
        rest: Option<Resume>,
        scratch: &mut Scratch<D::Item>,
        out: &mut TaskOutput<D::Item>,
    ) {
        let names = &mut scratch.names;
        let sorted = batch == Batch::Loose || (names.len() > SORT_NAMES && self.is_sorted(&dir));
        self.select(node, names);
        // For its own sake, or that of neighbouring inodes.
        if sorted && (self.shared.is_ordered || names.count_stat(0..names.len()) > 0) {
            names.sort_by_inode();
        }
        let chunk = self.chunk_names(node);
        if names.len() <= chunk {
            let span = NameRange { names, range: 0..names.len(), batch };
            self.stat(node, dir.as_fd(), span, &mut scratch.metas, out).await;
        } else {
            out.weight += names.heap_bytes() / NAMES_SHARE;
            let lot = Lot { names: Arc::new(std::mem::take(names)), chunk, batch };
            self.share(node, dir.as_fd(), lot, &mut scratch.metas, out);
        }
        if let Some(rest) = rest {
            if rest.names == 0 {
                out.slots.push(OutputItem::Release);
            }
            out.slots.push(OutputItem::Rest(Task::new(Job::More(node.clone(), rest))));
        }
        self.put_away(node, dir, out).await;
    }

    /// Makes slots of the names in `scratch.names`, of which nothing has to be asked.
    pub(crate) async fn recalled(
        &self,
        node: &Arc<Node>,
        dir: Dir,
        scratch: &mut Scratch<D::Item>,
        out: &mut TaskOutput<D::Item>,
    ) {
        let (names, metas) = (&scratch.names, &mut scratch.metas);
        metas.clear();
        let span = NameRange { names, range: 0..names.len(), batch: Batch::InOrder };
        self.visit(node, dir.as_fd(), span, metas, out);
        self.put_away(node, dir, out).await;
    }

    /// Keeps a directory open that is going to be needed, and closes any other.
    async fn put_away(&self, node: &Arc<Node>, dir: Dir, out: &TaskOutput<D::Item>) {
        let users = out.tasks().count();
        if users > 0 {
            node.add_users(users);
            self.shared.fds.keep(node, Arc::new(dir.into_fd()));
        } else {
            self.model.close(dir).await;
        }
    }

    /// Makes tasks of a batch. Directories whose metadata can wait are seen by the visitor at once where calls are
    /// slow: what is below them is the longest way still to go.
    fn share(
        &self,
        node: &Arc<Node>,
        at: BorrowedFd<'_>,
        Lot { names, chunk, batch }: Lot,
        metas: &mut Vec<Option<Result<Meta, Errno>>>,
        out: &mut TaskOutput<D::Item>,
    ) {
        let apart = chunk < CHUNK_NAMES;
        let mut start = 0;
        while start < names.len() {
            let stat = names.get(start).stat;
            let limit = names.len().min(start + chunk);
            let end =
                (start + 1..limit).find(|index| apart && names.get(*index).stat != stat).unwrap_or(limit);
            if stat || !apart {
                let job = Job::Stat(node.clone(), SharedNames::new(names.clone()), start..end, batch);
                out.slots.push(OutputItem::Rest(Task::new(job)));
            } else {
                metas.clear();
                self.visit(node, at, NameRange { names: &names, range: start..end, batch }, metas, out);
            }
            start = end;
        }
    }

    /// Whether a very wide batch of this directory is taken in order of inode numbers.
    fn is_sorted(&self, dir: &Dir) -> bool {
        let follows = self.shared.options.follow_links == Follow::Yes;
        follows || sys::fs_magic(dir.as_fd()).is_none_or(offer::inode_sort_pays)
    }

    /// Thins out a batch before its metadata is taken.
    fn select(&self, node: &Arc<Node>, names: &mut Names) {
        self.shared.visitor.select(node, names);
        if !self.shared.options.stat_dirs {
            names.skip_stat(FileType::Directory);
        }
    }

    /// How many names are stat'ed in one task.
    fn chunk_names(&self, node: &Node) -> usize {
        let device = self.shared.device(node);
        let chunk = match device.is_remote() {
            true if device.has_plenty() => CHUNK_NAMES_PLENTY,
            true => CHUNK_NAMES_REMOTE,
            false if device.is_known() => CHUNK_NAMES,
            false => CHUNK_NAMES_UNKNOWN,
        };
        chunk.max(M::BATCH)
    }

    pub(crate) async fn stat(
        &self,
        node: &Arc<Node>,
        at: BorrowedFd<'_>,
        span: NameRange<'_>,
        metas: &mut Vec<Option<Result<Meta, Errno>>>,
        out: &mut TaskOutput<D::Item>,
    ) {
        let NameRange { names, range, .. } = span.clone();
        let links = self.shared.options.follow_links;
        let count = names.count_stat(range.clone());
        if count == 0 {
            metas.clear();
            return self.visit(node, at, span, metas, out);
        }
        let (at, fields) = self.come_near(node, at, count);
        let start = Instant::now();
        self.model.stat(at, names, range, links, fields, metas).await;
        self.shared.device(node).note(start.elapsed().as_nanos() / count as u128);
        self.tally(node).stats.add(count as u64);
        self.visit(node, at, span, metas, out);
    }

    /// The cheapest way to the metadata of `count` names in `at`: from where, and what for.
    fn come_near<'f>(&self, node: &Node, at: BorrowedFd<'f>, count: usize) -> (BorrowedFd<'f>, Fields) {
        let fields = self.shared.options.fields;
        // On a filesystem of others, going there may take a call to them.
        if !self.shared.device(node).is_local() {
            return (at, fields);
        }
        let may = count >= ENTER_NAMES && self.home == ThreadOwner::Own && self.shared.fds.may_leave_start();
        let near = may && self.model.enter(at);
        (if near { sys::CWD } else { at }, fields.and(Fields::LOCAL))
    }

    /// Tells of the entries of `span`, whose metadata is `metas`; of an empty slice, none has any.
    fn visit(
        &self,
        node: &Arc<Node>,
        at: BorrowedFd<'_>,
        NameRange { names, range, batch }: NameRange<'_>,
        metas: &[Option<Result<Meta, Errno>>],
        out: &mut TaskOutput<D::Item>,
    ) {
        self.tally(node).entries.add(range.len() as u64);
        let links = self.shared.options.follow_links;
        if out.slots.is_empty() {
            let items = usize::from(self.shared.is_ordered);
            out.slots.reserve_exact(names.count_of(range.clone(), FileType::Directory) + items);
        }
        let slots = &mut out.slots;
        let mut emit = Emit { dir: node, follow: links, slots, measured: 0, failures: 0, batch };
        let entries = entries(at, names, range, metas);
        self.call(|visitor, local| visitor.entries(local, node, entries, &mut emit));
        self.tally(node).measured.add(emit.measured);
        if emit.failures > 0 && !self.shared.is_ordered {
            self.report_failed_entries(node, out);
        }
    }

    /// Reports the entries whose metadata could not be read, in an unordered walk.
    fn report_failed_entries(&self, node: &Arc<Node>, out: &mut TaskOutput<D::Item>) {
        for slot in std::mem::take(&mut out.slots) {
            match slot.into_failure() {
                Ok((name, errno)) => {
                    let (name, operation) = (Some(name.as_c_str()), Operation::Stat);
                    self.fail(Failure { node, name, operation, errno });
                }
                Err(slot) => out.slots.push(slot),
            }
        }
    }
}
