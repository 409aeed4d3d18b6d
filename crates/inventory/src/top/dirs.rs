//! The largest directories, from what the inventory says of everything below each.

use std::collections::HashMap;

use super::below::Span;
use super::largest::Largest;
use super::links::{Links, Surplus};
use super::{Key, Report, Row, Sum};
use crate::store::{Error, Group, Inventory, Numbers, Table};

/// The largest directories.
pub(super) fn report(inventory: &Inventory, span: Span, count: usize) -> Result<Report, Error> {
    let links = Links::read(inventory, span)?;
    let mut tally = Tally::new(&links, span);
    let mut largest = Largest::new(count);
    inventory.each(Table::Dirs, |group| {
        let rows = tally.rows(group)?;
        if !rows.iter().any(|(_, sum)| largest.admits(sum)) {
            return Ok(());
        }
        let (paths, raw) = (group.texts("path")?, group.texts("path_raw")?);
        for (row, sum) in rows {
            if largest.admits(&sum) {
                let path = raw.get(row).or(paths.get(row)).unwrap_or_default();
                largest.offer((path.to_vec(), row), sum);
            }
        }
        Ok(())
    })?;
    let total = tally.total(inventory)?;
    let rows = largest.sorted().map(|((text, _), sum)| Row { key: Key::Path, text, sum }).collect();
    Ok(Report { rows, total })
}

/// What everything in `span` comes to.
pub(super) fn total(inventory: &Inventory, span: Span, links: &Links) -> Result<Sum, Error> {
    let mut tally = Tally::new(links, span);
    inventory.each(Table::Dirs, |group| tally.rows(group).map(drop))?;
    tally.total(inventory)
}

/// What directories come to, in the order of their rows.
pub(crate) struct Tally {
    span: Span,
    surplus: Surplus,
    /// What is too many in all.
    spare: Sum,
    total: Sum,
    roots: usize,
}

impl Tally {
    pub(crate) fn new(links: &Links, span: Span) -> Self {
        let mut spare = Sum::default();
        links.pairs().iter().for_each(|pair| spare.add(&pair.sum));
        Self { span, surplus: Surplus::new(links), spare, total: Sum::default(), roots: 0 }
    }

    /// Rows of a row group that are looked at, with what they come to.
    pub(crate) fn rows(&mut self, group: &Group<'_>) -> parquet::errors::Result<Vec<(usize, Sum)>> {
        let [pre, post, depth] = [group.numbers("pre")?, group.numbers("post")?, group.numbers("depth")?];
        let sums = Sums::read(group)?;
        let mut rows = Vec::new();
        for row in (0..group.rows()).filter(|row| self.span.has(pre.or_zero()[*row])) {
            let (pre, post, depth) = (pre.or_zero()[row], post.or_zero()[row], depth.or_zero()[row]);
            let all = sums.get(row);
            let is_top = if self.span == Span::ALL { depth == 0 } else { pre == self.span.first };
            if is_top {
                self.total.add(&all);
                self.roots += 1;
            }
            let spare = self.surplus.of(pre, post).ok_or_else(|| {
                parquet::errors::ParquetError::General("its directories are not in their order".to_owned())
            })?;
            rows.push((row, all.less(&spare)));
        }
        Ok(rows)
    }

    /// What everything comes to, once all rows have been seen.
    fn total(mut self, inventory: &Inventory) -> Result<Sum, Error> {
        if self.span == Span::ALL {
            self.total.add(&operands(inventory, self.roots)?);
        }
        Ok(self.total.less(&self.spare))
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
    inventory.each(Table::Dirs, |group| {
        let dir_id = group.numbers("dir_id")?;
        if !dir_id.or_zero().iter().any(|dir_id| wanted.contains_key(dir_id)) {
            return Ok(());
        }
        let (paths, raw) = (group.texts("path")?, group.texts("path_raw")?);
        for (row, dir_id) in dir_id.or_zero().iter().enumerate() {
            if let Some(path) = wanted.get_mut(dir_id) {
                *path = raw.get(row).or(paths.get(row)).unwrap_or_default().to_vec();
            }
        }
        Ok(())
    })
}
