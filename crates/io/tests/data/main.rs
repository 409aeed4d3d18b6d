//! One suite for all data models: written and read bytes, short results, errors of the kernel and
//! injected ones, interruptions, and models dropped with operations in flight.
//!
//! A model that is not available prints the reason and counts as skipped.

#![cfg(all(target_os = "linux", not(feature = "posix")))]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod bytes;
mod faults;
mod in_flight;
mod models;
mod transfer;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use fathom_io::Errno;
use fathom_io::data::{CompletedOp, Data, FileId, Op, OpKind};

/// Creates a file of `len` zeros, open for reading and writing.
fn file(path: &Path, len: u64) -> Arc<OwnedFd> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    file.set_len(len).unwrap();
    Arc::new(file.into())
}

/// Returns byte `offset` of the test data.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn bytes(offset: u64, len: usize) -> Vec<u8> {
    (offset..).take(len).map(byte).collect()
}

/// Writes the ranges in this order, with as many operations in flight as the model allows. Repeats
/// operations on the rest of short results.
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
        assert!(!done.is_empty(), "an operation was in flight");
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

/// Performs one operation.
fn one(model: &mut dyn Data, op: Box<Op>) -> CompletedOp {
    let mut done = Vec::new();
    assert_eq!(model.in_flight(), 0);
    model.submit(op);
    model.complete(&mut done);
    assert_eq!((done.len(), model.in_flight()), (1, 0));
    done.remove(0)
}

/// Reads `len` bytes from `offset`, or up to the end of the file.
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
