//! A model that delays its results: each by a number of polls drawn from a seed, so the directories
//! that a worker has in flight complete in another order for each seed.

use std::cell::RefCell;
use std::ffi::CStr;
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use fathom_io::blocking::Blocking;
use fathom_io::{Dir, MetadataModel};
use fathom_walk::{Errno, Fields, Follow, Meta, Names};

use super::Random;
use super::gate::Gate;

/// Upper bound of the polls by which a result is delayed.
const POLLS: usize = 8;

/// Blocking calls with delayed results.
pub(crate) struct Late {
    random: RefCell<Random>,
    inner: Blocking,
    /// The gate at which a worker waits between two polls of a delayed result.
    gate: Option<Gate>,
}

impl Late {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: RefCell::new(Random::new(seed)), inner: Blocking, gate: None }
    }

    /// Returns a model whose delayed results wait until `gate` is opened.
    pub(crate) fn held_by(gate: Gate, seed: u64) -> Self {
        Self { gate: Some(gate), ..Self::new(seed) }
    }

    async fn wait(&self) {
        let mut polls = self.random.borrow_mut().below(POLLS);
        poll_fn(|cx| {
            if polls == 0 {
                return Poll::Ready(());
            }
            polls -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl MetadataModel for Late {
    const WIDTH: usize = 6;
    const BATCH: usize = 3;

    async fn open(&self, at: BorrowedFd<'_>, name: &CStr, follow: Follow) -> Result<Dir, Errno> {
        self.wait().await;
        let dir = self.inner.open(at, name, follow).await;
        self.wait().await;
        dir
    }

    async fn read(&self, dir: &Dir, names: &mut Names, limit: usize) -> Result<bool, Errno> {
        self.wait().await;
        self.inner.read(dir, names, limit).await
    }

    async fn stat_dir(&self, dir: &Dir, fields: Fields) -> Result<Meta, Errno> {
        self.wait().await;
        self.inner.stat_dir(dir, fields).await
    }

    async fn stat(
        &self,
        at: BorrowedFd<'_>,
        names: &Names,
        range: Range<usize>,
        follow: Follow,
        fields: Fields,
        out: &mut Vec<Option<Result<Meta, Errno>>>,
    ) {
        self.wait().await;
        self.inner.stat(at, names, range, follow, fields, out).await;
        self.wait().await;
    }

    async fn close(&self, dir: Dir) {
        self.wait().await;
        drop(dir);
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return output;
            }
            match &self.gate {
                Some(gate) => gate.pass(),
                None => std::thread::yield_now(),
            }
        }
    }
}
