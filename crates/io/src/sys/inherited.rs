//! Descriptors that this process has inherited.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::Errno;

/// The lowest descriptor that is not a standard stream. Those belong to the standard library.
const FIRST_FD: RawFd = 3;

/// Transfers the ownership of the inherited descriptor `fd` to the caller and sets its
/// close-on-exec flag.
///
/// # Errors
/// EBADF if `fd` is not open. EBUSY for a standard stream, and for a descriptor with the
/// close-on-exec flag: it was not inherited, or an earlier call has already returned it.
///
/// ```
/// use std::os::fd::AsRawFd;
/// use fathom_io::{Errno, sys};
///
/// // The standard library opens files with close-on-exec, so this descriptor was not inherited.
/// let file = std::fs::File::open("/dev/null")?;
/// assert_eq!(sys::inherited(file.as_raw_fd()).unwrap_err(), Errno::BUSY);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn inherited(fd: RawFd) -> Result<OwnedFd, Errno> {
    static TAKING: Mutex<()> = Mutex::new(());
    let _guard = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if fd < FIRST_FD {
        return Err(Errno::BUSY);
    }
    // SAFETY: F_GETFD takes no pointer and changes nothing, for any number.
    match unsafe { libc::fcntl(fd, libc::F_GETFD) } {
        -1 => return Err(Errno::BADF),
        flags if flags & libc::FD_CLOEXEC != 0 => return Err(Errno::BUSY),
        _ => {}
    }
    // SAFETY: the descriptor is open and has no owner in this process: descriptors that the
    // standard library, rustix and tokio open have the flag that is missing here, and the mutex
    // ensures that only one caller has seen it missing.
    let owned = unsafe { OwnedFd::from_raw_fd(fd) };
    fcntl_setfd(&owned, FdFlags::CLOEXEC)?;
    Ok(owned)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, IntoRawFd};

    use rustix::io::fcntl_getfd;

    use super::*;

    #[test]
    fn an_inherited_descriptor_is_returned_once() {
        let file = std::fs::File::open("/dev/null").unwrap();
        fcntl_setfd(&file, FdFlags::empty()).unwrap();
        let fd = file.into_raw_fd();
        let owned = inherited(fd).unwrap();
        assert!(fcntl_getfd(&owned).unwrap().contains(FdFlags::CLOEXEC));
        assert_eq!(inherited(fd).unwrap_err(), Errno::BUSY);
    }

    #[test]
    fn owned_and_closed_descriptors_and_standard_streams_are_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(inherited(file.as_raw_fd()).unwrap_err(), Errno::BUSY);
        for fd in [-1, 0, 1, 2] {
            assert_eq!(inherited(fd).unwrap_err(), Errno::BUSY);
        }
        assert_eq!(inherited(RawFd::MAX).unwrap_err(), Errno::BADF);
    }
}
