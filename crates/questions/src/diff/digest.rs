//! Finds the directories that have to be compared. The digest of a directory is the sum of the
//! hashes of its entries, so the order of the rows does not count. The hash keys are random, so no
//! file name can be constructed to let one change hide another.

use std::hash::{BuildHasher, RandomState};

use parquet::errors::Result;

use super::inode_info::{DeviceMap, InodeColumns};
use super::sorter::{SortRecord, put_bytes};
use super::tree::DirTree;
use super::{PairedTrees, Side, Sides};
use fathom_inventory::store::{Error, Inventory, RowGroup, Table};

/// A digest of 128 bits.
type Digest = [u64; 2];

/// Returns, for each directory, whether it has no counterpart or another digest than its
/// counterpart.
pub(super) fn differing(
    inventories: &Sides<&Inventory>,
    paired: &PairedTrees,
) -> std::result::Result<Sides<Vec<bool>>, Error> {
    let keys = [RandomState::new(), RandomState::new()];
    let digests = inventories.both(|side, inventory| {
        let tree = paired.trees.get(side);
        let none = DeviceMap::new();
        let devices = if side == Side::New { &paired.pairs.devices } else { &none };
        let mut sums = DigestTable {
            keys: &keys,
            devices,
            tree,
            sums: vec![[0; 2]; tree.len()],
            unshared: &paired.unshared_columns,
            in_seconds: paired.in_seconds,
        };
        inventory.each(Table::Dirs, |group| sums.dirs(group))?;
        inventory.each(Table::Entries, |group| sums.entries(group))?;
        Ok(sums.sums)
    })?;
    let differs = |side: Side| {
        let digest = |dir: u32| digests.get(side)[dir as usize];
        let counterpart = |dir: u32| Some(digests.get(side.other())[paired.pairs.of(side, dir)? as usize]);
        (0..paired.trees.get(side).len() as u32).map(|dir| counterpart(dir) != Some(digest(dir))).collect()
    };
    Ok(Sides { old: differs(Side::Old), new: differs(Side::New) })
}

struct DigestTable<'a> {
    keys: &'a [RandomState; 2],
    devices: &'a DeviceMap,
    tree: &'a DirTree,
    sums: Vec<Digest>,
    /// Columns that only one of the inventories has. They do not go into the digest.
    unshared: &'a [&'static str],
    in_seconds: bool,
}

impl DigestTable<'_> {
    fn add(&mut self, dir: u32, text: &[u8]) {
        for (sum, key) in self.sums[dir as usize].iter_mut().zip(self.keys) {
            *sum = sum.wrapping_add(key.hash_one(text));
        }
    }

    /// Adds the fields of the directories themselves that are compared. Their other fields change
    /// with their entries.
    fn dirs(&mut self, group: &RowGroup<'_>) -> Result<()> {
        let rows = InodeColumns::dirs(group)?;
        let ids = group.numbers("dir_id")?;
        for row in 0..group.rows() {
            let dir = self.tree.at(ids.or_zero()[row])?;
            let mut info = rows.info(row, self.devices, self.in_seconds);
            info.clear(self.unshared);
            let mut text = Vec::new();
            info.put_dir(&mut text);
            self.add(dir, &text);
        }
        Ok(())
    }

    fn entries(&mut self, group: &RowGroup<'_>) -> Result<()> {
        let rows = InodeColumns::entries(group)?;
        let names = [group.texts("name")?, group.texts("name_raw")?];
        let ids = group.numbers("dir_id")?;
        let mut text = Vec::new();
        for row in 0..group.rows() {
            text.clear();
            put_bytes(names[1].get(row).or(names[0].get(row)).unwrap_or_default(), &mut text);
            let mut info = rows.info(row, self.devices, self.in_seconds);
            info.clear(self.unshared);
            info.put(&mut text);
            self.add(self.tree.at(ids.or_zero()[row])?, &text);
        }
        Ok(())
    }
}
