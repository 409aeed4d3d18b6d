//! The largest entries that are not directories.

use std::collections::HashMap;

use super::largest::Largest;
use super::links::{FirstNames, HardLinks};
use super::scope::Scope;
use super::{GroupKey, ReportRow, UsageReport, UsageSum, dirs};
use fathom_inventory::store::Span;
use fathom_inventory::store::{Error, Inventory, RowGroup, Table};

/// Reports the largest files.
pub(super) fn report(inventory: &Inventory, span: Span, count: usize) -> Result<UsageReport, Error> {
    let scope = Scope::read(inventory, span)?;
    let mut first_names = HardLinks::read(inventory, &scope)?.within(&scope).first_names();
    let mut largest = Largest::new(count);
    inventory.each(Table::Entries, |group| {
        let rows = counted(group, &scope, &mut first_names)?;
        if !rows.iter().any(|(_, sum)| largest.admits(sum)) {
            return Ok(());
        }
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        let dir_id = group.numbers("dir_id")?;
        for (row, sum) in rows {
            if largest.admits(&sum) {
                let name = raw.get(row).or(names.get(row)).unwrap_or_default();
                largest.push((name.to_vec(), dir_id.or_zero()[row]), sum);
            }
        }
        Ok(())
    })?;
    let found: Vec<_> = largest.sorted().collect();
    let mut paths: HashMap<_, _> = found.iter().map(|((_, dir_id), _)| (*dir_id, Vec::new())).collect();
    dirs::paths(inventory, &mut paths)?;
    let row =
        |((name, dir_id), sum)| ReportRow { key: GroupKey::Path, text: joined(&paths[&dir_id], name), sum };
    let total = dirs::total(inventory, &scope)?;
    Ok(UsageReport { rows: found.into_iter().map(row).collect(), total })
}

fn joined(directory: &[u8], name: Vec<u8>) -> Vec<u8> {
    match directory.last() {
        None => name,
        Some(b'/') => [directory, &name].concat(),
        Some(_) => [directory, b"/", &name].concat(),
    }
}

/// Returns the rows of entries in `scope` whose sizes count, each with its sum.
pub(super) fn counted(
    group: &RowGroup<'_>,
    scope: &Scope,
    first_names: &mut FirstNames,
) -> parquet::errors::Result<Vec<(usize, UsageSum)>> {
    let mut names = counted_names(group, scope, first_names)?;
    names.retain(|name| name.is_first);
    Ok(names.into_iter().map(|name| (name.row, name.sum)).collect())
}

/// A name of an inode that is not a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedName {
    pub(super) row: usize,
    /// One entry, with the sizes of the inode if they count here.
    pub(super) sum: UsageSum,
    /// Whether the sizes count here.
    pub(super) is_first: bool,
}

/// Returns the rows of entries in `scope`, without rows that operands repeat.
pub(super) fn counted_names(
    group: &RowGroup<'_>,
    scope: &Scope,
    first_names: &mut FirstNames,
) -> parquet::errors::Result<Vec<CountedName>> {
    let [size, blocks, nlink] = [group.numbers("size")?, group.numbers("blocks")?, group.numbers("nlink")?];
    let first = |row: usize| {
        let sum = UsageSum::new(1, blocks.or_zero()[row], size.or_zero()[row]);
        CountedName { row, sum, is_first: true }
    };
    let further = |row: usize| CountedName { row, sum: UsageSum::new(1, 0, 0), is_first: false };
    let has_links = nlink.or_zero().iter().any(|nlink| *nlink > 1);
    if scope.counts_all() && !has_links {
        return Ok((0..group.rows()).map(first).collect());
    }
    let [dir_id, dev, ino] = [group.numbers("dir_id")?, group.numbers("dev")?, group.numbers("ino")?];
    let name = |row: usize| {
        let [nlink, dir_id, dev, ino] = [&nlink, &dir_id, &dev, &ino].map(|column| column.or_zero()[row]);
        let has_one_row = nlink <= 1 && !scope.has_operands();
        match scope.contains(dir_id) {
            false => None,
            true if has_one_row || first_names.counts(dev, ino, dir_id) => Some(first(row)),
            true => (nlink > 1).then(|| further(row)),
        }
    };
    Ok((0..group.rows()).filter_map(name).collect())
}
