//! Models dropped with operations in flight, and the limit on their number.

use std::io::{ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use fathom_io::data::{Buffer, Data, Op, OpKind};
use rustix::pipe::pipe;

use crate::models::each;
use crate::{file, one};

/// Starts reads of an empty pipe, which do not end by themselves.
fn start_reads(model: &mut dyn Data, count: usize) -> std::os::fd::OwnedFd {
    let (out, into) = pipe().unwrap();
    let id = model.attach(Arc::new(out)).unwrap();
    for _ in 0..count {
        let mut op = Op::new(OpKind::Read, id, 0, Buffer::new(1 << 16));
        // Position -1 means the file's own position, the only one of a pipe.
        op.offset = u64::MAX;
        model.submit(op);
    }
    into
}

/// Waits until the reader of the pipe is closed. The kernel closes files registered with a ring a
/// little after the ring.
fn loses_its_reader(mut pipe: std::fs::File) -> bool {
    (0..60_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        pipe.write(b"1").is_err_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}

#[test]
fn dropping_a_model_ends_its_operations() {
    each(|name, mut model| {
        if !name.starts_with("uring") {
            return; // The others refuse a pipe, which has no offsets.
        }
        let count = model.depth();
        let into = start_reads(&mut *model, count);
        assert_eq!(model.in_flight(), count, "{name}");
        drop(model);
        // These allocations reuse the freed buffers. A late write to them is found by a sanitizer
        // or by the check below.
        let fresh: Vec<Vec<u8>> = (0..count).map(|_| vec![7; 1 << 16]).collect();
        assert!(loses_its_reader(into.into()), "{name}: the pipe still has a reader");
        assert!(fresh.iter().flatten().all(|byte| *byte == 7), "{name}: memory has changed");
    });
}

#[test]
fn a_dropped_model_does_not_write_to_freed_memory() {
    let temp = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        each(|name, mut model| {
            let id = model.attach(file(&temp.path().join("file"), 1 << 20)).unwrap();
            for index in 0..model.depth() as u64 {
                model.submit(Op::new(OpKind::Read, id, index * 4096, Buffer::new(1 << 16)));
            }
            drop(model);
            let fresh: Vec<Vec<u8>> = (0..8).map(|_| vec![7; 1 << 16]).collect();
            std::thread::yield_now();
            assert!(fresh.iter().flatten().all(|byte| *byte == 7), "{name}: memory has changed");
        });
    }
}

#[test]
fn operations_in_flight_never_exceed_the_depth() {
    let temp = tempfile::tempdir().unwrap();
    each(|name, mut model| {
        let id = model.attach(file(&temp.path().join("file"), 1 << 20)).unwrap();
        for index in 0..model.depth() {
            assert_eq!(model.in_flight(), index, "{name}");
            model.submit(Op::new(OpKind::Write, id, index as u64 * 512, Buffer::new(512)));
        }
        let more = AssertUnwindSafe(|| model.submit(Op::new(OpKind::Write, id, 0, Buffer::new(512))));
        assert!(catch_unwind(more).is_err(), "{name}: one too many");
        let (mut done, depth) = (Vec::new(), model.depth());
        while model.in_flight() > 0 {
            model.complete(&mut done);
        }
        assert_eq!(done.len(), depth, "{name}");
        done.clear();
        model.complete(&mut done);
        assert!(done.is_empty(), "{name}: no operation was in flight");
        assert_eq!(one(&mut *model, Op::sync(OpKind::SyncData, id)).result(), Ok(0), "{name}");
    });
}
