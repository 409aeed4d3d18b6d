//! Compares what is in directories that differ, in three steps, each of which sorts what the one before could not settle:
//! entries of one name in both, entries of one inode anywhere, and then again those of one name.

use std::path::Path;

use parquet::errors::Result;

use super::change::{Change, Verb, fields, is_touched};
use super::facts::{Devices, Facts, Number, Rows};
use super::sorter::{Record, Sorted, Sorter, get_bytes, get_number, put_bytes, put_number};
use super::tree::{NONE, join};
use super::{Joined, Side, Sides};
use crate::store::{Error, Group, Inventory, Table};

/// Names of an inode that are compared; of more, the others are not taken for renamed.
const NAMES_MAX: usize = 1024;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// One of the names that an inode had, from the table of links.
    Name,
    /// An entry of the old inventory.
    Old,
    /// An entry of the new inventory.
    New,
}

const RANKS: [Rank; 3] = [Rank::Name, Rank::Old, Rank::New];

/// An entry on its way, or without a name, the directory itself.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    /// The pair of directories, or device and inode.
    key: [i64; 2],
    name: Vec<u8>,
    rank: Rank,
    dir: u32,
    facts: Facts,
}

impl Item {
    fn side(&self) -> Side {
        if self.rank == Rank::New { Side::New } else { Side::Old }
    }

    /// Whether both belong together in the first and the last step.
    fn has_place_of(&self, other: &Self) -> bool {
        (self.key, &self.name) == (other.key, &other.name)
    }
}

impl Record for Item {
    fn put(&self, out: &mut Vec<u8>) {
        self.key.iter().for_each(|key| put_number(*key, out));
        put_bytes(&self.name, out);
        put_number(self.rank as i64, out);
        put_number(self.dir.into(), out);
        self.facts.put(out);
    }

    fn get(input: &mut &[u8]) -> Option<Self> {
        let key = [get_number(input)?, get_number(input)?];
        let name = get_bytes(input)?;
        let rank = *RANKS.get(usize::try_from(get_number(input)?).ok()?)?;
        let dir = u32::try_from(get_number(input)?).ok()?;
        Some(Self { key, name, rank, dir, facts: Facts::get(input)? })
    }

    fn heap_bytes(&self) -> usize {
        self.name.capacity() + self.facts.heap_bytes()
    }
}

/// A comparison under way.
pub(super) struct Compare<'a> {
    joined: &'a Joined,
    differing: &'a Sides<Vec<bool>>,
    scratch: &'a Path,
    /// By pair and name.
    names: Sorter<Item>,
    /// By inode.
    inodes: Sorter<Item>,
    /// By pair and name again.
    places: Sorter<Item>,
    changes: Sorter<Change>,
    /// Whether any inode that is left had several names.
    has_links: bool,
    unknown: u64,
    /// The directories whose paths were wanted last.
    paths: Sides<(u32, Vec<u8>)>,
    too_deep: Option<Side>,
}

impl<'a> Compare<'a> {
    pub(super) fn new(joined: &'a Joined, differing: &'a Sides<Vec<bool>>, scratch: &'a Path) -> Self {
        Self {
            joined,
            differing,
            scratch,
            names: Sorter::new(scratch),
            inodes: Sorter::new(scratch),
            places: Sorter::new(scratch),
            changes: Sorter::new(scratch),
            has_links: false,
            unknown: 0,
            paths: Sides { old: (NONE, Vec::new()), new: (NONE, Vec::new()) },
            too_deep: None,
        }
    }

    pub(super) fn run(&mut self, inventories: &Sides<&Inventory>) -> std::result::Result<(), Error> {
        for side in [Side::Old, Side::New] {
            let inventory = inventories.get(side);
            inventory.each(Table::Dirs, |group| self.take_dirs(group, side))?;
            inventory.each(Table::Entries, |group| self.take_entries(group, side))?;
        }
        self.match_names()?;
        if self.has_links {
            inventories.old.each(Table::Links, |group| self.take_links(group))?;
        }
        self.match_inodes()?;
        self.match_places()?;
        match self.too_deep {
            Some(side) => Err(inventories.get(side).refused("a path in it is too long")),
            None => Ok(()),
        }
    }

    /// The changes, and how much is not known.
    pub(super) fn end(self) -> std::result::Result<(Sorted<Change>, u64), Error> {
        Ok((self.changes.sorted()?, self.unknown))
    }

