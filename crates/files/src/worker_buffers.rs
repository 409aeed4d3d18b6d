//! Reusable buffers that a worker reads into on its own thread.

use std::cell::RefCell;
use std::rc::Rc;

/// Bytes in a buffer that returns to the pool of its worker when it is dropped.
#[derive(Debug)]
pub struct WorkerBuffer {
    bytes: Vec<u8>,
    len: usize,
    pool: WorkerBuffers,
}

impl WorkerBuffer {
    /// The size of a pooled buffer, in bytes.
    pub const BYTES: usize = 64 << 10;
    /// The size up to which a buffer is allocated for one read and not pooled, in bytes.
    pub const UNPOOLED_MAX: usize = 16 << 10;

    /// Returns the filled part.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Returns the length of the whole buffer, which it occupies in memory.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the whole buffer, for a read.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Sets the length of the filled part, at most the length of the buffer.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.bytes.len());
    }
}

impl Drop for WorkerBuffer {
    fn drop(&mut self) {
        self.pool.take_back(std::mem::take(&mut self.bytes));
    }
}

/// A pool of the buffers of [`WorkerBuffer::BYTES`] that a worker reads into. Reuse pays: zeroing
/// 64 KiB takes as long as reading them from the page cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerBuffers(Rc<RefCell<Vec<Vec<u8>>>>);

impl WorkerBuffers {
    /// The most free buffers that the pool keeps.
    const POOLED_MAX: usize = 16;

    /// Returns a buffer for `most` bytes: a pooled buffer, or a smaller one that is not pooled if
    /// `most` is at most [`WorkerBuffer::UNPOOLED_MAX`].
    pub(crate) fn take(&self, most: usize) -> WorkerBuffer {
        let bytes = match most {
            0..=WorkerBuffer::UNPOOLED_MAX => vec![0; most],
            _ => self.0.borrow_mut().pop().unwrap_or_else(|| vec![0; WorkerBuffer::BYTES]),
        };
        WorkerBuffer { bytes, len: 0, pool: self.clone() }
    }

    /// Returns the free buffers to the allocator.
    pub(crate) fn sweep(&self) {
        self.0.borrow_mut().clear();
    }

    fn take_back(&self, bytes: Vec<u8>) {
        let mut free = self.0.borrow_mut();
        if free.len() < Self::POOLED_MAX && bytes.len() == WorkerBuffer::BYTES {
            free.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back() {
        let buffers = WorkerBuffers::default();
        let mut buffer = buffers.take(WorkerBuffer::BYTES);
        buffer.room()[..3].copy_from_slice(b"abc");
        buffer.set_len(3);
        assert_eq!((buffer.bytes(), buffer.capacity()), (&b"abc"[..], WorkerBuffer::BYTES));
        drop(buffer);
        assert_eq!(buffers.0.borrow().len(), 1);
        assert!(buffers.take(usize::MAX).bytes().is_empty());
        assert_eq!(buffers.take(7).room().len(), 7);
        assert_eq!(buffers.0.borrow().len(), 1, "only those of the usual size come back");
        let all = (0..WorkerBuffers::POOLED_MAX + 5).map(|_| buffers.take(WorkerBuffer::BYTES));
        drop(all.collect::<Vec<WorkerBuffer>>());
        assert_eq!(buffers.0.borrow().len(), WorkerBuffers::POOLED_MAX);
        buffers.sweep();
        assert_eq!(buffers.0.borrow().len(), 0);
    }
}
