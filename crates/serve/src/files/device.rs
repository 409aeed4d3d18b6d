//! What is known of the devices files are on: whether they can tell at once what they have in memory.

use std::cell::{Cell, RefCell};
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use fathom_io::offer::is_local;
use fathom_io::sys::{cached, fs_magic};
use rustix::fs::{major, minor};

/// linux/magic.h.
const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58F6;
/// Devices that are remembered; of more than that each file is asked.
const KNOWN_MAX: usize = 64;
const PAGE_BYTES: u64 = 4096;

/// One device, as this worker knows it.
#[derive(Debug)]
pub(crate) struct Device {
    dev: u64,
    /// Everything is in memory, so nothing waits.
    pub(crate) in_memory: bool,
    /// Nobody but the kernel and a block device is asked for anything.
    pub(crate) is_local: bool,
    /// Whether reads can be asked not to wait, as far as is known.
    pub(crate) can_tell: Cell<bool>,
    /// Whether cachestat(2) can be asked.
    sees_cache: Cell<bool>,
}

impl Device {
    fn new(dev: u64, file: BorrowedFd<'_>) -> Rc<Self> {
        let magic = fs_magic(file).unwrap_or_default();
        Rc::new(Self {
            dev,
            in_memory: is_in_memory(magic),
            is_local: is_local(magic),
            can_tell: Cell::new(true),
            sees_cache: Cell::new(true),
        })
    }

    /// Whether the page cache can be asked for what it has.
    pub(crate) fn knows_cached(&self) -> bool {
        self.in_memory || self.sees_cache.get()
    }

    /// Whether the page cache has `bytes` of `file` from `offset` on, as far as the kernel tells.
    pub(crate) fn has_cached(&self, file: BorrowedFd<'_>, offset: u64, bytes: u64) -> bool {
        if self.in_memory {
            return true;
        }
        if !self.sees_cache.get() {
            return false;
        }
        let pages = (offset + bytes).div_ceil(PAGE_BYTES) - offset / PAGE_BYTES;
        match cached(file, offset, bytes) {
            Ok(cached) => cached.pages >= pages,
            Err(_) => {
                self.sees_cache.set(false);
                false
            }
        }
    }
}

/// Whether all files of the filesystem with this magic number are in memory.
pub(crate) fn is_in_memory(magic: i64) -> bool {
    matches!(magic, TMPFS | RAMFS)
}

/// All that are known.
#[derive(Debug, Default)]
pub(crate) struct Devices(RefCell<Vec<Rc<Device>>>);

impl Devices {
    /// The device `dev`, on which `file` is.
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

    /// Those that cannot be asked for what they have in memory, by major and minor number.
    pub(crate) fn mute(&self) -> Vec<(u32, u32)> {
        let known = self.0.borrow();
        known
            .iter()
            .filter(|device| !device.can_tell.get())
            .map(|device| (major(device.dev), minor(device.dev)))
            .collect()
    }
}
