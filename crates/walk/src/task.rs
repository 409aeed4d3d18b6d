//! The unit of scheduling, and what comes of it: items and further tasks, in traversal order.

use std::ffi::CString;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fathom_io::{Errno, Meta, Names};

use crate::failure::Operation;
use crate::node::Node;
use crate::visitor::Found;
use crate::work_queue::NOWHERE;

/// What a worker is to do.
#[derive(Debug)]
pub(crate) enum Job {
    /// List a root, or stat it if it is no directory.
    Root(Arc<Node>),
    /// Open and list a directory.
    List(Arc<Node>),
    /// The same for one that was put off.
    Relist(Arc<Node>),
    /// Go on listing a very wide directory.
    More(Arc<Node>, Resume),
    /// Take the metadata of a range of a wide directory's names, in a batch in this order.
    Stat(Arc<Node>, SharedNames, Range<usize>, Batch),
}

impl Job {
    /// The root or the directory it is about.
    pub(crate) fn node(&self) -> &Arc<Node> {
        match self {
            Self::Root(node) | Self::List(node) | Self::Relist(node) => node,
            Self::More(node, ..) | Self::Stat(node, ..) => node,
        }
    }

    /// The directory it is about is not at its end before this is, nor is a new one's parent.
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

/// Names of a batch until the task that needs them has been executed: the task itself lives on until its turn.
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

/// Names next to each other in a batch.
#[derive(Clone, Debug)]
pub(crate) struct NameRange<'n> {
    pub(crate) names: &'n Names,
    pub(crate) range: Range<usize>,
    pub(crate) batch: Batch,
}

/// Where reading a very wide directory goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resume {
    pub(crate) cookie: u64,
    /// Names read already of those that are ordered together.
    pub(crate) names: usize,
}

/// How names read together stand to the order of their directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// They are in it.
    InOrder,
    /// Others come between them: what must be in order is held back, by inode number.
    Loose,
}

/// What a root or a directory turned out to be.
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
    /// The failure that this head stands for, if it stands for one.
    pub(crate) fn failure(&self) -> Option<(Operation, Errno)> {
        match self {
            Self::File(_) => None,
            Self::Inaccessible(errno) => Some((Operation::Access, *errno)),
            Self::Dir { state, .. } => state.failure(),
        }
    }
}

/// How far reading a directory got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirState {
    Listed,
    Unreadable(Errno),
    Loop,
    /// Another task has listed the same directory: this one is listed only if the walk wants it again.
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

    /// The same, as a visitor is told.
    pub(crate) fn found(self) -> Found {
        match self {
            Self::Listed | Self::PutOff => Found::Readable,
            Self::Unreadable(_) => Found::Unreadable,
            Self::Loop => Found::Loop,
        }
    }
}

/// One step of a task's outcome.
#[derive(Debug)]
pub(crate) enum OutputItem<T> {
    Item(T),
    /// The metadata of the entry of this name could not be read.
    Failed(CString, Errno),
    /// A subdirectory.
    Dir(Arc<Task<T>>),
    /// More of the same directory.
    Rest(Arc<Task<T>>),
    /// Has its turn among others held back, in order of these inode numbers.
    Held(u64, Box<OutputItem<T>>),
    /// The turn of all that were held back.
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

/// What came of a task.
#[derive(Debug)]
pub(crate) struct TaskOutput<T> {
    pub(crate) head: Option<Head>,
    pub(crate) slots: Vec<OutputItem<T>>,
    /// How many tasks, the first ones in `slots`, have been given out before the outcome was whole.
    pub(crate) given_out: usize,
    /// Why reading the directory ended early: what failed, and with which error.
    pub(crate) error: Option<(Operation, Errno)>,
    /// Bytes of memory behind it, roughly.
    pub(crate) weight: usize,
}

impl<T> TaskOutput<T> {
    pub(crate) fn new(head: Option<Head>) -> Self {
        Self { head, slots: Vec::new(), given_out: 0, error: None, weight: 0 }
    }

    /// The tasks in it, in traversal order.
    pub(crate) fn tasks(&self) -> impl DoubleEndedIterator<Item = &Arc<Task<T>>> {
        self.slots.iter().filter_map(OutputItem::task)
    }
}

#[derive(Debug)]
enum State<T> {
    Waiting,
    Ready(Box<TaskOutput<T>>),
    /// Handed to the consumer, or not wanted any more.
    Gone,
}

/// A job and the place for its outcome. Shared by the line it waits in and the slot that waits for it.
#[derive(Debug)]
pub(crate) struct Task<T> {
    pub(crate) job: Job,
    /// The device it waits in and is executed in: its directory's, as far as that was known when the task was made.
    pub(crate) device: usize,
    /// The consumer has asked for it.
    wanted: AtomicBool,
    /// Where it is in the line, once it was put into that.
    place: AtomicUsize,
    state: Mutex<State<T>>,
}

impl<T> Task<T> {
    pub(crate) fn new(job: Job) -> Arc<Self> {
        let device = job.node().device();
        Arc::new(Self {
            job,
            device,
            wanted: AtomicBool::new(false),
            place: AtomicUsize::new(NOWHERE),
            state: Mutex::new(State::Waiting),
        })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_wanted(&self) {
        self.wanted.store(true, Ordering::Release);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    pub(crate) fn place(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }

    pub(crate) fn set_place(&self, place: usize) {
        self.place.store(place, Ordering::Relaxed);
    }

    /// Whether nobody waits for it any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(*self.state(), State::Gone)
    }

    /// Leaves the outcome for the consumer, or gives it back if nobody waits for it any more.
    pub(crate) fn publish(&self, out: Box<TaskOutput<T>>) -> Result<(), Box<TaskOutput<T>>> {
        let mut state = self.state();
        match *state {
            State::Waiting => {
                *state = State::Ready(out);
                Ok(())
            }
            State::Ready(_) => unreachable!("a task is executed once"),
            State::Gone => Err(out),
        }
    }

    /// The outcome, if it is there.
    pub(crate) fn take(&self) -> Option<Box<TaskOutput<T>>> {
        let mut state = self.state();
        if matches!(*state, State::Waiting) {
            return None;
        }
        match std::mem::replace(&mut *state, State::Gone) {
            State::Ready(out) => Some(out),
            State::Waiting | State::Gone => None,
        }
    }

    /// Nobody waits for it any more; the outcome, if it is there already.
    pub(crate) fn abandon(&self) -> Option<Box<TaskOutput<T>>> {
        match std::mem::replace(&mut *self.state(), State::Gone) {
            State::Ready(out) => Some(out),
            State::Waiting | State::Gone => None,
        }
    }
}
