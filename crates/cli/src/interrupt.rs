//! What Ctrl-C does: a command that has something to show for its work stops and shows it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Exit status after Ctrl-C, as shells have it for a program that SIGINT ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// A flag that Ctrl-C sets; a second Ctrl-C ends the process.
pub(crate) fn stop_on_interrupt() -> Arc<AtomicBool> {
    use signal_hook::consts::SIGINT;
    let stop = Arc::new(AtomicBool::new(false));
    // Where a handler cannot be had, Ctrl-C just ends the process.
    let _ = signal_hook::flag::register_conditional_default(SIGINT, stop.clone())
        .and_then(|_| signal_hook::flag::register(SIGINT, stop.clone()));
    stop
}

/// A flag that Ctrl-C sets, and so do the other polite ways of ending a process, however often: there are files to be removed.
pub(crate) fn stop_and_clean_up() -> Arc<AtomicBool> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // As above.
        let _ = signal_hook::flag::register(signal, stop.clone());
    }
    stop
}
