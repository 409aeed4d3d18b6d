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

/// Returns the rows of entries in `scope` that count, each with its sum.
pub(super) fn counted(
    group: &RowGroup<'_>,
    scope: &Scope,
    first_names: &mut FirstNames,
) -> parquet::errors::Result<Vec<(usize, UsageSum)>> {
    let [size, blocks, nlink] = [group.numbers("size")?, group.numbers("blocks")?, group.numbers("nlink")?];
    let sum = |row: usize| UsageSum::new(1, blocks.or_zero()[row], size.or_zero()[row]);
    let has_links = nlink.or_zero().iter().any(|nlink| *nlink > 1);
    if scope.counts_all() && !has_links {
        return Ok((0..group.rows()).map(|row| (row, sum(row))).collect());
    }
    let [dir_id, dev, ino] = [group.numbers("dir_id")?, group.numbers("dev")?, group.numbers("ino")?];
    let mut counts = |row: &usize| {
        let [nlink, dir_id, dev, ino] = [&nlink, &dir_id, &dev, &ino].map(|column| column.or_zero()[*row]);
        let has_one_row = nlink <= 1 && !scope.has_operands();
        scope.contains(dir_id) && (has_one_row || first_names.counts(dev, ino, dir_id))
    };
    Ok((0..group.rows()).filter(|row| counts(row)).map(|row| (row, sum(row))).collect())
}
