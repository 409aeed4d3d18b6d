//! The signals of a session. Each wakes the thread of the terminal, which acts on it.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGCONT, SIGINT, SIGTSTP, SIGWINCH};
use signal_hook::{flag, low_level::pipe};

use crate::shared::interrupt::termination_signals;

/// The signals that have arrived.
#[derive(Debug, Default)]
pub(super) struct SessionSignals {
    /// The number of the last signal that ends the process, or 0.
    ended: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
    continued: Arc<AtomicBool>,
}

impl SessionSignals {
    /// Installs the handlers of the signals that end the process. Each signal sets its flag first,
    /// and then writes a byte to `wake`.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub(super) fn install(wake: &UnixStream) -> io::Result<Self> {
        let signals = Self::default();
        for signal in termination_signals() {
            flag::register_usize(signal, signals.ended.clone(), signal as usize)?;
            pipe::register(signal, wake.try_clone()?)?;
        }
        Ok(signals)
    }

    /// Installs the handlers of the other signals in the same way. Before that, Ctrl-Z stops the
    /// process.
    ///
    /// # Errors
    /// If a handler cannot be installed.
    pub(super) fn install_job_control(&self, wake: &UnixStream) -> io::Result<()> {
        flag::register(SIGTSTP, self.stopped.clone())?;
        flag::register(SIGCONT, self.continued.clone())?;
        for signal in [SIGTSTP, SIGCONT, SIGWINCH] {
            pipe::register(signal, wake.try_clone()?)?;
        }
        Ok(())
    }

    /// Returns the exit status if a signal ends the process, by the convention of shells.
    ///
    /// Relaxed suffices for all flags: a handler sets its flag before it writes the byte, and the
    /// system calls for the byte order the accesses.
    pub(super) fn status(&self) -> Option<u8> {
        let signal = self.ended.load(Ordering::Relaxed);
        u8::try_from(signal).ok().filter(|signal| *signal != 0).map(|signal| 128 + signal)
    }

    /// Forgets the signals of the keyboard, which were meant for a program that had the terminal.
    pub(super) fn forget_keyboard(&self) {
        self.stopped.store(false, Ordering::Relaxed);
        self.continued.store(false, Ordering::Relaxed);
        let _ = self.ended.compare_exchange(SIGINT as usize, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns whether the process is to be stopped, and forgets it.
    pub(super) fn take_stop(&self) -> bool {
        self.stopped.swap(false, Ordering::Relaxed)
    }

    /// Returns whether the process was continued, and forgets it.
    pub(super) fn take_continued(&self) -> bool {
        self.continued.swap(false, Ordering::Relaxed)
    }
}
