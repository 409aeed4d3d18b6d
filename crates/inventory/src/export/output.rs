//! The output buffer of an export.

use std::io;

use parquet::errors::Result;

use super::damaged;

/// Bytes at which the buffer is written. A pipe holds 64 KiB (pipe(7)); a larger write would sleep
/// until the reader has taken all of it.
const FULL_BYTES: usize = 60 * 1024;

/// A buffer, and the function that writes it.
pub(super) struct OutputBuffer<'a> {
    pub(super) buffer: Vec<u8>,
    write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>,
    failed: Option<io::Error>,
}

impl<'a> OutputBuffer<'a> {
    pub(super) fn new(write: &'a mut dyn FnMut(&[u8]) -> io::Result<()>) -> Self {
        Self { buffer: Vec::with_capacity(FULL_BYTES + 4096), write, failed: None }
    }

    /// Writes the buffer if it is full. The error only ends the export; [`OutputBuffer::failed`]
    /// has its cause.
    pub(super) fn flush_if_full(&mut self) -> Result<()> {
        if self.buffer.len() < FULL_BYTES { Ok(()) } else { self.flush() }
    }

    /// Writes the buffer.
    pub(super) fn flush(&mut self) -> Result<()> {
        let written = (self.write)(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| {
            self.failed = Some(error);
            damaged("the output cannot be written")
        })
    }

    /// Returns the error of a failed write.
    pub(super) fn failed(self) -> Option<io::Error> {
        self.failed
    }
}
