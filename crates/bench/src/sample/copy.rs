//! Samples of a copy: one file into a new file in the same directory.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fathom_io::Model;
use fathom_io::data::Buffer;
use fathom_io::data::transfer::{CopyMethod, Transfer};
use fathom_io::sys::usage;

use super::io_loop::IoTotals;
use super::spec::{SampleError, SampleSpec};
use super::usage_between;
use crate::lang::Measurement;

/// Returns the path of the copy of the file at `path`.
#[must_use]
pub fn copy_of(path: &Path) -> PathBuf {
    path.with_extension("copy")
}

/// Copies the file, at most `block` bytes with each call.
pub(super) fn copy(spec: &SampleSpec) -> Result<Measurement, SampleError> {
    let target = copy_of(&spec.path);
    let from = File::open(&spec.path).map_err(|error| SampleError::io("open", &spec.path, error))?;
    let to = File::create(&target).map_err(|error| SampleError::io("open", &target, error))?;
    let (before, start) = (usage(), Instant::now());
    let moved = match spec.model {
        Some(Model::CopyFileRange) => in_kernel(spec, CopyMethod::CopyFileRange, &from, &to),
        Some(Model::Sendfile) => in_kernel(spec, CopyMethod::Sendfile, &from, &to),
        Some(Model::Splice) => in_kernel(spec, CopyMethod::Splice, &from, &to),
        _ => through_memory(spec, &from, &to),
    };
    let totals = moved.map_err(|error| SampleError::io("copy to", &target, error))?;
    let mut measurement =
        totals.measurement(start.elapsed().as_secs_f64(), &usage_between(&before, &usage()));
    to.sync_data().map_err(|error| SampleError::io("sync", &target, error))?;
    measurement.sync_s = start.elapsed().as_secs_f64();
    drop(to);
    measurement.close_s = start.elapsed().as_secs_f64();
    Ok(measurement)
}

fn through_memory(spec: &SampleSpec, mut from: &File, mut to: &File) -> std::io::Result<IoTotals> {
    let (mut buffer, mut totals) =
        (Buffer::new(spec.block), IoTotals { in_flight_max: 1, ..IoTotals::default() });
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(totals);
        }
        to.write_all(&buffer[..read])?;
        totals.ops += 1;
        totals.bytes += read as u64;
    }
}

fn in_kernel(spec: &SampleSpec, way: CopyMethod, from: &File, to: &File) -> std::io::Result<IoTotals> {
    let (transfer, mut totals) = (Transfer::new(way)?, IoTotals { in_flight_max: 1, ..IoTotals::default() });
    loop {
        let moved = transfer.step(from.as_fd(), totals.bytes, to.as_fd(), spec.block)?;
        if moved == 0 {
            return Ok(totals);
        }
        totals.ops += 1;
        totals.bytes += moved as u64;
    }
}
