//! Removes the inventories of a store that no rule keeps: for `fathom history prune` and `fathom
//! scan --keep`.

use std::path::Path;
use std::time::SystemTime;

use fathom_inventory::store::Error;
use fathom_scans::history::{
    History, PrunePlan, Replaced, Retention, Snapshot, check_removal, is_later, plan, remove,
    remove_leftovers,
};
use fathom_scans::scan::seconds;
use fathom_text::quote::{Charset, quoteaf};
use fathom_text::time::Zone;

use crate::shared::locale::env;

/// Returns the inventories of a store that are not later than now, and those that are.
pub(crate) fn until_now(history: &History) -> Result<(Vec<Snapshot>, Vec<Snapshot>), Error> {
    let now = seconds(SystemTime::now());
    Ok(history.snapshots()?.into_iter().partition(|snapshot| !is_later(snapshot, now)))
}

/// Passes a message about each inventory that is later than now to `report`.
pub(crate) fn report_later(later: &[Snapshot], charset: Charset, report: &mut dyn FnMut(&[u8])) {
    for snapshot in later {
        let why = b" is ignored, because its time is in the future: is a clock wrong?";
        report(&[&quoted(&snapshot.path, charset)[..], why].concat());
    }
}

/// The rules of a removal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pruning<'a> {
    pub(crate) retention: &'a Retention,
    /// The inventory that this run has made, which is never removed.
    pub(crate) made: Option<&'a Path>,
    /// Whether it is only checked what would be removed.
    pub(crate) dry_run: bool,
}

/// Returns the inventories that `retention` keeps, and the others. Passes a message about each one
/// that is kept for its data alone to `report`.
fn planned(
    history: &History,
    retention: &Retention,
    charset: Charset,
    report: &mut dyn FnMut(&[u8]),
) -> Result<PrunePlan, Error> {
    let (snapshots, _later) = until_now(history)?;
    let plan = plan(snapshots, retention, &Zone::from_env(env));
    for Replaced { path, newest, difference } in &plan.replaced {
        let [path, newest] = [path, newest].map(|path| quoted(path, charset));
        let why = format!(": {difference}. If this is intended, remove it yourself");
        report(&[&path[..], b" is kept, as ", &newest, b" may be of another tree", why.as_bytes()].concat());
    }
    Ok(plan)
}

fn quoted(path: &Path, charset: Charset) -> Vec<u8> {
    quoteaf(path.as_os_str().as_encoded_bytes(), charset)
}

/// Removes the inventories that no rule keeps, the oldest first. Calls `removed` with the path of
/// each inventory that was removed (or could be, in a dry run), and `report` with the message about
/// one that was not. Returns whether all were removed, and none is kept for its data alone.
pub(crate) fn run(
    history: &History,
    Pruning { retention, made, dry_run }: Pruning<'_>,
    charset: Charset,
    removed: &mut dyn FnMut(&Path),
    report: &mut dyn FnMut(&[u8]),
) -> Result<bool, Error> {
    let plan = planned(history, retention, charset, report)?;
    let mut has_failed = !plan.replaced.is_empty();
    let mut failed = |error: Error| {
        has_failed = true;
        report(error.to_string().as_bytes());
    };
    if !dry_run {
        remove_leftovers(history, &mut failed)?;
    }
    let remove = if dry_run { check_removal } else { remove };
    for snapshot in plan.removed.iter().filter(|snapshot| made.is_none_or(|made| snapshot.path != made)) {
        match remove(snapshot) {
            Ok(()) => removed(&snapshot.path),
            Err(error) => failed(error),
        }
    }
    Ok(!has_failed)
}
