//! Reusable buffers that pool threads read into.
//!
//! The allocator maps a buffer of this size anew each time and unmaps it again, with a page fault
//! for each page. That takes several times as long as reading cached data, and it is processor time
//! that workers wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};

use crate::{FileError, POOL_READ_BYTES};

/// The maximum number of idle buffers.
const KEPT: usize = 32;

/// A pool of buffers of [`POOL_READ_BYTES`]. Clones share the pool. No operation waits: workers
/// return buffers that pool threads take.
#[derive(Clone, Debug)]
pub(crate) struct ReadBuffers {
    sender: Sender<Vec<u8>>,
    receiver: Receiver<Vec<u8>>,
    /// Whether a buffer was taken since the last [`sweep`](Self::sweep).
    used: Arc<AtomicBool>,
}

impl Default for ReadBuffers {
    fn default() -> Self {
        let (sender, receiver) = crossbeam_channel::bounded(KEPT);
        Self { sender, receiver, used: Arc::default() }
    }
}

impl ReadBuffers {
    /// Returns `len` bytes, at most [`POOL_READ_BYTES`], written by `fill`.
    pub(crate) fn filled(
        &self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), FileError>,
    ) -> Result<Bytes, FileError> {
        let mut buffer = self.take();
        // The bytes beyond `len` are from an earlier read of another file.
        buffer.len = len.min(buffer.bytes.len());
        fill(buffer.bytes.get_mut(..buffer.len).unwrap_or_default())?;
        Ok(Bytes::from_owner(buffer))
    }

    /// Frees the idle buffers if none was taken since the last call.
    pub(crate) fn sweep(&self) {
        if !self.used.swap(false, Ordering::Relaxed) {
            self.receiver.try_iter().for_each(drop);
        }
    }

    fn take(&self) -> ReadBuffer {
        self.used.store(true, Ordering::Relaxed);
        let bytes = self.receiver.try_recv().unwrap_or_else(|_none| vec![0; POOL_READ_BYTES as usize]);
        ReadBuffer { bytes, len: 0, pool: self.clone() }
    }
}

/// A buffer that returns to its pool when it is dropped.
struct ReadBuffer {
    bytes: Vec<u8>,
    len: usize,
    pool: ReadBuffers,
}

impl AsRef<[u8]> for ReadBuffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        // A full channel holds enough idle buffers: this one is freed.
        let _kept = self.pool.sender.try_send(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_return_and_unused_ones_are_freed() {
        let pool = ReadBuffers::default();
        let fill = |byte| {
            move |room: &mut [u8]| {
                room.fill(byte);
                Ok(())
            }
        };
        let (first, second) = (pool.filled(3, fill(1)).unwrap(), pool.filled(70_000, fill(2)).unwrap());
        let part = first.slice(1..);
        drop(first);
        assert_eq!((&part[..], second.len(), pool.receiver.len()), (&[1, 1][..], 70_000, 0));
        drop((part, second));
        assert_eq!(pool.receiver.len(), 2);
        assert_eq!(pool.filled(1, |_| Err(FileError::Changed)), Err(FileError::Changed));
        assert_eq!(pool.receiver.len(), 2);
        let all: Vec<Bytes> = (0..KEPT + 5).map(|_| pool.filled(1, fill(3)).unwrap()).collect();
        drop(all);
        assert_eq!(pool.receiver.len(), KEPT);
        pool.sweep();
        assert_eq!(pool.receiver.len(), KEPT, "they were used");
        pool.sweep();
        assert_eq!(pool.receiver.len(), 0);
    }
}
