//! Bounded channels that nothing blocks for ever: not a consumer that takes nothing, once the walk
//! is shut down, and not one that is gone. With all consumers gone, the walk ends.
//!
//! Owns: the queues, when they come to their ends, the descriptors that consumers open entries
//! from. Does not own: what is sent.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::message::Message;
use super::token::{Processed, Reports, Token};
use crate::fds::Fds;

/// A bounded queue of batches of messages.
struct Queue<T> {
    state: Mutex<Held<T>>,
    /// A batch was put in, or none will be any more.
    filled: Condvar,
    /// Batches were taken out, or nothing waits for room any more.
    room: Condvar,
}

/// The batches of a queue, and the numbers of threads that wait for it.
struct Held<T> {
    batches: VecDeque<Vec<Message<T>>>,
    /// Messages in all batches.
    messages: usize,
    /// Inboxes at the other end.
    inboxes: usize,
    /// Threads waiting for `filled` and for `room`: waking costs a system call even where nothing
    /// waits.
    takers: usize,
    putters: usize,
    /// No batch will be put in any more.
    is_ended: bool,
}

impl<T> Queue<T> {
    fn new() -> Self {
        let batches = VecDeque::new();
        let held = Held { batches, messages: 0, inboxes: 1, takers: 0, putters: 0, is_ended: false };
        Self { state: Mutex::new(held), filled: Condvar::new(), room: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Held<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a batch in, whether or not there is room; gives it back if nothing will ever take it.
    fn put(&self, mut held: MutexGuard<'_, Held<T>>, batch: Vec<Message<T>>) -> Result<(), Vec<Message<T>>> {
        if held.is_ended || held.inboxes == 0 {
            return Err(batch);
        }
        held.messages += batch.len();
        held.batches.push_back(batch);
        if held.takers > 0 {
            self.filled.notify_one();
        }
        Ok(())
    }

    fn take(&self, held: &mut Held<T>) -> Option<Vec<Message<T>>> {
        let batch = held.batches.pop_front()?;
        held.messages -= batch.len();
        if held.putters > 0 {
            // One is enough: what it puts in is taken some time, which wakes the next.
            self.room.notify_one();
        }
        Some(batch)
    }

    /// Takes a batch; `None` at the end.
    fn wait_for_batch(&self) -> Option<Vec<Message<T>>> {
        let mut held = self.lock();
        loop {
            let batch = self.take(&mut held);
            if batch.is_some() || held.is_ended {
                return batch;
            }
            held.takers += 1;
            held = self.filled.wait(held).unwrap_or_else(PoisonError::into_inner);
            held.takers -= 1;
        }
    }
}

/// The channels of a gatherer.
pub(super) struct Outlets<T> {
    queues: Box<[Queue<T>]>,
    backlog: usize,
    stop: Arc<AtomicBool>,
    /// The walk has ended.
    is_over: AtomicBool,
    /// Directories that are still to be reported as processed.
    watches: AtomicUsize,
    /// Channels without an inbox.
    lost: AtomicUsize,
    /// The walk's kept descriptors, for as long as a consumer may open entries.
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

    /// The other ends, one for each channel. To be called once: each queue counts one inbox from
    /// the start.
    pub(super) fn inboxes(self: &Arc<Self>) -> Vec<Inbox<T>> {
        let inbox = |channel| Inbox { outlets: self.clone(), channel, at_hand: Vec::new().into_iter() };
        (0..self.queues.len()).map(inbox).collect()
    }

    /// The channel that a number means.
    pub(super) fn index(&self, channel: usize) -> usize {
        channel % self.queues.len()
    }

    /// Puts messages into a channel, as soon as there is room. They are dropped once the walk is
    /// shut down, or if the channel has no inbox.
    pub(super) fn send(&self, channel: usize, messages: Vec<Message<T>>) {
        let queue = &self.queues[self.index(channel)];
        let mut held = queue.lock();
        while held.messages >= self.backlog && held.inboxes > 0 && !held.is_ended && !self.is_stopped() {
            held.putters += 1;
            held = queue.room.wait(held).unwrap_or_else(PoisonError::into_inner);
            held.putters -= 1;
        }
        // Dropped without the lock: that may end a token, which puts a message into a queue.
        let refused = if self.is_stopped() {
            drop(held);
            Err(messages)
        } else {
            queue.put(held, messages)
        };
        if refused.is_err() && self.lost.load(Ordering::Relaxed) == self.queues.len() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Puts a message into every channel.
    pub(super) fn send_all(&self, message: impl Fn() -> Message<T>) {
        (0..self.queues.len()).for_each(|channel| self.send(channel, vec![message()]));
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The walk has ended: channels come to their ends once everything has been processed that is
    /// to be reported as such.
    pub(super) fn close(&self) {
        // Sequentially consistent with `release`: of the last release and this, one sees the other
        // and ends the channels.
        self.is_over.store(true, Ordering::SeqCst);
        self.end_if_over();
    }

    /// One directory more is going to be reported as processed.
    pub(super) fn watch(&self) {
        self.watches.fetch_add(1, Ordering::Relaxed);
    }

    fn end_if_over(&self) {
        let is_over = self.is_over.load(Ordering::SeqCst);
        if is_over && (self.is_stopped() || self.watches.load(Ordering::SeqCst) == 0) {
            self.wake(|held| held.is_ended = true);
        }
    }

    /// Changes all queues, and has everything that waits at them look again.
    fn wake(&self, change: impl Fn(&mut Held<T>)) {
        for queue in &self.queues {
            // The lock orders this after the look of any thread that is about to wait.
            change(&mut queue.lock());
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

/// The end of a channel that messages come out of, as an iterator that ends with the walk. A clone
/// takes other messages from the same channel.
///
/// Where the policy has directories reported as [processed](super::Policy::processed), the end also
/// waits for every [`Token`] to be dropped: a consumer that keeps messages with tokens keeps its
/// own end away.
pub struct Inbox<T = ()> {
    outlets: Arc<Outlets<T>>,
    channel: usize,
    at_hand: std::vec::IntoIter<Message<T>>,
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

    /// Takes the next message if there is one already.
    pub fn try_next(&mut self) -> Option<Message<T>> {
        if self.at_hand.len() == 0 {
            let queue = self.queue();
            let batch = queue.take(&mut queue.lock());
            self.at_hand = batch.unwrap_or_default().into_iter();
        }
        self.at_hand.next()
    }

    /// Number of messages in the channel, which others change meanwhile.
    #[must_use]
    pub fn held(&self) -> usize {
        self.queue().lock().messages
    }
}

impl<T> Iterator for Inbox<T> {
    type Item = Message<T>;

    /// Waits for a message; `None` once the walk is over and all have been taken.
    fn next(&mut self) -> Option<Message<T>> {
        while self.at_hand.len() == 0 {
            self.at_hand = self.queue().wait_for_batch()?.into_iter();
        }
        self.at_hand.next()
    }
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        self.queue().lock().inboxes += 1;
        Self { outlets: self.outlets.clone(), channel: self.channel, at_hand: Vec::new().into_iter() }
    }
}

impl<T> Drop for Inbox<T> {
    /// With the last inbox of a channel goes everything in it: tokens in there would keep the other
    /// channels open.
    fn drop(&mut self) {
        let queue = self.queue();
        let mut held = queue.lock();
        held.inboxes -= 1;
        if held.inboxes > 0 {
            return;
        }
        held.messages = 0;
        let left = std::mem::take(&mut held.batches);
        queue.room.notify_all();
        drop(held);
        self.outlets.lost.fetch_add(1, Ordering::Relaxed);
        drop(left);
    }
}
