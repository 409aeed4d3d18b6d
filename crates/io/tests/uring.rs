//! Cases of the io_uring model alone: futures dropped with operations in flight, more requests than
//! the depth, and a ring dropped with operations in flight.

#![cfg(all(target_os = "linux", not(feature = "posix")))]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::cell::Cell;
use std::fs::{self, File};
use std::future::{Future, poll_fn};
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use fathom_io::sys::CWD;
use fathom_io::uring::Uring;
use fathom_io::{Dir, Errno, Fields, Follow, Meta, MetadataModel, Model, Names};
use futures_util::stream::{FuturesUnordered, StreamExt};

/// Returns a ring, or prints the reason as a skip.
fn ring(depth: usize) -> Option<Uring> {
    Uring::new(depth).inspect_err(|why| println!("skipped: {why}")).ok()
}

/// Creates a directory with the files `fN` of length N and the directories `dN`, N below `count`,
/// and reads its names.
fn tree(count: usize) -> (tempfile::TempDir, Dir, Names) {
    let temp = tempfile::tempdir().unwrap();
    for index in 0..count {
        fs::write(temp.path().join(format!("f{index}")), vec![0; index]).unwrap();
        fs::create_dir(temp.path().join(format!("d{index}"))).unwrap();
    }
    let dir = Dir::from_fd(File::open(temp.path()).unwrap().into());
    let mut names = Names::new();
    assert_eq!(fathom_io::sys::read_names(&dir, &mut names, usize::MAX), Ok(false));
    (temp, dir, names)
}

async fn stat_all(ring: &Uring, dir: &Dir, names: &Names) -> Vec<Option<Result<Meta, Errno>>> {
    let mut out = Vec::new();
    ring.stat(dir.as_fd(), names, 0..names.len(), Follow::No, Fields::ALL, &mut out).await;
    out
}

