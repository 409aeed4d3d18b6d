//! The loop of one thread: keeps as many operations of its partition under way as the depth allows.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use fathom_io::Errno;
use fathom_io::data::{Data, Done, Kind, Op};
use fathom_io::sys::Usage;

use super::gate::Gate;
use super::latency::Latencies;
use super::model::{self, With};
use super::order::Order;
use super::spec::{Deed, Failure, Spec};
use crate::lang::Answer;
use crate::pattern::{PAGE_BYTES, Pattern};

/// What a thread has done.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) ops: u64,
    pub(super) bytes: u64,
    pub(super) pages_ok: u64,
    /// Of all threads together, if all had their most at once.
    pub(super) in_flight_max: usize,
    pub(super) nanoseconds: Vec<u64>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.pages_ok += other.pages_ok;
        self.in_flight_max += other.in_flight_max;
        self.nanoseconds.extend(other.nanoseconds);
    }

    /// What a sample of `seconds` has to tell.
    pub(super) fn answer(mut self, seconds: f64, usage: &Usage) -> Answer {
        self.nanoseconds.sort_unstable();
        let count = self.nanoseconds.len();
        let rank = |percent: usize| {
            let index = (count * percent).div_ceil(100).max(1) - 1;
            self.nanoseconds.get(index).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1e3)
        };
        Answer {
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
            p50_us: rank(50),
            p95_us: rank(95),
            p99_us: rank(99),
            max_us: rank(100),
        }
    }
}

/// One thread's share.
pub(super) struct Job<'a> {
    pub(super) spec: &'a Spec,
    pub(super) number: usize,
    pub(super) file: Arc<OwnedFd>,
    pub(super) gate: &'a Gate,
}

impl Job<'_> {
    /// Gets ready, waits for the others, and does it.
    pub(super) fn run(self) -> Result<Tally, Failure> {
        let gate = self.gate;
        let mut arrived = false;
        let made = model::make(self.spec, Ready { job: self, arrived: &mut arrived });
        if !arrived {
            gate.arrive();
        }
        made.map_err(Failure::Unavailable)?
    }

    fn blocks(&self) -> Range<u64> {
        let (blocks, number, threads) =
            (u128::from(self.spec.blocks()), self.number as u128, self.spec.threads as u128);
        let share = |number: u128| u64::try_from(number * blocks / threads).unwrap_or(u64::MAX);
        share(number)..share(number + 1)
    }
}

struct Ready<'a, 'b> {
    job: Job<'a>,
    arrived: &'b mut bool,
}

impl With for Ready<'_, '_> {
    type Out = Result<Tally, Failure>;

    fn with(self, mut model: impl Data) -> Result<Tally, Failure> {
        let Self { job, arrived } = self;
        let spec = job.spec;
        let failed = |deed, errno: Errno| Failure::io(deed, &spec.path, errno.into());
        let file = model.attach(job.file.clone()).map_err(|errno| failed("use", errno))?;
        let buffers =
            model.buffers(model.depth(), spec.block).map_err(|errno| failed("register memory for", errno))?;
        let kind = if spec.deed.writes() { Kind::Write } else { Kind::Read };
        let free = buffers.into_iter().map(|buffer| Op::new(kind, file, 0, buffer)).collect();
        let pattern = Pattern::new(spec.seed, spec.generation);
        let latencies = Latencies::new(spec.deed == Deed::AppendSync);
        let order = Order::new(job.blocks(), (spec.deed == Deed::RandomRead).then_some(spec.seed));
        let mut drive = Drive { spec, kind, pattern, order, free, under_way: 0, latencies };
        drive.prepare();
        *arrived = true;
        if !job.gate.arrive() {
            return Ok(Tally::default());
        }
        let mut tally = Tally::default();
        drive.run(&mut model, &mut tally)?;
        tally.nanoseconds = drive.latencies.nanoseconds;
        Ok(tally)
    }
}

struct Drive<'a> {
    spec: &'a Spec,
    kind: Kind,
    pattern: Pattern,
    order: Order,
    /// Operations that have ended, to be asked for again with another block: nothing is allocated while the clock runs.
    #[expect(clippy::vec_box, reason = "models take an operation as the pointer that it is kept as")]
    free: Vec<Box<Op>>,
    under_way: usize,
    latencies: Latencies,
}

impl Drive<'_> {
    /// Fills buffers, where every block begins at the same byte of a page: only stamps are left to be written then.
    fn prepare(&mut self) {
        if self.spec.deed.writes() {
            self.free.iter_mut().for_each(|op| self.pattern.fill(0, &mut op.buffer));
        }
    }

    #[inline]
    fn run(&mut self, model: &mut impl Data, tally: &mut Tally) -> Result<(), Failure> {
        let mut done = Vec::with_capacity(self.spec.depth);
        loop {
            while let Some(op) = self.next() {
                self.latencies.start(op.tag);
                model.submit(op);
                self.under_way += 1;
            }
            if self.under_way == 0 {
                return Ok(());
            }
            tally.in_flight_max = tally.in_flight_max.max(self.under_way);
            debug_assert!(self.under_way <= self.spec.depth);
            model.complete(&mut done);
            while let Some(ended) = done.pop() {
                self.under_way -= 1;
                tally.ops += 1;
                self.end(ended, model, tally)?;
            }
        }
    }

    /// The next block, if there is a buffer for it.
    #[inline(always)]
    fn next(&mut self) -> Option<Box<Op>> {
        if self.free.is_empty() {
            return None;
        }
        let block = self.order.next()?;
        let mut op = self.free.pop()?;
        let Spec { block: bytes, size, .. } = *self.spec;
        let offset = block * bytes as u64;
        let len = bytes.min(usize::try_from(size - offset).unwrap_or(usize::MAX));
        if self.kind == Kind::Write {
            if bytes.is_multiple_of(PAGE_BYTES) {
                self.pattern.stamp(offset, &mut op.buffer);
            } else {
                self.pattern.fill(offset, &mut op.buffer);
            }
        }
        (op.kind, op.offset, op.start, op.end, op.tag) = (self.kind, offset, 0, len, block);
        Some(op)
    }

    #[inline(always)]
    fn end(&mut self, ended: Done, model: &mut impl Data, tally: &mut Tally) -> Result<(), Failure> {
        let deed = self.spec.deed;
        let verb = if deed.writes() { "write" } else { "read" };
        let moved = ended.result().map_err(|errno| Failure::io(verb, &self.spec.path, errno.into()))?;
        let mut op = ended.into_op();
        if op.kind != Kind::SyncData {
            if moved == 0 {
                let end = std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
                return Err(Failure::io(verb, &self.spec.path, end));
            }
            tally.bytes += moved as u64;
            if op.advance(moved) {
                model.submit(op);
                self.under_way += 1;
                return Ok(());
            }
            if deed == Deed::AppendSync {
                op.kind = Kind::SyncData;
                model.submit(op);
                self.under_way += 1;
                return Ok(());
            }
        }
        self.latencies.end(op.tag);
        if !deed.writes() {
            let start = op.offset - op.end as u64;
            let stamps = self.pattern.check_stamps(start, &op.buffer[..op.end]);
            tally.pages_ok += stamps.map_err(|page| Failure::Wrong(self.spec.path.clone(), page))?;
        }
        self.free.push(op);
        Ok(())
    }
}
