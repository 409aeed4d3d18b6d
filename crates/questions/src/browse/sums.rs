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
    /// The allocated bytes below directories of inodes that have names elsewhere as well.
    shared: HashMap<i64, u64>,
    /// The same as `links` for all roots together.
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
        let mut corrections = Self { skipped, gaps, ..Self::default() };
        corrections.read_links(inventory, &HardLinks::read_all(inventory)?)?;
        Ok(corrections)
    }

    /// Corrects the sums for the names that are left of inodes with several names.
    pub(super) fn retain_links(
        &mut self,
        inventory: &Inventory,
        keeps: &mut dyn FnMut(i64, (u64, u64)) -> bool,
    ) -> Result<(), Error> {
        if self.links.is_empty() && self.shared.is_empty() && self.links_of_all == UsageSum::default() {
            return Ok(());
        }
        let mut links = HardLinks::read_all(inventory)?;
        links.retain(keeps);
        self.read_links(inventory, &links)
    }

    /// Reads what names of inodes that count already add to the size of each directory, and of all
    /// roots, and what directories share with others. All names are entries.
    fn read_links(&mut self, inventory: &Inventory, links: &HardLinks) -> Result<(), Error> {
        let (mut surplus, mut whole) = (LinkSurplus::new(links), links.whole());
        (self.links, self.shared, self.links_of_all) = Default::default();
        let names = links.bytes_by_dir();
        if names.is_empty() {
            return Ok(());
        }
        let until = sums_before(&names);
        let size = |sum: UsageSum| UsageSum { entries: 0, ..sum };
        inventory.each(Table::Dirs, |group| {
            let [pre, post] = [group.numbers("pre")?, group.numbers("post")?];
            for (pre, post) in pre.or_zero().iter().zip(post.or_zero()) {
                let sums = surplus.of(*pre, *post).zip(whole.of(*pre, *post));
                let (sum, whole) = sums.ok_or_else(|| damaged("its directories are out of order"))?;
                if sum != UsageSum::default() {
                    self.links.insert(*pre, size(sum));
                }
                let at = |end: i64| until[names.partition_point(|(dir, _)| *dir < end)];
                let all = at(post.saturating_add(1)).saturating_sub(at(*pre));
                let shared = all.saturating_sub(sum.allocated).saturating_sub(whole.allocated);
                if shared > 0 {
                    self.shared.insert(*pre, shared);
                }
            }
            ReadResult::Ok(())
        })?;
        self.links_of_all = size(surplus.rest());
        Ok(())
    }

    /// Returns the allocated bytes of inodes below a directory that have names elsewhere as well.
    pub(super) fn shared(&self, span: Span) -> u64 {
        self.shared.get(&span.first).copied().unwrap_or_default()
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

/// Returns the sums of the bytes before each name, and of all.
fn sums_before(names: &[(i64, u64)]) -> Vec<u64> {
    let mut sums = vec![0_u64];
    for (_, bytes) in names {
        sums.push(sums[sums.len() - 1].saturating_add(*bytes));
    }
    sums
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
