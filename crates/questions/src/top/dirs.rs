//! The largest directories, from the sums over everything below each.

use std::collections::HashMap;

use super::largest::Largest;
use super::links::{HardLinks, LinkSurplus};
use super::scope::{Scope, is_entered};
use super::{GroupKey, ReportRow, UsageReport, UsageSum};
use fathom_inventory::store::Span;
use fathom_inventory::store::{Error, Inventory, NumberColumn, PathColumns, RowGroup, Table};

/// Reports the largest directories.
pub(super) fn report(inventory: &Inventory, span: Span, count: usize) -> Result<UsageReport, Error> {
    let scope = Scope::read(inventory, span)?;
    let links = HardLinks::read(inventory, &scope)?;
    let (mut tally, mut total) = (DirSums::new(&links, span), TreesTotal::default());
    let mut largest = Largest::new(count);
    inventory.each(Table::Dirs, |group| {
        let rows = tally.rows(group)?;
        total.add(group, &rows, &scope)?;
        let dir_id = group.numbers("dir_id")?;
        let admits = |largest: &Largest<_>, dir: &DirSum| {
            largest.admits(&dir.sum) && !scope.is_repeated(dir_id.or_zero()[dir.row])
        };
        if !rows.iter().any(|dir| admits(&largest, dir)) {
            return Ok(());
        }
        let paths = PathColumns::read(group)?;
        for dir in rows {
            if admits(&largest, &dir) {
                let path = paths.get(dir.row).map(<[u8]>::to_vec);
                // A long path is joined only for a row that is shown. Rows with a long path come
                // after all others of the same size.
                largest.push((path.is_none(), path, dir_id.or_zero()[dir.row]), dir.sum);
            }
        }
        Ok(())
    })?;
    let total = total.finish(inventory, &links.within(&scope), &scope)?;
    let rows = largest.sorted().map(|((_, path, dir_id), sum)| {
        let text = path.map_or_else(|| inventory.long_path(dir_id), Ok)?;
        Ok(ReportRow { key: GroupKey::Path, text, sum })
    });
    Ok(UsageReport { rows: rows.collect::<Result<_, Error>>()?, total })
}

/// Returns the sum of all entries in `scope`.
pub(super) fn total(inventory: &Inventory, scope: &Scope) -> Result<UsageSum, Error> {
    let links = HardLinks::read(inventory, scope)?;
    let (mut tally, mut total) = (DirSums::new(&links, scope.span), TreesTotal::default());
    inventory.each(Table::Dirs, |group| {
        let rows = tally.rows(group)?;
        total.add(group, &rows, scope)
    })?;
    total.finish(inventory, &links.within(scope), scope)
}

/// Returns the sum of the trees in `scope`, with each inode counted once.
pub(crate) fn of_trees(inventory: &Inventory, scope: &Scope) -> Result<UsageSum, Error> {
    let links = HardLinks::read(inventory, scope)?;
    let (mut tally, mut total) = (DirSums::new(&links, scope.span), TreesTotal::default());
    inventory.each(Table::Dirs, |group| {
        let rows = tally.rows(group)?;
        total.add(group, &rows, scope)
    })?;
    Ok(total.sum.minus(&total.repeated).minus(&links.within(scope).surplus_total()))
}

/// A row of `dirs`, with its sums.
pub(crate) struct DirSum {
    pub row: usize,
    /// The sum of everything at and below the directory, with each inode counted once.
    pub(crate) sum: UsageSum,
    /// The sum of everything at and below the directory, with each name counted.
    all: UsageSum,
}

/// Computes the sums of directories, in the order of their rows.
pub(crate) struct DirSums {
    span: Span,
    surplus: LinkSurplus,
    /// The sums of directories that the scan skipped, each by the last directory above it whose row
    /// has been read. The sums in the rows of all directories above include them.
    skipped: Vec<(i64, UsageSum)>,
}

impl DirSums {
    pub(crate) fn new(links: &HardLinks, span: Span) -> Self {
        Self { span, surplus: LinkSurplus::new(links), skipped: Vec::new() }
    }

    /// Returns the rows of a row group that are in the span, without directories that the scan
    /// skipped.
    pub(crate) fn rows(&mut self, group: &RowGroup<'_>) -> parquet::errors::Result<Vec<DirSum>> {
        let [pre, post] = [group.numbers("pre")?, group.numbers("post")?];
        let (sums, states) = (SubtreeColumns::read(group)?, group.texts("state")?);
        let (span, mut rows) = (self.span, Vec::new());
        for row in (0..group.rows()).filter(|row| span.contains(pre.or_zero()[*row])) {
            let all = sums.get(row).minus(&self.skipped_below(pre.or_zero()[row]));
            let surplus = self.surplus.of(pre.or_zero()[row], post.or_zero()[row]).ok_or_else(|| {
                parquet::errors::ParquetError::General("its directories are out of order".to_owned())
            })?;
            if is_entered(&states, row) {
                rows.push(DirSum { row, sum: all.minus(&surplus), all });
            } else {
                self.skipped.push((pre.or_zero()[row], all));
            }
        }
        Ok(rows)
    }