    fn devices(&self, side: Side) -> Devices {
        if side == Side::New { self.joined.pairs.devices.clone() } else { Devices::new() }
    }

    /// Directories that are not what they were.
    fn take_dirs(&mut self, group: &Group<'_>, side: Side) -> Result<()> {
        let (joined, devices) = (self.joined, self.devices(side));
        let (ids, mut rows) = (group.numbers("dir_id")?, None);
        for row in 0..group.rows() {
            let dir = joined.trees.get(side).at(ids.or_zero()[row])?;
            if self.differing.get(side)[dir as usize] || joined.is_renamed(side, dir) {
                let rows = match &mut rows {
                    Some(rows) => rows,
                    None => rows.insert(Rows::dirs(group)?),
                };
                self.sort(side, dir, Vec::new(), rows.facts(row, &devices));
            }
        }
        Ok(())
    }

    /// What is in directories that are not as they were.
    fn take_entries(&mut self, group: &Group<'_>, side: Side) -> Result<()> {
        let devices = self.devices(side);
        let ids = group.numbers("dir_id")?;
        let mut wanted = Vec::new();
        for (row, dir_id) in ids.or_zero().iter().enumerate() {
            let dir = self.joined.trees.get(side).at(*dir_id)?;
            if self.differing.get(side)[dir as usize] {
                wanted.push((row, dir));
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let rows = Rows::entries(group)?;
        let names = [group.texts("name")?, group.texts("name_raw")?];
        for (row, dir) in wanted {
            let name = names[1].get(row).or(names[0].get(row)).unwrap_or_default();
            self.sort(side, dir, name.to_vec(), rows.facts(row, &devices));
        }
        Ok(())
    }

    /// Every name that inodes had in the old inventory.
    fn take_links(&mut self, group: &Group<'_>) -> Result<()> {
        let [dev, ino] = [group.numbers("dev")?, group.numbers("ino")?];
        for row in 0..group.rows() {
            let key = [dev.or_zero()[row], ino.or_zero()[row]];
            let item = Item { key, name: Vec::new(), rank: Rank::Name, dir: 0, facts: Facts::default() };
            self.inodes.push(item);
        }
        Ok(())
    }

    fn sort(&mut self, side: Side, dir: u32, name: Vec<u8>, facts: Facts) {
        let rank = if side == Side::New { Rank::New } else { Rank::Old };
        let item = Item { key: [0; 2], name, rank, dir, facts };
        match self.pair(&item) {
            Some(pair) => self.names.push(Item { key: [pair, 0], ..item }),
            None => self.search(item),
        }
    }

    /// The number of the pair of directories that an entry is in.
    fn pair(&self, item: &Item) -> Option<i64> {
        let twin = self.joined.pairs.of(item.side(), item.dir)?;
        Some(if item.side() == Side::New { item.dir } else { twin }.into())
    }

    /// The first step.
    fn match_names(&mut self) -> std::result::Result<(), Error> {
        let mut names = std::mem::replace(&mut self.names, Sorter::new(self.scratch)).sorted()?;
        while let Some(one) = names.next()? {
            // No directory has a name twice, whatever a damaged inventory says.
            while names.next_if(|more| more.has_place_of(&one) && more.rank == one.rank)?.is_some() {}
            let two = names.next_if(|two| two.has_place_of(&one))?;
            while names.next_if(|more| more.has_place_of(&one))?.is_some() {}
            match two {
                Some(two) if one.name.is_empty() || one.facts.has_inode_of(&two.facts) => {
                    self.same(&one, &two)
                }
                two => [Some(one), two].into_iter().flatten().for_each(|item| self.search(item)),
            }
        }
        Ok(())
    }

    /// Has an entry be looked for by its inode.
    fn search(&mut self, item: Item) {
        let inode = [item.facts.number(Number::Dev), item.facts.number(Number::Ino)];
        match inode {
            [Some(dev), Some(ino)] if !item.name.is_empty() => {
                self.has_links |= item.facts.number(Number::Nlink).is_some_and(|nlink| nlink > 1);
                self.inodes.push(Item { key: [dev, ino], ..item });
            }
            _ => self.place(item),
        }
    }

    /// The second step.
    fn match_inodes(&mut self) -> std::result::Result<(), Error> {
        let mut inodes = std::mem::replace(&mut self.inodes, Sorter::new(self.scratch)).sorted()?;
        while let Some(first) = inodes.next()? {
            let key = first.key;
            let (mut names, mut old, mut new) = (0usize, Vec::new(), Vec::new());
            let mut next = Some(first);
            while let Some(item) = next {
                match item.rank {
                    Rank::Name => names += 1,
                    Rank::Old if old.len() < NAMES_MAX => old.push(item),
                    Rank::New if new.len() < NAMES_MAX => new.push(item),
                    Rank::Old | Rank::New => self.place(item),
                }
                next = inodes.next_if(|item| item.key == key)?;
            }
            // One of its names is where it was: what became of the others cannot be told from a new name and one less.
            if names <= old.len() {
                self.match_links(&mut old, &mut new);
            }
            old.into_iter().chain(new).for_each(|item| self.place(item));
        }
        Ok(())
    }

    /// Takes names of one inode for renamed, one by one in the order of their paths.
    fn match_links(&mut self, old: &mut Vec<Item>, new: &mut Vec<Item>) {
        if old.len().min(new.len()) > 0 && old.len().max(new.len()) > 1 {
            old.sort_by_cached_key(|item| self.path(item));
            new.sort_by_cached_key(|item| self.path(item));
        }
        old.retain(|one| {
            let found = new.iter().position(|two| one.facts.is_same_file(&two.facts));
            found.map(|at| new.remove(at)).inspect(|two| self.same(one, two)).is_none()
        });
    }

    /// Has an entry be looked for by its name once more.
    fn place(&mut self, item: Item) {
        match self.pair(&item) {
            Some(pair) => self.places.push(Item { key: [pair, 0], ..item }),
            None => self.lone(item),
        }
    }

    /// The last step.
    fn match_places(&mut self) -> std::result::Result<(), Error> {
        let mut places = std::mem::replace(&mut self.places, Sorter::new(self.scratch)).sorted()?;
        while let Some(one) = places.next()? {
            match places.next_if(|two| two.has_place_of(&one) && two.rank > one.rank)? {
                Some(two) => self.same(&one, &two),
                None => self.lone(one),
            }
        }
        Ok(())
    }

    /// An entry that is in one inventory only.
    fn lone(&mut self, item: Item) {
        let (side, joined) = (item.side(), self.joined);
        let dir = |of| (side == of).then_some(item.dir);
        if !joined.is_within(dir(Side::Old), dir(Side::New)) {
            return;
        }
        if joined.pairs.is_hidden(side, item.dir) {
            self.unknown += 1;
            return;
        }
        let path = self.path(&item);
        let (verb, old, new) = match side {
            Side::Old => (Verb::Removed, Some(item.facts), None),
            Side::New => (Verb::Created, None, Some(item.facts)),
        };
        self.changes.push(Change { path, verb, from: None, old, new });
    }

    /// An entry that is in both.
    fn same(&mut self, one: &Item, two: &Item) {
        let joined = self.joined;
        if !joined.is_within(Some(one.dir), Some(two.dir)) {
            return;
        }
        let (old, new) = (&one.facts, &two.facts);
        let is_renamed = if two.name.is_empty() {
            joined.is_renamed(Side::New, two.dir)
        } else {
            self.pair(one) != self.pair(two) || one.name != two.name
        };
        let differs = !fields(old, new).is_empty();
        if is_renamed || differs || is_touched(old, new) {
            let verb = if is_renamed { Verb::Renamed } else { Verb::Modified };
            let from = is_renamed.then(|| self.path(one));
            let path = self.path(two);
            self.changes.push(Change { path, verb, from, old: Some(old.clone()), new: Some(new.clone()) });
        } else if old.is_known() != new.is_known() {
            self.unknown += 1;
        }
    }

    fn path(&mut self, item: &Item) -> Vec<u8> {
        let (side, tree) = (item.side(), self.joined.trees.get(item.side()));
        let last = match side {
            Side::Old => &mut self.paths.old,
            Side::New => &mut self.paths.new,
        };
        if last.0 != item.dir {
            let path = tree.path(item.dir);
            if path.is_none() {
                self.too_deep = Some(side);
            }
            *last = (item.dir, path.unwrap_or_default());
        }
        let mut path = last.1.clone();
        if !item.name.is_empty() {
            join(&mut path, &item.name);
        }
        path
    }
}
