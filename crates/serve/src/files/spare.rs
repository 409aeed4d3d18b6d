//! Buffers that threads of the pool read into, to be used again.
//!
//! The allocator gets a buffer of this size from the system and gives it back, each time with a page fault for every page of it: that takes several
//! times as long as reading what is in memory, and it is processor time that workers wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};

use super::{Failure, POOL_BYTES};

/// Most that are kept while nobody uses them.
const KEPT: usize = 32;

/// Buffers of [`POOL_BYTES`]. Clones are the same buffers. Nothing here waits: workers give buffers back that threads of the pool take.
#[derive(Clone, Debug)]
pub(crate) struct Spare {
    put: Sender<Vec<u8>>,
    get: Receiver<Vec<u8>>,
    /// Whether one was taken since that was last asked.
    used: Arc<AtomicBool>,
}

impl Default for Spare {
    fn default() -> Self {
        let (put, get) = crossbeam_channel::bounded(KEPT);
        Self { put, get, used: Arc::default() }
    }
}

impl Spare {
    /// `len` bytes, at most [`POOL_BYTES`], as `fill` has them.
    pub(crate) fn filled(
        &self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Failure>,
    ) -> Result<Bytes, Failure> {
        let mut lease = self.take();
        // What is beyond is another file's.
        lease.len = len.min(lease.bytes.len());
        fill(lease.bytes.get_mut(..lease.len).unwrap_or_default())?;
        Ok(Bytes::from_owner(lease))
    }

    /// Gives all back to the system if none was used since this was last called.
    pub(crate) fn sweep(&self) {
        if !self.used.swap(false, Ordering::Relaxed) {
            self.get.try_iter().for_each(drop);
        }
    }

    fn take(&self) -> Lease {
        self.used.store(true, Ordering::Relaxed);
        let bytes = self.get.try_recv().unwrap_or_else(|_none| vec![0; POOL_BYTES as usize]);
        Lease { bytes, len: 0, home: self.clone() }
    }
}

/// A buffer that goes back when nobody needs it any more.
struct Lease {
    bytes: Vec<u8>,
    len: usize,
    home: Spare,
}

impl AsRef<[u8]> for Lease {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // There are enough of them if it is full.
        let _kept = self.home.put.try_send(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_are_given_up_when_nobody_wants_them() {
        let spare = Spare::default();
        let fill = |byte| {
            move |room: &mut [u8]| {
                room.fill(byte);
                Ok(())
            }
        };
        let (first, second) = (spare.filled(3, fill(1)).unwrap(), spare.filled(70_000, fill(2)).unwrap());
        let part = first.slice(1..);
        drop(first);
        assert_eq!((&part[..], second.len(), spare.get.len()), (&[1, 1][..], 70_000, 0));
        drop((part, second));
        assert_eq!(spare.get.len(), 2);
        assert_eq!(spare.filled(1, |_| Err(Failure::Changed)), Err(Failure::Changed));
        assert_eq!(spare.get.len(), 2);
        let all: Vec<Bytes> = (0..KEPT + 5).map(|_| spare.filled(1, fill(3)).unwrap()).collect();
        drop(all);
        assert_eq!(spare.get.len(), KEPT);
        spare.sweep();
        assert_eq!(spare.get.len(), KEPT, "they were used");
        spare.sweep();
        assert_eq!(spare.get.len(), 0);
    }
}
