//! The unit of scheduling, and its output: items and further tasks, in traversal order.

use std::ffi::CString;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fathom_io::{Errno, Meta, Names};

use crate::failure::Operation;
use crate::handoff::Handoff;
use crate::node::Node;

/// The place of a task that is not in a queue, and the begin and end of both rings of a queue.
pub(crate) const NOWHERE: usize = 0;

/// The state of a directory that was reached. The set is closed, because a visitor that does not
/// handle a state would lose entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The directory, or a first part of it, could be read.
    Readable,
    /// The directory cannot be opened or read.
    Unreadable,
    /// The directory is one of its own ancestors. It is not read.
    Loop,
}

/// The work of a task.
#[derive(Debug)]
pub(crate) enum Job {
    /// Open and list a root, or take its metadata if it is not a directory.
    Root(Arc<Node>),
    /// Open and list a directory.
    List(Arc<Node>),
    /// Open and list a directory whose listing was postponed.
    Relist(Arc<Node>),
    /// Continue to list a very wide directory.
    More(Arc<Node>, Resume),
    /// Take the metadata of a range of a batch of a wide directory.
    Stat(Arc<Node>, SharedNames, Range<usize>, Batch),
}

impl Job {
    /// Returns the root or directory of this job.
    pub(crate) fn node(&self) -> &Arc<Node> {
        match self {
            Self::Root(node) | Self::List(node) | Self::Relist(node) => node,
            Self::More(node, ..) | Self::Stat(node, ..) => node,
        }
    }

    /// Counts this job in an unordered walk, so that its directory (for [`Job::List`], the parent)
    /// does not end before it.
    pub(crate) fn expect(&self) {
        match self {
            Self::Root(_) | Self::Relist(_) => {}
            Self::List(node) => {
                node.parent().inspect(|parent| parent.expect_below());
            }
            Self::More(node, ..) | Self::Stat(node, ..) => node.expect_part(),
        }
    }
}

/// The names of a batch, until the task that needs them has been executed. The task itself lives
/// until the consumer has taken its output.
#[derive(Debug)]
pub(crate) struct SharedNames(Mutex<Option<Arc<Names>>>);

impl SharedNames {
    pub(crate) fn new(names: Arc<Names>) -> Self {
        Self(Mutex::new(Some(names)))
    }

    pub(crate) fn take(&self) -> Arc<Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

/// Consecutive names of a batch.
#[derive(Clone, Debug)]
pub(crate) struct NameRange<'n> {
    pub(crate) names: &'n Names,
    pub(crate) range: Range<usize>,
    pub(crate) batch: Batch,
}

/// The position at which reading a very wide directory continues.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resume {
    pub(crate) cookie: u64,
    /// The number of names read so far of those that are sorted together.
    pub(crate) names: usize,
}

/// The relation between the names of a batch and the order of their directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// The batch is a contiguous part of the order.
    InOrder,
    /// Names of other batches come between these. Subdirectories are held back and sorted by inode
    /// number.
    Loose,
}

/// The result of opening a root or a directory.
#[derive(Clone, Debug)]
pub(crate) enum Head {
    /// A root that is not a directory.
    File(Meta),
    /// A directory, with the result of opening it.
    Dir { meta: Meta, state: DirState },
    /// A root or directory that can be neither opened nor stat'ed.
    Inaccessible(Errno),
}

impl Head {
    /// Returns the failure, if opening failed.
    pub(crate) fn failure(&self) -> Option<(Operation, Errno)> {
        match self {
            Self::File(_) => None,
            Self::Inaccessible(errno) => Some((Operation::Access, *errno)),
            Self::Dir { state, .. } => state.failure(),
        }
    }
}

/// The state of a directory after an attempt to open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirState {
    Listed,
    Unreadable(Errno),
    Loop,
    /// Another task has listed the same directory, or the visitor does not read ahead. This one is
    /// listed only if the consumer enters it.
    PutOff,
}

