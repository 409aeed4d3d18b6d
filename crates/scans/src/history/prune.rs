//! Removes inventories that no rule keeps. An inventory is renamed to a hidden name before any of
//! its files is removed, so each one is there as a whole or not at all. A directory that holds
//! anything else than the files of an inventory is not touched.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_text::time::Zone;

use super::choose::TreesKey;
use super::name;
use super::replaced::{Replacement, replaced};
use super::retention::Retention;
use super::store::{History, Snapshot, SnapshotState};
use crate::scan::{Lock, SCAN_FILES, UnfinishedScan};
use fathom_inventory::store::{Error, MANIFEST, Op, Table, rename_new, sync_directory_of};

/// The end of the hidden name of an inventory that is being removed.
const REMOVED: &str = ".removed";

/// Which inventories are kept.
#[derive(Debug, Default)]
pub struct PrunePlan {
    /// The inventories that are kept, the oldest first.
    pub kept: Vec<Snapshot>,
    /// The inventories that no rule keeps, the oldest first.
    pub removed: Vec<Snapshot>,
    /// Those that are kept only because the newest one of their trees may be of something else.
    pub replaced: Vec<Replaced>,
}

/// An inventory that may have the data which the newest one of the same trees lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// Its path.
    pub path: PathBuf,
    /// The path of the newest one.
    pub newest: PathBuf,
    /// The difference.
    pub difference: Replacement,
}

/// Decides which of `snapshots` are kept. The rules apply to each set of trees (machine, roots and
/// exclusions) on its own, and count only scans that came to their end. Of these, the newest one
/// and the newest complete one are always kept. An inventory of a scan that did not come to its end
/// is kept until there is a later one of the same trees that did. An unreadable inventory is kept.
/// So is the newest one before the newest that differs from it as described for [`Replacement`].
#[must_use]
pub fn plan(snapshots: Vec<Snapshot>, retention: &Retention, zone: &Zone) -> PrunePlan {
    let mut groups: BTreeMap<_, Vec<&Snapshot>> = BTreeMap::new();
    for snapshot in &snapshots {
        if let Some(manifest) = snapshot.ended() {
            groups.entry(TreesKey::of(manifest)).or_default().push(snapshot);
        }
    }
    let (mut kept, mut formers): (Vec<PathBuf>, _) = (Vec::new(), Vec::new());
    for group in groups.values() {
        let times: Vec<i64> = group.iter().map(|snapshot| snapshot.time).collect();
        let flags = retention.keep(&times, zone);
        let is_complete =
            |snapshot: &&&Snapshot| snapshot.ended().is_some_and(|found| found.completeness.is_complete());
        let always = [group.last(), group.iter().rfind(is_complete)];
        let chosen = group.iter().zip(flags).filter(|(_, kept)| *kept).map(|(snapshot, _)| snapshot);
        kept.extend(chosen.chain(always.into_iter().flatten()).map(|snapshot| snapshot.path.clone()));
        if let Some(former) = replaced_in(group).filter(|former| !kept.contains(&former.path)) {
            kept.push(former.path.clone());
            formers.push(former);
        }
    }
    let newest: BTreeMap<_, _> =
        groups.into_iter().filter_map(|(trees, group)| Some((trees, group.last()?.time))).collect();
    let (removed, kept) = snapshots.into_iter().partition(|snapshot| match &snapshot.state {
        SnapshotState::Ended(_) => !kept.contains(&snapshot.path),
        _ => is_superseded(snapshot, &newest),
    });
    PrunePlan { kept, removed, replaced: formers }
}

/// Returns the newest inventory of a group that may have what its newest one lacks.
fn replaced_in(group: &[&Snapshot]) -> Option<Replaced> {
    let (newest, before) = group.split_last()?;
    let (former, difference) = replaced(before, newest.ended()?)?;
    Some(Replaced { path: former.path.clone(), newest: newest.path.clone(), difference })
}

