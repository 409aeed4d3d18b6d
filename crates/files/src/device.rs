//! The devices that files are on: whether the page cache of each can be queried, and whether reads
//! without waiting work.

use std::cell::{Cell, RefCell};
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use fathom_io::filesystem::is_local;
use fathom_io::sys::{cached, fs_magic};
use rustix::fs::{major, minor};

/// Filesystem magic numbers (linux/magic.h).
const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58F6;
/// The number of devices that are remembered. Files on further devices are probed at each request.
const KNOWN_MAX: usize = 64;
const PAGE_BYTES: u64 = 4096;

/// One device, with what this worker has learnt of it.
#[derive(Debug)]
pub struct Device {
    dev: u64,
    /// All files are in memory, so no read waits.
    pub(crate) in_memory: bool,
    /// Reads involve only the kernel and a block device, no server.
    pub is_local: bool,
    /// Whether `RWF_NOWAIT` works here; true until a read is refused.
    pub(crate) supports_nowait: Cell<bool>,
    /// Whether cachestat(2) works here; true until a call fails.
    supports_cachestat: Cell<bool>,
}

impl Device {
    fn new(dev: u64, file: BorrowedFd<'_>) -> Rc<Self> {
        let magic = fs_magic(file).unwrap_or_default();
        Rc::new(Self {
            dev,
            in_memory: is_in_memory(magic),
            is_local: is_local(magic),
            supports_nowait: Cell::new(true),
            supports_cachestat: Cell::new(true),
        })
    }

    /// Returns whether the page cache can be queried.
    pub(crate) fn can_query_cache(&self) -> bool {
        self.in_memory || self.supports_cachestat.get()
    }

    /// Returns whether the page cache holds `bytes` bytes of `file` from `offset` on; false if the
    /// kernel cannot tell.
    #[must_use]
    pub fn has_cached(&self, file: BorrowedFd<'_>, offset: u64, bytes: u64) -> bool {
        if self.in_memory {
            return true;
        }
        if !self.supports_cachestat.get() {
            return false;
        }
        let pages = (offset + bytes).div_ceil(PAGE_BYTES) - offset / PAGE_BYTES;
        match cached(file, offset, bytes) {
            Ok(cached) => cached.pages >= pages,
            Err(_) => {
                self.supports_cachestat.set(false);
                false
            }
        }
    }
}

/// Returns whether all files of a filesystem with this magic number are in memory.
#[inline]
#[must_use]
pub fn is_in_memory(magic: i64) -> bool {
    matches!(magic, TMPFS | RAMFS)
}

/// The devices that this worker has seen.
#[derive(Debug, Default)]
pub(crate) struct Devices(RefCell<Vec<Rc<Device>>>);

impl Devices {
    /// Returns the device `dev`, on which `file` is.
    pub(crate) fn of(&self, dev: u64, file: BorrowedFd<'_>) -> Rc<Device> {
        let mut known = self.0.borrow_mut();
        if let Some(device) = known.iter().find(|device| device.dev == dev) {
            return Rc::clone(device);
        }
        let device = Device::new(dev, file);
        if known.len() < KNOWN_MAX {
            known.push(Rc::clone(&device));
        }
        device
    }

    /// Returns the major and minor numbers of the devices on which `RWF_NOWAIT` does not work.
    pub(crate) fn without_nowait(&self) -> Vec<(u32, u32)> {
        let known = self.0.borrow();
        known
            .iter()
            .filter(|device| !device.supports_nowait.get())
            .map(|device| (major(device.dev), minor(device.dev)))
            .collect()
    }
}
