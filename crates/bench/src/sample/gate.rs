//! Where threads wait for one another before the clock starts.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug, Default)]
struct State {
    arrived: usize,
    go: Option<bool>,
}

/// Closed at first.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, mut done: impl FnMut(&State) -> bool) -> State {
        let guard = self.changed.wait_while(self.state(), |state| !done(state));
        *guard.unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread is ready; whether it is to go, once that is known.
    pub(super) fn arrive(&self) -> bool {
        self.state().arrived += 1;
        self.changed.notify_all();
        self.wait(|state| state.go.is_some()).go == Some(true)
    }

    /// Waits until `count` threads are ready.
    pub(super) fn wait_for(&self, count: usize) {
        self.wait(|state| state.arrived >= count);
    }

    /// Lets all go, or sends them home.
    pub(super) fn open(&self, go: bool) {
        self.state().go = Some(go);
        self.changed.notify_all();
    }
}