/// Returns whether a scan that did not come to its end has a later one of the same trees that did.
fn is_superseded(snapshot: &Snapshot, newest: &BTreeMap<TreesKey, i64>) -> bool {
    let trees = match &snapshot.state {
        SnapshotState::Stopped(manifest) => Some(TreesKey::of(manifest)),
        SnapshotState::Unfinished if !Lock::is_held(&snapshot.path) => {
            UnfinishedScan::read(&snapshot.path).map(|scan| TreesKey::of_unfinished(&scan))
        }
        _ => None,
    };
    trees.and_then(|trees| newest.get(&trees)).is_some_and(|time| *time > snapshot.time)
}

/// Checks that an inventory can be removed, as far as that shows without removing it.
///
/// # Errors
/// If it holds a file that is not of an inventory, or cannot be read.
pub fn check_removal(snapshot: &Snapshot) -> Result<(), Error> {
    check_contents(&snapshot.path)
}

/// Removes an inventory.
///
/// # Errors
/// If it holds a file that is not of an inventory, or cannot be removed. It keeps its name unless
/// the first of its files could be removed.
pub fn remove(snapshot: &Snapshot) -> Result<(), Error> {
    check_removal(snapshot)?;
    let hidden = hidden_path(&snapshot.path);
    let failed = |error: io::Error| Error::new(Op::Remove, &snapshot.path, error);
    rename_new(&snapshot.path, &hidden).map_err(failed)?;
    sync_directory_of(&snapshot.path).map_err(failed)?;
    remove_files(&hidden)
}

/// Removes the rest of inventories whose removal was interrupted. Calls `report` with the error of
/// each one that cannot be removed.
///
/// # Errors
/// If the directory of the store cannot be read.
pub fn remove_leftovers(history: &History, report: &mut dyn FnMut(Error)) -> Result<(), Error> {
    let failed = |error: io::Error| Error::new(Op::Read, history.directory(), error);
    for entry in fs::read_dir(history.directory()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_leftover = is_hidden_name(&entry.file_name()) && entry.file_type().map_err(failed)?.is_dir();
        if is_leftover && check_contents(&entry.path()).is_ok() {
            remove_files(&entry.path()).unwrap_or_else(&mut *report);
        }
    }
    Ok(())
}

fn hidden_path(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(REMOVED);
    path.with_file_name(name)
}

fn is_hidden_name(name: &OsStr) -> bool {
    let inner = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(REMOVED));
    inner.is_some_and(|inner| name::time_of(inner.as_ref()).is_some())
}

/// Checks that a directory holds files of an inventory and nothing else.
fn check_contents(directory: &Path) -> Result<(), Error> {
    let failed = |error: io::Error| Error::new(Op::Remove, directory, error);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let is_known = name
            .to_str()
            .is_some_and(|name| name == MANIFEST || SCAN_FILES.contains(&name) || is_table_file(name));
        if !is_known || !entry.file_type().map_err(failed)?.is_file() {
            let why = format!(
                "it contains '{}', which is not a file of an inventory",
                name.to_string_lossy().escape_debug()
            );
            return Err(Error::new(Op::Remove, directory, why));
        }
    }
    Ok(())
}

/// Returns whether a file has the name of a table, such as `entries-00000.parquet`.
fn is_table_file(name: &str) -> bool {
    let parts = name.strip_suffix(".parquet").and_then(|stem| stem.split_once('-'));
    parts.is_some_and(|(table, number)| {
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number && Table::ALL.iter().any(|known| known.name() == table)
    })
}

/// Removes a directory and its files, which are known to belong to an inventory. A directory that
/// appears meanwhile makes it fail.
fn remove_files(directory: &Path) -> Result<(), Error> {
    let failed = |error: io::Error| Error::new(Op::Remove, directory, error);
    for entry in fs::read_dir(directory).map_err(failed)? {
        fs::remove_file(entry.map_err(failed)?.path()).map_err(failed)?;
    }
    fs::remove_dir(directory).map_err(failed)
}