/// Checks that every file has the length in its name.
fn assert_sizes(names: &Names, metas: &[Option<Result<Meta, Errno>>]) {
    assert_eq!(names.len(), metas.len());
    for (name, meta) in names.iter().zip(metas) {
        let meta = meta.unwrap().unwrap();
        assert_eq!(meta.ino, name.ino);
        if let Some(len) = name.name.to_str().unwrap().strip_prefix('f') {
            assert_eq!(meta.size.to_string(), len);
        }
    }
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn operations_of_a_dropped_future_do_not_affect_others() {
    let Some(ring) = ring(64) else { return };
    let (_temp, dir, names) = tree(100);
    for _ in 0..50 {
        let mut dropped = Box::pin(stat_all(&ring, &dir, &names));
        assert!(poll_once(dropped.as_mut()).is_pending());
        assert_eq!(ring.in_flight(), 64);
        // The first turn of the other future submits the operations of this one.
        let mut open = pin!(ring.open(dir.as_fd(), c"d0", Follow::No));
        assert!(poll_once(open.as_mut()).is_pending());
        drop(dropped);
        assert!(ring.run(open).is_ok());
        assert_sizes(&names, &ring.run(stat_all(&ring, &dir, &names)));
    }
    // Each turn reaps some of the remaining operations.
    for _ in 0..64 {
        ring.run(ring.stat_dir(&dir, Fields::ALL)).unwrap();
    }
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn dropping_a_ring_waits_for_operations_in_flight() {
    let (_temp, dir, names) = tree(50);
    for round in 0..100 {
        let Some(ring) = ring(64) else { return };
        let mut stats = Box::pin(stat_all(&ring, &dir, &names));
        assert!(poll_once(stats.as_mut()).is_pending());
        if round % 2 == 0 {
            // Some of the operations are submitted.
            let mut one = pin!(ring.stat_dir(&dir, Fields::ALL));
            let mut both = pin!(poll_fn(|cx| {
                let _ = stats.as_mut().poll(cx);
                one.as_mut().poll(cx)
            }));
            assert!(poll_once(both.as_mut()).is_pending());
            let turns = Cell::new(0);
            ring.run(poll_fn(|cx| {
                turns.set(turns.get() + 1);
                let _ = both.as_mut().poll(cx);
                if turns.get() == 2 { Poll::Ready(()) } else { Poll::Pending }
            }));
        }
        assert!(ring.in_flight() > 0);
    }
}

#[test]
fn operations_in_flight_never_exceed_the_depth() {
    for depth in [1, 2, 7] {
        let Some(ring) = ring(depth) else { return };
        let (_temp, dir, names) = tree(100);
        let most = Cell::new(0);
        ring.run(async {
            let opens: FuturesUnordered<_> =
                (0..20).map(|_| ring.open(dir.as_fd(), c"d7", Follow::No)).collect();
            let stats: FuturesUnordered<_> = (0..5).map(|_| stat_all(&ring, &dir, &names)).collect();
            let mut opens = pin!(opens.collect::<Vec<_>>());
            let mut stats = pin!(stats.collect::<Vec<_>>());
            let (mut opened, mut seen) = (None, None);
            poll_fn(|cx| {
                let watch = |done: bool| {
                    most.set(most.get().max(ring.in_flight()));
                    done
                };
                if opened.is_none()
                    && let Poll::Ready(all) = opens.as_mut().poll(cx)
                {
                    opened = Some(all);
                }
                if seen.is_none()
                    && let Poll::Ready(all) = stats.as_mut().poll(cx)
                {
                    seen = Some(all);
                }
                if watch(opened.is_some() && seen.is_some()) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            assert!(opened.unwrap().iter().all(Result::is_ok));
            seen.unwrap().iter().for_each(|metas| assert_sizes(&names, metas));
        });
        assert_eq!(most.get(), depth);
    }
}

#[test]
fn a_future_dropped_while_it_waits_for_a_slot_does_not_block_others() {
    let Some(ring) = ring(1) else { return };
    let (_temp, dir, _names) = tree(1);
    let mut first = Box::pin(ring.stat_dir(&dir, Fields::ALL));
    let mut second = Box::pin(ring.stat_dir(&dir, Fields::ALL));
    let mut third = Box::pin(ring.stat_dir(&dir, Fields::ALL));
    for waiting in [&mut first, &mut second, &mut third] {
        assert!(poll_once(waiting.as_mut()).is_pending());
    }
    drop(second);
    assert!(ring.run(third).is_ok());
    assert!(ring.run(first).is_ok());
}

#[test]
fn a_future_that_wakes_itself_is_polled_again() {
    let Some(ring) = ring(4) else { return };
    let polls = Cell::new(0);
    ring.run(poll_fn(|cx| {
        polls.set(polls.get() + 1);
        cx.waker().wake_by_ref();
        if polls.get() == 10 { Poll::Ready(()) } else { Poll::Pending }
    }));
    assert_eq!(polls.get(), 10);
}

#[test]
fn waiting_without_an_operation_panics() {
    let Some(ring) = ring(4) else { return };
    let forever = std::panic::AssertUnwindSafe(|| ring.run(std::future::pending::<()>()));
    assert!(std::panic::catch_unwind(forever).is_err());
}

#[test]
fn a_directory_is_closed_if_its_close_future_is_dropped() {
    let Some(ring) = ring(1) else { return };
    let (temp, dir, _names) = tree(1);
    let path = fs::canonicalize(temp.path()).unwrap();
    let open = || {
        let links = fs::read_dir("/proc/self/fd").unwrap();
        links.filter(|link| fs::read_link(link.as_ref().unwrap().path()).is_ok_and(|to| to == path)).count()
    };
    let two = [(); 2].map(|()| fathom_io::sys::open_dir(dir.as_fd(), c".", Follow::No).unwrap());
    assert_eq!(open(), 3);
    let mut closes = two.map(|dir| Box::pin(ring.close(dir)));
    // The first close has the only slot; the second is never started.
    closes.iter_mut().for_each(|close| assert!(poll_once(close.as_mut()).is_pending()));
    drop(closes);
    assert_eq!(open(), 2);
    drop(ring);
    assert_eq!(open(), 1);
}

#[test]
fn every_depth_works() {
    for depth in [0, 1, 3, 100, Model::COUNT_MAX, usize::MAX] {
        let Some(ring) = ring(depth) else { return };
        assert!(ring.run(ring.open(CWD, c"/", Follow::No)).is_ok());
    }
}
