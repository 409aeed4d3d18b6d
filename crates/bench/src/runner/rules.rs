//! Which samples do not count. These rules are fixed before anything is measured, and look at conditions, never at a time.

use super::{Error, Op, Row};
use crate::ArmName;

/// The largest share of processor time that the hypervisor may give to others.
pub const STEAL_MAX: f64 = 0.02;
/// The largest share of a file that may be cached before a cold sample.
pub const CACHED_COLD_MAX: f64 = 0.01;
/// The smallest share of a file that must be cached before a warm sample.
pub const CACHED_WARM_MIN: f64 = 0.99;
/// How often a discarded sample is repeated at most.
pub const REPEATS_MAX: u32 = 3;
/// Why samples of a block that was not finished do not count.
pub const UNFINISHED: &str = "block not finished";
/// Why a sample with wrong data does not count. It also ends the run.
pub const NOT_VERIFIED: &str = "not verified";

/// Why `row` does not count; `None` if it does.
pub(super) fn reason(row: &Row) -> Option<&'static str> {
    let cached = |holds: fn(f64) -> bool| row.cached_before.is_some_and(holds);
    if !row.verified {
        Some(NOT_VERIFIED)
    } else if row.steal > STEAL_MAX {
        Some("steal above 2 %")
    } else if row.cache == "cold" && cached(|share| share > CACHED_COLD_MAX) {
        Some("cold was asked for, but more than 1 % was cached")
    } else if row.cache == "warm" && cached(|share| share < CACHED_WARM_MIN) {
        Some("warm was asked for, but less than 99 % was cached")
    } else {
        None
    }
}

/// Why the run cannot go on after `row`.
pub(super) fn failure(row: &Row) -> Option<Error> {
    let failed = |op, cause| Some(Error::new(op, ArmName::of(row).to_string(), cause));
    if !row.verified {
        return failed(Op::Verify, "the data is not what it should be".to_owned());
    }
    // Programs in other languages say it themselves.
    let took_time = row.seconds.is_finite() && row.seconds > 0.0;
    if took_time { None } else { failed(Op::Execute, format!("it says that it took {} s", row.seconds)) }
}
