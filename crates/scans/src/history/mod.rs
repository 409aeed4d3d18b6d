//! A store of dated inventories: a directory whose inventories are named by the time of their scan,
//! such as `2026-11-26T03-00-00Z.inv`.
//!
//! Owns the names, the choice of an inventory by its time, which inventories are kept
//! ([`Retention`]), and how much groups of entries have grown. Does not own scans, nor the growth
//! of directories ([`fathom_questions::diff::grown`]). Entries of the directory that have other
//! names are never touched.

mod choose;
mod group_growth;
mod name;
mod prune;
mod replaced;
mod retention;
mod space;
mod store;
#[cfg(test)]
mod tests;

pub use crate::scan::absolute;
pub use choose::{
    AHEAD_SEC, Baseline, abandoned, baseline, earlier, have_same_scope, have_same_trees, is_later, newest,
    unfinished,
};
pub use group_growth::{GroupGrowth, GroupGrowthReport, group_growth};
pub use prune::{PrunePlan, Replaced, check_removal, plan, remove, remove_leftovers};
pub use replaced::{Replacement, replaced};
pub use retention::Retention;
pub use space::{FilesystemSpace, free_space};
pub use store::{History, HistoryLock, Snapshot, SnapshotState};
