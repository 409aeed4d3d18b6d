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
