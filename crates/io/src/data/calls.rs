//! The blocking calls data models are made of, as a trait, so that faults can stand between a model and the kernel.

use std::os::fd::BorrowedFd;

use rustix::io::retry_on_intr;

use crate::Errno;

/// BlockingData calls on byte ranges. EINTR is handled inside.
pub trait DataCalls: Clone + Send + Sync + 'static {
    /// pread(2).
    ///
    /// # Errors
    /// Its errors.
    fn pread(&self, file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> Result<usize, Errno>;

    /// pwrite(2).
    ///
    /// # Errors
    /// Its errors.
    fn pwrite(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize, Errno>;

    /// read(2), at the file's position.
    ///
    /// # Errors
    /// Its errors.
    fn read(&self, file: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize, Errno>;

    /// write(2), at the file's position.
    ///
    /// # Errors
    /// Its errors.
    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno>;

    /// fdatasync(2), or fsync(2) for `all`.
    ///
    /// # Errors
    /// Its errors.
    fn sync(&self, file: BorrowedFd<'_>, all: bool) -> Result<(), Errno>;
}

/// The kernel's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeData;

impl DataCalls for NativeData {
    fn pread(&self, file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::io::pread(file, &mut *bytes, offset))
    }

    fn pwrite(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::io::pwrite(file, bytes, offset))
    }

    fn read(&self, file: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::io::read(file, &mut *bytes))
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::io::write(file, bytes))
    }

    fn sync(&self, file: BorrowedFd<'_>, all: bool) -> Result<(), Errno> {
        retry_on_intr(|| if all { rustix::fs::fsync(file) } else { sync_data(file) })
    }
}

#[cfg(not(target_vendor = "apple"))]
fn sync_data(file: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::fdatasync(file)
}

#[cfg(target_vendor = "apple")]
fn sync_data(file: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::fsync(file)
}

/// Makes the call an operation stands for.
pub(crate) fn perform(
    calls: &impl DataCalls,
    file: BorrowedFd<'_>,
    op: &mut super::Op,
) -> Result<usize, Errno> {
    use super::OpKind;
    let offset = op.offset;
    match op.kind {
        OpKind::Read => calls.pread(file, op.bytes_mut(), offset),
        OpKind::Write => calls.pwrite(file, op.bytes(), offset),
        OpKind::SyncData | OpKind::SyncAll => calls.sync(file, op.kind == OpKind::SyncAll).map(|()| 0),
    }
}
