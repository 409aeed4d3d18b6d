//! The hand-off of one output from the worker that makes it to the consumer.

use std::sync::PoisonError;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard};

#[derive(Debug)]
enum HandoffState<O> {
    Pending,
    Ready(O),
    /// Taken by the consumer, or abandoned.
    Gone,
}

/// A cell that a worker fills once and that the consumer empties once. Exactly one of the two gets
/// an output that the consumer abandons.
#[derive(Debug)]
pub(crate) struct Handoff<O> {
    /// The consumer waits for the output.
    wanted: AtomicBool,
    state: Mutex<HandoffState<O>>,
}

impl<O> Handoff<O> {
    pub(crate) fn new() -> Self {
        Self { wanted: AtomicBool::new(false), state: Mutex::new(HandoffState::Pending) }
    }

    fn state(&self) -> MutexGuard<'_, HandoffState<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the consumer waits for the output. The consumer calls it before its last `take`.
    ///
    /// Relaxed is enough: the lock in `take` and `publish` orders this store before the load in
    /// `is_wanted`, unless `take` comes second and returns the output.
    pub(crate) fn set_wanted(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether the consumer waits for the output. The worker calls it after `publish`, and then
    /// wakes the consumer; see `set_wanted`.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Whether the output will never be taken.
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(*self.state(), HandoffState::Gone)
    }

    /// Leaves the output for the consumer, or returns it if the consumer has abandoned it.
    pub(crate) fn publish(&self, output: O) -> Result<(), O> {
        let mut state = self.state();
        match *state {
            HandoffState::Pending => {
                *state = HandoffState::Ready(output);
                Ok(())
            }
            HandoffState::Ready(_) => unreachable!("a task is executed once"),
            HandoffState::Gone => Err(output),
        }
    }

    /// Returns the output if it has been published.
    pub(crate) fn take(&self) -> Option<O> {
        let mut state = self.state();
        if matches!(*state, HandoffState::Pending) {
            return None;
        }
        match std::mem::replace(&mut *state, HandoffState::Gone) {
            HandoffState::Ready(output) => Some(output),
            HandoffState::Pending | HandoffState::Gone => None,
        }
    }

    /// Gives up the output. Returns it if it has been published already.
    pub(crate) fn abandon(&self) -> Option<O> {
        match std::mem::replace(&mut *self.state(), HandoffState::Gone) {
            HandoffState::Ready(output) => Some(output),
            HandoffState::Pending | HandoffState::Gone => None,
        }
    }
}
