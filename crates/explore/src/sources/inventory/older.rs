//! An older inventory, from which rows get their growth.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{InventoryTree, dir_row, row};
use crate::source::{Place, Row, RowState, SourceError};

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

    /// Sets the growth of the rows of the directory `below` the root at `path`. Rows that the older
    /// inventory lacks have none.
    pub(crate) fn set_growth(
        &mut self,
        path: &[u8],
        below: &[u8],
        rows: &mut [Row],
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
        rows.iter_mut().for_each(|row| set(row, old.get(&row.name)));
        Ok(())
    }
}

/// Sets the growth since `old`. The sums of a directory that is being walked say nothing about it.
fn set(row: &mut Row, old: Option<&Row>) {
    let old = old.filter(|_| row.state != RowState::Walking);
    row.growth = old.map(|old| row.amount.since(&old.amount));
}
