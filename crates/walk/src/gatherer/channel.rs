//! Channels that hold so many messages and no more, and that nobody is held by for ever: not by one who takes nothing, once the
//! walk is shut down, and not by one who is gone. With all of them gone, the walk ends.

use std::ffi::{CStr, CString};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crossbeam_channel::{Receiver, SendTimeoutError, Sender, TryRecvError, bounded};
use fathom_io::{Errno, FileType, Meta};

use crate::node::Node;

/// How long a worker waits for room before it looks whether that is still worth it.
const PATIENCE: Duration = Duration::from_millis(20);
/// Messages that share one place of a channel, on average, at least: a small directory's.
const TOGETHER: usize = 8;

/// A tree being walked, in the order they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RootId(pub(super) usize);

impl RootId {
    /// 0 for the first tree added.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// Where something is: a reference to its directory, which many share, and its name there.
#[derive(Clone, Debug)]
pub struct EntryPath {
    dir: Arc<Node>,
    /// None for the directory, or root, itself.
    name: Option<Box<CStr>>,
}

impl EntryPath {
    pub(super) fn new(dir: &Arc<Node>, name: Option<&CStr>) -> Self {
        Self { dir: dir.clone(), name: name.map(|name| CString::from(name).into_boxed_c_str()) }
    }

    /// The directory it is in; of a root or a directory that something is told of, itself.
    #[must_use]
    pub fn dir(&self) -> &Arc<Node> {
        &self.dir
    }

    /// The last part of the path.
    #[must_use]
    pub fn name(&self) -> &CStr {
        self.name.as_deref().unwrap_or(self.dir.name())
    }

    /// Levels below the root.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.dir.depth() + usize::from(self.name.is_some())
    }

    /// Which tree it is in.
    #[must_use]
    pub fn root(&self) -> RootId {
        RootId(self.dir.root_index())
    }

    /// Appends the whole path, without recursion and whatever its length.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.dir.path_into(out);
        if let Some(name) = &self.name {
            if out.last() != Some(&b'/') {
                out.push(b'/');
            }
            out.extend_from_slice(name.to_bytes());
        }
    }
}

/// What comes out of a channel.
#[derive(Clone, Debug)]
pub enum Message {
    /// An entry without its metadata: its type and inode number.
    Entry(EntryPath, FileType, u64),
    /// An entry with its metadata.
    Metadata(EntryPath, Meta),
    /// What could not be opened, read or looked at.
    Error(EntryPath, Errno),
    /// All entries of this directory have been told.
    End(Arc<Node>),
    /// Everything below this directory has been told.
    Done(Arc<Node>),
    /// Everything of this tree has been told, on this channel; every channel has one such message for each tree.
    RootDone(RootId),
}

/// The end of a channel that messages come out of. A clone takes other messages from the same channel; it is at its end with the
/// walk.
#[derive(Clone)]
pub struct Inbox {
    batches: Receiver<Vec<Message>>,
    held: Arc<AtomicUsize>,
    at_hand: std::vec::IntoIter<Message>,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("held", &self.held).finish_non_exhaustive()
    }
}

impl Inbox {
    /// The next message if there is one already.
    pub fn try_next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.at_hand.next() {
                return Some(message);
            }
            match self.batches.try_recv() {
                Ok(batch) => self.take(batch),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return None,
            }
        }
    }

    /// Messages in the channel, roughly: others put in and take out.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn take(&mut self, batch: Vec<Message>) {
        self.held.fetch_sub(batch.len(), Ordering::Relaxed);
        self.at_hand = batch.into_iter();
    }
}

impl Iterator for Inbox {
    type Item = Message;

    /// Waits for a message; `None` once the walk is over and all have been taken.
    fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.at_hand.next() {
                return Some(message);
            }
            let batch = self.batches.recv().ok()?;
            self.take(batch);
        }
    }
}

struct Outlet {
    batches: Sender<Vec<Message>>,
    held: Arc<AtomicUsize>,
    /// Nobody has the other end any more.
    is_lost: AtomicBool,
}

/// The ends that messages go into.
pub(super) struct Outlets {
    /// None once the walk has ended: workers that sit in slow calls must not keep consumers waiting.
    open: RwLock<Option<Arc<[Outlet]>>>,
    count: usize,
    backlog: usize,
    stop: Arc<AtomicBool>,
}

impl Outlets {
    pub(super) fn new(count: usize, backlog: usize, stop: Arc<AtomicBool>) -> (Self, Vec<Inbox>) {
        let channel = |_| {
            // Room for whole directories, so that few messages do not take many places; `held` has the last word.
            let (batches, taken) = bounded(backlog.div_ceil(TOGETHER).max(1));
            let held = Arc::new(AtomicUsize::new(0));
            let inbox = Inbox { batches: taken, held: held.clone(), at_hand: Vec::new().into_iter() };
            (Outlet { batches, held, is_lost: AtomicBool::new(false) }, inbox)
        };
        let (outlets, inboxes): (Vec<_>, Vec<_>) = (0..count).map(channel).unzip();
        let open = RwLock::new(Some(outlets.into()));
        (Self { open, count, backlog, stop }, inboxes)
    }

    /// The channel that a number means.
    pub(super) fn index(&self, channel: usize) -> usize {
        channel % self.count
    }

    fn outlets(&self) -> Option<Arc<[Outlet]>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts messages into a channel, as soon as there is room; not after the walk is shut down, nor if nobody has the other end.
    pub(super) fn send(&self, channel: usize, messages: Vec<Message>) {
        let Some(outlets) = self.outlets() else { return };
        let outlet = &outlets[self.index(channel)];
        let count = messages.len();
        self.wait_for_room(outlet);
        outlet.held.fetch_add(count, Ordering::Relaxed);
        let mut messages = messages;
        while !self.is_stopped() {
            match outlet.batches.send_timeout(messages, PATIENCE) {
                Ok(()) => return,
                Err(SendTimeoutError::Timeout(back)) => messages = back,
                Err(SendTimeoutError::Disconnected(_)) => {
                    outlet.is_lost.store(true, Ordering::Relaxed);
                    break;
                }
            }
        }
        outlet.held.fetch_sub(count, Ordering::Relaxed);
        if outlets.iter().all(|outlet| outlet.is_lost.load(Ordering::Relaxed)) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// As long as a channel holds all it may, even if in few places.
    fn wait_for_room(&self, outlet: &Outlet) {
        while outlet.held.load(Ordering::Relaxed) >= self.backlog
            && !outlet.batches.is_empty()
            && !self.is_stopped()
        {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// Puts a message into every channel.
    pub(super) fn send_all(&self, message: impl Fn() -> Message) {
        (0..self.count).for_each(|channel| self.send(channel, vec![message()]));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The channels come to their ends with what is in them.
    pub(super) fn close(&self) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
