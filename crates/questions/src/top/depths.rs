//! Totals by depth, from the sums over the entries of each directory.

use std::collections::{BTreeMap, HashMap};

use super::links::HardLinks;
use super::scope::{Scope, is_entered};
use super::{GroupKey, ReportRow, UsageReport, UsageSum, dirs};
use fathom_inventory::store::Span;
use fathom_inventory::store::{Error, Inventory, RowGroup, Table};

/// Reports totals by depth. An operand has depth 0.
pub(super) fn report(inventory: &Inventory, span: Span) -> Result<UsageReport, Error> {
    let scope = Scope::read(inventory, span)?;
    let surplus = HardLinks::read(inventory, &scope)?.within(&scope).surplus_by_dir();
    let (mut depths, mut roots) = (BTreeMap::new(), 0);
    inventory.each(Table::Dirs, |group| add(group, &scope, &surplus, &mut depths, &mut roots))?;
    if span == Span::ALL {
        let operands = dirs::operands(inventory, roots)?;
        let operands = operands.minus(surplus.get(&0).unwrap_or(&UsageSum::default()));
        if operands.entries > 0 {
            depths.entry(0).or_insert_with(UsageSum::default).add(&operands);
        }
    }
    let mut total = UsageSum::default();
    depths.values().for_each(|sum| total.add(sum));
    let row = |(depth, sum)| ReportRow { key: GroupKey::Depth(depth), text: Vec::new(), sum };
    Ok(UsageReport { rows: depths.into_iter().map(row).collect(), total })
}

/// Adds the directories of a row group at their depth, and their entries at the next depth.
fn add(
    group: &RowGroup<'_>,
    scope: &Scope,
    surplus: &HashMap<i64, UsageSum>,
    depths: &mut BTreeMap<i64, UsageSum>,
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
        if !scope.contains(dir_id) || !is_entered(&states, row) {
            continue;
        }
        depths.entry(depth).or_default().add(&UsageSum::new(1, number(2), 0));
        let inside = UsageSum::new(number(3).saturating_add(number(4)), number(6), number(5));
        let inside = inside.minus(surplus.get(&dir_id).unwrap_or(&UsageSum::default()));
        if inside.entries > 0 {
            depths.entry(depth.saturating_add(1)).or_default().add(&inside);
        }
    }
    Ok(())
}
