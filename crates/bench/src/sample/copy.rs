//! Samples of a copy: all of one file into a new one beside it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fathom_io::data::Buffer;
use fathom_io::data::transfer::{Transfer, Way};
use fathom_io::sys::usage;

use super::drive::Tally;
use super::spec::{Failure, Method, Spec};
use super::spent;
use crate::lang::Answer;

/// Where the copy of the file at `path` is made.
#[must_use]
pub fn copy_of(path: &Path) -> PathBuf {
    path.with_extension("copy")
}

/// Copies, `block` bytes a call.
pub(super) fn copy(spec: &Spec) -> Result<Answer, Failure> {
    let target = copy_of(&spec.path);
    let from = File::open(&spec.path).map_err(|error| Failure::io("open", &spec.path, error))?;
    let to = File::create(&target).map_err(|error| Failure::io("open", &target, error))?;
    let (before, start) = (usage(), Instant::now());
    let moved = match spec.method {
        Method::CopyFileRange => in_kernel(spec, Way::CopyFileRange, &from, &to),
        Method::Sendfile => in_kernel(spec, Way::Sendfile, &from, &to),
        Method::Splice => in_kernel(spec, Way::Splice, &from, &to),
        _ => through_memory(spec, &from, &to),
    };
    let tally = moved.map_err(|error| Failure::io("copy to", &target, error))?;
    let mut answer = tally.answer(start.elapsed().as_secs_f64(), &spent(&before, &usage()));
    to.sync_data().map_err(|error| Failure::io("sync", &target, error))?;
    answer.sync_s = start.elapsed().as_secs_f64();
    drop(to);
    answer.close_s = start.elapsed().as_secs_f64();
    Ok(answer)
}

fn through_memory(spec: &Spec, mut from: &File, mut to: &File) -> std::io::Result<Tally> {
    let (mut buffer, mut tally) = (Buffer::new(spec.block), Tally { in_flight_max: 1, ..Tally::default() });
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(tally);
        }
        to.write_all(&buffer[..read])?;
        tally.ops += 1;
        tally.bytes += read as u64;
    }
}

fn in_kernel(spec: &Spec, way: Way, from: &File, to: &File) -> std::io::Result<Tally> {
    let (transfer, mut tally) = (Transfer::new(way)?, Tally { in_flight_max: 1, ..Tally::default() });
    loop {
        let moved = transfer.step(from.as_fd(), tally.bytes, to.as_fd(), spec.block)?;
        if moved == 0 {
            return Ok(tally);
        }
        tally.ops += 1;
        tally.bytes += moved as u64;
    }
}