    /// Returns the sum of the skipped directories below `pre`. The rows of everything below a
    /// directory come before its own.
    fn skipped_below(&mut self, pre: i64) -> UsageSum {
        let mut sum = UsageSum::default();
        while let Some((_, below)) = self.skipped.pop_if(|(dir, _)| *dir > pre) {
            sum.add(&below);
        }
        if sum.entries > 0 {
            self.skipped.push((pre, sum));
        }
        sum
    }
}

/// The sum of all trees.
#[derive(Default)]
pub(super) struct TreesTotal {
    sum: UsageSum,
    /// The sum of the subtrees that overlapping operands repeat.
    repeated: UsageSum,
    roots: usize,
}

impl TreesTotal {
    pub(super) fn add(
        &mut self,
        group: &RowGroup<'_>,
        rows: &[DirSum],
        scope: &Scope,
    ) -> parquet::errors::Result<()> {
        let (pre, depth) = (group.numbers("pre")?, group.numbers("depth")?);
        for DirSum { row, all, .. } in rows {
            let (pre, depth) = (pre.or_zero()[*row], depth.or_zero()[*row]);
            let has_trees = [Span::ALL, Span::TREES].contains(&scope.span);
            let is_top = if has_trees { depth == 0 } else { pre == scope.span.first };
            self.roots += usize::from(is_top);
            if is_top && !scope.is_repeated(pre) {
                self.sum.add(all);
            } else if !is_top && scope.is_repeat_top(pre) {
                self.repeated.add(all);
            }
        }
        Ok(())
    }

    /// Returns the total, once all rows have been added. `links` are the names that count.
    pub(super) fn finish(
        mut self,
        inventory: &Inventory,
        links: &HardLinks,
        scope: &Scope,
    ) -> Result<UsageSum, Error> {
        if scope.span == Span::ALL {
            self.sum.add(&operands(inventory, self.roots)?);
        }
        Ok(self.sum.minus(&self.repeated).minus(&links.surplus_total()))
    }
}

/// The columns that have the sums over everything below a directory.
struct SubtreeColumns {
    counts: [NumberColumn; 3],
    size: NumberColumn,
    blocks: NumberColumn,
}

impl SubtreeColumns {
    fn read(group: &RowGroup<'_>) -> parquet::errors::Result<Self> {
        Ok(Self {
            counts: [group.numbers("t_files")?, group.numbers("t_dirs")?, group.numbers("t_other")?],
            size: group.numbers("t_size")?,
            blocks: group.numbers("t_blocks")?,
        })
    }

    /// Returns the sum of everything at and below the directory.
    fn get(&self, row: usize) -> UsageSum {
        let entries = self.counts.iter().fold(1i64, |sum, count| sum.saturating_add(count.or_zero()[row]));
        UsageSum::new(entries, self.blocks.or_zero()[row], self.size.or_zero()[row])
    }
}

/// Returns the sum of the operands that are not directories, with each name counted. No directory's
/// sums include them. `roots` is the number of operands that are directories.
pub(super) fn operands(inventory: &Inventory, roots: usize) -> Result<UsageSum, Error> {
    let manifest = inventory.manifest();
    let others = (manifest.roots.len() as u64).saturating_sub(manifest.completeness.missing_roots);
    let mut sum = UsageSum::default();
    if others <= roots as u64 {
        return Ok(sum);
    }
    inventory.each(Table::Entries, |group| {
        let dir_id = group.numbers("dir_id")?;
        if !dir_id.or_zero().contains(&0) {
            return Ok(());
        }
        let (size, blocks) = (group.numbers("size")?, group.numbers("blocks")?);
        for row in (0..group.rows()).filter(|row| dir_id.or_zero()[*row] == 0) {
            sum.add(&UsageSum::new(1, blocks.or_zero()[row], size.or_zero()[row]));
        }
        Ok(())
    })?;
    Ok(sum)
}

/// Sets the paths of the directories in `wanted`, which maps numbers to paths.
pub(super) fn paths(inventory: &Inventory, wanted: &mut HashMap<i64, Vec<u8>>) -> Result<(), Error> {
    let mut long = Vec::new();
    inventory.each(Table::Dirs, |group| {
        let dir_id = group.numbers("dir_id")?;
        if !dir_id.or_zero().iter().any(|dir_id| wanted.contains_key(dir_id)) {
            return Ok(());
        }
        let paths = PathColumns::read(group)?;
        for (row, dir_id) in dir_id.or_zero().iter().enumerate() {
            if let Some(path) = wanted.get_mut(dir_id) {
                match paths.get(row) {
                    Some(found) => *path = found.to_vec(),
                    None => long.push(*dir_id),
                }
            }
        }
        Ok(())
    })?;
    for dir_id in long {
        wanted.insert(dir_id, inventory.long_path(dir_id)?);
    }
    Ok(())
}
