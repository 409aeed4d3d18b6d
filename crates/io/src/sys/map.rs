//! A memory mapping of a file.

use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, copy_nonoverlapping};

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};

use crate::Errno;

/// A mapping of the first bytes of a file. Its methods copy bytes in and out and never create a
/// reference to them, because another process may change them.
///
/// An access to a page beyond the end of the file, or to one for which the disk has no space, ends
/// the process with SIGBUS. The caller must make sure that no other process truncates the file, and
/// that its space is allocated.
#[derive(Debug)]
pub(crate) struct Map {
    address: Option<NonNull<u8>>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and `&Map` only reads `address` and
// `len`; the bytes behind them are written through `&mut` only.
unsafe impl Send for Map {}

impl Map {
    /// Maps the first `len` bytes of `file`.
    pub(crate) fn new(file: BorrowedFd<'_>, len: usize, writable: bool) -> Result<Self, Errno> {
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        Self::of(file, len, protection, MapFlags::SHARED)
    }

    /// Maps the first `len` bytes of `file` privately. Used for sealed files, of which a shared
    /// mapping needs Linux 6.7.
    pub(super) fn private(file: BorrowedFd<'_>, len: usize) -> Result<Self, Errno> {
        Self::of(file, len, ProtFlags::READ, MapFlags::PRIVATE)
    }

    fn of(file: BorrowedFd<'_>, len: usize, protection: ProtFlags, flags: MapFlags) -> Result<Self, Errno> {
        if len == 0 {
            return Ok(Self { address: None, len });
        }
        // SAFETY: a new mapping at an address that the kernel chooses replaces no other memory.
        let address = unsafe { mmap(std::ptr::null_mut(), len, protection, flags, file, 0)? };
        Ok(Self { address: NonNull::new(address.cast()), len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the address of the mapping. `None` if it is empty.
    pub(super) fn address(&self) -> Option<NonNull<u8>> {
        self.address
    }

    /// Copies from byte `offset` of the file to `bytes`, up to the end of the mapping. Returns the
    /// number of bytes copied.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> usize {
        let Some((address, count)) = self.range(offset, bytes.len()) else { return 0 };
        // SAFETY: `range` has checked that `count` bytes from `address` are mapped, and `bytes` has
        // as many; they do not overlap, because no reference to mapped bytes is ever created.
        unsafe { copy_nonoverlapping(address.as_ptr(), bytes.as_mut_ptr(), count) };
        count
    }

    /// Copies `bytes` to byte `offset` of the file, up to the end of the mapping, which must be
    /// writable. Returns the number of bytes copied.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> usize {
        let Some((address, count)) = self.range(offset, bytes.len()) else { return 0 };
        // SAFETY: as in `read`, with source and target exchanged.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), address.as_ptr(), count) };
        count
    }

    fn range(&self, offset: u64, count: usize) -> Option<(NonNull<u8>, usize)> {
        let offset = usize::try_from(offset).ok().filter(|offset| *offset < self.len)?;
        let count = count.min(self.len - offset);
        // SAFETY: `offset` is below `len`, so the sum stays inside the mapping.
        self.address.map(|address| (unsafe { address.add(offset) }, count))
    }

    /// Turns off read-ahead for the mapping (`MADV_RANDOM`).
    pub(crate) fn expect_random(&self) -> Result<(), Errno> {
        let Some(address) = self.address else { return Ok(()) };
        // SAFETY: these pages are mapped, and the advice changes nothing that is read from them.
        unsafe { madvise(address.as_ptr().cast(), self.len, Advice::Random) }
    }

    /// Writes modified pages to the file (msync(2)).
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        let Some(address) = self.address else { return Ok(()) };
        // SAFETY: these pages are mapped.
        unsafe { msync(address.as_ptr().cast(), self.len, MsyncFlags::SYNC) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if let Some(address) = self.address {
            // SAFETY: `of` has mapped these bytes, only this function unmaps them, and no copy of
            // the address outlives `self`.
            let _ = unsafe { munmap(address.as_ptr().cast(), self.len) };
        }
    }
}
