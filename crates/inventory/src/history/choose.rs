//! Chooses inventories of a store: the newest one, the one to compare it with, and the one from
//! which a scan copies unchanged directories.

use std::ffi::CString;

use super::store::{Snapshot, is_resumable};
use crate::scan::{EXCLUSION_OPTIONS, Scan, host};
use crate::store::Manifest;

/// The options of a scan that decide which entries an inventory has.
const SCOPE_OPTIONS: [&str; 4] =
    [EXCLUSION_OPTIONS[0], EXCLUSION_OPTIONS[1], EXCLUSION_OPTIONS[2], "one-file-system"];

/// The inventory with which the newest one is compared.
#[derive(Clone, Copy, Debug)]
pub struct Baseline<'a> {
    /// The inventory.
    pub snapshot: &'a Snapshot,
    /// Whether it is younger than the requested time, because no older one is there.
    pub is_younger: bool,
}

/// Returns the newest inventory whose scan came to its end.
#[must_use]
pub fn newest(snapshots: &[Snapshot]) -> Option<&Snapshot> {
    snapshots.iter().rev().find(|snapshot| snapshot.ended().is_some())
}

/// Returns the inventory of the same trees with which `newest` is compared: the newest one that is
/// not younger than `moment`, in seconds since 1970, or else the oldest one. Without a moment, the
/// one before `newest`.
#[must_use]
pub fn baseline<'a>(
    snapshots: &'a [Snapshot],
    newest: &Snapshot,
    moment: Option<i64>,
) -> Option<Baseline<'a>> {
    let trees = newest.ended().map(trees)?;
    let is_earlier =
        |other: &&Snapshot| other.time < newest.time && other.ended().map(self::trees) == Some(trees.clone());
    let earlier: Vec<&Snapshot> = snapshots.iter().filter(is_earlier).collect();
    let moment = moment.unwrap_or(i64::MAX);
    match earlier.iter().rfind(|snapshot| snapshot.time <= moment) {
        Some(snapshot) => Some(Baseline { snapshot, is_younger: false }),
        None => earlier.first().map(|snapshot| Baseline { snapshot, is_younger: true }),
    }
}

/// Returns the newest inventory from which `scan` can copy unchanged directories: its scan came to
/// its end, and had the same roots, host, exclusions and optional columns.
#[must_use]
pub fn earlier<'a>(snapshots: &'a [Snapshot], scan: &Scan) -> Option<&'a Snapshot> {
    // Such a scan cannot tell what an option leaves out from what has changed.
    if scan.exclusions.ignores_vcs || scan.exclusions.max_depth.is_some() {
        return None;
    }
    let fits = |manifest: &Manifest| {
        manifest.host == host()
            && has_roots(manifest, &scan.roots)
            && manifest.optional_columns.contains(scan.optional_columns)
            && SCOPE_OPTIONS.iter().all(|option| manifest.options.get(*option) == scan.options.get(*option))
    };
    snapshots.iter().rev().find(|snapshot| snapshot.ended().is_some_and(fits))
}

/// Returns the newest inventory whose scan can be resumed, if no later scan came to its end.
#[must_use]
pub fn unfinished(snapshots: &[Snapshot]) -> Option<&Snapshot> {
    let last = snapshots.iter().rev().find(|snapshot| snapshot.ended().is_some() || is_resumable(snapshot));
    last.filter(|snapshot| is_resumable(snapshot))
}

/// Returns what identifies the trees of an inventory: the machine and the paths of the roots.
pub(super) fn trees(manifest: &Manifest) -> (String, Vec<Vec<u8>>) {
    (manifest.host.clone(), manifest.roots.iter().map(|root| root.bytes()).collect())
}

fn has_roots(manifest: &Manifest, roots: &[CString]) -> bool {
    manifest.roots.len() == roots.len()
        && manifest.roots.iter().zip(roots).all(|(had, wanted)| had.bytes() == wanted.to_bytes())
}
