//! Fault injection between a caller and any model, from a seed: short results and errors. The inner
//! model transfers the bytes, so they stay correct.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Buffer, CompletedOp, Data, DataCalls, FileId, Op, OpKind};
use crate::Errno;
use crate::random::mix;

/// The faults. Each occurs about once in the given number of operations, and never for 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataFaults {
    /// Seed of the random decisions.
    pub seed: u64,
    /// Period of results that are shorter than requested.
    pub short: u64,
    /// An error that is returned without a transfer, and its period.
    pub error: Option<(Errno, u64)>,
}

impl DataFaults {
    fn number(&self, index: u64, salt: u64) -> u64 {
        mix(self.seed ^ mix(index ^ (salt << 56)))
    }

    fn error(&self, index: u64) -> Option<Errno> {
        let (errno, one_in) = self.error?;
        self.number(index, 1).checked_rem(one_in).filter(|rest| *rest == 0).map(|_| errno)
    }

    /// Returns the number of bytes to transfer of `len`, at least one.
    fn len(&self, index: u64, len: usize) -> usize {
        let is_short = self.number(index, 2).checked_rem(self.short) == Some(0);
        if is_short && len > 1 { 1 + (self.number(index, 3) % (len as u64 - 1)) as usize } else { len }
    }
}

/// A model of byte ranges with injected faults.
///
/// ```
/// use std::sync::Arc;
/// use fathom_io::Errno;
/// use fathom_io::data::sim::{DataFaults, FaultyData};
/// use fathom_io::data::{BlockingData, Buffer, Data, NativeData, Op, OpKind, Position};
///
/// let model = BlockingData::new(NativeData, Position::Explicit);
/// let faults = DataFaults { error: Some((Errno::IO, 1)), ..DataFaults::default() };
/// let mut model = FaultyData::new(model, faults);
/// let file = model.attach(Arc::new(std::fs::File::open("Cargo.toml")?.into()))?;
/// model.submit(Op::new(OpKind::Read, file, 0, Buffer::new(9)));
/// let mut done = Vec::new();
/// model.complete(&mut done);
/// assert_eq!(done[0].result(), Err(Errno::IO));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct FaultyData<D> {
    model: D,
    faults: DataFaults,
    count: u64,
    /// Operations that failed, and original tags and ends of those that were shortened.
    failed: Vec<CompletedOp>,
    ends: Vec<(u64, u64, usize)>,
}

impl<D: Data> FaultyData<D> {
    /// Wraps `model`.
    pub fn new(model: D, faults: DataFaults) -> Self {
        Self { model, faults, count: 0, failed: Vec::new(), ends: Vec::new() }
    }

    /// Restores the tags and ends of operations.
    fn restore(&mut self, done: &mut [CompletedOp]) {
        for CompletedOp(op) in done {
            if let Some(index) = self.ends.iter().position(|(number, ..)| *number == op.tag) {
                let (_, tag, end) = self.ends.swap_remove(index);
                (op.tag, op.end) = (tag, end);
            }
        }
    }
}

impl<D: Data> Data for FaultyData<D> {
    fn attach(&mut self, file: Arc<OwnedFd>) -> Result<FileId, Errno> {
        self.model.attach(file)
    }

    fn detach(&mut self, file: FileId) {
        self.model.detach(file);
    }

    fn buffers(&mut self, count: usize, bytes: usize) -> Result<Vec<Buffer>, Errno> {
        self.model.buffers(count, bytes)
    }

    fn depth(&self) -> usize {
        self.model.depth()
    }

    fn in_flight(&self) -> usize {
        self.model.in_flight() + self.failed.len()
    }

    fn submit(&mut self, mut op: Box<Op>) {
        self.count += 1;
        if let Some(errno) = self.faults.error(self.count) {
            self.failed.push(CompletedOp::new(op, Err(errno)));
            return;
        }
        if matches!(op.kind, OpKind::Read | OpKind::Write) {
            self.ends.push((self.count, op.tag, op.end));
            op.end = op.start + self.faults.len(self.count, op.len());
            op.tag = self.count;
        }
        self.model.submit(op);
    }

    fn complete(&mut self, done: &mut Vec<CompletedOp>) {
        if !self.failed.is_empty() {
            done.append(&mut self.failed);
            return;
        }
        let before = done.len();
        self.model.complete(done);
        self.restore(&mut done[before..]);
    }
}

/// Blocking calls with injected faults, below a model.
///
/// ```
/// use std::os::fd::AsFd;
/// use fathom_io::data::sim::{DataFaults, FaultyCalls};
/// use fathom_io::data::{DataCalls, NativeData};
///
/// let calls = FaultyCalls::new(NativeData, DataFaults { short: 1, ..DataFaults::default() });
/// let file = std::fs::File::open("Cargo.toml")?;
/// assert!((1..100).contains(&calls.pread(file.as_fd(), &mut [0; 100], 0)?));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultyCalls<C> {
    calls: C,
    faults: DataFaults,
    count: Arc<AtomicU64>,
}

impl<C> FaultyCalls<C> {
    /// Wraps `calls`.
    pub fn new(calls: C, faults: DataFaults) -> Self {
        Self { calls, faults, count: Arc::default() }
    }

    fn next(&self) -> Result<u64, Errno> {
        let index = self.count.fetch_add(1, Ordering::Relaxed);
        self.faults.error(index).map_or(Ok(index), Err)
    }
}

impl<C: DataCalls> DataCalls for FaultyCalls<C> {
    fn pread(&self, file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let len = self.faults.len(self.next()?, bytes.len());
        self.calls.pread(file, &mut bytes[..len], offset)
    }

    fn pwrite(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
        let len = self.faults.len(self.next()?, bytes.len());
        self.calls.pwrite(file, &bytes[..len], offset)
    }

    fn read(&self, file: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<usize, Errno> {
        let len = self.faults.len(self.next()?, bytes.len());
        self.calls.read(file, &mut bytes[..len])
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        let len = self.faults.len(self.next()?, bytes.len());
        self.calls.write(file, &bytes[..len])
    }

    fn sync(&self, file: BorrowedFd<'_>, all: bool) -> Result<(), Errno> {
        self.next()?;
        self.calls.sync(file, all)
    }
}
