//! A slow device beside a fast one: each gets the workers it has use for, and the order of what is told stays the same.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod support;

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fathom_io::Dir;
use fathom_io::blocking::Blocking;
use fathom_io::calls::{Calls, Native};
use fathom_walk::{Choice, Errno, Fields, Follow, Meta, Names, lstat};
use support::record::{Recorder, assert_same};
use support::skip;
use support::tree::{Tree, fill};
use support::way::{self, SYNC, Way};

/// Calls of which each on one device takes a millisecond, and how many were under way there and elsewhere at most.
#[derive(Clone)]
struct TwoDevices {
    slow_dev: u64,
    seen: Arc<[Seen; 2]>,
    /// Calls made on the slow device when the last one was made on the fast device.
    slow_calls_then: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Seen {
    now: AtomicUsize,
    most: AtomicUsize,
    calls: AtomicUsize,
}

impl TwoDevices {
    fn new(slow_dev: u64) -> Self {
        Self { slow_dev, seen: Arc::default(), slow_calls_then: Arc::default() }
    }

    /// Most calls under way at once on the fast and on the slow device.
    fn most(&self) -> [usize; 2] {
        [0, 1].map(|device: usize| self.seen[device].most.load(Ordering::Relaxed))
    }

    fn call<T>(&self, at: BorrowedFd<'_>, call: impl FnOnce() -> T) -> T {
        let dev = Native.stat(at, c".", Follow::No, Fields::IDENTITY).unwrap().dev;
        let is_slow = dev == self.slow_dev;
        let seen = &self.seen[usize::from(is_slow)];
        let now = seen.now.fetch_add(1, Ordering::Relaxed) + 1;
        seen.most.fetch_max(now, Ordering::Relaxed);
        seen.calls.fetch_add(1, Ordering::Relaxed);
        if is_slow {
            std::thread::sleep(Duration::from_millis(1));
        } else {
            self.slow_calls_then.store(self.seen[1].calls.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let result = call();
        seen.now.fetch_sub(1, Ordering::Relaxed);
        result
    }
}

impl Calls for TwoDevices {
    fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        self.call(at, || Native.open(at, name, follow))
    }

    fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        Native.read(dir, names, limit)
    }

    fn read_some(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        Native.read_some(dir, names, limit)
    }

    fn stat(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow, fields: Fields) -> Result<Meta, Errno> {
        self.call(at, || Native.stat(at, name, follow, fields))
    }

    fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        Native.stat_dir(dir, fields)
    }

    fn magic(&self, _dir: &Dir) -> Option<i64> {
        None
    }
}

fn device(path: PathBuf) -> u64 {
    let path = std::ffi::CString::new(path.into_os_string().into_encoded_bytes()).unwrap();
    lstat(&path).unwrap().dev
}

/// Many small directories.
fn grow(tree: &Tree, dirs: usize, files: usize) {
    for number in 0..dirs {
        fill(&tree.dir(&number.to_string()), files);
    }
}

/// A directory on a fast and one on a slow device, or a word why not.
fn two_trees() -> Option<(Tree, Tree)> {
    let (fast, slow) = (Tree::in_memory(), Tree::new());
    if device(fast.root()) == device(slow.root()) {
        skip("needs a second filesystem for temporary files");
        return None;
    }
    Some((fast, slow))
}

/// Walks both, and checks what was told.
fn walk(roots: &[PathBuf], slow_dev: u64) -> TwoDevices {
    let way = Way::of(Choice::Auto);
    let first = way::lines(SYNC.options(), roots);
    let calls = TwoDevices::new(slow_dev);
    let counted = calls.clone();
    let mut recorder = Recorder::new(roots);
    way::walk_over(way.options(), &mut recorder, move || Ok(Blocking::new(counted.clone())));
    assert_same(&first, &recorder.lines, way);
    calls
}

#[test]
fn a_slow_device_gets_many_workers_and_a_fast_one_few() {
    let Some((fast, slow)) = two_trees() else { return };
    grow(&slow, 100, 30);
    grow(&fast, 100, 30);
    for roots in [[slow.root(), fast.root()], [fast.root(), slow.root()]] {
        let [fast_most, slow_most] = walk(&roots, device(slow.root())).most();
        assert!(slow_most > 64, "{slow_most} in flight on the slow device");
        let few = 8 * std::thread::available_parallelism().unwrap().get();
        assert!(fast_most <= 4 * few, "{fast_most} in flight on the fast device");
    }
}

/// The consumer waits for the slow tree, and yet not all workers go there.
#[test]
fn a_fast_device_does_not_wait_for_a_slow_one_that_comes_first() {
    let Some((fast, slow)) = two_trees() else { return };
    grow(&slow, 200, 30);
    grow(&fast, 20, 10);
    let calls = walk(&[slow.root(), fast.root()], device(slow.root()));
    let [then, all] =
        [&calls.slow_calls_then, &calls.seen[1].calls].map(|count| count.load(Ordering::Relaxed));
    assert!(then < all / 2, "the fast device was done after {then} of {all} calls on the slow one");
}
