//! The I/O loop of one thread: keeps `depth` operations of its partition in flight.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fathom_io::Errno;
use fathom_io::data::{CompletedOp, Data, DataVisitor, Op, OpKind};
use fathom_io::fault::point;
use fathom_io::sys::Usage;

use super::barrier::{Arrival, StartBarrier};
use super::block_order::BlockOrder;
use super::call_latency::{CallTimes, LatencyPercentiles, rank_us};
use super::latency::LatencySampler;
use super::model;
use super::op_kinds::{FreeOps, OpKinds};
use super::spec::{SampleError, SampleSpec};
use crate::lang::Measurement;
use crate::pattern::{BASE_GENERATION, PAGE_BYTES, Pattern};
use crate::workload::{TIMED_OPS_FOR_P999, TIMED_OPS_MIN};
use crate::{LatencyHistogram, Workload};

/// Totals of a thread, or the sum over threads.
#[derive(Debug, Default)]
pub(super) struct IoTotals {
    pub(super) ops: u64,
    pub(super) bytes: u64,
    pub(super) pages_ok: u64,
    /// Highest number of operations in flight, as far as the thread itself counts them.
    pub(super) in_flight_max: usize,
    pub(super) nanoseconds: Vec<u64>,
    /// The same latencies by the kind of call.
    pub(super) calls: CallTimes,
}

impl IoTotals {
    pub(super) fn add(&mut self, other: Self) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.pages_ok += other.pages_ok;
        self.in_flight_max += other.in_flight_max;
        self.nanoseconds.extend(other.nanoseconds);
        self.calls.add(other.calls);
    }

    /// Converts the totals of a sample that took `seconds`.
    pub(super) fn measurement(mut self, seconds: f64, usage: &Usage) -> Measurement {
        let latencies = LatencyPercentiles::of(&mut self.nanoseconds);
        let count = latencies.count;
        Measurement {
            seconds,
            sync_s: seconds,
            close_s: seconds,
            ops: self.ops,
            bytes: self.bytes,
            pages_ok: self.pages_ok,
            in_flight_max: self.in_flight_max as u64,
            cpu_user_s: usage.cpu_user.as_secs_f64(),
            cpu_sys_s: usage.cpu.saturating_sub(usage.cpu_user).as_secs_f64(),
            switches: Some(usage.waits),
            switches_forced: Some(usage.preemptions),
            p50_us: latencies.p50_us,
            p95_us: latencies.p95_us,
            p99_us: latencies.p99_us,
            p999_us: (count >= TIMED_OPS_FOR_P999).then(|| rank_us(&self.nanoseconds, 999)),
            histogram: (count >= TIMED_OPS_MIN).then(|| LatencyHistogram::of(&self.nanoseconds)),
            max_us: latencies.max_us,
            memory_bytes: None,
            mean_us: None,
        }
    }
}

/// The operations in flight over all threads. Each is counted before its submission and until its
/// completion is known, so the count is an upper bound.
#[derive(Debug, Default)]
pub(super) struct InFlightCount {
    now: AtomicU64,
    max: AtomicU64,
}

impl InFlightCount {
    #[inline(always)]
    fn begin(&self) {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        // A load alone is cheaper than an exchange, and the maximum is reached early.
        if now > self.max.load(Relaxed) {
            self.max.fetch_max(now, Relaxed);
        }
    }

    #[inline(always)]
    fn end(&self) {
        self.now.fetch_sub(1, Relaxed);
    }

    /// Returns the highest count so far.
    pub(super) fn max(&self) -> u64 {
        self.max.load(Relaxed)
    }
}

/// The partition of one thread.
pub(super) struct PartitionTask<'a> {
    pub(super) spec: &'a SampleSpec,
    pub(super) number: usize,
    pub(super) file: Arc<OwnedFd>,
    pub(super) barrier: &'a StartBarrier,
    pub(super) count: &'a InFlightCount,
}

impl PartitionTask<'_> {
    /// Prepares buffers, waits at the barrier for the other threads, and executes the partition.
    pub(super) fn run(self) -> Result<IoTotals, SampleError> {
        let arrival = Arrival::new(self.barrier);
        let made = model::build_and_visit(self.spec, PartitionVisitor { job: self, arrival });
        made.map_err(SampleError::Unavailable)?
    }

    fn blocks(&self) -> Range<u64> {
        let (blocks, number, threads) =
            (u128::from(self.spec.blocks()), self.number as u128, self.spec.threads as u128);
        let share = |number: u128| u64::try_from(number * blocks / threads).unwrap_or(u64::MAX);
        share(number)..share(number + 1)
    }
}

struct PartitionVisitor<'a> {
    job: PartitionTask<'a>,
    arrival: Arrival<'a>,
}