impl DirState {
    /// The failure of a directory in this state, if it cannot be read.
    pub(crate) fn failure(self) -> Option<(Operation, Errno)> {
        match self {
            Self::Listed | Self::PutOff => None,
            Self::Unreadable(errno) => Some((Operation::Open, errno)),
            Self::Loop => Some((Operation::Descend, Errno::LOOP)),
        }
    }

    /// Returns the state as visitors see it.
    pub(crate) fn found(self) -> Found {
        match self {
            Self::Listed | Self::PutOff => Found::Readable,
            Self::Unreadable(_) => Found::Unreadable,
            Self::Loop => Found::Loop,
        }
    }
}

/// One element of a task's output.
#[derive(Debug)]
pub(crate) enum OutputItem<T> {
    Item(T),
    /// The metadata of the entry of this name could not be read.
    Failed(CString, Errno),
    /// A subdirectory.
    Dir(Arc<Task<T>>),
    /// More of the same directory.
    Rest(Arc<Task<T>>),
    /// An element that is held back, and then consumed in order of these inode numbers.
    Held(u64, Box<OutputItem<T>>),
    /// All elements that are held back are consumed here.
    Release,
}

impl<T> OutputItem<T> {
    pub(crate) fn task(&self) -> Option<&Arc<Task<T>>> {
        match self {
            Self::Item(_) | Self::Failed(..) | Self::Release => None,
            Self::Dir(task) | Self::Rest(task) => Some(task),
            Self::Held(_, slot) => slot.task(),
        }
    }
}

impl<T> OutputItem<T> {
    /// Returns the failure that this is or holds back, or else the item itself.
    pub(crate) fn into_failure(self) -> Result<(CString, Errno), Self> {
        match self {
            Self::Failed(name, errno) => Ok((name, errno)),
            Self::Held(ino, slot) => slot.into_failure().map_err(|slot| Self::Held(ino, Box::new(slot))),
            slot => Err(slot),
        }
    }
}

/// The output of a task.
#[derive(Debug)]
pub(crate) struct TaskOutput<T> {
    pub(crate) head: Option<Head>,
    pub(crate) slots: Vec<OutputItem<T>>,
    /// The number of tasks, the first ones in `slots`, that were queued before the output was
    /// complete.
    pub(crate) given_out: usize,
    /// The operation and error that ended reading the directory early.
    pub(crate) error: Option<(Operation, Errno)>,
    /// The approximate memory use in bytes.
    pub(crate) weight: usize,
}

impl<T> TaskOutput<T> {
    pub(crate) fn new(head: Option<Head>) -> Self {
        Self { head, slots: Vec::new(), given_out: 0, error: None, weight: 0 }
    }

    /// Returns the tasks in this output, in traversal order.
    pub(crate) fn tasks(&self) -> impl DoubleEndedIterator<Item = &Arc<Task<T>>> {
        self.slots.iter().filter_map(OutputItem::task)
    }
}

/// A job and the hand-off of its output. The work queue and the output that contains the task share
/// it.
#[derive(Debug)]
pub(crate) struct Task<T> {
    pub(crate) job: Job,
    /// The number of the device queue: the queue of the directory's device, if it was known when
    /// the task was created, else the parent's.
    pub(crate) device: usize,
    pub(crate) output: Handoff<Box<TaskOutput<T>>>,
    /// The position in the work queue, once queued.
    place: AtomicUsize,
}

impl<T> Task<T> {
    pub(crate) fn new(job: Job) -> Arc<Self> {
        let device = job.node().device();
        Arc::new(Self { job, device, output: Handoff::new(), place: AtomicUsize::new(NOWHERE) })
    }

    /// Returns the device whose backlog has the output: the device of the directory, which is known
    /// when there is an output.
    pub(crate) fn weighed_on(&self) -> usize {
        self.job.node().device()
    }

    pub(crate) fn place(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }

    pub(crate) fn set_place(&self, place: usize) {
        self.place.store(place, Ordering::Relaxed);
    }
}
