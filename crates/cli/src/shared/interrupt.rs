//! Handlers of termination signals, for commands that stop and print partial results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::cmdline::exit::INTERRUPTED;

/// Returns a flag that SIGINT sets. A second SIGINT ends the process.
pub(crate) fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    // If no handler can be installed, SIGINT ends the process.
    let _ = flag::register_conditional_default(SIGINT, stop.clone())
        .and_then(|_| flag::register(SIGINT, stop.clone()));
    stop
}

/// A flag that SIGINT, SIGTERM and SIGHUP set, and the number of the signal. A second signal ends
/// the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct TerminationSignals {
    pub(crate) stop: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
    is_registered: Arc<AtomicBool>,
}

impl TerminationSignals {
    pub(crate) fn on_signals() -> Self {
        let signals = Self::default();
        signals.register();
        signals
    }

    /// Installs the handlers. Before that, a signal ends the process.
    pub(crate) fn register(&self) {
        for signal in termination_signals() {
            // If no handler can be installed, the signal ends the process.
            let _ = flag::register_conditional_default(signal, self.stop.clone())
                .and_then(|_| flag::register_usize(signal, self.signal.clone(), signal as usize))
                .and_then(|_| flag::register(signal, self.stop.clone()));
        }
    }

    /// Installs the handlers, unless they are installed.
    pub(crate) fn register_once(&self) {
        if !self.is_registered.swap(true, Ordering::Relaxed) {
            self.register();
        }
    }

    /// Returns whether a signal has arrived. Something else may have set the flag.
    pub(crate) fn has_arrived(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// Returns the exit status for the signal, by the convention of shells (128 + signal).
    pub(crate) fn status(&self) -> u8 {
        // Relaxed suffices: the handler stores the number before the flag that stopped the work,
        // and a stale 0 only yields the status of SIGINT.
        let signal = self.signal.load(Ordering::Relaxed);
        u8::try_from(signal)
            .map_or(INTERRUPTED, |signal| if signal == 0 { INTERRUPTED } else { 128 + signal })
    }
}

/// Returns a flag that SIGINT, SIGTERM and SIGHUP set. Further signals do not end the process,
/// because it has to remove temporary files.
pub(crate) fn stop_on_termination() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in termination_signals() {
        // If no handler can be installed, the signal ends the process.
        let _ = flag::register(signal, stop.clone());
    }
    stop
}

/// Returns the signals that end a process, except those that were ignored when it started: nohup(1)
/// makes its command ignore SIGHUP, and shells make background jobs ignore SIGINT.
pub(crate) fn termination_signals() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !fathom_io::sys::is_ignored(*signal))
}
