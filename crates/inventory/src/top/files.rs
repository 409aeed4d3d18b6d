//! The largest entries that are no directories.

use std::collections::HashMap;

use super::below::Span;
use super::largest::Largest;
use super::links::{Firsts, Links};
use super::scope::Scope;
use super::{Key, Report, Row, Sum, dirs};
use crate::store::{Error, Group, Inventory, Table};

/// The largest files.
pub(super) fn report(inventory: &Inventory, span: Span, count: usize) -> Result<Report, Error> {
    let scope = Scope::read(inventory, span)?;
    let mut firsts = Links::read(inventory, &scope)?.within(&scope).firsts();
    let mut largest = Largest::new(count);
    inventory.each(Table::Entries, |group| {
        let rows = counted(group, &scope, &mut firsts)?;
        if !rows.iter().any(|(_, sum)| largest.admits(sum)) {
            return Ok(());
        }
        let [names, raw] = [group.texts("name")?, group.texts("name_raw")?];
        let dir_id = group.numbers("dir_id")?;
        for (row, sum) in rows {
            if largest.admits(&sum) {
                let name = raw.get(row).or(names.get(row)).unwrap_or_default();
                largest.offer((name.to_vec(), dir_id.or_zero()[row]), sum);
            }
        }
        Ok(())
    })?;
    let found: Vec<_> = largest.sorted().collect();
    let mut paths: HashMap<_, _> = found.iter().map(|((_, dir_id), _)| (*dir_id, Vec::new())).collect();
    dirs::paths(inventory, &mut paths)?;
    let row = |((name, dir_id), sum)| Row { key: Key::Path, text: joined(&paths[&dir_id], name), sum };
    let total = dirs::total(inventory, &scope)?;
    Ok(Report { rows: found.into_iter().map(row).collect(), total })
}

fn joined(directory: &[u8], name: Vec<u8>) -> Vec<u8> {
    match directory.last() {
        None => name,
        Some(b'/') => [directory, &name].concat(),
        Some(_) => [directory, b"/", &name].concat(),
    }
}

/// The rows of entries in `scope` that count, with what they come to.
pub(super) fn counted(
    group: &Group<'_>,
    scope: &Scope,
    firsts: &mut Firsts,
) -> parquet::errors::Result<Vec<(usize, Sum)>> {
    let [size, blocks, nlink] = [group.numbers("size")?, group.numbers("blocks")?, group.numbers("nlink")?];
    let sum = |row: usize| Sum::new(1, blocks.or_zero()[row], size.or_zero()[row]);
    let has_links = nlink.or_zero().iter().any(|nlink| *nlink > 1);
    if scope.is_everything() && !has_links {
        return Ok((0..group.rows()).map(|row| (row, sum(row))).collect());
    }
    let [dir_id, dev, ino] = [group.numbers("dir_id")?, group.numbers("dev")?, group.numbers("ino")?];
    let mut counts = |row: &usize| {
        let [nlink, dir_id, dev, ino] = [&nlink, &dir_id, &dev, &ino].map(|column| column.or_zero()[*row]);
        let has_one_row = nlink <= 1 && !scope.has_operands();
        scope.has(dir_id) && (has_one_row || firsts.counts(dev, ino, dir_id))
    };
    Ok((0..group.rows()).filter(|row| counts(row)).map(|row| (row, sum(row))).collect())
}
