//! A file in memory.

use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, copy_nonoverlapping};

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};

use crate::Errno;

/// A mapping of the first bytes of a file. Bytes are copied in and out: no reference to them exists, because another process may
/// change them.
///
/// A page that is beyond the file's end by the time it is touched, or that the disk has no room for, ends the process with SIGBUS. Whoever
/// makes a mapping must have the file to himself, and its space allocated.
#[derive(Debug)]
pub(crate) struct Map {
    address: Option<NonNull<u8>>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and `&Map` only reads `address` and `len`; what is behind them is reached
// through `&mut` for writing.
unsafe impl Send for Map {}

impl Map {
    /// Maps the first `len` bytes of `file`.
    pub(crate) fn new(file: BorrowedFd<'_>, len: usize, writable: bool) -> Result<Self, Errno> {
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        Self::of(file, len, protection, MapFlags::SHARED)
    }

    /// Maps the first `len` bytes of `file`, which nobody writes to; a shared mapping of a sealed file needs Linux 6.7.
    pub(super) fn private(file: BorrowedFd<'_>, len: usize) -> Result<Self, Errno> {
        Self::of(file, len, ProtFlags::READ, MapFlags::PRIVATE)
    }

    fn of(file: BorrowedFd<'_>, len: usize, protection: ProtFlags, flags: MapFlags) -> Result<Self, Errno> {
        if len == 0 {
            return Ok(Self { address: None, len });
        }
        // SAFETY: a new mapping, at an address the kernel chooses, takes nobody's memory.
        let address = unsafe { mmap(std::ptr::null_mut(), len, protection, flags, file, 0)? };
        Ok(Self { address: NonNull::new(address.cast()), len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where it is; `None` if it is empty.
    pub(super) fn address(&self) -> Option<NonNull<u8>> {
        self.address
    }

    /// Copies from the file's byte `offset`, as much as is mapped.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> usize {
        let Some((address, count)) = self.part(offset, bytes.len()) else { return 0 };
        // SAFETY: `part` has checked that `count` bytes from `address` are mapped, and `bytes` has as many; they do not overlap, because
        // no reference to mapped bytes is ever made.
        unsafe { copy_nonoverlapping(address.as_ptr(), bytes.as_mut_ptr(), count) };
        count
    }

    /// Copies to the file's byte `offset`, as much as is mapped, which must have been mapped writable.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> usize {
        let Some((address, count)) = self.part(offset, bytes.len()) else { return 0 };
        // SAFETY: as in `read`, the other way round.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), address.as_ptr(), count) };
        count
    }

    fn part(&self, offset: u64, count: usize) -> Option<(NonNull<u8>, usize)> {
        let offset = usize::try_from(offset).ok().filter(|offset| *offset < self.len)?;
        let count = count.min(self.len - offset);
        // SAFETY: `offset` is below `len`, so the sum stays inside the mapping.
        self.address.map(|address| (unsafe { address.add(offset) }, count))
    }

    /// Tells the kernel that neighbours of a page that is touched are not wanted (`MADV_RANDOM`).
    pub(crate) fn expect_random(&self) -> Result<(), Errno> {
        let Some(address) = self.address else { return Ok(()) };
        // SAFETY: these pages are mapped, and the advice changes nothing that is read from them.
        unsafe { madvise(address.as_ptr().cast(), self.len, Advice::Random) }
    }

    /// Writes changed pages to the file.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        let Some(address) = self.address else { return Ok(()) };
        // SAFETY: these pages are mapped.
        unsafe { msync(address.as_ptr().cast(), self.len, MsyncFlags::SYNC) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            // SAFETY: mapped in `new`, unmapped here only, and nobody keeps an address of it.
            let _ = unsafe { munmap(address.as_ptr().cast(), self.len) };
        }
    }
}
