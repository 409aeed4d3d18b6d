//! Helpers shared by the tests of the walk: trees, consumers that record every call, models that
//! delay their results, and child processes with other limits. They use only the public interface
//! of the walk.

pub(crate) mod calls;
pub(crate) mod child;
pub(crate) mod events;
pub(crate) mod gate;
pub(crate) mod held;
pub(crate) mod late;
pub(crate) mod record;
pub(crate) mod slow;
pub(crate) mod tree;
pub(crate) mod way;

use std::fmt::Display;
use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

pub(crate) use fathom_walk::Random;

/// Prints the reason why a test cannot run here; `make test` counts the running test as skipped.
pub(crate) fn skip(why: impl Display) {
    println!("skipped: {why}");
}

/// Aborts the process with a message if the value is not dropped in time: a walk that hangs would
/// hang the tests.
pub(crate) struct Watchdog {
    _running: Sender<()>,
}

impl Watchdog {
    pub(crate) fn new(what: impl Display) -> Self {
        // Sufficient for every test's walk on a machine with twenty other busy processes.
        const PATIENCE: Duration = Duration::from_secs(600);
        let (sender, dropped) = mpsc::channel();
        let what = format!("{}: {what}", std::thread::current().name().unwrap_or("?"));
        std::thread::spawn(move || {
            if dropped.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // `eprintln` would write to what libtest keeps of this test, and loses.
                let _ = writeln!(std::io::stderr(), "hangs for {PATIENCE:?}: {what}");
                std::process::abort();
            }
        });
        Self { _running: sender }
    }
}
