//! Signals that arrive while an archive is read: reading ends, so what was unpacked is removed.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::SigId;
use signal_hook::flag::register_usize;
use signal_hook::low_level::unregister;

use crate::shared::interrupt::termination_signals;

/// The time between two looks at the signals while nothing arrives.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The signal that has arrived since this was made, until it is dropped.
#[derive(Debug)]
pub(super) struct Interruption {
    signal: Arc<AtomicUsize>,
    handlers: Vec<SigId>,
}

impl Interruption {
    pub(super) fn watch() -> Self {
        let signal = Arc::default();
        // A signal without a handler ends the process.
        let register = |number| register_usize(number, Arc::clone(&signal), number as usize).ok();
        let handlers = termination_signals().filter_map(register).collect();
        Self { signal, handlers }
    }

    /// Returns the exit status for the signal, by the convention of shells (128 + signal).
    pub(super) fn status(&self) -> Option<u8> {
        let signal = self.signal.load(Ordering::Relaxed);
        u8::try_from(signal).ok().filter(|signal| *signal != 0).map(|signal| 128 + signal)
    }

    /// Reads from `source` until a signal arrives.
    pub(super) fn reader<R>(&self, source: R) -> InterruptibleReader<'_, R> {
        InterruptibleReader { source, interruption: self }
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.handlers.drain(..).for_each(|handler| {
            unregister(handler);
        });
    }
}

/// A reader that fails once a signal has arrived.
pub(super) struct InterruptibleReader<'a, R> {
    source: R,
    interruption: &'a Interruption,
}

impl<R: Read + AsFd> Read for InterruptibleReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.interruption.status().is_some() {
                return Err(io::Error::other("it was interrupted"));
            }
            match poll(&mut [PollFd::new(&self.source, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.source.read(buffer),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
