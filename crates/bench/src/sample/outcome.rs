//! What a sample has to tell, and the line it tells it with.

use std::fmt;

use fathom_io::sys::Usage;

use super::drive::Tally;
use crate::lang::Answer;

/// The row of playground/README.md.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// From the first operation's start to the last one's end.
    pub seconds: f64,
    /// To the end of an fdatasync.
    pub sync_s: f64,
    /// To the end of the close.
    pub close_s: f64,
    /// Operations that ended.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Pages read whose stamp was right.
    pub pages_ok: u64,
    /// Most operations under way.
    pub in_flight_max: usize,
    /// Processor time of the user.
    pub cpu_user_s: f64,
    /// That of the system.
    pub cpu_sys_s: f64,
    /// Context switches of threads that waited.
    pub switches: u64,
    /// Of threads that had to make room.
    pub switches_forced: u64,
    /// Microseconds of timed operations: median, 95th and 99th percentile by nearest rank, and the longest.
    pub latencies_us: [f64; 4],
}

impl Tally {
    pub(super) fn outcome(mut self, seconds: f64, usage: &Usage) -> Outcome {
        self.nanoseconds.sort_unstable();
        let count = self.nanoseconds.len();
        let rank = |percent: usize| {
            let index = (count * percent).div_ceil(100).max(1) - 1;
            self.nanoseconds.get(index).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1e3)
        };
        Outcome {
            seconds,
            sync_s: seconds,
            close_s: seconds,
            ops: self.ops,
            bytes: self.bytes,
            pages_ok: self.pages_ok,
            in_flight_max: self.in_flight_max,
            cpu_user_s: usage.cpu_user.as_secs_f64(),
            cpu_sys_s: usage.cpu.saturating_sub(usage.cpu_user).as_secs_f64(),
            switches: usage.waits,
            switches_forced: usage.preemptions,
            latencies_us: [50, 95, 99, 100].map(rank),
        }
    }
}

impl From<&Outcome> for Answer {
    fn from(outcome: &Outcome) -> Self {
        let [p50_us, p95_us, p99_us, max_us] = outcome.latencies_us;
        Self {
            seconds: outcome.seconds,
            sync_s: outcome.sync_s,
            close_s: outcome.close_s,
            ops: outcome.ops,
            bytes: outcome.bytes,
            pages_ok: outcome.pages_ok,
            in_flight_max: outcome.in_flight_max as u64,
            cpu_user_s: outcome.cpu_user_s,
            cpu_sys_s: outcome.cpu_sys_s,
            switches: Some(outcome.switches),
            switches_forced: Some(outcome.switches_forced),
            p50_us,
            p95_us,
            p99_us,
            max_us,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, sync_s, close_s, ops, bytes, pages_ok, in_flight_max, .. } = self;
        write!(
            f,
            "seconds={seconds:.9}\tsync_s={sync_s:.9}\tclose_s={close_s:.9}\tops={ops}\tbytes={bytes}"
        )?;
        write!(f, "\tpages_ok={pages_ok}\tin_flight_max={in_flight_max}")?;
        write!(f, "\tcpu_user_s={:.6}\tcpu_sys_s={:.6}", self.cpu_user_s, self.cpu_sys_s)?;
        write!(f, "\tswitches={}\tswitches_forced={}", self.switches, self.switches_forced)?;
        let [p50, p95, p99, max] = self.latencies_us;
        write!(f, "\tp50_us={p50:.3}\tp95_us={p95:.3}\tp99_us={p99:.3}\tmax_us={max:.3}")
    }
}
