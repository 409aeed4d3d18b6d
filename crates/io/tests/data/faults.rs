//! Failures in the kernel, and faults injected above a model and below a blocking model.

use std::fs::{self, File};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_io::Errno;
use fathom_io::data::sim::{DataFaults, FaultyCalls, FaultyData};
use fathom_io::data::{BlockingData, Buffer, Data, DataCalls, NativeData, Op, OpKind, Pool, Position};

use crate::models::each;
use crate::{bytes, file, one, read_all, write_all};

fn blocks(count: u64) -> Vec<(u64, usize)> {
    (0..count).map(|block| (block * 1000, 1000)).collect()
}

#[test]
fn short_results_transfer_all_bytes() {
    let temp = tempfile::tempdir().unwrap();
    each(|name, model| {
        let path = temp.path().join("file");
        let mut model = FaultyData::new(model, DataFaults { seed: 1, short: 3, error: None });
        let id = model.attach(file(&path, 0)).unwrap();
        write_all(&mut model, id, &blocks(200)).unwrap();
        assert!(fs::read(&path).unwrap() == bytes(0, 200_000), "{name}: other bytes");
        let read: Vec<u8> =
            (0..20).flat_map(|part| read_all(&mut model, id, part * 10_000, 10_000).unwrap()).collect();
        assert!(read == bytes(0, 200_000), "{name}: other bytes read");
    });
}

#[test]
fn short_calls_below_a_model_transfer_all_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let calls = FaultyCalls::new(NativeData, DataFaults { seed: 2, short: 2, error: None });
    let models: [Box<dyn Data>; 3] = [
        Box::new(BlockingData::new(calls.clone(), Position::Own)),
        Box::new(BlockingData::new(calls.clone(), Position::Explicit)),
        Box::new(Pool::new(calls, 2, 4, 2).unwrap()),
    ];
    for mut model in models {
        let path = temp.path().join("file");
        let id = model.attach(file(&path, 0)).unwrap();
        write_all(&mut *model, id, &blocks(100)).unwrap();
        assert!(fs::read(&path).unwrap() == bytes(0, 100_000));
        assert!(read_all(&mut *model, id, 0, 100_000).unwrap() == bytes(0, 100_000));
    }
}

#[test]
fn an_error_affects_its_operation_alone() {
    let temp = tempfile::tempdir().unwrap();
    each(|name, model| {
        let path = temp.path().join("file");
        let mut model = FaultyData::new(model, DataFaults { seed: 3, short: 0, error: Some((Errno::IO, 4)) });
        let id = model.attach(file(&path, 40_000)).unwrap();
        let mut expected = vec![0; 40_000];
        let mut failed = 0;
        for (offset, len) in blocks(40) {
            match write_all(&mut model, id, &[(offset, len)]) {
                Ok(()) => expected[offset as usize..][..len].copy_from_slice(&bytes(offset, len)),
                Err(errno) => {
                    assert_eq!(errno, Errno::IO);
                    failed += 1;
                }
            }
        }
        assert!((1..40).contains(&failed), "{name}: {failed} failed");
        assert!(fs::read(&path).unwrap() == expected, "{name}: other bytes");
    });
}

#[test]
fn a_full_device_is_an_error() {
    each(|name, mut model| {
        let full = Arc::new(File::options().read(true).write(true).open("/dev/full").unwrap().into());
        let refused = match model.attach(full) {
            Ok(id) => one(&mut *model, Op::new(OpKind::Write, id, 0, Buffer::new(512))).result().map(drop),
            Err(errno) => Err(errno),
        };
        // A device cannot be mapped, so mmap reports ENODEV. This one has no asynchronous writes.
        let expected = match name {
            _ if name.starts_with("mmap") => Errno::NODEV,
            _ if name.starts_with("aio") => Errno::INVAL,
            _ => Errno::NOSPC,
        };
        let mapped = name.starts_with("mmap") && refused.is_ok();
        assert!(mapped || refused == Err(expected), "{name}: {refused:?}");
    });
}

