//! Signals that arrive while an archive is read: reading ends, and what was unpacked is removed.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::SessionSignals;

/// The time between two looks at the signals while nothing arrives.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A reader that fails once a signal has arrived.
pub(super) struct InterruptibleReader<'a, R> {
    pub(super) source: R,
    pub(super) signals: &'a SessionSignals,
}

impl<R: Read + AsFd> Read for InterruptibleReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.signals.status().is_some() {
                return Err(io::Error::other("interrupted"));
            }
            match poll(&mut [PollFd::new(&self.source, PollFlags::IN)], Some(&POLL_INTERVAL)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.source.read(buffer),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Waits for a process, which is killed if a signal arrives.
///
/// # Errors
/// As waitpid(2).
pub(super) fn wait(child: &mut Child, signals: &SessionSignals) -> io::Result<ExitStatus> {
    loop {
        fathom_io::fault::point("explore-wait");
        if signals.status().is_some() {
            child.kill()?;
            return child.wait();
        }
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        // A signal ends the sleep.
        let _ = poll(&mut [], Some(&POLL_INTERVAL));
    }
}
