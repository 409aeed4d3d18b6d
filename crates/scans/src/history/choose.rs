//! Chooses inventories of a store: the newest one, the one to compare it with, and the one from
//! which a scan copies unchanged directories.

use std::collections::BTreeMap;
use std::ffi::CString;

use super::store::{Snapshot, SnapshotState, is_resumable};
use crate::scan::{EXCLUSION_OPTIONS, Lock, Scan, UnfinishedScan, has_journal, host};
use fathom_inventory::store::{IMPORTED_FROM, Manifest};

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

/// How much later than now an inventory may be: scans after one whose clock was ahead by less are
/// named as if they followed it ([`History::free_path`](super::History::free_path)).
pub const AHEAD_SEC: i64 = 86_400;

/// Returns whether an inventory is later than `now`, in seconds since 1970, by more than a day: a
/// clock was ahead when it was made. Such an inventory is not the newest, and no rule removes it.
#[must_use]
pub fn is_later(snapshot: &Snapshot, now: i64) -> bool {
    snapshot.time > now.saturating_add(AHEAD_SEC)
}

/// Returns the newest inventory whose scan came to its end.
#[must_use]
pub fn newest(snapshots: &[Snapshot]) -> Option<&Snapshot> {
    snapshots.iter().rev().find(|snapshot| snapshot.ended().is_some())
}

/// Returns the inventory of the same trees with which `newest` is compared: the newest one that is
/// not younger than `moment`, in seconds since 1970, or else the oldest one. Without a moment, the
/// one before `newest`. The trees are the same if machine, roots and exclusions are.
#[must_use]
pub fn baseline<'a>(
    snapshots: &'a [Snapshot],
    newest: &Snapshot,
    moment: Option<i64>,
) -> Option<Baseline<'a>> {
    let key = trees(newest)?;
    let is_earlier = |other: &&Snapshot| other.time < newest.time && trees(other).as_ref() == Some(&key);
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
    // Such a scan cannot tell what an option leaves out, or marks, from what has changed.
    let ignores = scan.exclusions.ignores_vcs || scan.optional_columns.ignored;
    if ignores || scan.exclusions.max_depth.is_some() {
        return None;
    }
    let key = TreesKey::of_scan(scan);
    let fits = |manifest: &Manifest| {
        manifest.optional_columns.contains(scan.optional_columns) && TreesKey::of(manifest) == key
    };
    snapshots.iter().rev().find(|snapshot| snapshot.ended().is_some_and(fits))
}

/// Returns the newest inventory of this machine whose scan of `roots` can be resumed, unless a
/// later scan of the same trees came to its end. Without roots, any tree counts. If `is_full`, it
/// has to read every directory.
#[must_use]
pub fn unfinished<'a>(snapshots: &'a [Snapshot], roots: &[CString], is_full: bool) -> Option<&'a Snapshot> {
    let is_wanted = |snapshot: &Snapshot, scan: &UnfinishedScan| {
        let key = TreesKey::of_unfinished(scan);
        let is_superseded =
            snapshots.iter().any(|other| other.time > snapshot.time && trees(other).as_ref() == Some(&key));
        let has_roots = || scan.roots.iter().map(Vec::as_slice).eq(roots.iter().map(|root| root.to_bytes()));
        scan.host == host()
            && (roots.is_empty() || has_roots())
            && !(is_full && scan.has_earlier)
            && !is_superseded
    };
    let resumable = snapshots.iter().rev().filter(|snapshot| is_resumable(snapshot));
    let begun = resumable
        .clone()
        .find(|snapshot| UnfinishedScan::read(&snapshot.path).is_some_and(|scan| is_wanted(snapshot, &scan)));
    // One that was killed before its journal was written can be any.
    begun.or_else(|| {
        let mut empty = resumable.filter(|snapshot| !has_journal(&snapshot.path));
        empty.next().filter(|_| !roots.is_empty())
    })
}

/// Returns what killed or failed scans have left and nobody goes on with: all that have no journal,
/// and so nothing, and of the inventories of the trees of `scan` all but the newest. Where a disk
/// is full, each night would leave one more.
#[must_use]
pub fn abandoned<'a>(snapshots: &'a [Snapshot], scan: &Scan) -> Vec<&'a Snapshot> {
    let key = TreesKey::of_scan(scan);
    let is_left = |snapshot: &&Snapshot| {
        matches!(snapshot.state, SnapshotState::Unfinished) && !Lock::is_held(&snapshot.path)
    };
    let (begun, mut found): (Vec<_>, Vec<_>) =
        snapshots.iter().filter(is_left).partition(|snapshot| has_journal(&snapshot.path));
    let is_of_trees = |snapshot: &&Snapshot| {
        UnfinishedScan::read(&snapshot.path).is_some_and(|scan| TreesKey::of_unfinished(&scan) == key)
    };
    let mut begun: Vec<_> = begun.into_iter().filter(is_of_trees).collect();
    begun.pop();
    found.extend(begun);
    found
}

/// Returns whether two inventories have the same machine, roots and exclusions, so that one tells
/// what has grown since the other.
///
/// ```
/// use fathom_scans::history::have_same_trees;
/// use fathom_scans::scan::{Scan, scan};
/// use fathom_inventory::store::Manifest;
///
/// # let temp = tempfile::tempdir()?;
/// let mut made = Vec::new();
/// for (name, root) in [("one", c"src"), ("two", c"src"), ("other", c"tests")] {
///     let out = temp.path().join(name);
///     scan(&Scan { roots: vec![root.into()], ..Scan::default() }, &out, &mut ())?;
///     made.push(Manifest::read(&out)?);
/// }
/// assert!(have_same_trees(&made[0], &made[1]) && !have_same_trees(&made[0], &made[2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn have_same_trees(one: &Manifest, other: &Manifest) -> bool {
    TreesKey::of(one) == TreesKey::of(other)
}

/// Returns whether two inventories were made with the same options that decide which entries of
/// their trees they have, by scans or from the output of the same program.
#[must_use]
pub fn have_same_scope(one: &Manifest, other: &Manifest) -> bool {
    let mut options = SCOPE_OPTIONS.iter().chain([&IMPORTED_FROM]);
    options.all(|option| one.options.get(*option) == other.options.get(*option))
}

/// The identity of the trees of an inventory: the machine, the paths of the roots, and the options
/// that decide which of their entries it has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TreesKey {
    host: String,
    roots: Vec<Vec<u8>>,
    scope: [Option<String>; SCOPE_OPTIONS.len()],
}

impl TreesKey {
    fn new(host: String, roots: Vec<Vec<u8>>, options: &BTreeMap<String, String>) -> Self {
        Self { host, roots, scope: SCOPE_OPTIONS.map(|option| options.get(option).cloned()) }
    }

    pub(super) fn of(manifest: &Manifest) -> Self {
        let roots = manifest.roots.iter().map(|root| root.bytes()).collect();
        Self::new(manifest.host.clone(), roots, &manifest.options)
    }

    pub(super) fn of_unfinished(scan: &UnfinishedScan) -> Self {
        Self::new(scan.host.clone(), scan.roots.clone(), &scan.options)
    }

    fn of_scan(scan: &Scan) -> Self {
        let roots = scan.roots.iter().map(|root| root.to_bytes().to_vec()).collect();
        Self::new(host(), roots, &scan.options)
    }
}

/// Returns the identity of the trees of an inventory whose scan came to its end.
fn trees(snapshot: &Snapshot) -> Option<TreesKey> {
    snapshot.ended().map(TreesKey::of)
}
