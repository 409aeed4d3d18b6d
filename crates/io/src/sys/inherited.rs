//! Descriptors that this process was started with.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::Errno;

/// The standard streams belong to the standard library.
const FIRST_FD: RawFd = 3;

/// Makes the inherited descriptor `fd` the caller's, and closes it on exec from now on. Each can be had once: a descriptor that is closed
/// on exec cannot have been inherited, or was given away here before, and is refused (EBUSY), as are the standard streams.
pub fn inherited(fd: RawFd) -> Result<OwnedFd, Errno> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if fd < FIRST_FD {
        return Err(Errno::BUSY);
    }
    // SAFETY: F_GETFD takes no pointer and changes nothing, whatever the number is.
    match unsafe { libc::fcntl(fd, libc::F_GETFD) } {
        -1 => return Err(Errno::BADF),
        flags if flags & libc::FD_CLOEXEC != 0 => return Err(Errno::BUSY),
        _ => {}
    }
    // SAFETY: it is open, and nobody in this process owns it: what the standard library, rustix and tokio open has the flag that was
    // just seen to be missing, and two callers cannot both have seen that.
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
    fn a_descriptor_is_inherited_once() {
        let file = std::fs::File::open("/dev/null").unwrap();
        fcntl_setfd(&file, FdFlags::empty()).unwrap();
        let fd = file.into_raw_fd();
        let owned = inherited(fd).unwrap();
        assert!(fcntl_getfd(&owned).unwrap().contains(FdFlags::CLOEXEC));
        assert_eq!(inherited(fd).unwrap_err(), Errno::BUSY);
    }

    #[test]
    fn what_others_own_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(inherited(file.as_raw_fd()).unwrap_err(), Errno::BUSY);
        for fd in [-1, 0, 1, 2] {
            assert_eq!(inherited(fd).unwrap_err(), Errno::BUSY);
        }
        assert_eq!(inherited(RawFd::MAX).unwrap_err(), Errno::BADF);
    }
}