#[test]
fn a_file_that_is_too_large_is_an_error() {
    const TOO_FAR: u64 = (1 << 63) - 8192;
    let temp = tempfile::tempdir().unwrap();
    if File::create(temp.path().join("far")).unwrap().write_at(&[0], TOO_FAR).is_ok() {
        return println!("skipped: files of this filesystem can be as large as an offset (XFS)");
    }
    each(|name, mut model| {
        let id = model.attach(file(&temp.path().join("file"), 0)).unwrap();
        let op = Op::new(OpKind::Write, id, TOO_FAR, Buffer::new(4096));
        let result = one(&mut *model, op).result();
        assert!(matches!(result, Err(Errno::FBIG | Errno::NOSPC | Errno::INVAL)), "{name}: {result:?}");
    });
}

#[test]
fn a_write_to_a_read_only_file_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    fs::write(temp.path().join("file"), b"here").unwrap();
    each(|name, mut model| {
        let id = model.attach(Arc::new(File::open(temp.path().join("file")).unwrap().into())).unwrap();
        let result = one(&mut *model, Op::new(OpKind::Write, id, 0, Buffer::new(4))).result();
        assert_eq!(result, Err(Errno::BADF), "{name}");
    });
    assert_eq!(fs::read(temp.path().join("file")).unwrap(), b"here");
}

/// Signals interrupt blocking calls, which are then repeated.
#[test]
fn interrupted_calls_are_repeated() {
    let temp = tempfile::tempdir().unwrap();
    let (seen, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, seen.clone()).unwrap();
    let stopped = stop.clone();
    let storm = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR1);
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
    });
    while !seen.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    each(|name, mut model| {
        let path = temp.path().join("file");
        let id = model.attach(file(&path, 0)).unwrap();
        write_all(&mut *model, id, &blocks(500)).unwrap();
        assert_eq!(one(&mut *model, Op::sync(OpKind::SyncData, id)).result(), Ok(0), "{name}");
        assert!(fs::read(&path).unwrap() == bytes(0, 500_000), "{name}: other bytes");
    });
    stop.store(true, Ordering::Relaxed);
    storm.join().unwrap();
}

/// Calls that panic, as a defect in them would.
#[derive(Clone, Copy)]
struct PanickingCalls;

impl DataCalls for PanickingCalls {
    fn pread(&self, _: BorrowedFd<'_>, _: &mut [u8], _: u64) -> Result<usize, Errno> {
        panic!("a defect")
    }

    fn pwrite(&self, _: BorrowedFd<'_>, _: &[u8], _: u64) -> Result<usize, Errno> {
        panic!("a defect")
    }

    fn read(&self, _: BorrowedFd<'_>, _: &mut [u8]) -> Result<usize, Errno> {
        panic!("a defect")
    }

    fn write(&self, _: BorrowedFd<'_>, _: &[u8]) -> Result<usize, Errno> {
        panic!("a defect")
    }

    fn sync(&self, _: BorrowedFd<'_>, _: bool) -> Result<(), Errno> {
        panic!("a defect")
    }
}

/// Once, the operations of a thread that panicked were waited for for ever.
#[test]
fn a_panic_in_a_thread_of_the_pool_reaches_the_caller() {
    let temp = tempfile::tempdir().unwrap();
    let mut pool = Pool::new(PanickingCalls, 1, 2, 1).unwrap();
    let id = pool.attach(file(&temp.path().join("file"), 1)).unwrap();
    for _ in 0..2 {
        pool.submit(Op::new(OpKind::Read, id, 0, Buffer::new(1)));
        let ended = catch_unwind(AssertUnwindSafe(|| pool.complete(&mut Vec::new())));
        assert_eq!(ended.unwrap_err().downcast_ref(), Some(&"a defect"), "the thread goes on after one");
        assert_eq!(pool.in_flight(), 0);
        pool.complete(&mut Vec::new());
    }
}
