//! The blocking calls of data models, as a trait, so that faults can be injected between a model
//! and the kernel.

use std::os::fd::BorrowedFd;

use rustix::io::retry_on_intr;

use crate::Errno;

/// Blocking calls on byte ranges. Implementations repeat a call after EINTR.
pub trait DataCalls: Clone + Send + Sync + 'static {
    /// Calls pread(2).
    ///
    /// # Errors
    /// As pread(2).
    fn pread(&self, file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> Result<usize, Errno>;

    /// Calls pwrite(2).
    ///
    /// # Errors
    /// As pwrite(2).
    fn pwrite(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize, Errno>;

    /// Calls read(2), which reads at the position of the file.
    ///
    /// # Errors
    /// As read(2).
    fn read(&self, file: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize, Errno>;

    /// Calls write(2), which writes at the position of the file.
    ///
    /// # Errors
    /// As write(2).
    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno>;

    /// Calls fdatasync(2), or fsync(2) if `all` is set.
    ///
    /// # Errors
    /// As fsync(2).
    fn sync(&self, file: BorrowedFd<'_>, all: bool) -> Result<(), Errno>;
}

/// The calls of the kernel, without faults.
///
/// ```
/// use std::os::fd::AsFd;
/// use fathom_io::data::{DataCalls, NativeData};
///
/// let file = std::fs::File::open("Cargo.toml")?;
/// let mut bytes = [0; 7];
/// assert_eq!(NativeData.pread(file.as_fd(), &mut bytes, 1)?, 7);
/// assert_eq!(&bytes, b"package");
/// # Ok::<(), std::io::Error>(())
/// ```
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

/// Makes the call of an operation.
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
