//! An external merge sort. Records are buffered up to [`BUFFER_BYTES_MAX`]; full buffers are sorted
//! and appended to one temporary file without a name; the runs in it are merged at the end. Owns
//! that file. Does not own the encoding of the records.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_inventory::store::{Error, Op};

/// Bytes of buffered records at which they are written to the spill file.
const BUFFER_BYTES_MAX: usize = 64 << 20;
/// The read buffer of a run, in bytes.
const READ_BYTES: usize = 64 << 10;

/// A record that can be sorted and written to a spill file.
pub(super) trait SortRecord: Ord + Sized {
    /// Appends the encoded record.
    fn put(&self, out: &mut Vec<u8>);
    /// Decodes a record; `None` if the bytes are none.
    fn get(input: &mut &[u8]) -> Option<Self>;
    /// Returns the number of heap bytes that the record owns.
    fn heap_bytes(&self) -> usize;
}

/// Collects records in any order.
pub(super) struct Sorter<R> {
    scratch: PathBuf,
    buffer_bytes: usize,
    buffered: Vec<R>,
    bytes: usize,
    runs: Option<SpillFile>,
    /// The error of the first write that failed. Later records are dropped.
    failed: Option<io::Error>,
}

/// A file of sorted runs, one after the other.
struct SpillFile {
    file: Arc<File>,
    ends: Vec<u64>,
}

impl<R: SortRecord> Sorter<R> {
    /// Creates a sorter whose spill file is in the directory `scratch`.
    pub(super) fn new(scratch: &Path) -> Self {
        Self::with_buffer(scratch, BUFFER_BYTES_MAX)
    }

    fn with_buffer(scratch: &Path, buffer_bytes: usize) -> Self {
        Self {
            scratch: scratch.to_owned(),
            buffer_bytes,
            buffered: Vec::new(),
            bytes: 0,
            runs: None,
            failed: None,
        }
    }

    /// Adds a record. [`Sorter::sorted`] reports a failed write.
    pub(super) fn push(&mut self, record: R) {
        if self.failed.is_some() {
            return;
        }
        self.bytes += size_of::<R>() + record.heap_bytes();
        self.buffered.push(record);
        if self.bytes >= self.buffer_bytes {
            self.failed = self.spill().err();
        }
    }

    /// Writes the buffered records to the spill file, as a sorted run.
    fn spill(&mut self) -> io::Result<()> {
        let mut buffered = std::mem::take(&mut self.buffered);
        self.bytes = 0;
        buffered.sort_unstable();
        let runs = match &mut self.runs {
            Some(runs) => runs,
            None => {
                let file = Arc::new(tempfile::tempfile_in(&self.scratch)?);
                self.runs.insert(SpillFile { file, ends: Vec::new() })
            }
        };
        let mut end = runs.ends.last().copied().unwrap_or(0);
        let mut writer = BufWriter::with_capacity(READ_BYTES, &*runs.file);
        let mut text = Vec::new();
        for record in buffered {
            text.clear();
            record.put(&mut text);
            let length = u32::try_from(text.len()).map_err(io::Error::other)?;
            writer.write_all(&length.to_le_bytes())?;
            writer.write_all(&text)?;
            end += 4 + u64::from(length);
        }
        writer.flush()?;
        runs.ends.push(end);
        Ok(())
    }

    /// Returns all records in ascending order.
    pub(super) fn sorted(mut self) -> Result<SortedRecords<R>, Error> {
        let scratch = self.scratch.clone();
        let failed = |error| Error::new(Op::Write, &scratch, error);
        if self.runs.is_some() && self.failed.is_none() {
            self.failed = self.spill().err();
        }
        if let Some(error) = self.failed {
            return Err(failed(error));
        }
        self.buffered.sort_unstable();
        let mut sorted = SortedRecords {
            scratch: self.scratch,
            buffered: self.buffered.into_iter(),
            heads: BinaryHeap::new(),
            runs: Vec::new(),
            next: None,
        };
        if let Some(runs) = self.runs {
            sorted.open(&runs).map_err(failed)?;
        }
        Ok(sorted)
    }
}

/// The records in ascending order.
pub(super) struct SortedRecords<R> {
    scratch: PathBuf,
    buffered: std::vec::IntoIter<R>,
    /// The next record of each run, the least on top.
    heads: BinaryHeap<Reverse<(R, usize)>>,
    runs: Vec<BufReader<SortedRun>>,
    /// The next record, if [`SortedRecords::next_if`] has read and refused it.
    next: Option<R>,
}

