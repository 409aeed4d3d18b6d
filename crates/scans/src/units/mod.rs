//! Scans by several machines: one scan in units, each an attempt by a worker.
//!
//! A driver begins a [`Job`] in the directory `INVENTORY.part`, on storage that all workers see. A
//! unit reads some directories until its budget is over, and leaves the directories that it has not
//! entered, cut into pieces, to other units. Nothing but files in that directory passes between
//! them:
//!
//! - `job.json`: the operands and options;
//! - `hungry`: while it exists, units end early, as workers have nothing to do;
//! - `parts/ID.ATTEMPT/`: the tables of an attempt, which are an inventory by themselves, with the
//!   lists `roots.jsonl` and `left.jsonl`;
//! - `done/ID.json`: the record of a unit. An attempt writes it as `done/.ID.ATTEMPT.new`, and
//!   link(2) gives it its name: the first attempt wins, so a unit counts once.
//!
//! At the end, [`Job::finish`] puts the tables together, in the order in which one machine would
//! have written them.
//!
//! Owns units, records and the final pass. Does not own which unit runs where and when, and the
//! publication of records, which are the driver's.

mod job;
mod mounts;
mod record;
mod stitch;
mod unit;

pub use job::{Job, JobOptions};
pub use record::{UnitEnd, UnitRange, UnitRecord};
pub use unit::{SLICE_BYTES, UnitOptions, UnitWorker};

#[cfg(test)]
mod tests;
