//! The inventory that a path names, messages about inventories that are incomplete, or cannot
//! answer, and the time that ages are counted from.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_inventory::store::{Completeness, Error, Inventory};
use fathom_questions::top::QueryError;
use fathom_scans::history::{self, History, is_later};
use fathom_text::quote::{Charset, quoteaf};

use super::cmdline::exit::{FAILED, MISUSED};

/// The file that an inventory has.
pub(crate) const MANIFEST: &str = "manifest.json";

/// Opens the inventory at `path`, or the newest one in it.
///
/// # Errors
/// If there is none, or it cannot be read.
pub(crate) fn open(path: &Path) -> Result<Inventory, Error> {
    Inventory::open(&newest_in(path))
}

/// Returns the path of the newest inventory of which the scan has ended in the directory `path`, if
/// `fathom scan --keep` has made some there, or else `path`.
pub(crate) fn newest_in(path: &Path) -> PathBuf {
    if path.join(MANIFEST).exists() {
        return path.to_owned();
    }
    let mut found = History::open(path).and_then(|history| history.snapshots()).unwrap_or_default();
    let now_s = now_us() / 1_000_000;
    found.retain(|snapshot| !is_later(snapshot, now_s));
    history::newest(&found).map_or_else(|| path.to_owned(), |snapshot| snapshot.path.clone())
}

/// Returns the warning about an incomplete inventory.
pub(crate) fn incomplete_warning(found: &Completeness) -> String {
    format!("warning: the inventory{}", gaps(found))
}

/// Returns the gaps of an inventory, as the predicate of a sentence.
pub(crate) fn gaps(found: &Completeness) -> String {
    let lacking = found.partial + found.failed + found.missing_roots;
    let all = lacking + found.complete;
    let why = found.stopped.as_ref().map_or_else(String::new, |why| format!(" ({})", why.escape_debug()));
    format!(
        " is incomplete{why}: {lacking} of {all} directories are missing or incomplete, {} entries lack metadata{}",
        found.unknown_entries,
        unknown_values(found),
    )
}

/// Returns a sentence about the gaps in an inventory; `None` if it is complete.
pub(crate) fn missing(found: &Completeness) -> Option<String> {
    if found.is_complete() {
        return None;
    }
    let ratio = 100.0 * found.ratio().unwrap_or(0.0);
    let lacking = found.partial + found.failed + found.missing_roots;
    let all = lacking + found.complete;
    let why = found.stopped.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    Some(format!(
        "the inventory is incomplete{why}: {lacking} of {all} directories are missing or incomplete, {} entries lack metadata{}; {ratio:.4} % of the directories are complete",
        found.unknown_entries,
        unknown_values(found),
    ))
}

/// Returns a clause about requested column values that could not be determined.
fn unknown_values(found: &Completeness) -> String {
    match found.unknown_values {
        0 => String::new(),
        count => format!(", {count} values of --also are unknown"),
    }
}

/// Returns the message and the exit status for a failed report about `below`.
pub(crate) fn failure_message(failure: &QueryError, below: Option<&[u8]>, charset: Charset) -> (Vec<u8>, u8) {
    let below = || quoteaf(below.unwrap_or_default(), charset);
    match failure {
        QueryError::Absent => ([b"the inventory has no directory ", &below()[..]].concat(), MISUSED),
        QueryError::Ambiguous => {
            let message =
                [b"the inventory has several directories ", &below()[..], b": use the whole path"].concat();
            (message, MISUSED)
        }
        _ => (failure.to_string().into_bytes(), FAILED),
    }
}

/// Returns the current time in microseconds since 1970.
pub(crate) fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
