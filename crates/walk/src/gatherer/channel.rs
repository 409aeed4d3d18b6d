//! Bounded channels between the workers and the consumers.
//!
//! A consumer that takes no messages blocks the workers only until the walk is shut down, and a
//! channel whose consumers are gone drops its messages. When all consumers are gone, the walk ends.
//!
//! Owns: the queues, their ends, the wake-ups of both sides, the descriptors that consumers open
//! entries from. Does not own: the contents of messages.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use futures_util::Stream;

use super::message::Message;
use super::token::{Processed, Reports, Token};
use crate::fds::Fds;

/// A bounded queue of batches of messages.
struct Queue<T> {
    state: Mutex<QueueState<T>>,
    /// Notified when a batch is added or the queue ends.
    filled: Condvar,
    /// Notified when batches are removed or the walk is shut down.
    room: Condvar,
}

/// The batches of a queue, and the threads and tasks that wait for it.
struct QueueState<T> {
    batches: VecDeque<Vec<Message<T>>>,
    /// Number of messages in all batches.
    messages: usize,
    /// Number of inboxes of this queue.
    inboxes: usize,
    /// Numbers of threads that wait for `filled` and for `room`. A notification is a system call
    /// even if no thread waits, so it is made only if the number is above 0.
    takers: usize,
    putters: usize,
    /// Wakers of the tasks that wait for a message.
    wakers: Vec<Waker>,
    /// Whether no further batch can be added.
    is_ended: bool,
}

