//! Totals by depth, from what the inventory says of what is right in each directory.

use std::collections::{BTreeMap, HashMap};

use super::below::Span;
use super::links::Links;
use super::scope::{Scope, is_entered};
use super::{Key, Report, Row, Sum, dirs};
use crate::store::{Error, Group, Inventory, Table};

/// Totals by depth; an operand's is 0.
pub(super) fn report(inventory: &Inventory, span: Span) -> Result<Report, Error> {
    let scope = Scope::read(inventory, span)?;
    let surplus = Links::read(inventory, &scope)?.within(&scope).surplus();
    let (mut depths, mut roots) = (BTreeMap::new(), 0);
    inventory.each(Table::Dirs, |group| add(group, &scope, &surplus, &mut depths, &mut roots))?;
    if span == Span::ALL {
        let operands = dirs::operands(inventory, roots)?;
        let operands = operands.less(surplus.get(&0).unwrap_or(&Sum::default()));
        if operands.entries > 0 {
            depths.entry(0).or_insert_with(Sum::default).add(&operands);
        }
    }
    let mut total = Sum::default();
    depths.values().for_each(|sum| total.add(sum));
    let row = |(depth, sum)| Row { key: Key::Depth(depth), text: Vec::new(), sum };
    Ok(Report { rows: depths.into_iter().map(row).collect(), total })
}

/// Adds the directories of a row group at their depth, and what is in them at the next.
fn add(
    group: &Group<'_>,
    scope: &Scope,
    surplus: &HashMap<i64, Sum>,
    depths: &mut BTreeMap<i64, Sum>,
    roots: &mut usize,
) -> parquet::errors::Result<()> {
    let names = ["dir_id", "depth", "blocks", "n_files", "n_other", "sum_size", "sum_blocks"];
    let mut columns = Vec::new();
    for name in names {
        columns.push(group.numbers(name)?);
    }
    let states = group.texts("state")?;
    for row in 0..group.rows() {
        let number = |column: usize| columns[column].or_zero()[row];
        let (dir_id, depth) = (number(0), number(1));
        *roots += usize::from(depth == 0);
        if !scope.has(dir_id) || !is_entered(&states, row) {
            continue;
        }
        depths.entry(depth).or_default().add(&Sum::new(1, number(2), 0));
        let inside = Sum::new(number(3).saturating_add(number(4)), number(6), number(5));
        let inside = inside.less(surplus.get(&dir_id).unwrap_or(&Sum::default()));
        if inside.entries > 0 {
            depths.entry(depth.saturating_add(1)).or_default().add(&inside);
        }
    }
    Ok(())
}
