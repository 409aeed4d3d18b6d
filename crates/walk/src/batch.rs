//! How a worker reads an open directory and takes the metadata of its entries: at once if that is
//! cheap, in tasks for several workers if the directory is wide or each call is a round trip.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use fathom_io::{Dir, Errno, Fields, FileType, Follow, Meta, MetadataModel, Names, filesystem, sys};

use crate::driven::Driven;
use crate::failure::{Failure, Operation};
use crate::node::Node;
use crate::task::{Batch, Job, NameRange, OutputItem, Resume, SharedNames, Task, TaskOutput};
use crate::visitor::{Emit, Opened, Visitor, entries};
use crate::worker::{Scratch, ThreadOwner, Worker};

/// The maximum of names read before they are queued as tasks, and the number above which they are
/// sorted by inode number (as gnulib's fts).
const BATCH_NAMES: usize = 100_000;
const SORT_NAMES: usize = 10_000;
/// The maximum of names read before they are queued, if no more have to be sorted together.
const LOOSE_NAMES: usize = 8_192;
/// Names in one task. In a cache or on a disk, the metadata of neighbours is stored together, and
/// workers that share a directory wait for the same block. If each call is a round trip, one name
/// for each task is best, unless every worker already has a task: then a few in a row take less
/// processor time.
const CHUNK_NAMES: usize = 1024;
const CHUNK_NAMES_REMOTE: usize = 1;
const CHUNK_NAMES_PLENTY: usize = 4;
/// The number while the storage is unknown: few, because the estimate may be wrong.
const CHUNK_NAMES_UNKNOWN: usize = 16;
/// The number of names from which changing to a directory takes less time than it saves.
const ENTER_NAMES: usize = 6;
/// The divisor of the weight of names: a directory has at most two batches of names in memory.
const NAMES_SHARE: usize = 4;

/// The result of a read.
pub(crate) struct Filled {
    /// The number of names read, before any selection.
    pub(crate) names: usize,
    /// The error that ended reading early.
    pub(crate) error: Option<Errno>,
}

/// The result of reading a directory in pieces.
enum Piecemeal {
    /// The end of the directory or of a batch, or an error.
    Done(Filled),
    /// No descriptor was available.
    NotPossible,
    /// The directory is so wide that it must be sorted as a whole.
    Unordered,
}

/// A batch for several workers.
struct Lot {
    names: Arc<Names>,
    /// The number of names in one task.
    chunk: usize,
    batch: Batch,
}

impl<D: Driven, M: MetadataModel> Worker<D, M> {
    /// Reads a batch of a directory that is positioned at `resume`. Makes items of it, or tasks
    /// that will.
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
            out.weight +=
                self.shared.driven.visitor().opened(Opened { node, names, all: more == Ok(false), at });
        }
        let rest = (more == Ok(true)).then(|| Resume {
            cookie: scratch.names.cookie(),
            names: if batch == Batch::Loose { (resume.names + filled.names) % BATCH_NAMES } else { 0 },
        });
        self.batch(node, dir, batch, rest, scratch, out).await;
        filled
    }

    /// Reads all names that are sorted together, or if that is enough, some of them. Returns
    /// whether the directory has more names.
    async fn read(&self, dir: &Dir, resume: Resume, names: &mut Names) -> (Result<bool, Errno>, Batch) {
        let rest = BATCH_NAMES - resume.names;
        let loose = if resume.names > 0 { Batch::Loose } else { Batch::InOrder };
        let more = self.model.read(dir, names, rest.min(LOOSE_NAMES)).await;
        if !D::IS_ORDERED && more == Ok(true) {
            return (more, Batch::Loose);
        }
        if more != Ok(true) || loose == Batch::Loose || !self.is_sorted(dir) {
            return (more, loose);
        }
        let all = 0..names.len();
        let waiting =
            names.count_of(all.clone(), FileType::Directory) + names.count_of(all, FileType::Unknown);
        // Held-back subdirectories could be many, and would wait long.
        if self.shared.options.unordered_chunks && waiting == 0 {
            return (more, Batch::Loose);
        }
        (self.model.read(dir, names, rest).await, Batch::InOrder)
    }

    /// Reads a directory if each call is a round trip: queues tasks for the names that one call
    /// returned before it makes the next call.
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
            if D::IS_ORDERED && total > SORT_NAMES && self.is_sorted(dir) {
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

    /// Queues the tasks in `out` that are not queued yet, before `out` is published.
    fn give_out(&self, node: &Arc<Node>, scratch: &mut Scratch<D::Item>, out: &mut TaskOutput<D::Item>) {
        self.announce(out.tasks().skip(out.given_out), &mut scratch.children);
        node.add_users(scratch.children.len());
        out.given_out += scratch.children.len();
        self.shared.schedule.push(&mut scratch.children, scratch.origin);
    }

    /// Makes items of the batch in `scratch.names`, or tasks that will.
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
        // For the order, or because neighbouring inodes share blocks.
        if sorted && (D::IS_ORDERED || names.count_stat(0..names.len()) > 0) {
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

    /// Makes items of the names in `scratch.names`, without calls for metadata.
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

    /// Keeps the directory open if tasks need it, otherwise closes it.
    async fn put_away(&self, node: &Arc<Node>, dir: Dir, out: &TaskOutput<D::Item>) {
        let users = out.tasks().count();
        if users > 0 {
            node.add_users(users);
            self.shared.fds.keep(node, Arc::new(dir.into_fd()));
        } else {
            self.model.close(dir).await;
        }
    }

    /// Makes tasks of a batch. If calls are slow, the visitor gets directories whose metadata is
    /// not needed yet at once, because listing them takes longest.
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

    /// Whether a very wide batch of this directory is sorted by inode number.
    fn is_sorted(&self, dir: &Dir) -> bool {
        let follows = self.shared.options.follow_links == Follow::Yes;
        follows || sys::fs_magic(dir.as_fd()).is_none_or(filesystem::inode_sort_pays)
    }

    /// Removes unwanted names from a batch before their metadata is taken.
    fn select(&self, node: &Arc<Node>, names: &mut Names) {
        self.shared.driven.visitor().select(node, names);
        if !self.shared.options.stat_dirs {
            names.skip_stat(FileType::Directory);
        }
    }

    /// Returns the number of names in one task.
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

    /// Returns the base and the fields with which the metadata of `count` names in `at` takes the
    /// least time.
    fn come_near<'f>(&self, node: &Node, at: BorrowedFd<'f>, count: usize) -> (BorrowedFd<'f>, Fields) {
        let fields = self.shared.options.fields;
        // On a remote filesystem, changing the directory may take a round trip.
        if !self.shared.device(node).is_local() {
            return (at, fields);
        }
        let may = count >= ENTER_NAMES && self.owner == ThreadOwner::Own && self.shared.fds.may_leave_start();
        let near = may && self.model.enter(at);
        (if near { sys::CWD } else { at }, fields.union(Fields::LOCAL))
    }

    /// Passes the entries of a range to the visitor. If `metas` is empty, no entry has metadata.
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
            let items = usize::from(D::IS_ORDERED);
            out.slots.reserve_exact(names.count_of(range.clone(), FileType::Directory) + items);
        }
        let slots = &mut out.slots;
        let mut emit = Emit { dir: node, follow: links, slots, measured: 0, failures: 0, batch };
        let entries = entries(at, names, range, metas);
        self.call(|driven, local| driven.visitor().entries(local, node, entries, &mut emit));
        self.tally(node).measured.add(emit.measured);
        if emit.failures > 0 && !D::IS_ORDERED {
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
