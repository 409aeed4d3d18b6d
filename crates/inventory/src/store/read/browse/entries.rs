//! Reads the rows of `entries` that are in one directory.

use std::sync::atomic::{AtomicBool, Ordering};

use parquet::errors::Result;

use super::{BrowsedEntry, Browser, GroupPlace, is_shown};
use crate::entry::type_of;
use crate::store::read::group::RowGroup;
use crate::store::read::metas::MetaColumns;
use crate::store::read::{Error, Table};

/// The row groups of `entries`, each with the least and the greatest number of a directory in it.
/// Rows are in the order of the walk, in which files of a directory may follow those of its
/// subdirectories.
pub(super) type EntryGroups = Vec<(GroupPlace, i64, i64)>;

impl Browser {
    pub(super) fn entries_of(
        &mut self,
        dir_id: i64,
        cancelled: &AtomicBool,
        with: &mut dyn FnMut(BrowsedEntry<'_>),
    ) -> std::result::Result<bool, Error> {
        let groups = match self.entries.take() {
            Some(groups) => groups,
            None => match self.entry_groups(cancelled)? {
                Some(groups) => groups,
                None => return Ok(false),
            },
        };
        let may_have = |(place, least, greatest): &(GroupPlace, i64, i64)| {
            (*least..=*greatest).contains(&dir_id).then_some(*place)
        };
        let mut read = Ok(true);
        for place in groups.iter().filter_map(may_have) {
            if cancelled.load(Ordering::Relaxed) {
                read = Ok(false);
                break;
            }
            if let Err(error) = self.with_group(Table::Entries, place, |group| each(group, dir_id, with)) {
                read = Err(error);
                break;
            }
        }
        self.entries = Some(groups);
        read
    }

    /// Reads which directories each row group is about. Returns `None` if it is cancelled.
    fn entry_groups(&mut self, cancelled: &AtomicBool) -> std::result::Result<Option<EntryGroups>, Error> {
        let mut groups = Vec::new();
        for place in self.groups(Table::Entries)? {
            if cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let ids = self.with_group(Table::Entries, place, |group| group.numbers("dir_id"))?;
            let (least, greatest) = (ids.or_zero().iter().min(), ids.or_zero().iter().max());
            groups.extend(least.zip(greatest).map(|(least, greatest)| (place, *least, *greatest)));
        }
        Ok(Some(groups))
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
