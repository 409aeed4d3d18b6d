//! Shuttle's types under the names of `crates/files/src/pool/sync.rs`, and a futex made of
//! them. As in the kernel, a lock makes the comparison and the start of the wait one step.

use std::sync::PoisonError;
use std::time::Duration;

pub(crate) use shuttle::sync::atomic;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::{Condvar, Mutex, MutexGuard};
use shuttle::thread;

use atomic::{AtomicU32, Ordering};

/// The maximum number of steps of a wait that ends without a wake-up.
const STEPS_MAX: usize = 4;

shuttle::lazy_static! {
    /// The queue of the only futex of a test.
    static ref FUTEX: (Mutex<FutexState>, Condvar) = Default::default();
}

#[derive(Default)]
struct FutexState {
    has_timeouts: bool,
    waiting: usize,
    woken: usize,
}

/// Sets whether waits without a wake-up end after a random number of steps.
pub(crate) fn set_timeouts(has_timeouts: bool) {
    lock().has_timeouts = has_timeouts;
}

fn lock() -> MutexGuard<'static, FutexState> {
    FUTEX.0.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn futex_wait(word: &AtomicU32, seen: u32, _timeout: Duration) -> bool {
    let mut state = lock();
    // The kernel compares after a full barrier.
    if word.load(Ordering::SeqCst) != seen {
        return true;
    }
    state.waiting += 1;
    if state.has_timeouts {
        for _ in 0..thread_rng().gen_range(0..STEPS_MAX) {
            drop(state);
            thread::yield_now();
            state = lock();
        }
    } else {
        while state.woken == 0 {
            state = FUTEX.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
    let is_woken = state.woken > 0;
    state.woken -= usize::from(is_woken);
    state.waiting -= 1;
    is_woken
}

pub(crate) fn futex_wake(_word: &AtomicU32, threads: u32) {
    let mut state = lock();
    let asleep = state.waiting - state.woken;
    state.woken += asleep.min(threads as usize);
    FUTEX.1.notify_all();
}
