//! The operations in flight on one ring: slots, submission, completion, cancellation, and the end
//! of the ring.
//!
//! ```text
//! start ──> slot ── SQE ──> kernel ── CQE ──> reap ──> (operation, result)
//! ```
//! A slot owns its operation, and with it every byte that the kernel may read or write for it, from
//! `start` until `reap` has seen its completion. Does not own: the meaning of an operation, and the
//! tasks that wait for one.

use std::time::Duration;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode};

use crate::Errno;

/// The `user_data` of a cancellation: no slot has this index.
const CANCELLATION: u64 = u64::MAX;

/// An operation that a slot owns.
///
/// # Safety
/// Every pointer in [`entry`](Self::entry) leads to heap memory that the operation owns, that does
/// not move with it, and that stays valid until the operation is dropped. Every descriptor in it is
/// open until the entry is submitted.
pub(super) unsafe trait Operation: Sized {
    /// What [`perform`](Self::perform) needs besides the operation.
    type Context: ?Sized;

    /// Returns the submission entry, without `user_data`.
    fn entry(&mut self) -> Entry;

    /// Makes the call on this thread. Returns the result as a completion has it: `-errno` for an
    /// error.
    fn perform(&mut self, context: &Self::Context) -> i32;

    /// Whether the operation is submitted again after EINTR.
    fn is_restartable(&self) -> bool {
        true
    }

    /// Releases what a completion with this result has left behind, when the ring is dropped.
    fn discard(self, _result: i32) {}
}

/// The operations in flight on one ring.
pub(super) struct Flight<T: Operation> {
    ring: IoUring,
    slots: Vec<Option<T>>,
    free: Vec<usize>,
    /// Entries pushed and not yet submitted.
    queued: usize,
}

impl<T: Operation> Flight<T> {
    /// At most `depth` operations on `ring`.
    pub(super) fn new(ring: IoUring, depth: usize) -> Self {
        let slots = (0..depth).map(|_| None).collect();
        Self { ring, slots, free: (0..depth).rev().collect(), queued: 0 }
    }

    pub(super) fn ring(&self) -> &IoUring {
        &self.ring
    }

    /// Operations started whose completion has not been seen.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Entries that the next [`submit`](Self::submit) hands to the kernel.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Puts `operation` into a slot and queues its entry. Gives it back if no slot is free.
    pub(super) fn start(&mut self, operation: T) -> Result<(), T> {
        let Some(index) = self.free.pop() else { return Err(operation) };
        self.slots[index] = Some(operation);
        self.push_slot(index);
        Ok(())
    }

    fn push_slot(&mut self, index: usize) {
        let operation = self.slots[index].as_mut().expect("an entry is made of a slot in use");
        let entry = operation.entry().user_data(index as u64);
        self.push(&entry);
    }

    fn push(&mut self, entry: &Entry) {
        // SAFETY: `Operation` vouches for pointers and descriptors while the operation lives. It stays
        // in its slot until `reap` has seen its completion; `drop` waits for all of them, or leaks
        // them. A cancellation has neither pointers nor descriptors.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit(0);
        }
        self.queued += 1;
    }

    /// Submits what is queued and waits for `wait` completions, or for a signal.
    ///
    /// # Panics
    /// If the kernel refuses the ring that it made.
    pub(super) fn submit(&mut self, wait: usize) {
        self.try_submit(wait).expect("io_uring_enter on a ring this thread made fails for no lasting reason");
    }

    fn try_submit(&mut self, wait: usize) -> Result<(), Errno> {
        while let Err(error) = self.ring.submit_and_wait(wait) {
            match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                Errno::INTR if wait == 0 => {}
                Errno::INTR | Errno::BUSY => break,
                // No memory for another request right now.
                Errno::AGAIN => std::thread::sleep(Duration::from_millis(1)),
                errno => return Err(errno),
            }
        }
        self.queued = 0;
        Ok(())
    }

    /// Submits until the kernel has taken every entry.
    pub(super) fn submit_all(&mut self) {
        while !self.ring.submission().is_empty() {
            self.submit(0);
        }
    }

    /// Calls `ended` with every operation that has completed, and its result. Returns their number.
    ///
    /// The kernel gives an operation up with ECANCELED if it cannot start a thread for it
    /// (RLIMIT_NPROC, or a signal each time it tried). It has not begun the operation then, and only
    /// `drop` cancels one: so the call is made here.
    pub(super) fn reap(&mut self, context: &T::Context, mut ended: impl FnMut(T, i32)) -> usize {
        let decide = |operation: &mut T, result| {
            let given_up = result == -libc::ECANCELED;
            let result = if given_up { operation.perform(context) } else { result };
            (result != -libc::EINTR || !operation.is_restartable()).then_some(result)
        };
        self.take_completions(decide, &mut ended)
    }

    /// Empties the completion queue. `decide` sees each operation and its result; it returns the
    /// result that counts, or `None` if the operation is to be submitted again.
    fn take_completions(
        &mut self,
        decide: impl Fn(&mut T, i32) -> Option<i32>,
        ended: &mut impl FnMut(T, i32),
    ) -> usize {
        let (mut count, mut again) = (0, Vec::new());
        for completion in self.ring.completion() {
            if completion.user_data() == CANCELLATION {
                continue;
            }
            let index = usize::try_from(completion.user_data()).expect("user_data is the index of a slot");
            let mut operation = self.slots[index].take().expect("a slot in flight has its operation");
            match decide(&mut operation, completion.result()) {
                Some(result) => {
                    self.free.push(index);
                    count += 1;
                    ended(operation, result);
                }
                None => {
                    self.slots[index] = Some(operation);
                    again.push(index);
                }
            }
        }
        again.into_iter().for_each(|index| self.push_slot(index));
        count
    }

    /// Asks the kernel to cancel everything in flight.
    pub(super) fn cancel(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].is_some() {
                self.push(&opcode::AsyncCancel::new(index as u64).build().user_data(CANCELLATION));
            }
        }
    }
}

impl<T: Operation> Flight<T> {
    /// Cancels everything in flight and waits for it. An operation that is interrupted by that is not
    /// submitted again.
    fn end(&mut self) -> Result<(), Errno> {
        // After this the submission queue has room for a cancellation of every slot.
        self.try_submit(0)?;
        self.cancel();
        while self.len() > 0 {
            self.try_submit(1)?;
            self.take_completions(|_, result| Some(result), &mut T::discard);
        }
        Ok(())
    }
}

impl<T: Operation> Drop for Flight<T> {
    fn drop(&mut self) {
        if self.len() > 0 && self.end().is_err() {
            // The kernel may still write: leak the memory rather than free it.
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}
