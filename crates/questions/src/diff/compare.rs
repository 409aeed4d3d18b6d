//! Compares the directories whose digests differ, in three steps. Each step sorts the entries that
//! the step before left unmatched: by directory pair and name, then by inode across all
//! directories, then by directory pair and name again.

use std::path::Path;

use parquet::errors::Result;

use super::change::{Change, ChangeKind, fields, has_new_ctime};
use super::inode_info::{DeviceMap, InodeColumns, InodeInfo, NumericField};
use super::sorter::{SortRecord, SortedRecords, Sorter, get_bytes, get_number, put_bytes, put_number};
use super::tree::{NONE, join};
use super::{PairedTrees, Side, Sides};
use fathom_inventory::store::{Error, Inventory, RowGroup, Table};

/// Most names of one inode that step 2 compares. Further names go to step 3 and are never reported
/// as renamed.
const NAMES_MAX: usize = 1024;

/// The origin of an item. Items with the same key sort in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// One of the names of an inode in the old inventory, from the table `links`.
    Name,
    /// An entry of the old inventory.
    Old,
    /// An entry of the new inventory.
    New,
}

const ORIGINS: [Origin; 3] = [Origin::Name, Origin::Old, Origin::New];

/// An entry to be matched. An empty name stands for the directory itself.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CompareItem {
    /// In steps 1 and 3 the number of the directory pair and 0, in step 2 device and inode number.
    key: [i64; 2],
    name: Vec<u8>,
    origin: Origin,
    dir: u32,
    info: InodeInfo,
}

impl CompareItem {
    fn side(&self) -> Side {
        if self.origin == Origin::New { Side::New } else { Side::Old }
    }

    /// Returns whether two items have the same name in the same directory pair.
    fn is_namesake_of(&self, other: &Self) -> bool {
        (self.key, &self.name) == (other.key, &other.name)
    }
}

impl SortRecord for CompareItem {
    fn put(&self, out: &mut Vec<u8>) {
        self.key.iter().for_each(|key| put_number(*key, out));
        put_bytes(&self.name, out);
        put_number(self.origin as i64, out);
        put_number(self.dir.into(), out);
        self.info.put(out);
    }

    fn get(input: &mut &[u8]) -> Option<Self> {
        let key = [get_number(input)?, get_number(input)?];
        let name = get_bytes(input)?;
        let origin = *ORIGINS.get(usize::try_from(get_number(input)?).ok()?)?;
        let dir = u32::try_from(get_number(input)?).ok()?;
        Some(Self { key, name, origin, dir, info: InodeInfo::get(input)? })
    }

    fn heap_bytes(&self) -> usize {
        self.name.capacity() + self.info.heap_bytes()
    }
}

