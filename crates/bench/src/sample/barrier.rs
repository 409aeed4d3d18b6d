//! The start barrier of the threads of a sample: all of them are prepared before the clock starts.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug, Default)]
struct BarrierState {
    /// Threads that wait for the release.
    arrived: usize,
    /// Whether the released threads start; `None` before the release.
    go: Option<bool>,
}

/// A barrier at which threads wait until the coordinating thread releases them.
#[derive(Debug, Default)]
pub(super) struct StartBarrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

impl StartBarrier {
    fn state(&self) -> MutexGuard<'_, BarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, mut done: impl FnMut(&BarrierState) -> bool) -> BarrierState {
        let guard = self.changed.wait_while(self.state(), |state| !done(state));
        *guard.unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that a thread is ready and blocks until the release. Returns whether to start.
    pub(super) fn arrive(&self) -> bool {
        self.state().arrived += 1;
        self.changed.notify_all();
        self.wait(|state| state.go.is_some()).go == Some(true)
    }

    /// Blocks until `count` threads are ready.
    pub(super) fn wait_for_threads(&self, count: usize) {
        self.wait(|state| state.arrived >= count);
    }

    /// Releases the threads. They start if `go` is true, and return without work otherwise.
    pub(super) fn release(&self, go: bool) {
        self.state().go = Some(go);
        self.changed.notify_all();
    }
}
