//! Removes the inventories of a store that no rule keeps: for `fathom history prune` and `fathom
//! scan --keep`.

use std::path::Path;

use fathom_inventory::history::{History, PrunePlan, Retention, plan, remove, remove_leftovers};
use fathom_inventory::store::Error;
use fathom_text::time::Zone;

use crate::shared::locale::env;

/// Returns the inventories that `retention` keeps, and the others.
pub(crate) fn planned(history: &History, retention: &Retention) -> Result<PrunePlan, Error> {
    Ok(plan(history.snapshots()?, retention, &Zone::from_env(env)))
}

/// Removes the inventories that `retention` does not keep, the oldest first. Calls `removed` with
/// the path of each inventory that was removed, and `report` with the message about one that was
/// not. Returns whether all were removed.
pub(crate) fn run(
    history: &History,
    retention: &Retention,
    removed: &mut dyn FnMut(&Path),
    report: &mut dyn FnMut(&[u8]),
) -> Result<bool, Error> {
    let mut has_failed = false;
    let mut failed = |error: Error| {
        has_failed = true;
        report(error.to_string().as_bytes());
    };
    remove_leftovers(history, &mut failed)?;
    for snapshot in planned(history, retention)?.removed {
        match remove(&snapshot) {
            Ok(()) => removed(&snapshot.path),
            Err(error) => failed(error),
        }
    }
    Ok(!has_failed)
}
