//! One suite over every data model: the same bytes, short results, errors of the kernel and of a simulation, interruptions, and models
//! that go while operations are under way.
//!
//! A model that is not available here prints why and counts as skipped.

#![cfg(all(target_os = "linux", not(feature = "posix")))]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod bytes;
mod faults;
mod models;
mod transfer;
mod under_way;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use fathom_io::Errno;
use fathom_io::data::{CompletedOp, Data, FileId, Op, OpKind};

/// A file open for reading and writing, with `len` zeros.
fn file(path: &Path, len: u64) -> Arc<OwnedFd> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    file.set_len(len).unwrap();
    Arc::new(file.into())
}

/// Byte `offset` of the file everybody writes.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn bytes(offset: u64, len: usize) -> Vec<u8> {
    (offset..).take(len).map(byte).collect()
}

/// Everything in `ranges`, in that order, as deep as the model goes; what is left of short results is asked for again.
fn write_all(model: &mut dyn Data, file: FileId, ranges: &[(u64, usize)]) -> Result<(), Errno> {
    let mut free = model.buffers(model.depth(), ranges.iter().map(|(_, len)| *len).max().unwrap()).unwrap();
    let (mut todo, mut done) = (ranges.iter(), Vec::new());
    loop {
        while let Some((offset, len)) = (!free.is_empty()).then(|| todo.next()).flatten() {
            let mut op = Op::new(OpKind::Write, file, *offset, free.pop().unwrap());
            op.end = *len;
            op.bytes_mut().copy_from_slice(&bytes(*offset, *len));
            model.submit(op);
            assert!(model.in_flight() <= model.depth());
        }
        if model.in_flight() == 0 {
            return Ok(());
        }
        model.complete(&mut done);
        assert!(!done.is_empty(), "something was under way");
        for ended in done.drain(..) {
            let (result, mut op) = (ended.result(), ended.into_op());
            if op.advance(result?) {
                model.submit(op);
            } else {
                free.push(op.buffer);
            }
        }
    }
}

/// One operation, alone.
fn one(model: &mut dyn Data, op: Box<Op>) -> CompletedOp {
    let mut done = Vec::new();
    assert_eq!(model.in_flight(), 0);
    model.submit(op);
    model.complete(&mut done);
    assert_eq!((done.len(), model.in_flight()), (1, 0));
    done.remove(0)
}

/// What `len` bytes from `offset` are, read until there is nothing more.
fn read_all(model: &mut dyn Data, file: FileId, offset: u64, len: usize) -> Result<Vec<u8>, Errno> {
    let buffer = model.buffers(1, len)?.remove(0);
    let mut op = Op::new(OpKind::Read, file, offset, buffer);
    loop {
        let ended = one(model, op);
        let moved = ended.result()?;
        op = ended.into_op();
        if !op.advance(moved) || moved == 0 {
            return Ok(op.buffer[..op.start].to_vec());
        }
    }
}
