//! The largest directories, from what the inventory says of everything below each.

use std::collections::HashMap;

use super::below::Span;
use super::largest::Largest;
use super::links::{Links, Surplus};
use super::scope::{Scope, is_entered};
use super::{Key, Report, Row, Sum};
use crate::store::{Error, Group, Inventory, Numbers, Paths, Table};

/// The largest directories.
pub(super) fn report(inventory: &Inventory, span: Span, count: usize) -> Result<Report, Error> {
    let scope = Scope::read(inventory, span)?;
    let links = Links::read(inventory, &scope)?;
    let (mut tally, mut total) = (Tally::new(&links, span), Total::default());
    let mut largest = Largest::new(count);
    inventory.each(Table::Dirs, |group| {
        let rows = tally.rows(group)?;
        total.add(group, &rows, &scope)?;
        let dir_id = group.numbers("dir_id")?;
        let admits = |largest: &Largest<_>, line: &Line| {
            largest.admits(&line.sum) && !scope.is_repeated(dir_id.or_zero()[line.row])
        };
        if !rows.iter().any(|line| admits(&largest, line)) {
            return Ok(());
        }
        let paths = Paths::read(group)?;
        for line in rows {
            if admits(&largest, &line) {
                let path = paths.get(line.row).map(<[u8]>::to_vec);
                // A long path is put together only for what is shown, and comes after all others of
                // the same size.
                largest.offer((path.is_none(), path, dir_id.or_zero()[line.row]), line.sum);
            }
        }
        Ok(())
    })?;
    let total = total.finish(inventory, &links.within(&scope), &scope)?;
    let rows = largest.sorted().map(|((_, path, dir_id), sum)| {
        let text = path.map_or_else(|| inventory.long_path(dir_id), Ok)?;
        Ok(Row { key: Key::Path, text, sum })
    });
    Ok(Report { rows: rows.collect::<Result<_, Error>>()?, total })
}

/// Returns the sum of all entries in `scope`.
pub(super) fn total(inventory: &Inventory, scope: &Scope) -> Result<Sum, Error> {
    let links = Links::read(inventory, scope)?;
    let (mut tally, mut total) = (Tally::new(&links, scope.span), Total::default());
    inventory.each(Table::Dirs, |group| {
        let rows = tally.rows(group)?;
        total.add(group, &rows, scope)
    })?;
    total.finish(inventory, &links.within(scope), scope)
}

/// Returns the sum of the trees in `scope`, each inode once.
pub(crate) fn of_trees(inventory: &Inventory, scope: &Scope) -> Result<Sum, Error> {
    let links = Links::read(inventory, scope)?;
    let (mut tally, mut total) = (Tally::new(&links, scope.span), Total::default());
    inventory.each(Table::Dirs, |group| {
        let rows = tally.rows(group)?;
        total.add(group, &rows, scope)
    })?;
    Ok(total.sum.less(&total.repeated).less(&links.within(scope).spare()))
}

/// A row of `dirs`.
pub(crate) struct Line {
    pub(crate) row: usize,
    /// Everything at and below it, each inode once.
    pub(crate) sum: Sum,
    /// The same, each name.
    all: Sum,
}

/// What directories come to, in the order of their rows.
pub(crate) struct Tally {
    span: Span,
    surplus: Surplus,
    /// Sums of directories that the scan passed over, by the last directory above them whose row
    /// has been read. The rows of directories above have all of them in their sums.
    skipped: Vec<(i64, Sum)>,
}

impl Tally {
    pub(crate) fn new(links: &Links, span: Span) -> Self {
        Self { span, surplus: Surplus::new(links), skipped: Vec::new() }
    }