/// A comparison in progress.
pub(super) struct Comparison<'a> {
    paired: &'a PairedTrees,
    differing: &'a Sides<Vec<bool>>,
    scratch: &'a Path,
    /// The items of step 1, by directory pair and name.
    names: Sorter<CompareItem>,
    /// The items of step 2, by device and inode number.
    inodes: Sorter<CompareItem>,
    /// The items of step 3, by directory pair and name.
    rest: Sorter<CompareItem>,
    changes: Sorter<Change>,
    /// Whether the link count of any item of step 2 is above 1.
    has_links: bool,
    unknown: u64,
    /// The directory whose path was built last, with that path.
    paths: Sides<(u32, Vec<u8>)>,
    too_deep: Option<Side>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(paired: &'a PairedTrees, differing: &'a Sides<Vec<bool>>, scratch: &'a Path) -> Self {
        Self {
            paired,
            differing,
            scratch,
            names: Sorter::new(scratch),
            inodes: Sorter::new(scratch),
            rest: Sorter::new(scratch),
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
        self.match_rest()?;
        match self.too_deep {
            Some(side) => Err(inventories.get(side).refused("a path in it is too long")),
            None => Ok(()),
        }
    }

    /// Returns the changes in their order, and the number of entries whose change is unknown.
    pub(super) fn finish(self) -> std::result::Result<(SortedRecords<Change>, u64), Error> {
        Ok((self.changes.sorted()?, self.unknown))
    }

    fn devices(&self, side: Side) -> DeviceMap {
        if side == Side::New { self.paired.pairs.devices.clone() } else { DeviceMap::new() }
    }

    /// Adds the directories that were renamed or whose digests differ.
    fn take_dirs(&mut self, group: &RowGroup<'_>, side: Side) -> Result<()> {
        let (paired, devices) = (self.paired, self.devices(side));
        let (ids, mut rows) = (group.numbers("dir_id")?, None);
        for row in 0..group.rows() {
            let dir = paired.trees.get(side).at(ids.or_zero()[row])?;
            if self.differing.get(side)[dir as usize] || paired.is_renamed(side, dir) {
                let rows = match &mut rows {
                    Some(rows) => rows,
                    None => rows.insert(InodeColumns::dirs(group)?),
                };
                self.sort(side, dir, Vec::new(), rows.info(row, &devices, paired.in_seconds));
            }
        }
        Ok(())
    }

    /// Adds the entries of the directories whose digests differ.
    fn take_entries(&mut self, group: &RowGroup<'_>, side: Side) -> Result<()> {
        let devices = self.devices(side);
        let ids = group.numbers("dir_id")?;
        let mut wanted = Vec::new();
        for (row, dir_id) in ids.or_zero().iter().enumerate() {
            let dir = self.paired.trees.get(side).at(*dir_id)?;
            if self.differing.get(side)[dir as usize] {
                wanted.push((row, dir));
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let rows = InodeColumns::entries(group)?;
        let names = [group.texts("name")?, group.texts("name_raw")?];
        for (row, dir) in wanted {
            let name = names[1].get(row).or(names[0].get(row)).unwrap_or_default();
            self.sort(side, dir, name.to_vec(), rows.info(row, &devices, self.paired.in_seconds));
        }
        Ok(())
    }

    /// Adds every name that an inode with several names had in the old inventory.
    fn take_links(&mut self, group: &RowGroup<'_>) -> Result<()> {
        let [dev, ino] = [group.numbers("dev")?, group.numbers("ino")?];
        for row in 0..group.rows() {
            let key = [dev.or_zero()[row], ino.or_zero()[row]];
            let item = CompareItem {
                key,
                name: Vec::new(),
                origin: Origin::Name,
                dir: 0,
                info: InodeInfo::default(),
            };
            self.inodes.push(item);
        }
        Ok(())
    }

    fn sort(&mut self, side: Side, dir: u32, name: Vec<u8>, info: InodeInfo) {
        let origin = if side == Side::New { Origin::New } else { Origin::Old };
        let item = CompareItem { key: [0; 2], name, origin, dir, info };
        match self.pair(&item) {
            Some(pair) => self.names.push(CompareItem { key: [pair, 0], ..item }),
            None => self.queue_for_inodes(item),
        }
    }

    /// Returns the number of the directory pair that has the entry: the directory's number in the
    /// new inventory.
    fn pair(&self, item: &CompareItem) -> Option<i64> {
        let counterpart = self.paired.pairs.of(item.side(), item.dir)?;
        Some(if item.side() == Side::New { item.dir } else { counterpart }.into())
    }

    /// Step 1: matches entries of one name in paired directories.
    fn match_names(&mut self) -> std::result::Result<(), Error> {
        let mut names = std::mem::replace(&mut self.names, Sorter::new(self.scratch)).sorted()?;
        while let Some(one) = names.next()? {
            // No directory has a name twice, even if a damaged inventory says so: skip further
            // rows.
            while names.next_if(|more| more.is_namesake_of(&one) && more.origin == one.origin)?.is_some() {}
            let two = names.next_if(|two| two.is_namesake_of(&one))?;
            while names.next_if(|more| more.is_namesake_of(&one))?.is_some() {}
            match two {
                Some(two) if one.name.is_empty() || one.info.has_inode_of(&two.info) => {
                    self.report_matched(&one, &two)
                }
                two => [Some(one), two].into_iter().flatten().for_each(|item| self.queue_for_inodes(item)),
            }
        }
        Ok(())
    }

    /// Moves an entry to step 2, or to step 3 if its inode is unknown.
    fn queue_for_inodes(&mut self, item: CompareItem) {
        let inode = [item.info.number(NumericField::Dev), item.info.number(NumericField::Ino)];
        match inode {
            [Some(dev), Some(ino)] if !item.name.is_empty() => {
                self.has_links |= item.info.number(NumericField::Nlink).is_some_and(|nlink| nlink > 1);
                self.inodes.push(CompareItem { key: [dev, ino], ..item });
            }
            _ => self.queue_for_rest(item),
        }
    }

    /// Step 2: matches entries of one inode in any directories.
    fn match_inodes(&mut self) -> std::result::Result<(), Error> {
        let mut inodes = std::mem::replace(&mut self.inodes, Sorter::new(self.scratch)).sorted()?;
        while let Some(first) = inodes.next()? {
            let key = first.key;
            let (mut names, mut old, mut new) = (0usize, Vec::new(), Vec::new());
            let mut next = Some(first);
            while let Some(item) = next {
                match item.origin {
                    Origin::Name => names += 1,
                    Origin::Old if old.len() < NAMES_MAX => old.push(item),
                    Origin::New if new.len() < NAMES_MAX => new.push(item),
                    Origin::Old | Origin::New => self.queue_for_rest(item),
                }
                next = inodes.next_if(|item| item.key == key)?;
            }
            // If the table of links has more names than are unmatched, one name stayed where it
            // was. A removed and a created name then do not tell which name was renamed.
            if names <= old.len() {
                self.match_links(&mut old, &mut new);
            }
            old.into_iter().chain(new).for_each(|item| self.queue_for_rest(item));
        }
        Ok(())
    }

    /// Reports old and new names of one inode as renamed, pair by pair in the order of their paths.
    fn match_links(&mut self, old: &mut Vec<CompareItem>, new: &mut Vec<CompareItem>) {
        if old.len().min(new.len()) > 0 && old.len().max(new.len()) > 1 {
            old.sort_by_cached_key(|item| self.path(item));
            new.sort_by_cached_key(|item| self.path(item));
        }
        old.retain(|one| {
            let found = new.iter().position(|two| one.info.is_same_file(&two.info));
            found.map(|at| new.remove(at)).inspect(|two| self.report_matched(one, two)).is_none()
        });
    }

    /// Moves an entry to step 3, or reports it as unmatched if its directory has no counterpart.
    fn queue_for_rest(&mut self, item: CompareItem) {
        match self.pair(&item) {
            Some(pair) => self.rest.push(CompareItem { key: [pair, 0], ..item }),
            None => self.report_unmatched(item),
        }
    }

    /// Step 3: matches the remaining entries of one name in paired directories.
    fn match_rest(&mut self) -> std::result::Result<(), Error> {
        let mut rest = std::mem::replace(&mut self.rest, Sorter::new(self.scratch)).sorted()?;
        while let Some(one) = rest.next()? {
            match rest.next_if(|two| two.is_namesake_of(&one) && two.origin > one.origin)? {
                Some(two) => self.report_matched(&one, &two),
                None => self.report_unmatched(one),
            }
        }
        Ok(())
    }

    /// Reports an entry that only one inventory has.
    fn report_unmatched(&mut self, item: CompareItem) {
        let (side, paired) = (item.side(), self.paired);
        let dir = |of| (side == of).then_some(item.dir);
        if !paired.is_within(dir(Side::Old), dir(Side::New)) {
            return;
        }
        if paired.pairs.is_hidden(side, item.dir) {
            self.unknown += 1;
            return;
        }
        let path = self.path(&item);
        let (kind, old, new) = match side {
            Side::Old => (ChangeKind::Removed, Some(item.info), None),
            Side::New => (ChangeKind::Created, None, Some(item.info)),
        };
        self.changes.push(Change { path, kind, from: None, old, new });
    }

    /// Reports an entry that both inventories have, if it changed.
    fn report_matched(&mut self, one: &CompareItem, two: &CompareItem) {
        let paired = self.paired;
        if !paired.is_within(Some(one.dir), Some(two.dir)) {
            return;
        }
        let (old, new) = (&one.info, &two.info);
        let is_renamed = if two.name.is_empty() {
            paired.is_renamed(Side::New, two.dir)
        } else {
            self.pair(one) != self.pair(two) || one.name != two.name
        };
        let differs = !fields(old, new).is_empty();
        if is_renamed || differs || has_new_ctime(old, new) {
            let kind = if is_renamed { ChangeKind::Renamed } else { ChangeKind::Modified };
            let from = is_renamed.then(|| self.path(one));
            let path = self.path(two);
            self.changes.push(Change { path, kind, from, old: Some(old.clone()), new: Some(new.clone()) });
        } else if old.is_known() != new.is_known() {
            self.unknown += 1;
        }
    }

    fn path(&mut self, item: &CompareItem) -> Vec<u8> {
        let (side, tree) = (item.side(), self.paired.trees.get(item.side()));
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