impl<R: SortRecord> SortedRecords<R> {
    fn open(&mut self, runs: &SpillFile) -> io::Result<()> {
        let starts = std::iter::once(0).chain(runs.ends.iter().copied());
        for (at, end) in starts.zip(&runs.ends) {
            let run = SortedRun { file: Arc::clone(&runs.file), at, end: *end };
            self.runs.push(BufReader::with_capacity(READ_BYTES, run));
            self.advance(self.runs.len() - 1)?;
        }
        Ok(())
    }

    /// Puts the next record of a run on the heap.
    fn advance(&mut self, index: usize) -> io::Result<()> {
        let mut length = [0; 4];
        let run = &mut self.runs[index];
        if run.get_ref().at == run.get_ref().end && run.buffer().is_empty() {
            return Ok(());
        }
        run.read_exact(&mut length)?;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        run.read_exact(&mut text)?;
        let record = R::get(&mut text.as_slice()).ok_or(io::ErrorKind::InvalidData)?;
        self.heads.push(Reverse((record, index)));
        Ok(())
    }

    /// Returns the next record.
    pub(super) fn next(&mut self) -> Result<Option<R>, Error> {
        if let Some(next) = self.next.take().or_else(|| self.buffered.next()) {
            return Ok(Some(next));
        }
        let Some(Reverse((record, index))) = self.heads.pop() else { return Ok(None) };
        self.advance(index).map_err(|error| Error::new(Op::Read, &self.scratch, error))?;
        Ok(Some(record))
    }

    /// Returns the next record if `wanted` accepts it.
    pub(super) fn next_if(&mut self, wanted: impl FnOnce(&R) -> bool) -> Result<Option<R>, Error> {
        self.next = self.next()?;
        Ok(self.next.take_if(|next| wanted(next)))
    }
}

/// Reads one run of a spill file.
struct SortedRun {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for SortedRun {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let found = self.file.read_at(&mut buffer[..wanted], self.at)?;
        self.at += found as u64;
        Ok(found)
    }
}

/// Appends a number as a zigzag varint: seven bits a byte, numbers close to 0 in the fewest bytes.
pub(super) fn put_number(number: i64, out: &mut Vec<u8>) {
    let mut bits = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

pub(super) fn get_number(input: &mut &[u8]) -> Option<i64> {
    let mut bits = 0;
    for shift in (0..64).step_by(7) {
        let byte = *input.split_off_first()?;
        bits |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
        }
    }
    None
}

/// Appends bytes, preceded by their number.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

pub(super) fn get_bytes(input: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(get_number(input)?).ok()?;
    input.split_off(..length).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl SortRecord for (i64, Vec<u8>) {
        fn put(&self, out: &mut Vec<u8>) {
            put_number(self.0, out);
            put_bytes(&self.1, out);
        }

        fn get(input: &mut &[u8]) -> Option<Self> {
            Some((get_number(input)?, get_bytes(input)?))
        }

        fn heap_bytes(&self) -> usize {
            self.1.capacity()
        }
    }

    fn all(mut sorted: SortedRecords<(i64, Vec<u8>)>) -> Vec<(i64, Vec<u8>)> {
        std::iter::from_fn(|| sorted.next().unwrap()).collect()
    }

    proptest! {
        #![proptest_config(fathom_cases::property(64))]

        #[test]
        fn records_are_sorted_whatever_the_buffer_size(
            records in prop::collection::vec((prop_oneof![any::<i64>(), -2i64..2], prop::collection::vec(any::<u8>(), 0..40)), 0..300),
            buffer_bytes in 1usize..20_000,
        ) {
            let scratch = tempfile::tempdir().unwrap();
            let mut sorter = Sorter::with_buffer(scratch.path(), buffer_bytes);
            records.iter().cloned().for_each(|record| sorter.push(record));
            let mut expected = records;
            expected.sort();
            prop_assert_eq!(all(sorter.sorted().unwrap()), expected);
            prop_assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_record_that_is_not_wanted_stays_the_next() {
        let mut sorter = Sorter::with_buffer(Path::new("/"), 1 << 20);
        [2, 1].into_iter().for_each(|number| sorter.push((number, Vec::new())));
        let mut sorted = sorter.sorted().unwrap();
        assert_eq!(sorted.next_if(|record| record.0 == 2).unwrap(), None);
        assert_eq!(sorted.next_if(|record| record.0 == 1).unwrap(), Some((1, vec![])));
        assert_eq!(all(sorted), [(2, vec![])]);
    }

    #[test]
    fn a_failed_spill_is_an_error_at_the_end() {
        let mut sorter = Sorter::with_buffer(Path::new("/nonexistent"), 100);
        (0..100).for_each(|number| sorter.push((number, Vec::new())));
        assert_eq!(sorter.sorted().err().map(|error| error.op()), Some(Op::Write));
    }
}
