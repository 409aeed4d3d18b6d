//! What the page cache has of a file, and having it forget that.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{Advice, fadvise};

use crate::Errno;

/// Pages of a file in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheStat {
    /// How many.
    pub pages: u64,
    /// Of these, changed and not written yet.
    pub dirty: u64,
    /// Of these, being written.
    pub writeback: u64,
}

/// The argument of cachestat(2).
#[repr(C)]
struct Range {
    offset: u64,
    len: u64,
}

/// Its result.
#[repr(C)]
#[derive(Default)]
struct Stat {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The number of cachestat(2), the same on all architectures (Linux 6.5).
const CACHESTAT: libc::c_long = 451;

/// What the page cache has of the bytes of `file` from `offset` on, `len` of them or up to its end if that is 0.
///
/// # Errors
/// cachestat(2)'s: ENOSYS before Linux 6.5, where [`resident`] tells less; EOPNOTSUPP for huge pages.
pub fn cached(file: BorrowedFd<'_>, offset: u64, len: u64) -> Result<PageCacheStat, Errno> {
    let (range, mut stat) = (Range { offset, len }, Stat::default());
    // SAFETY: both pointers are to values of the call's own layout, which live until it returns.
    let result = unsafe {
        libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0 as libc::c_uint)
    };
    if result != 0 {
        return Err(last_errno());
    }
    Ok(PageCacheStat { pages: stat.cache, dirty: stat.dirty, writeback: stat.writeback })
}

/// How many pages of the first `len` bytes of `file` are in memory (mincore(2)). Since Linux 5.2 only who may write the file is told; others
/// see all of it as resident.
///
/// # Errors
/// mmap(2)'s and mincore(2)'s.
pub fn resident(file: BorrowedFd<'_>, len: u64) -> Result<u64, Errno> {
    let len = usize::try_from(len).map_err(|_| Errno::FBIG)?;
    let map = super::Map::new(file, len, false)?;
    let mut pages = vec![0_u8; len.div_ceil(rustix::param::page_size())];
    let Some(address) = map.address() else { return Ok(0) };
    // SAFETY: `len` bytes from `address` are mapped, and the vector has a byte for each of their pages.
    let result = unsafe { libc::mincore(address.as_ptr().cast(), len, pages.as_mut_ptr()) };
    if result != 0 {
        return Err(last_errno());
    }
    Ok(pages.iter().map(|page| u64::from(page & 1)).sum())
}

/// Has the page cache forget what it has of `file` and has been written.
///
/// # Errors
/// posix_fadvise(2)'s.
pub fn forget_cached(file: BorrowedFd<'_>) -> Result<(), Errno> {
    fadvise(file, 0, None, Advice::DontNeed)
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
