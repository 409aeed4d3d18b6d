//! The operations in flight on one ring: slots, submission, completion, cancellation, and the drop
//! of the ring.
//!
//! ```text
//! start ──> slot ── SQE ──> kernel ── CQE ──> reap ──> (operation, result)
//! ```
//! A slot owns its operation, including all memory that the kernel may read or write for it, from
//! `start` until `reap` has seen its completion. Does not own: the meaning of an operation, and the
//! tasks that wait for one.

use std::time::Duration;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode};

use crate::Errno;

/// The `user_data` of a cancellation. No slot has this index.
const CANCELLATION: u64 = u64::MAX;

/// An operation that a slot owns.
///
/// # Safety
/// Every pointer in [`entry`](Self::entry) leads to heap memory that the operation owns, that does
/// not move with it, and that stays valid until the operation is dropped. Every descriptor in it is
/// open until the entry is submitted.
pub(super) unsafe trait Operation: Sized {
    /// Data besides the operation that [`perform`](Self::perform) needs.
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

    /// Releases the resources of a completion with this result when the ring is dropped.
    fn discard(self, _result: i32) {}
}

/// The operations in flight on one ring.
pub(super) struct InFlight<T: Operation> {
    ring: IoUring,
    slots: Vec<Option<T>>,
    free: Vec<usize>,
    /// Entries pushed and not yet submitted.
    queued: usize,
}

impl<T: Operation> InFlight<T> {
    /// Creates the slots for at most `depth` operations on `ring`.
    pub(super) fn new(ring: IoUring, depth: usize) -> Self {
        let slots = (0..depth).map(|_| None).collect();
        Self { ring, slots, free: (0..depth).rev().collect(), queued: 0 }
    }

    pub(super) fn ring(&self) -> &IoUring {
        &self.ring
    }

    /// Returns the number of operations whose completion has not been seen.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of entries that the next [`submit`](Self::submit) passes to the kernel.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Puts `operation` into a slot and queues its entry. Returns it as an error if no slot is
    /// free.
    pub(super) fn start(&mut self, operation: T) -> Result<(), T> {
        let Some(index) = self.free.pop() else { return Err(operation) };
        self.slots[index] = Some(operation);
        self.push_slot(index);
        Ok(())
    }

    fn push_slot(&mut self, index: usize) {
        let operation = self.slots[index].as_mut().expect("an entry belongs to a slot in use");
        let entry = operation.entry().user_data(index as u64);
        self.push(&entry);
    }

    fn push(&mut self, entry: &Entry) {
        // SAFETY: `Operation` guarantees valid pointers and descriptors while the operation lives.
        // It stays in its slot until `reap` has seen its completion; `drop` waits for all of them,
        // or leaks them. A cancellation has neither pointers nor descriptors.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.submit(0);
        }
        self.queued += 1;
    }

    /// Submits the queued entries and waits for `wait` completions, or for a signal.
    ///
    /// # Panics
    /// If the kernel rejects the ring that it created.
    pub(super) fn submit(&mut self, wait: usize) {
        self.try_submit(wait).expect("io_uring_enter of an own ring has only transient errors");
    }

    fn try_submit(&mut self, wait: usize) -> Result<(), Errno> {
        while let Err(error) = self.ring.submit_and_wait(wait) {
            match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                Errno::INTR if wait == 0 => {}
                Errno::INTR | Errno::BUSY => break,
                // The kernel has no memory for another request at the moment.
                Errno::AGAIN => std::thread::sleep(Duration::from_millis(1)),
                errno => return Err(errno),
            }
        }
        self.queued = 0;
        Ok(())
    }

    /// Submits until the kernel has accepted every entry.
    pub(super) fn submit_all(&mut self) {
        while !self.ring.submission().is_empty() {
            self.submit(0);
        }
    }

    /// Calls `ended` with every operation that has completed, and its result. Returns their number.
    ///
    /// An operation ends with ECANCELED if the kernel cannot start a thread for it (RLIMIT_NPROC,
    /// or a signal at each attempt). The kernel has not begun the operation then, and only `drop`
    /// cancels one, so this thread makes the call.
    pub(super) fn reap(&mut self, context: &T::Context, mut ended: impl FnMut(T, i32)) -> usize {
        let decide = |operation: &mut T, result| {
            let is_cancelled = result == -libc::ECANCELED;
            let result = if is_cancelled { operation.perform(context) } else { result };
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

impl<T: Operation> InFlight<T> {
    /// Cancels all operations in flight and waits for them. Does not submit interrupted operations
    /// again.
    fn cancel_and_wait(&mut self) -> Result<(), Errno> {
        // After this, the submission queue has space for a cancellation of every slot.
        self.try_submit(0)?;
        self.cancel();
        while self.len() > 0 {
            self.try_submit(1)?;
            self.take_completions(|_, result| Some(result), &mut T::discard);
        }
        Ok(())
    }
}

impl<T: Operation> Drop for InFlight<T> {
    fn drop(&mut self) {
        if self.len() > 0 && self.cancel_and_wait().is_err() {
            // The kernel may still write to this memory, so leak it.
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}
