//! Descriptors: none leaks, and a lack of them is an error with its cause. A single test, because
//! it counts the descriptors of the whole process and lowers its limit.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use fathom_io::sys::CWD;
use fathom_io::tokio_fs::{AsyncPar, AsyncSeq};
use fathom_io::{Dir, Errno, Fields, Follow, MetadataModel, Names};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Opens, reads and closes the root directory, and drops the model.
fn read_root<M: MetadataModel>(model: M) {
    model.run(async {
        let dir = model.open(CWD, c"/", Follow::No).await.unwrap();
        let (mut names, mut out) = (Names::new(), Vec::new());
        assert_eq!(model.read(&dir, &mut names, 10_000).await, Ok(false));
        model.stat(dir.as_fd(), &names, 0..names.len(), Follow::No, Fields::ALL, &mut out).await;
        model.close(dir).await;
    });
}

/// Runs `act` while no other descriptor can be opened.
fn without_descriptors<T>(act: impl FnOnce() -> T) -> T {
    let limit = getrlimit(Resource::Nofile);
    let next = File::open("/").unwrap().as_raw_fd();
    setrlimit(Resource::Nofile, Rlimit { current: u64::try_from(next).ok(), ..limit }).unwrap();
    let result = act();
    setrlimit(Resource::Nofile, limit).unwrap();
    result
}

#[test]
fn descriptors_are_closed_and_a_lack_of_them_is_reported() {
    let before = open_descriptors();
    for _ in 0..50 {
        read_root(AsyncSeq::new().unwrap());
        read_root(AsyncPar::new().unwrap());
    }
    assert_eq!(open_descriptors(), before, "tokio");

    let model = AsyncSeq::new().unwrap();
    let dir = Dir::from_fd(File::open("/proc/self").unwrap().into());
    // Passing a directory to the pool takes a descriptor, but a read works without one. The stream
    // of readdir always takes one.
    let read = without_descriptors(|| model.run(model.read(&dir, &mut Names::new(), 10_000)));
    assert_eq!(read, if cfg!(feature = "posix") { Err(Errno::MFILE) } else { Ok(false) });
    let opened = without_descriptors(|| model.run(model.open(CWD, c"/", Follow::No)));
    assert_eq!(opened.err(), Some(Errno::MFILE));
    drop((model, dir));

    #[cfg(not(feature = "posix"))]
    rings(before);
    assert_eq!(open_descriptors(), before);
}

#[cfg(not(feature = "posix"))]
fn rings(before: usize) {
    use fathom_io::uring::Uring;
    use std::future::Future;
    use std::task::{Context, Waker};

    if let Err(why) = Uring::new(1) {
        println!("skipped: {why}");
        return;
    }
    for _ in 0..300 {
        let ring = Uring::new(8).unwrap();
        let mut dropped = Box::pin(ring.open(CWD, c"/", Follow::No));
        assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(dropped);
        read_root(ring);
    }
    assert_eq!(open_descriptors(), before, "io_uring");
    let refused = without_descriptors(|| Uring::new(1)).unwrap_err();
    assert_eq!(refused.errno, Errno::MFILE);
    assert!(refused.to_string().contains("no descriptor is left"), "{refused}");
}
