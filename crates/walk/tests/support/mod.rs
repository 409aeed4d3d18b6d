//! What the tests of the walk share: trees, a consumer that writes down all it is told, models that
//! are late, a second process with limits of its own. Knows nothing of how the walk does it: only
//! the public interface is used.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub(crate) mod calls;
pub(crate) mod child;
pub(crate) mod gate;
pub(crate) mod late;
pub(crate) mod record;
pub(crate) mod slow;
pub(crate) mod tell;
pub(crate) mod tree;
pub(crate) mod way;

use std::fmt::Display;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// Says why something could not be tried here; `make test` counts the running test as skipped.
pub(crate) fn skip(why: impl Display) {
    println!("skipped: {why}");
}

/// Ends the whole process, with a word, if it is not dropped in time: a walk that hangs would hang
/// the tests.
pub(crate) struct Watchdog(Sender<()>);

impl Watchdog {
    pub(crate) fn new(what: impl Display) -> Self {
        // Long enough for any walk of a test on a machine that is busy with twenty other things.
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

/// SplitMix64: numbers that look random, from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}
