//! Helpers shared by the tests of the walk: trees, consumers that record every call, models that
//! delay their results, and child processes with other limits. They use only the public interface
//! of the walk.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub(crate) mod calls;
pub(crate) mod child;
pub(crate) mod events;
pub(crate) mod gate;
pub(crate) mod late;
pub(crate) mod record;
pub(crate) mod slow;
pub(crate) mod tree;
pub(crate) mod way;

use std::fmt::Display;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Prints the reason why a test cannot run here; `make test` counts the running test as skipped.
pub(crate) fn skip(why: impl Display) {
    println!("skipped: {why}");
}

/// Aborts the process with a message if the value is not dropped in time: a walk that hangs would
/// hang the tests.
pub(crate) struct Watchdog(Sender<()>);

impl Watchdog {
    pub(crate) fn new(what: impl Display) -> Self {
        // Sufficient for every test's walk on a machine with twenty other busy processes.
        const PATIENCE: Duration = Duration::from_secs(600);
        let (sender, dropped) = mpsc::channel();
        let what = what.to_string();
        std::thread::spawn(move || {
            if dropped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                eprintln!("hangs for {PATIENCE:?}: {what}");
                std::process::abort();
            }
        });
        Self(sender)
    }
}

/// SplitMix64: a generator of pseudo-random numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}
