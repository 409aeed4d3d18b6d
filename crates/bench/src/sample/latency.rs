//! Latency measurement. Only some operations are timed: reading the clock twice would add more than
//! 1 % to a short operation. Operations that wait for the disk are all timed.

use std::time::{Duration, Instant};

use fathom_io::data::OpKind;

use super::call_latency::CallTimes;

/// One operation in this many is timed; a power of two.
const ONE_IN: u64 = 64;

/// Latencies of the timed operations of one thread.
#[derive(Debug)]
pub(super) struct LatencySampler {
    /// An operation is timed if its number has none of these bits.
    mask: u64,
    count: u64,
    started: Vec<(u64, Instant)>,
    pub(super) nanoseconds: Vec<u64>,
    pub(super) calls: CallTimes,
    /// End of the write that a sync follows, the only operation in flight.
    written: Option<Instant>,
}

impl LatencySampler {
    /// Times every operation, or one in [`ONE_IN`].
    pub(super) fn new(each: bool) -> Self {
        let mask = if each { 0 } else { ONE_IN - 1 };
        Self {
            mask,
            count: 0,
            started: Vec::new(),
            nanoseconds: Vec::new(),
            calls: CallTimes::default(),
            written: None,
        }
    }

    /// Records the submission of the operation `tag`.
    #[inline]
    pub(super) fn start(&mut self, tag: u64) {
        if self.count & self.mask == 0 {
            self.started.push((tag, Instant::now()));
        }
        self.count += 1;
    }

    /// Records the end of the write of the operation `tag`, which a sync follows.
    pub(super) fn end_write(&mut self, tag: u64) {
        if let Some((_, start)) = self.started.iter().find(|(started, _)| *started == tag) {
            let now = Instant::now();
            self.calls.writes.push(nanoseconds(now - *start));
            self.written = Some(now);
        }
    }

    /// Records the completion of the operation `tag`, whose last call has the kind `kind`.
    #[inline]
    pub(super) fn end(&mut self, tag: u64, kind: OpKind) {
        if self.started.is_empty() {
            return;
        }
        if let Some(index) = self.started.iter().position(|(started, _)| *started == tag) {
            let (_, start) = self.started.swap_remove(index);
            let now = Instant::now();
            self.nanoseconds.push(nanoseconds(now - start));
            match kind {
                OpKind::Read => self.calls.reads.push(nanoseconds(now - start)),
                OpKind::Write => self.calls.writes.push(nanoseconds(now - start)),
                _ => self.calls.syncs.push(nanoseconds(now - self.written.take().unwrap_or(start))),
            }
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
