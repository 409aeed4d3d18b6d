//! Immutable memory that a socket can send without a copy.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{pwrite, retry_on_intr};

use super::Map;
use crate::Errno;

/// An immutable file in memory, mapped and sealed (memfd_create(2), `F_ADD_SEALS` of fcntl(2)).
///
/// sendfile(2) does not copy its bytes: the socket refers to the pages until the peer has
/// acknowledged them, also after this value is dropped. Unlike pages of a file on a disk, they
/// cannot change in the meantime.
///
/// ```
/// use std::io::Read;
/// use std::os::fd::AsFd;
/// use fathom_io::sys::{SealedMemory, send_file};
///
/// let sealed = SealedMemory::new(b"hello")?;
/// assert_eq!(sealed.as_ref(), b"hello");
/// let (ours, mut theirs) = std::os::unix::net::UnixStream::pair()?;
/// send_file(ours.as_fd(), sealed.as_fd(), 0, 5)?;
/// drop((sealed, ours));
/// let mut text = String::new();
/// theirs.read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct SealedMemory {
    map: Map,
    file: OwnedFd,
}

// SAFETY: the bytes behind a `&SealedMemory` are never written: the seals forbid it, and `Map`
// writes through `&mut` only, which no code outside this module can get.
unsafe impl Sync for SealedMemory {}

impl SealedMemory {
    /// Copies `bytes` into sealed memory.
    ///
    /// # Errors
    /// As memfd_create(2), pwrite(2), fcntl(2) and mmap(2): for example EMFILE, ENOMEM or ENOSYS.
    pub fn new(bytes: &[u8]) -> Result<Self, Errno> {
        let file = memory_file()?;
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match retry_on_intr(|| pwrite(&file, rest, written as u64))? {
                0 => return Err(Errno::NOSPC),
                count => written += count,
            }
        }
        fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = Map::private(file.as_fd(), bytes.len())?;
        Ok(Self { map, file })
    }
}

impl AsRef<[u8]> for SealedMemory {
    fn as_ref(&self) -> &[u8] {
        let Some(address) = self.map.address() else { return &[] };
        // SAFETY: `len` bytes from `address` are mapped until `self` is dropped, which the lifetime
        // of the slice does not outlast; the file has all of them and is sealed against truncation
        // and writes, so the bytes exist and do not change.
        unsafe { std::slice::from_raw_parts(address.as_ptr(), self.map.len()) }
    }
}

impl AsFd for SealedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Creates the file. It is not executable on kernels that know the flag, which exists since 6.3.
fn memory_file() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(c"fathom", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(c"fathom", flags),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_memory_refuses_writes_and_truncation() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| at as u8).collect();
        let sealed = SealedMemory::new(&bytes).unwrap();
        assert!(sealed.as_ref() == bytes);
        assert_eq!(pwrite(&sealed, b"x", 0), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&sealed, 10), Err(Errno::PERM));
        assert!(SealedMemory::new(&[]).unwrap().as_ref().is_empty());
    }

    #[test]
    fn a_socket_keeps_the_pages_after_the_drop() {
        use std::io::Read;
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let sealed = SealedMemory::new(&[7; 50_000]).unwrap();
        let sent = crate::sys::send_file(ours.as_fd(), sealed.as_fd(), 20_000, 30_000).unwrap();
        drop(sealed);
        // Pages that had been freed would be reused by these.
        let others: Vec<SealedMemory> = (0..64).map(|_| SealedMemory::new(&[9; 50_000]).unwrap()).collect();
        let mut received = vec![0; sent];
        theirs.read_exact(&mut received).unwrap();
        assert!(sent > 0 && received.iter().all(|byte| *byte == 7), "{sent} bytes, beside {}", others.len());
    }
}
