//! Hints to the kernel: how a sample tells of its accesses.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fathom_io::Errno;
use fathom_io::data::{DataCalls, NativeData};
use rustix::fs::{Advice, fadvise};
use rustix::io::{ReadWriteFlags, preadv2, pwritev2, retry_on_intr};

/// A hint to the kernel (posix_fadvise(2), readv(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessHint {
    /// No hint: the kernel reads ahead of sequential reads.
    Normal,
    /// POSIX_FADV_RANDOM: the kernel does not read ahead.
    Random,
    /// POSIX_FADV_SEQUENTIAL: the kernel reads ahead twice as far.
    Sequential,
    /// POSIX_FADV_WILLNEED for a window that moves ahead of the reads.
    WillNeed,
    /// `RWF_DONTCACHE` (Linux 6.14): pages that a call brings into the cache leave it again.
    DontCache,
    /// `RWF_HIPRI` (Linux 4.6): the call polls the device for the completion, with `O_DIRECT`.
    HighPriority,
}

impl AccessHint {
    /// All hints.
    pub const ALL: [Self; 6] =
        [Self::Normal, Self::Random, Self::Sequential, Self::WillNeed, Self::DontCache, Self::HighPriority];

    /// Returns the value of `--advice`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Random => "random",
            Self::Sequential => "sequential",
            Self::WillNeed => "willneed",
            Self::DontCache => "dontcache",
            Self::HighPriority => "hipri",
        }
    }

    /// Returns the hint called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hint| hint.name() == name)
    }

    /// Returns whether the calls of the sample give the hint; otherwise it is given once, for the
    /// whole file, before the clock starts.
    pub(super) fn is_of_calls(self) -> bool {
        matches!(self, Self::WillNeed | Self::DontCache | Self::HighPriority)
    }

    /// Returns whether the hint has no effect on files that are open with `O_DIRECT`.
    pub(super) fn is_of_page_cache(self) -> bool {
        matches!(self, Self::Sequential | Self::WillNeed | Self::DontCache)
    }

    /// Returns the advice for the whole file before the first operation.
    pub(super) fn advice(self) -> Option<Advice> {
        match self {
            Self::Random => Some(Advice::Random),
            Self::Sequential => Some(Advice::Sequential),
            Self::Normal | Self::WillNeed | Self::DontCache | Self::HighPriority => None,
        }
    }
}

/// `RWF_DONTCACHE` (linux/fs.h), which rustix does not name.
const DONT_CACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Bytes of one POSIX_FADV_WILLNEED. The kernel reads no more than about the largest request of the
/// device for each call, usually 1280 KiB or more.
const WINDOW_BYTES: u64 = 1 << 20;

/// Calls at given offsets that give a hint.
#[derive(Clone, Debug)]
pub(super) struct HintedCalls {
    hint: AccessHint,
    /// End of the range for which POSIX_FADV_WILLNEED was called.
    advised: Arc<AtomicU64>,
}

impl HintedCalls {
    pub(super) fn new(hint: AccessHint) -> Self {
        Self { hint, advised: Arc::default() }
    }

    fn flags(&self) -> ReadWriteFlags {
        match self.hint {
            AccessHint::DontCache => DONT_CACHE,
            AccessHint::HighPriority => ReadWriteFlags::HIPRI,
            _ => ReadWriteFlags::empty(),
        }
    }

    /// Asks for the next window when less than half of the last one is left.
    fn advise_ahead(&self, file: BorrowedFd<'_>, end: u64) -> Result<(), Errno> {
        let advised = self.advised.load(Ordering::Relaxed);
        if self.hint != AccessHint::WillNeed || end + WINDOW_BYTES / 2 < advised {
            return Ok(());
        }
        let start = advised.max(end);
        self.advised.store(start + WINDOW_BYTES, Ordering::Relaxed);
        fadvise(file, start, std::num::NonZeroU64::new(WINDOW_BYTES), Advice::WillNeed)
    }
}

impl DataCalls for HintedCalls {
    fn pread(&self, file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
        self.advise_ahead(file, offset + bytes.len() as u64)?;
        let mut parts = [std::io::IoSliceMut::new(bytes)];
        retry_on_intr(|| preadv2(file, &mut parts, offset, self.flags()))
    }

    fn pwrite(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
        retry_on_intr(|| pwritev2(file, &[std::io::IoSlice::new(bytes)], offset, self.flags()))
    }

    fn read(&self, file: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        NativeData.read(file, bytes)
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        NativeData.write(file, bytes)
    }

    fn sync(&self, file: BorrowedFd<'_>, all: bool) -> Result<(), Errno> {
        NativeData.sync(file, all)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn hinted_calls_transfer_the_same_bytes() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("file");
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| at as u8 ^ (at >> 8) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        for hint in AccessHint::ALL {
            assert_eq!(AccessHint::named(hint.name()), Some(hint));
            let (calls, mut found) = (HintedCalls::new(hint), Vec::new());
            let mut buffer = vec![0; 100_000];
            loop {
                let read = match calls.pread(file.as_fd(), &mut buffer, found.len() as u64) {
                    Err(Errno::OPNOTSUPP | Errno::INVAL) if hint == AccessHint::DontCache => break,
                    read => read.unwrap(),
                };
                found.extend_from_slice(&buffer[..read]);
                if read == 0 {
                    assert!(found == bytes, "{hint:?}");
                    assert_eq!(calls.pwrite(file.as_fd(), &bytes[5..9], 5), Ok(4));
                    break;
                }
            }
        }
        assert!(std::fs::read(&path).unwrap() == bytes);
    }
}