impl<T> Queue<T> {
    fn new() -> Self {
        let (batches, wakers) = (VecDeque::new(), Vec::new());
        let state =
            QueueState { batches, messages: 0, inboxes: 1, takers: 0, putters: 0, wakers, is_ended: false };
        Self { state: Mutex::new(state), filled: Condvar::new(), room: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a batch, even to a full queue. Returns the batch if the queue has ended or has no
    /// inbox.
    fn put(
        &self,
        mut state: MutexGuard<'_, QueueState<T>>,
        batch: Vec<Message<T>>,
    ) -> Result<(), Vec<Message<T>>> {
        if state.is_ended || state.inboxes == 0 {
            return Err(batch);
        }
        state.messages += batch.len();
        state.batches.push_back(batch);
        if state.takers > 0 {
            self.filled.notify_one();
        }
        let wakers = std::mem::take(&mut state.wakers);
        // The lock is released first: if the waker is the last reference to a task, the call drops
        // the task's inbox, which takes the lock.
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn take(&self, state: &mut QueueState<T>) -> Option<Vec<Message<T>>> {
        let batch = state.batches.pop_front()?;
        state.messages -= batch.len();
        if state.putters > 0 {
            // One notification suffices: the worker adds a batch, and taking that one wakes the
            // next worker.
            self.room.notify_one();
        }
        Some(batch)
    }

    /// Waits for a batch until `deadline`. Returns `None` at the end of the queue.
    fn wait_for_batch(&self, deadline: Option<Instant>) -> Poll<Option<Vec<Message<T>>>> {
        let mut state = self.lock();
        loop {
            let batch = self.take(&mut state);
            if batch.is_some() || state.is_ended {
                return Poll::Ready(batch);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Poll::Pending;
            }
            state.takers += 1;
            state = match left {
                Some(left) => self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
            state.takers -= 1;
        }
    }

    /// Returns a batch, or `None` at the end of the queue. Otherwise registers the task's waker.
    fn poll_for_batch(&self, cx: &mut Context<'_>) -> Poll<Option<Vec<Message<T>>>> {
        let mut state = self.lock();
        let batch = self.take(&mut state);
        if batch.is_some() || state.is_ended {
            return Poll::Ready(batch);
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// The channels of a gatherer.
pub(super) struct Outlets<T> {
    queues: Box<[Queue<T>]>,
    backlog: usize,
    stop: Arc<AtomicBool>,
    /// Whether the walk has ended.
    is_over: AtomicBool,
    /// Number of directories that are still to be reported as processed.
    watches: AtomicUsize,
    /// Number of channels without an inbox.
    lost: AtomicUsize,
    /// The descriptors of the walk, kept as long as a consumer may open entries.
    pub(super) handles: OnceLock<Arc<Fds>>,
}

impl<T> Outlets<T> {
    pub(super) fn new(count: usize, backlog: usize, stop: Arc<AtomicBool>) -> Self {
        Self {
            queues: (0..count).map(|_| Queue::new()).collect(),
            backlog,
            stop,
            is_over: AtomicBool::new(false),
            watches: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            handles: OnceLock::new(),
        }
    }

    /// Returns the receiving ends, one for each channel. The caller calls this once: the count of
    /// each queue includes this one inbox from the start.
    pub(super) fn inboxes(self: &Arc<Self>) -> Vec<Inbox<T>> {
        let inbox = |channel| Inbox { outlets: self.clone(), channel, batch: Vec::new().into_iter() };
        (0..self.queues.len()).map(inbox).collect()
    }

    /// Returns the index of the channel for any number.
    pub(super) fn index(&self, channel: usize) -> usize {
        channel % self.queues.len()
    }

    /// Waits until a channel has room, and adds messages to it. Drops them if the walk is shut down
    /// or the channel has no inbox.
    pub(super) fn send(&self, channel: usize, messages: Vec<Message<T>>) {
        let queue = &self.queues[self.index(channel)];
        let mut state = queue.lock();
        while state.messages >= self.backlog && state.inboxes > 0 && !state.is_ended && !self.is_stopped() {
            state.putters += 1;
            state = queue.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.putters -= 1;
        }
        // The lock is released before the messages are dropped: the drop of a token may add a
        // message to a queue.
        let refused = if self.is_stopped() {
            drop(state);
            Err(messages)
        } else {
            queue.put(state, messages)
        };
        if refused.is_err() && self.lost.load(Ordering::Relaxed) == self.queues.len() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Sends a message to every channel.
    pub(super) fn send_all(&self, message: impl Fn() -> Message<T>) {
        (0..self.queues.len()).for_each(|channel| self.send(channel, vec![message()]));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Records the end of the walk: the channels end once every watched directory has been
    /// reported.
    pub(super) fn close(&self) {
        // SeqCst pairs with `release`, store then load on both sides: either `release` loads this
        // store, or `end_if_over` loads its decrement of `watches`. With a weaker ordering both
        // could miss the other, and the channels would never end.
        self.is_over.store(true, Ordering::SeqCst);
        self.end_if_over();
    }

    /// Adds one directory to those that are still to be reported as processed.
    pub(super) fn watch(&self) {
        self.watches.fetch_add(1, Ordering::Relaxed);
    }

    fn end_if_over(&self) {
        // SeqCst pairs with the store in `close` and the decrement in `release`: the last one of
        // these two in their total order loads both and ends the channels.
        let is_over = self.is_over.load(Ordering::SeqCst);
        if is_over && (self.is_stopped() || self.watches.load(Ordering::SeqCst) == 0) {
            self.wake(|state| state.is_ended = true);
        }
    }

    /// Changes all queues, and wakes all threads and tasks that wait for them.
    fn wake(&self, change: impl Fn(&mut QueueState<T>)) {
        for queue in &self.queues {
            // A thread checks the state and starts to wait under this lock, so it either sees the
            // change or receives the notification below.
            let mut state = queue.lock();
            change(&mut state);
            let wakers = std::mem::take(&mut state.wakers);
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            queue.filled.notify_all();
            queue.room.notify_all();
        }
    }
}

impl<T: Send + 'static> Reports for Outlets<T> {
    fn report(&self, channel: usize, processed: Processed) -> Result<(), Token> {
        let queue = &self.queues[self.index(channel)];
        let refused = queue.put(queue.lock(), vec![Message::Processed(processed)]).err();
        match refused.and_then(|mut batch| batch.pop()) {
            Some(Message::Processed(processed)) => Err(processed.token),
            _ => Ok(()),
        }
    }

    fn release(&self) {
        // SeqCst pairs with the store in `close`, as described there.
        if self.watches.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.end_if_over();
        }
    }

    fn shut_down(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake(|_| ());
        self.end_if_over();
    }
}

/// The receiving end of a channel: an iterator of messages that ends with the walk. Clones share
/// the messages of the channel: one of them takes each message.
///
/// If the policy watches directories until they are [processed](super::Policy::processed), the end
/// also waits until every [`Token`] is dropped: a consumer that keeps messages with tokens delays
/// the end of its own channel.
///
/// A consumer need not poll: the iterator blocks, [`Inbox::next_timeout`] blocks for a limited
/// time, [`next_of`] blocks for several channels, and tasks of any runtime await the [`Stream`].
///
/// ```
/// use std::task::Poll;
/// use std::time::Duration;
/// use fathom_walk::gatherer::{Builder, Message, Pick, Policy, PolicyEntry};
///
/// struct Everything;
///
/// impl Policy for Everything {
///     fn pick(&self, _entry: &PolicyEntry<'_>) -> Pick {
///         Pick::send(0).descend()
///     }
/// }
///
/// let (gatherer, mut inboxes) = Builder::new().start(Everything)?;
/// let mut inbox = inboxes.remove(0);
/// // No tree has been added yet.
/// assert!(inbox.try_next().is_none());
/// assert!(matches!(inbox.next_timeout(Duration::ZERO), Poll::Pending));
/// let root = gatherer.add_root("src")?;
/// let last = inbox.find(|message| matches!(message, Message::RootDone(done) if *done == root));
/// assert!(last.is_some());
/// gatherer.no_more_roots();
/// assert!(inbox.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Inbox<T = ()> {
    outlets: Arc<Outlets<T>>,
    channel: usize,
    /// The remaining messages of the last batch.
    batch: std::vec::IntoIter<Message<T>>,
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl<T> Inbox<T> {
    fn queue(&self) -> &Queue<T> {
        &self.outlets.queues[self.channel]
    }

    /// Returns the next message, or `None` at the end. Calls `take` for another batch if needed.
    fn next_with(
        &mut self,
        mut take: impl FnMut(&Queue<T>) -> Poll<Option<Vec<Message<T>>>>,
    ) -> Poll<Option<Message<T>>> {
        loop {
            if let Some(message) = self.batch.next() {
                return Poll::Ready(Some(message));
            }
            match take(self.queue()) {
                Poll::Ready(Some(batch)) => self.batch = batch.into_iter(),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Returns the next message if the channel has one, without waiting.
    pub fn try_next(&mut self) -> Option<Message<T>> {
        match self.next_with(|queue| Poll::Ready(queue.take(&mut queue.lock()))) {
            Poll::Ready(message) => message,
            Poll::Pending => None,
        }
    }

    /// Waits up to `timeout` for the next message. Returns [`Poll::Pending`] after that time, and
    /// `None` when the walk is over and all messages have been taken.
    pub fn next_timeout(&mut self, timeout: Duration) -> Poll<Option<Message<T>>> {
        // A deadline beyond the range of the clock means no deadline.
        let deadline = Instant::now().checked_add(timeout);
        self.next_with(|queue| queue.wait_for_batch(deadline))
    }

    /// Returns the number of messages in the channel, which other threads may change at any time.
    #[must_use]
    pub fn held(&self) -> usize {
        self.queue().lock().messages
    }
}

impl<T> Iterator for Inbox<T> {
    type Item = Message<T>;

    /// Waits for a message; `None` when the walk is over and all messages have been taken.
    fn next(&mut self) -> Option<Message<T>> {
        match self.next_with(|queue| queue.wait_for_batch(None)) {
            Poll::Ready(message) => message,
            Poll::Pending => None,
        }
    }
}

/// No field is pinned.
impl<T> Unpin for Inbox<T> {}

/// The messages as a stream, for tasks. The stream ends like the iterator.
impl<T> Stream for Inbox<T> {
    type Item = Message<T>;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message<T>>> {
        self.next_with(|queue| queue.poll_for_batch(cx))
    }
}

/// Unparks a thread.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a message of any of several channels, which may belong to several gatherers. Returns
/// the message with the index of its inbox, or `None` when all walks are over and all messages have
/// been taken.
///
/// ```
/// use fathom_walk::gatherer::{Builder, Pick, Policy, PolicyEntry, next_of};
///
/// /// Sends each entry to one of two channels.
/// struct Spread;
///
/// impl Policy for Spread {
///     fn pick(&self, entry: &PolicyEntry<'_>) -> Pick {
///         Pick::send(entry.ino() as usize).descend()
///     }
/// }
///
/// let (gatherer, mut inboxes) = Builder::new().channels(2).start(Spread)?;
/// gatherer.add_root("src")?;
/// gatherer.no_more_roots();
/// let mut messages = [0, 0];
/// while let Some((index, _message)) = next_of(&mut inboxes) {
///     messages[index] += 1;
/// }
/// // Each channel has had the end of the tree.
/// assert!(messages.iter().all(|count| *count > 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn next_of<T>(inboxes: &mut [Inbox<T>]) -> Option<(usize, Message<T>)> {
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        let mut is_over = true;
        for (index, inbox) in inboxes.iter_mut().enumerate() {
            match inbox.next_with(|queue| queue.poll_for_batch(&mut cx)) {
                Poll::Ready(Some(message)) => return Some((index, message)),
                Poll::Ready(None) => {}
                Poll::Pending => is_over = false,
            }
        }
        if is_over {
            return None;
        }
        std::thread::park();
    }
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        self.queue().lock().inboxes += 1;
        Self { outlets: self.outlets.clone(), channel: self.channel, batch: Vec::new().into_iter() }
    }
}

impl<T> Drop for Inbox<T> {
    /// Drops all messages of the channel with its last inbox: their tokens would keep the other
    /// channels open.
    fn drop(&mut self) {
        let queue = self.queue();
        let mut state = queue.lock();
        state.inboxes -= 1;
        if state.inboxes > 0 {
            return;
        }
        state.messages = 0;
        let left = std::mem::take(&mut state.batches);
        queue.room.notify_all();
        drop(state);
        self.outlets.lost.fetch_add(1, Ordering::Relaxed);
        drop(left);
    }
}
