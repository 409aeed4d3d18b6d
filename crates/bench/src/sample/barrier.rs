//! The start barrier of the threads of a sample: all of them are prepared before the clock starts.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug, Default)]
struct BarrierState {
    /// Threads that wait for the release, and those that have ended before.
    arrived: usize,
    /// Whether a thread has ended before it was ready.
    has_lost: bool,
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
    fn arrive(&self) -> bool {
        self.state().arrived += 1;
        self.changed.notify_all();
        self.wait(|state| state.go.is_some()).go == Some(true)
    }

    /// Reports that a thread ends before it is ready, after an error or a panic. Does not block.
    fn lose(&self) {
        let mut state = self.state();
        (state.arrived, state.has_lost) = (state.arrived + 1, true);
        self.changed.notify_all();
    }

    /// Blocks until `count` threads are ready or have ended. Returns whether all are ready.
    pub(super) fn wait_for_threads(&self, count: usize) -> bool {
        !self.wait(|state| state.arrived >= count).has_lost
    }

    /// Releases the threads. They start if `go` is true, and return without work otherwise.
    pub(super) fn release(&self, go: bool) {
        self.state().go = Some(go);
        self.changed.notify_all();
    }
}

/// The arrival of one thread. If it is dropped before, as by a panic, the thread counts as lost:
/// the coordinating thread would wait for it for ever.
pub(super) struct Arrival<'a> {
    barrier: &'a StartBarrier,
    has_arrived: bool,
}

impl<'a> Arrival<'a> {
    pub(super) fn new(barrier: &'a StartBarrier) -> Self {
        Self { barrier, has_arrived: false }
    }

    /// Reports that the thread is ready and blocks until the release. Returns whether to start.
    pub(super) fn arrive(mut self) -> bool {
        self.has_arrived = true;
        self.barrier.arrive()
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        if !self.has_arrived {
            self.barrier.lose();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_that_ends_before_it_is_ready_holds_nobody_up() {
        for panics in [false, true] {
            let barrier = StartBarrier::default();
            thread::scope(|scope| {
                let ready = scope.spawn(|| Arrival::new(&barrier).arrive());
                scope.spawn(|| {
                    let arrival = Arrival::new(&barrier);
                    let ended = catch_unwind(AssertUnwindSafe(|| {
                        let _arrival = arrival;
                        assert!(!panics, "on purpose");
                    }));
                    assert_eq!(ended.is_err(), panics);
                });
                let is_complete = barrier.wait_for_threads(2);
                barrier.release(is_complete);
                assert!(!is_complete && !ready.join().unwrap());
            });
        }
    }
}
