//! What the process may use and has used, and what kind of filesystem a descriptor is on.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::process::Resource;
use rustix::time::{ClockId, clock_gettime};

/// CPU time all threads of this process have used.
#[must_use]
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// How many descriptors this process may have open (RLIMIT_NOFILE, soft).
#[must_use]
pub fn fd_limit() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// The filesystem's magic number (statfs(2)); `None` where it cannot be told.
#[must_use]
pub fn fs_magic(fd: BorrowedFd<'_>) -> Option<i64> {
    #[cfg(all(target_os = "linux", not(fathom_posix)))]
    return rustix::fs::fstatfs(fd).ok().map(|statfs| statfs.f_type);
    #[cfg(not(all(target_os = "linux", not(fathom_posix))))]
    {
        let _ = fd;
        None
    }
}
