//! Corrections of the sums in the rows of `dirs`, in which each name of an inode has its size, and
//! directories that the scan skipped count. And which directories have gaps.

use std::collections::{BTreeMap, HashMap};

use parquet::errors::Result as ReadResult;

use crate::top::UsageSum;
use crate::top::links::{HardLinks, LinkSurplus};
use fathom_inventory::store::{DirState, Error, Inventory, Span, Table, damaged};

/// The corrections of the sums in an inventory. Memory grows with the number of directories that
/// have any, not with the number of all directories.
#[derive(Debug, Default)]
pub(super) struct SumCorrections {
    /// Numbers of directories that were skipped, each with the sum of it and of all before it.
    skipped: Vec<(i64, UsageSum)>,
    /// Directories with several names of an inode below them, each with what the names but one add
    /// to its size.
    links: HashMap<i64, UsageSum>,
    /// The same for all roots together.
    links_of_all: UsageSum,
    /// The numbers of incomplete directories.
    gaps: Vec<i64>,
}

impl SumCorrections {
    pub(super) fn read(inventory: &Inventory) -> Result<Self, Error> {
        let (mut skipped, mut gaps) = (BTreeMap::new(), Vec::new());
        let found = &inventory.manifest().completeness;
        if found.skipped + found.partial + found.failed > 0 {
            read_states(inventory, &mut skipped, &mut gaps)?;
        }
        gaps.sort_unstable();
        let mut total = UsageSum::default();
        let add = |(dir, sum): (i64, UsageSum)| {
            total.add(&sum);
            (dir, total)
        };
        let skipped = skipped.into_iter().map(add).collect();
        let (links, links_of_all) = read_surplus(inventory, &HardLinks::read_all(inventory)?)?;
        Ok(Self { skipped, links, links_of_all, gaps })
    }

    /// Corrects the sums for the names that are left of inodes with several names.
    pub(super) fn retain_links(
        &mut self,
        inventory: &Inventory,
        keeps: &mut dyn FnMut(i64, (u64, u64)) -> bool,
    ) -> Result<(), Error> {
        if self.links.is_empty() && self.links_of_all == UsageSum::default() {
            return Ok(());
        }
        let mut links = HardLinks::read_all(inventory)?;
        links.retain(keeps);
        (self.links, self.links_of_all) = read_surplus(inventory, &links)?;
        Ok(())
    }

    /// Returns what names of inodes that count already add to the size of a directory with this
    /// span.
    pub(super) fn of_links(&self, span: Span) -> UsageSum {
        self.links.get(&span.first).copied().unwrap_or_default()
    }

    /// Returns what is too much in the sums of a directory with this span.
    pub(super) fn within(&self, span: Span) -> UsageSum {
        let until = |end: i64| {
            let count = self.skipped.partition_point(|(dir, _)| *dir < end);
            count.checked_sub(1).map_or_else(UsageSum::default, |at| self.skipped[at].1)
        };
        let mut surplus = until(span.last.saturating_add(1)).minus(&until(span.first));
        surplus.add(&self.of_links(span));
        surplus
    }

    /// Returns what is too much in the sums of all roots together, beside what is too much in each.
    pub(super) fn between_roots(&self) -> UsageSum {
        self.links_of_all
    }

    /// Returns whether a directory in the span is incomplete.
    pub(super) fn has_gap(&self, span: Span) -> bool {
        let at = self.gaps.partition_point(|dir| *dir < span.first);
        self.gaps.get(at).is_some_and(|dir| span.contains(*dir))
    }
}

/// Returns what names of inodes that count already add to the size of each directory, and of all
/// roots. All of them are entries.
fn read_surplus(
    inventory: &Inventory,
    links: &HardLinks,
) -> Result<(HashMap<i64, UsageSum>, UsageSum), Error> {
    let (mut found, mut surplus) = (HashMap::new(), LinkSurplus::new(links));
    let size = |sum: UsageSum| UsageSum { entries: 0, ..sum };
    if surplus.is_empty() {
        return Ok((found, UsageSum::default()));
    }
    inventory.each(Table::Dirs, |group| {
        let [pre, post] = [group.numbers("pre")?, group.numbers("post")?];
        for (pre, post) in pre.or_zero().iter().zip(post.or_zero()) {
            let sum = surplus.of(*pre, *post);
            let sum = sum.ok_or_else(|| damaged("its directories are out of order"))?;
            if sum.entries > 0 {
                found.insert(*pre, size(sum));
            }
        }
        ReadResult::Ok(())
    })?;
    Ok((found, size(surplus.rest())))
}

fn read_states(
    inventory: &Inventory,
    skipped: &mut BTreeMap<i64, UsageSum>,
    gaps: &mut Vec<i64>,
) -> Result<(), Error> {
    inventory.each(Table::Dirs, |group| {
        let (ids, states, blocks) =
            (group.numbers("dir_id")?, group.texts("state")?, group.numbers("t_blocks")?);
        for (row, id) in ids.or_zero().iter().enumerate() {
            match states.get(row).and_then(DirState::from_word) {
                Some(DirState::Skipped) => {
                    skipped.entry(*id).or_default().add(&UsageSum::new(1, blocks.or_zero()[row], 0));
                }
                Some(DirState::Partial | DirState::Failed) => gaps.push(*id),
                _ => {}
            }
        }
        Ok(())
    })
}
