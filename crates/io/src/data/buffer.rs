//! Memory for one operation at a time, aligned for `O_DIRECT`.

use std::ops::{Deref, DerefMut, Range};

/// Alignment of every buffer in bytes. No device has larger logical blocks.
pub const ALIGN_BYTES: usize = 4096;

/// Bytes on the heap whose address stays the same when the value is moved.
///
/// ```
/// use fathom_io::data::{ALIGN_BYTES, Buffer};
///
/// let mut buffer = Buffer::new(512);
/// buffer[..5].copy_from_slice(b"hello");
/// assert_eq!((buffer.len(), buffer.as_ptr() as usize % ALIGN_BYTES), (512, 0));
/// ```
#[derive(Debug, Default)]
pub struct Buffer {
    /// The allocation: `len` bytes, and padding to begin at an aligned address.
    bytes: Vec<u8>,
    start: usize,
    len: usize,
    /// Number of the ring with which these bytes are registered, and their index there.
    #[cfg_attr(
        any(not(target_os = "linux"), not(feature = "uring"), feature = "posix"),
        expect(dead_code, reason = "there are no rings")
    )]
    registered: Option<(u64, u16)>,
}

impl Buffer {
    /// Allocates `len` bytes, all zero.
    #[must_use]
    pub fn new(len: usize) -> Self {
        if len == 0 {
            return Self::default();
        }
        let bytes = vec![0; len + ALIGN_BYTES];
        let start = bytes.as_ptr().align_offset(ALIGN_BYTES);
        // `align_offset` may fail in theory. Then the kernel refuses `O_DIRECT`, and all else
        // works.
        let start = if start <= ALIGN_BYTES { start } else { 0 };
        Self { bytes, start, len, registered: None }
    }

    /// Takes the allocation, which leaves no bytes, and returns it with the place of `range` in it.
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    pub(crate) fn take_memory(&mut self, range: Range<usize>) -> (Vec<u8>, Range<usize>) {
        let place = self.start + range.start..self.start + range.end;
        (std::mem::take(&mut self.bytes), place)
    }

    /// Puts back the allocation that [`take_memory`](Self::take_memory) has returned.
    #[cfg(all(target_os = "linux", not(feature = "posix")))]
    pub(crate) fn put_back(&mut self, memory: Vec<u8>) {
        self.bytes = memory;
    }

    /// Returns the index of these bytes among those registered with ring `ring`.
    #[cfg(all(target_os = "linux", feature = "uring", not(feature = "posix")))]
    pub(crate) fn registered_with(&self, ring: u64) -> Option<u16> {
        self.registered.filter(|(number, _)| *number == ring).map(|(_, index)| index)
    }

    /// Marks these bytes as registered with ring `ring`, under the number `index`.
    #[cfg(all(target_os = "linux", feature = "uring", not(feature = "posix")))]
    pub(crate) fn set_registered(&mut self, ring: u64, index: u16) {
        self.registered = Some((ring, index));
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_zeroed_and_keep_their_address() {
        for len in [1, 511, 4096, 4097, 1 << 20] {
            let mut buffer = Buffer::new(len);
            let address = buffer.as_ptr() as usize;
            assert_eq!((address % ALIGN_BYTES, buffer.len()), (0, len));
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer[len - 1] = 7;
            let moved = Box::new(buffer);
            assert_eq!((moved.as_ptr() as usize, moved[len - 1]), (address, 7));
        }
        assert!(Buffer::new(0).is_empty());
    }
}
