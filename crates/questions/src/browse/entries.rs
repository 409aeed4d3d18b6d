//! Reads the rows of `entries` that are in one directory.

use std::sync::atomic::{AtomicBool, Ordering};

use parquet::errors::Result;

use super::{BrowsedEntry, Browser, GroupPlace, is_shown};
use fathom_inventory::store::{Error, MetaColumns, RowGroup, Table};
use fathom_inventory::type_of;

/// The row groups of `entries`.
#[derive(Debug, Default)]
pub(super) struct EntryGroups {
    /// Each with the least and the greatest number of a directory in it. Rows are in the order of
    /// the walk, in which files of a directory may follow files of its subdirectories.
    known: Vec<(GroupPlace, i64, i64)>,
    /// Those that have not been read yet, the first one last; `None` before the first is read.
    unknown: Option<Vec<GroupPlace>>,
}

impl Browser {
    pub(super) fn entries_of(
        &mut self,
        dir_id: i64,
        cancelled: &AtomicBool,
        with: &mut dyn FnMut(BrowsedEntry<'_>),
    ) -> std::result::Result<bool, Error> {
        if !self.find_entry_groups(cancelled)? {
            return Ok(false);
        }
        let may_have = |(place, least, greatest): &(GroupPlace, i64, i64)| {
            (*least..=*greatest).contains(&dir_id).then_some(*place)
        };
        let places: Vec<GroupPlace> = self.entries.known.iter().filter_map(may_have).collect();
        for place in places {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(false);
            }
            self.with_group(Table::Entries, place, |group| each(group, dir_id, with))?;
        }
        Ok(true)
    }

    /// Reads which directories each row group is about, unless that is known. Returns false if it
    /// is cancelled; the next call continues.
    fn find_entry_groups(&mut self, cancelled: &AtomicBool) -> std::result::Result<bool, Error> {
        if self.entries.unknown.is_none() {
            let mut groups = self.groups(Table::Entries)?;
            groups.reverse();
            self.entries.unknown = Some(groups);
        }
        while let Some(place) = self.entries.unknown.as_ref().and_then(|groups| groups.last().copied()) {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let ids = self.with_group(Table::Entries, place, |group| group.numbers("dir_id"))?;
            let (least, greatest) = (ids.or_zero().iter().min(), ids.or_zero().iter().max());
            let found = least.zip(greatest).map(|(least, greatest)| (place, *least, *greatest));
            self.entries.known.extend(found);
            self.entries.unknown.as_mut().and_then(Vec::pop);
        }
        Ok(true)
    }
}

/// Calls `with` for the rows of a directory in a row group.
fn each(group: &RowGroup<'_>, dir_id: i64, with: &mut dyn FnMut(BrowsedEntry<'_>)) -> Result<()> {
    let ids = group.numbers("dir_id")?;
    if !ids.or_zero().contains(&dir_id) {
        return Ok(());
    }
    let [names, raw, types] = [group.texts("name")?, group.texts("name_raw")?, group.texts("type")?];
    let mut metas = MetaColumns::default();
    metas.load(group, is_shown)?;
    for row in (0..group.rows()).filter(|row| ids.or_zero()[*row] == dir_id) {
        let name = raw.get(row).or(names.get(row)).unwrap_or_default();
        let file_type = types.get(row).map_or(fathom_walk::FileType::Unknown, type_of);
        with(BrowsedEntry { name, file_type, meta: metas.get(row).as_ref() });
    }
    Ok(())
}