impl DataVisitor for PartitionVisitor<'_> {
    type Output = Result<IoTotals, SampleError>;

    fn visit<D: Data + 'static>(self, mut model: D) -> Result<IoTotals, SampleError> {
        let Self { job, arrival } = self;
        let spec = job.spec;
        let failed = |action, errno: Errno| SampleError::io(action, &spec.path, errno.into());
        let file = model.attach(job.file.clone()).map_err(|errno| failed("use", errno))?;
        // No more buffers than blocks: 128 of 1 MiB for each of 100 threads would be 13 GB.
        let blocks = usize::try_from(job.blocks().end - job.blocks().start).unwrap_or(usize::MAX);
        let depth = model.depth().min(blocks);
        let kinds = OpKinds::of(spec);
        let buffers = model
            .buffers(depth * kinds.count(), spec.block)
            .map_err(|errno| failed("register memory for", errno))?;
        let free = FreeOps::new(buffers, depth, &kinds, file);
        let pattern = Pattern::new(spec.seed, spec.generation);
        let read_pattern = match kinds {
            OpKinds::One(_) => pattern.clone(),
            OpKinds::Mixed(_) => Pattern::new(spec.seed, BASE_GENERATION),
        };
        let latencies = LatencySampler::new(spec.workload == Workload::AppendSync);
        let order = BlockOrder::new(job.blocks(), spec.workload.is_random().then_some(spec.seed));
        let count = job.count;
        let mut io_loop =
            IoLoop { spec, kinds, pattern, read_pattern, order, free, depth, in_flight: 0, count, latencies };
        io_loop.prepare();
        point("bench-prepared");
        if !arrival.arrive() {
            return Ok(IoTotals::default());
        }
        let mut totals = IoTotals::default();
        io_loop.run(&mut model, &mut totals)?;
        totals.nanoseconds = io_loop.latencies.nanoseconds;
        totals.calls = io_loop.latencies.calls;
        Ok(totals)
    }
}

struct IoLoop<'a> {
    spec: &'a SampleSpec,
    kinds: OpKinds,
    /// The content that is written.
    pattern: Pattern,
    /// The content that is read.
    read_pattern: Pattern,
    order: BlockOrder,
    free: FreeOps,
    /// Limit of operations in flight, and number of free operations of each kind at the start.
    depth: usize,
    in_flight: usize,
    count: &'a InFlightCount,
    latencies: LatencySampler,
}

impl IoLoop<'_> {
    /// Fills the write buffers before the clock starts. If blocks are multiples of a page, the loop
    /// only rewrites the stamps.
    fn prepare(&mut self) {
        self.free.writes.iter_mut().for_each(|op| self.pattern.fill(0, &mut op.buffer));
    }

    #[inline]
    fn run(&mut self, model: &mut impl Data, totals: &mut IoTotals) -> Result<(), SampleError> {
        let mut done = Vec::with_capacity(self.spec.depth);
        loop {
            while let Some(op) = self.next() {
                self.latencies.start(op.tag);
                self.submit(op, model);
            }
            if self.in_flight == 0 {
                return Ok(());
            }
            debug_assert!(self.in_flight <= self.spec.depth);
            model.complete(&mut done);
            while let Some(ended) = done.pop() {
                self.in_flight -= 1;
                self.count.end();
                totals.ops += 1;
                self.finish(ended, model, totals)?;
            }
        }
    }

    #[inline(always)]
    fn submit(&mut self, op: Box<Op>, model: &mut impl Data) {
        self.count.begin();
        model.submit(op);
        self.in_flight += 1;
    }

    /// Returns the operation for the next block, if fewer than `depth` are in flight.
    #[inline(always)]
    fn next(&mut self) -> Option<Box<Op>> {
        if self.in_flight == self.depth {
            return None;
        }
        let block = self.order.next()?;
        let kind = self.kinds.of_block(block);
        let mut op = self.free.of(kind).pop()?;
        let SampleSpec { block: bytes, size, .. } = *self.spec;
        let offset = block * bytes as u64;
        let len = bytes.min(usize::try_from(size - offset).unwrap_or(usize::MAX));
        if kind == OpKind::Write {
            if bytes.is_multiple_of(PAGE_BYTES) {
                self.pattern.stamp(offset, &mut op.buffer);
            } else {
                self.pattern.fill(offset, &mut op.buffer);
            }
        }
        (op.kind, op.offset, op.start, op.end, op.tag) = (kind, offset, 0, len, block);
        Some(op)
    }

    #[inline(always)]
    fn finish(
        &mut self,
        done: CompletedOp,
        model: &mut impl Data,
        totals: &mut IoTotals,
    ) -> Result<(), SampleError> {
        let workload = self.spec.workload;
        let result = done.result();
        let mut op = done.into_op();
        let verb = match op.kind {
            OpKind::Read => "read",
            OpKind::Write => "write",
            _ => "sync",
        };
        let moved = result.map_err(|errno| self.spec.error(verb, errno))?;
        if op.kind != OpKind::SyncData {
            if moved == 0 {
                let end = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                return Err(SampleError::io(verb, &self.spec.path, end));
            }
            totals.bytes += moved as u64;
            if op.advance(moved) {
                self.submit(op, model);
                return Ok(());
            }
            if workload == Workload::AppendSync {
                self.latencies.end_write(op.tag);
                op.kind = OpKind::SyncData;
                self.submit(op, model);
                return Ok(());
            }
        }
        self.latencies.end(op.tag, op.kind);
        if op.kind == OpKind::Read && self.spec.has_pattern {
            let start = op.offset - op.end as u64;
            let stamps = self.read_pattern.check_stamps(start, &op.buffer[..op.end]);
            totals.pages_ok += stamps.map_err(|page| SampleError::Wrong(self.spec.path.clone(), page))?;
        }
        self.free.of(op.kind).push(op);
        Ok(())
    }
}
