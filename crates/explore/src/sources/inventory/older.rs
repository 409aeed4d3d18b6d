//! An older inventory, from which rows get their growth, and the rows of what is gone.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use fathom_inventory::store::Manifest;
use fathom_remove::Identity;

use super::{InventoryTree, amount_of, dir_row, row};
use crate::source::{Amount, Place, Row, RowState, SourceError};

/// An older inventory of the same trees.
#[derive(Debug)]
pub(crate) struct OlderInventory(InventoryTree);

impl OlderInventory {
    pub(crate) fn open(path: &Path) -> Result<Self, SourceError> {
        InventoryTree::open(path).map(Self)
    }

    /// Returns the index of the root at `path`, as recorded or as it is reached on this machine.
    fn root(&self, path: &[u8]) -> Option<usize> {
        let absolute = || std::fs::canonicalize(OsStr::from_bytes(path)).ok();
        let browser = &self.0.browser;
        browser.root_at(path).or_else(|| browser.root_at(absolute()?.as_os_str().as_bytes()))
    }

    /// Sets the growth of a root.
    pub(crate) fn set_root_growth(&self, row: &mut Row) {
        let old = self.root(&row.name).and_then(|root| self.0.roots.get(&root));
        set(row, old.map(dir_row).as_ref());
    }

    /// Returns the manifest.
    pub(crate) fn manifest(&self) -> &Manifest {
        self.0.browser.inventory().manifest()
    }

    /// Sets the growth of the rows of the directory `below` the root at `path`. Rows that the older
    /// inventory lacks have none. Where the rows `are_all` entries, those that only the older
    /// inventory has are added.
    pub(crate) fn set_growth(
        &mut self,
        path: &[u8],
        below: &[u8],
        rows: &mut Vec<Row>,
        are_all: bool,
        cancelled: &AtomicBool,
    ) -> Result<(), SourceError> {
        let Some(root) = self.root(path) else { return Ok(()) };
        let place = Place { root, below: below.to_vec() };
        let Some(key) = self.0.find(&place, cancelled)? else { return Ok(()) };
        let mut old = HashMap::new();
        self.0.each(key, cancelled, &mut |entry| {
            let row = row(entry);
            old.insert(row.name.clone(), row);
        })?;
        rows.iter_mut().for_each(|row| set(row, old.remove(&row.name).as_ref()));
        if are_all {
            rows.extend(old.into_values().map(gone));
        }
        Ok(())
    }

    /// Returns the growth to `total` of a directory, or of all `roots`.
    pub(crate) fn growth(
        &mut self,
        roots: &[Vec<u8>],
        place: Option<&Place>,
        total: &Amount<u64>,
    ) -> Option<Amount<i64>> {
        let old = match place {
            Some(place) => {
                let here = Place { root: self.root(roots.get(place.root)?)?, below: place.below.clone() };
                // The rows of the directory were asked for before this.
                let key = self.0.find(&here, &AtomicBool::new(false)).ok()??;
                dir_row(&self.0.browser.dir(key).ok()?).amount
            }
            None => {
                let found: HashSet<_> = roots.iter().filter_map(|path| self.root(path)).collect();
                let count = self.manifest().roots.len();
                // The growth between other roots would only show which roots were asked for.
                let are_same = found.len() == count && roots.len() == count && self.0.roots.len() == count;
                are_same.then(|| self.0.browser.total().ok().map(|total| amount_of(&total)))??
            }
        };
        Some(total.since(&old))
    }
}

/// Returns the row of an entry that only the older inventory has.
fn gone(old: Row) -> Row {
    let growth = Some(Amount::default().since(&old.amount));
    let identity = Identity { dev: 0, ino: 0 };
    Row { amount: Amount::default(), links: 0, ctime: None, state: RowState::Gone, identity, growth, ..old }
}

/// Sets the growth since `old`. The sums of a directory that is being walked say nothing about it.
fn set(row: &mut Row, old: Option<&Row>) {
    let old = old.filter(|_| row.state != RowState::Walking);
    row.growth = old.map(|old| row.amount.since(&old.amount));
}
