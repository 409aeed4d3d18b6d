//! A timer with the resolution of the kernel (timerfd_create(2)). Timers of tokio have a resolution
//! of one millisecond, in which a fast server answers a hundred requests.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timer for one task of tokio.
///
/// ```
/// use std::time::{Duration, Instant};
/// use fathom_io::sys::Timer;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
/// # runtime.block_on(async {
/// let timer = Timer::new()?;
/// let due = Instant::now() + Duration::from_micros(100);
/// timer.wait_until(due).await?;
/// assert!(Instant::now() >= due);
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// Creates a timer in the runtime of the caller.
    ///
    /// # Errors
    /// As timerfd_create(2) and epoll_ctl(2).
    ///
    /// # Panics
    /// Outside a runtime with I/O.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the descriptor is open, and the value that owns it keeps it so until it is
        // dropped with the registration.
        let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Waits until `due`; returns at once if it is past.
    ///
    /// # Errors
    /// As timerfd_settime(2) and read(2).
    pub async fn wait_until(&self, due: Instant) -> io::Result<()> {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let it_value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &Itimerspec { it_interval, it_value })?;
        let mut expirations = [0; 8];
        self.0
            .async_io(Interest::READABLE, |descriptor| Ok(rustix::io::read(descriptor, &mut expirations)?))
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_timer_waits_until_the_time_and_not_for_one_that_is_past() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let timer = Timer::new().unwrap();
            for wait in [Duration::from_micros(300), Duration::from_millis(3)] {
                let due = Instant::now() + wait;
                timer.wait_until(due).await.unwrap();
                assert!(Instant::now() >= due);
                timer.wait_until(due).await.unwrap();
            }
        });
    }
}
