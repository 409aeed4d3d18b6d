//! Which directories have to be compared: a sum, in no order, of the hashes of what is right in each. The hashes have a key that
//! nobody knows, so that no name can be made for one change to hide another.

use std::hash::{BuildHasher, RandomState};

use parquet::errors::Result;

use super::facts::{Devices, Rows};
use super::sorter::{Record, put_bytes};
use super::tree::Tree;
use super::{Joined, Side, Sides};
use crate::store::{Error, Group, Inventory, Table};

/// 128 bits.
type Digest = [u64; 2];

/// By directory, whether what is right in it may be another than in its counterpart, or it has none.
pub(super) fn differing(
    inventories: &Sides<&Inventory>,
    joined: &Joined,
) -> std::result::Result<Sides<Vec<bool>>, Error> {
    let keys = [RandomState::new(), RandomState::new()];
    let digests = inventories.both(|side, inventory| {
        let tree = joined.trees.get(side);
        let none = Devices::new();
        let devices = if side == Side::New { &joined.pairs.devices } else { &none };
        let mut sums =
            Sums { keys: &keys, devices, tree, sums: vec![[0; 2]; tree.len()], lone: &joined.lone_columns };
        inventory.each(Table::Dirs, |group| sums.dirs(group))?;
        inventory.each(Table::Entries, |group| sums.entries(group))?;
        Ok(sums.sums)
    })?;
    let differs = |side: Side| {
        let digest = |dir: u32| digests.get(side)[dir as usize];
        let twin = |dir: u32| Some(digests.get(side.other())[joined.pairs.of(side, dir)? as usize]);
        (0..joined.trees.get(side).len() as u32).map(|dir| twin(dir) != Some(digest(dir))).collect()
    };
    Ok(Sides { old: differs(Side::Old), new: differs(Side::New) })
}

struct Sums<'a> {
    keys: &'a [RandomState; 2],
    devices: &'a Devices,
    tree: &'a Tree,
    sums: Vec<Digest>,
    /// Columns that one of the inventories does not have.
    lone: &'a [&'static str],
}

impl Sums<'_> {
    fn add(&mut self, dir: u32, text: &[u8]) {
        for (sum, key) in self.sums[dir as usize].iter_mut().zip(self.keys) {
            *sum = sum.wrapping_add(key.hash_one(text));
        }
    }

    /// Of a directory itself only what is compared: what is in it changes the rest.
    fn dirs(&mut self, group: &Group<'_>) -> Result<()> {
        let rows = Rows::dirs(group)?;
        let ids = group.numbers("dir_id")?;
        for row in 0..group.rows() {
            let dir = self.tree.at(ids.or_zero()[row])?;
            let mut facts = rows.facts(row, self.devices);
            facts.forget(self.lone);
            let mut text = Vec::new();
            facts.put_own(&mut text);
            self.add(dir, &text);
        }
        Ok(())
    }

    fn entries(&mut self, group: &Group<'_>) -> Result<()> {
        let rows = Rows::entries(group)?;
        let names = [group.texts("name")?, group.texts("name_raw")?];
        let ids = group.numbers("dir_id")?;
        let mut text = Vec::new();
        for row in 0..group.rows() {
            text.clear();
            put_bytes(names[1].get(row).or(names[0].get(row)).unwrap_or_default(), &mut text);
            let mut facts = rows.facts(row, self.devices);
            facts.forget(self.lone);
            facts.put(&mut text);
            self.add(self.tree.at(ids.or_zero()[row])?, &text);
        }
        Ok(())
    }
}