    /// The rows of a row group that are in the span, but for directories that the scan passed over.
    pub(crate) fn rows(&mut self, group: &Group<'_>) -> parquet::errors::Result<Vec<Line>> {
        let [pre, post] = [group.numbers("pre")?, group.numbers("post")?];
        let (sums, states) = (Sums::read(group)?, group.texts("state")?);
        let (span, mut rows) = (self.span, Vec::new());
        for row in (0..group.rows()).filter(|row| span.has(pre.or_zero()[*row])) {
            let all = sums.get(row).less(&self.skipped_below(pre.or_zero()[row]));
            let spare = self.surplus.of(pre.or_zero()[row], post.or_zero()[row]).ok_or_else(|| {
                parquet::errors::ParquetError::General("its directories are not in their order".to_owned())
            })?;
            if is_entered(&states, row) {
                rows.push(Line { row, sum: all.less(&spare), all });
            } else {
                self.skipped.push((pre.or_zero()[row], all));
            }
        }
        Ok(rows)
    }

    /// Returns the sum of the directories below `pre` that the scan passed over. Rows of everything
    /// below a directory precede its own.
    fn skipped_below(&mut self, pre: i64) -> Sum {
        let mut sum = Sum::default();
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
struct Total {
    sum: Sum,
    /// The sum of the subtrees that overlapping operands repeat.
    repeated: Sum,
    roots: usize,
}

impl Total {
    fn add(&mut self, group: &Group<'_>, rows: &[Line], scope: &Scope) -> parquet::errors::Result<()> {
        let (pre, depth) = (group.numbers("pre")?, group.numbers("depth")?);
        for Line { row, all, .. } in rows {
            let (pre, depth) = (pre.or_zero()[*row], depth.or_zero()[*row]);
            let has_trees = [Span::ALL, Span::TREES].contains(&scope.span);
            let is_top = if has_trees { depth == 0 } else { pre == scope.span.first };
            self.roots += usize::from(is_top);
            if is_top && !scope.is_repeated(pre) {
                self.sum.add(all);
            } else if !is_top && scope.begins_repeat(pre) {
                self.repeated.add(all);
            }
        }
        Ok(())
    }

    /// Once all rows have been seen; `links` are those that count.
    fn finish(mut self, inventory: &Inventory, links: &Links, scope: &Scope) -> Result<Sum, Error> {
        if scope.span == Span::ALL {
            self.sum.add(&operands(inventory, self.roots)?);
        }
        Ok(self.sum.less(&self.repeated).less(&links.spare()))
    }
}

/// The columns of everything below.
struct Sums {
    counts: [Numbers; 3],
    size: Numbers,
    blocks: Numbers,
}

impl Sums {
    fn read(group: &Group<'_>) -> parquet::errors::Result<Self> {
        Ok(Self {
            counts: [group.numbers("t_files")?, group.numbers("t_dirs")?, group.numbers("t_other")?],
            size: group.numbers("t_size")?,
            blocks: group.numbers("t_blocks")?,
        })
    }

    /// With the directory itself.
    fn get(&self, row: usize) -> Sum {
        let entries = self.counts.iter().fold(1i64, |sum, count| sum.saturating_add(count.or_zero()[row]));
        Sum::new(entries, self.blocks.or_zero()[row], self.size.or_zero()[row])
    }
}

/// What operands come to that are no directories, each of their names: no directory's sums have them. `roots` are those
/// that are directories.
pub(super) fn operands(inventory: &Inventory, roots: usize) -> Result<Sum, Error> {
    let manifest = inventory.manifest();
    let others = (manifest.roots.len() as u64).saturating_sub(manifest.completeness.missing_roots);
    let mut sum = Sum::default();
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
            sum.add(&Sum::new(1, blocks.or_zero()[row], size.or_zero()[row]));
        }
        Ok(())
    })?;
    Ok(sum)
}

/// The paths of the directories in `wanted`, by their numbers.
pub(super) fn paths(inventory: &Inventory, wanted: &mut HashMap<i64, Vec<u8>>) -> Result<(), Error> {
    let mut long = Vec::new();
    inventory.each(Table::Dirs, |group| {
        let dir_id = group.numbers("dir_id")?;
        if !dir_id.or_zero().iter().any(|dir_id| wanted.contains_key(dir_id)) {
            return Ok(());
        }
        let paths = Paths::read(group)?;
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
