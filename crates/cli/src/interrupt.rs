//! Handlers of the signals that end a process: a command that has partial results stops and prints
//! them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit status after Ctrl-C, as shells have it for a program that SIGINT ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// A flag that Ctrl-C sets; a second Ctrl-C ends the process.
pub(crate) fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    // Where a handler cannot be had, Ctrl-C just ends the process.
    let _ = flag::register_conditional_default(SIGINT, stop.clone())
        .and_then(|_| flag::register(SIGINT, stop.clone()));
    stop
}

/// A flag that Ctrl-C, SIGTERM and SIGHUP set, and which of them it was. A second signal ends the
/// process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    pub(crate) stop: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Ending {
    pub(crate) fn on_signals() -> Self {
        let ending = Self::default();
        for signal in wanted() {
            // As above.
            let _ = flag::register_conditional_default(signal, ending.stop.clone())
                .and_then(|_| flag::register_usize(signal, ending.signal.clone(), signal as usize))
                .and_then(|_| flag::register(signal, ending.stop.clone()));
        }
        ending
    }

    /// The exit status that shells have for a program that the signal ended.
    pub(crate) fn status(&self) -> u8 {
        // Set before the flag that made the work stop, by the same handler.
        let signal = self.signal.load(Ordering::Relaxed);
        u8::try_from(signal)
            .map_or(INTERRUPTED, |signal| if signal == 0 { INTERRUPTED } else { 128 + signal })
    }
}

/// A flag that Ctrl-C sets, and so do the other polite ways of ending a process, however often: there are files to be removed.
pub(crate) fn stop_and_clean_up() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in wanted() {
        // As above.
        let _ = flag::register(signal, stop.clone());
    }
    stop
}

/// Returns the signals that end a process, except those that were ignored when it started: nohup(1)
/// has its command ignore SIGHUP, and shells have background jobs ignore SIGINT.
fn wanted() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !fathom_io::sys::is_ignored(*signal))
}
