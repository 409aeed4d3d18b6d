//! Calls that take a millisecond each on one device, like round trips to a file server.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::calls::{Calls, Native};
use fathom_io::Dir;
use fathom_walk::{Errno, Fields, Follow, Meta, Names, lstat};

const MILLION: usize = 1_000_000;

/// Calls that take a millisecond each on one device, with counts of the calls on that device and on
/// all others.
#[derive(Clone)]
pub(crate) struct TwoDevices {
    slow_dev: u64,
    seen: Arc<[DeviceCalls; 2]>,
    /// The number of rounds that the test has begun. Ten calls on the slow device belong to each,
    /// and wait for it.
    rounds: Option<Arc<AtomicUsize>>,
}

/// The calls of a round.
const CALLS_PER_ROUND: usize = 10;

#[derive(Default)]
pub(crate) struct DeviceCalls {
    now: AtomicUsize,
    most: AtomicUsize,
    /// Sum, over all calls, of a million divided by the number of calls in flight when the call
    /// began. All calls take the same time, so the sum is proportional to the total time.
    shares: AtomicUsize,
    calls: AtomicUsize,
}

impl TwoDevices {
    pub(crate) fn new(slow_dev: u64) -> Self {
        Self { slow_dev, seen: Arc::default(), rounds: None }
    }

    /// Makes the calls on the slow device in rounds.
    pub(crate) fn in_rounds(self) -> Self {
        Self { rounds: Some(Arc::default()), ..self }
    }

    /// Begins the next round. Returns whether a call of the second round has begun: the calls of
    /// the first round, to which the root belongs, are over then, but for one of each other worker.
    pub(crate) fn next_round(&self) -> bool {
        if let Some(rounds) = &self.rounds {
            rounds.fetch_add(1, Ordering::Relaxed);
        }
        self.slow_calls() > CALLS_PER_ROUND
    }

    fn slow_calls(&self) -> usize {
        self.seen[1].calls.load(Ordering::Relaxed)
    }

    fn wait_for_round(&self) {
        let Some(rounds) = &self.rounds else { return };
        while self.slow_calls() > CALLS_PER_ROUND * (1 + rounds.load(Ordering::Relaxed)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the maximum number of calls in flight on the fast and on the slow device.
    pub(crate) fn most(&self) -> [usize; 2] {
        [0, 1].map(|device: usize| self.seen[device].most.load(Ordering::Relaxed))
    }

    /// Returns the number of calls in flight on the slow device, on average over time.
    pub(crate) fn mean_slow(&self) -> usize {
        let [calls, shares] =
            [&self.seen[1].calls, &self.seen[1].shares].map(|count| count.load(Ordering::Relaxed));
        calls * MILLION / shares
    }

    /// Whether `name` in `at` is on the slow device.
    pub(crate) fn is_slow(&self, at: BorrowedFd<'_>, name: &CStr) -> bool {
        Native.stat(at, name, Follow::No, Fields::IDENTITY).is_ok_and(|meta| meta.dev == self.slow_dev)
    }

    fn call<T>(&self, at: BorrowedFd<'_>, name: &CStr, call: impl FnOnce() -> T) -> T {
        let is_slow = self.is_slow(at, name);
        let seen = &self.seen[usize::from(is_slow)];
        let now = seen.now.fetch_add(1, Ordering::Relaxed) + 1;
        seen.most.fetch_max(now, Ordering::Relaxed);
        seen.shares.fetch_add(MILLION / now, Ordering::Relaxed);
        seen.calls.fetch_add(1, Ordering::Relaxed);
        if is_slow {
            self.wait_for_round();
            std::thread::sleep(Duration::from_millis(1));
        }
        let result = call();
        seen.now.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

impl Calls for TwoDevices {
    fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        self.call(at, name, || Native.open(at, name, follow))
    }

    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        Native.read(dir, names, limit)
    }

    fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        Native.read_some(dir, names, limit)
    }

    fn stat(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
        self.call(at, name, || Native.stat(at, name, follow, fields))
    }

    fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        Native.stat_dir(dir, fields)
    }

    fn magic(&self, _dir: &Dir) -> Option<i64> {
        None
    }
}

/// Returns the device of a path.
pub(crate) fn device(path: PathBuf) -> u64 {
    let path = std::ffi::CString::new(path.into_os_string().into_encoded_bytes()).unwrap();
    lstat(&path).unwrap().dev
}
