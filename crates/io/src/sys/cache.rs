//! Queries of the page cache, and eviction from it.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{Advice, fadvise};

use crate::Errno;

/// The pages of a file in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheStat {
    /// Number of cached pages.
    pub pages: u64,
    /// Number of cached pages that are modified and not yet written.
    pub dirty: u64,
    /// Number of cached pages that are being written.
    pub writeback: u64,
}

/// The argument of cachestat(2).
#[repr(C)]
struct CachestatRange {
    offset: u64,
    len: u64,
}

/// The result of cachestat(2).
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The number of cachestat(2), the same on all architectures (Linux 6.5).
const CACHESTAT: libc::c_long = 451;

/// Counts the cached pages of `file` in the `len` bytes from `offset`, or up to its end if `len` is
/// 0 (cachestat(2)).
///
/// # Errors
/// As cachestat(2). ENOSYS before Linux 6.5, where [`resident`] is a substitute; EOPNOTSUPP for
/// huge pages.
///
/// ```
/// use std::os::fd::AsFd;
/// use fathom_io::{Errno, sys};
///
/// std::fs::read("Cargo.toml").unwrap();
/// let file = std::fs::File::open("Cargo.toml").unwrap();
/// match sys::cached(file.as_fd(), 0, 0) {
///     Ok(stat) => println!("{} pages, {} modified", stat.pages, stat.dirty),
///     Err(errno) => println!("before Linux 6.5: {errno}"),
/// }
/// sys::forget_cached(file.as_fd())?;
/// # Ok::<(), Errno>(())
/// ```
pub fn cached(file: BorrowedFd<'_>, offset: u64, len: u64) -> Result<PageCacheStat, Errno> {
    let (range, mut stat) = (CachestatRange { offset, len }, Cachestat::default());
    // SAFETY: both pointers refer to values of the call's own layout, which live until it returns.
    let result = unsafe {
        libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0 as libc::c_uint)
    };
    if result != 0 {
        return Err(last_errno());
    }
    Ok(PageCacheStat { pages: stat.cache, dirty: stat.dirty, writeback: stat.writeback })
}

/// Counts the pages of the first `len` bytes of `file` that are in memory (mincore(2)). Since Linux
/// 5.2, all pages count as resident if the process may not write the file.
///
/// # Errors
/// As mmap(2) and mincore(2).
pub fn resident(file: BorrowedFd<'_>, len: u64) -> Result<u64, Errno> {
    let len = usize::try_from(len).map_err(|_| Errno::FBIG)?;
    let map = super::Map::new(file, len, false)?;
    let mut pages = vec![0_u8; len.div_ceil(rustix::param::page_size())];
    let Some(address) = map.address() else { return Ok(0) };
    // SAFETY: `len` bytes from `address` are mapped, and the vector has a byte for each of their
    // pages.
    let result = unsafe { libc::mincore(address.as_ptr().cast(), len, pages.as_mut_ptr()) };
    if result != 0 {
        return Err(last_errno());
    }
    Ok(pages.iter().map(|page| u64::from(page & 1)).sum())
}

/// Evicts the pages of `file` that are not modified from the page cache.
///
/// # Errors
/// As posix_fadvise(2).
pub fn forget_cached(file: BorrowedFd<'_>) -> Result<(), Errno> {
    fadvise(file, 0, None, Advice::DontNeed)
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
