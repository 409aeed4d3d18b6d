//! A store of dated inventories: a directory whose inventories are named by the time of their scan,
//! such as `2026-11-26T03-00-00Z.inv`.
//!
//! Owns the names, the choice of an inventory by its time, and which inventories are kept
//! ([`Retention`]). Does not own scans, nor the comparison of two inventories. Entries of the
//! directory that have other names are never touched.

mod choose;
mod name;
mod prune;
mod retention;
mod store;
#[cfg(test)]
mod tests;

pub use choose::{Baseline, baseline, earlier, newest, unfinished};
pub use prune::{Plan, plan, remove, remove_leftovers};
pub use retention::Retention;
pub use store::{History, HistoryLock, Snapshot, SnapshotState};
