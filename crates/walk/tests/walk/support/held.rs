//! Calls on a slow device that wait until many of them do, or until another device is done.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::calls::{Calls, Native};
use super::gate::Gate;
use super::slow::TwoDevices;
use fathom_io::Dir;
use fathom_walk::{Errno, Fields, Follow, Meta, Names};

/// Number of calls on the slow device that have to wait at once.
const MANY: usize = 64;

/// Calls of [`TwoDevices`], of which those that open directories below a root wait.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) calls: TwoDevices,
    /// Where calls on the slow device wait.
    slow: Gate,
    /// Where calls on other devices wait until many wait on the slow one.
    fast: Gate,
    /// Number of files of other devices whose metadata was not taken yet. `None` if the slow device
    /// does not wait for them.
    fast_left: Option<Arc<AtomicUsize>>,
}

impl Held {
    /// Holds the slow device until many calls wait.
    pub(crate) fn until_many(slow_dev: u64) -> Self {
        let (slow, fast) = (Gate::default(), Gate::default());
        fast.open();
        Self { calls: TwoDevices::new(slow_dev), slow, fast, fast_left: None }
    }

    /// Holds the slow device until the metadata of `fast_files` files of other devices was taken,
    /// and these until many calls wait on the slow one.
    pub(crate) fn until_fast_is_done(slow_dev: u64, fast_files: usize) -> Self {
        let fast_left = Some(Arc::new(AtomicUsize::new(fast_files)));
        Self { fast_left, fast: Gate::default(), ..Self::until_many(slow_dev) }
    }

    fn hold_slow(&self) {
        self.slow.pass_or_open(|waiting| {
            let many = waiting >= MANY;
            if many {
                self.fast.open();
            }
            many && self.fast_left.is_none()
        });
    }
}

fn is_root(name: &CStr) -> bool {
    name.to_bytes().starts_with(b"/")
}

impl Calls for Held {
    fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        match self.calls.is_slow(at, name) {
            _ if is_root(name) => {}
            true => self.hold_slow(),
            false => self.fast.pass(),
        }
        self.calls.open(at, name, follow)
    }

    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.calls.read(dir, names, limit)
    }

    fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.calls.read_some(dir, names, limit)
    }

    fn stat(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
        let meta = self.calls.stat(at, name, follow, fields);
        if let Some(left) = &self.fast_left
            && !is_root(name)
            && !self.calls.is_slow(at, name)
            && left.fetch_sub(1, Ordering::Relaxed) == 1
        {
            self.slow.open();
        }
        meta
    }

    fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        self.calls.stat_dir(dir, fields)
    }

    fn magic(&self, dir: &Dir) -> Option<i64> {
        // Calls on the fast device may take long on a busy machine.
        let is_slow = self.calls.is_slow(std::os::fd::AsFd::as_fd(dir), c".");
        if is_slow { None } else { Native.magic(dir) }
    }
}
