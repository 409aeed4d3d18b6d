//! Bytes on their way out, a buffer at a time.

use std::io;

use fathom_text::number::decimal;
use parquet::errors::Result;

use super::damaged;

/// Given away past this many bytes.
const FULL_BYTES: usize = 64 * 1024;

/// A buffer, and whoever takes what is in it.
pub(super) struct Out<'a> {
    pub(super) buffer: Vec<u8>,
    write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>,
    failed: Option<io::Error>,
}

impl<'a> Out<'a> {
    pub(super) fn new(write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>) -> Self {
        Self { buffer: Vec::with_capacity(FULL_BYTES + 4096), write, failed: None }
    }

    /// Gives away what there is, if that is enough to be worth it. An error here ends the reading, [`Out::failed`] has the cause.
    pub(super) fn relieve(&mut self) -> Result<()> {
        if self.buffer.len() < FULL_BYTES { Ok(()) } else { self.flush() }
    }

    /// Gives away what there is.
    pub(super) fn flush(&mut self) -> Result<()> {
        let written = (self.write)(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| {
            self.failed = Some(error);
            damaged("nobody takes it")
        })
    }

    /// Why the bytes were not taken, if they were not.
    pub(super) fn failed(self) -> Option<io::Error> {
        self.failed
    }
}

/// Appends a number.
pub(super) fn write_number(value: u64, out: &mut Vec<u8>) {
    let (digits, start) = decimal(value);
    out.extend_from_slice(&digits[start..]);
}

/// Appends bytes in hexadecimal.
pub(super) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    out.extend(digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]));
}
