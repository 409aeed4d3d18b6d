//! The synchronization types of the modules that model tests check (`futex_event.rs`,
//! `thread_demand.rs`). The tests in `model/` compile these modules with a model checker's types of
//! the same names, and with a futex made of them.

use std::time::Duration;

use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

pub(super) use std::sync::atomic;

/// Waits for a wake-up, unless the value of `word` is not `seen` (futex(2), FUTEX_WAIT). Returns
/// false after `timeout`.
pub(super) fn futex_wait(word: &atomic::AtomicU32, seen: u32, timeout: Duration) -> bool {
    let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
    let timeout = Timespec { tv_sec: seconds, tv_nsec: timeout.subsec_nanos().into() };
    futex::wait(word, Flags::PRIVATE, seen, Some(&timeout)) != Err(Errno::TIMEDOUT)
}

/// Wakes up to `threads` threads that wait (futex(2), FUTEX_WAKE).
pub(super) fn futex_wake(word: &atomic::AtomicU32, threads: u32) {
    // The call cannot fail: the address is valid.
    let _woken = futex::wake(word, Flags::PRIVATE, threads);
}
