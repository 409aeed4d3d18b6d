//! Rules that discard or repeat samples. They are fixed in advance and depend on conditions only,
//! never on the measured time.

use super::{Error, Op, Row};
use crate::ArmName;

/// Largest fraction of stolen CPU time.
pub const STEAL_MAX: f64 = 0.02;
/// Largest fraction of a file in the page cache before a cold sample.
pub const CACHED_COLD_MAX: f64 = 0.01;
/// Smallest fraction of a file in the page cache before a warm sample.
pub const CACHED_WARM_MIN: f64 = 0.99;
/// Limit of repetitions of a discarded or disturbed sample, and of the disturbed samples that a run
/// may have more than undisturbed ones before it repeats them no more: then the machine is in use,
/// and samples count as they are.
pub const REPEATS_MAX: u32 = 3;
/// The reason for samples of an unfinished block.
pub const UNFINISHED: &str = "block not finished";
/// The reason for the samples of an arm that became unavailable.
pub const FAILED_LATER: &str = "the arm failed later";
/// The reason for a sample with wrong data, which also ends the run.
pub const NOT_VERIFIED: &str = "not verified";

/// Returns the reason why `row` is not counted; `None` if it is.
pub(super) fn discard_reason(row: &Row) -> Option<&'static str> {
    let cached = |holds: fn(f64) -> bool| row.cached_before.is_some_and(holds);
    if !row.verified {
        Some(NOT_VERIFIED)
    } else if row.cache == "cold" && cached(|share| share > CACHED_COLD_MAX) {
        Some("more than 1 % was cached in a cold sample")
    } else if row.cache == "warm" && cached(|share| share < CACHED_WARM_MIN) {
        Some("less than 99 % was cached in a warm sample")
    } else {
        None
    }
}

/// Returns the use of the machine by others during `row`, unless the executor has found one.
pub(super) fn disturbance(row: &Row) -> Option<&'static str> {
    (row.disturbed.is_empty() && row.steal > STEAL_MAX).then_some("steal above 2 %")
}

/// Returns the error that ends the run after `row`, if any.
pub(super) fn fatal_error(row: &Row) -> Option<Error> {
    let failed = |op, cause| Some(Error::new(op, ArmName::of(row).to_string(), cause));
    if !row.verified {
        return failed(Op::Verify, "the data read back differs from what was written".to_owned());
    }
    // Playground programs report this time themselves, so it is untrusted.
    let took_time = row.seconds.is_finite() && row.seconds > 0.0;
    if took_time { None } else { failed(Op::Execute, format!("it reported a time of {} s", row.seconds)) }
}
