//! Corrections of the sums in the rows of `dirs`, which include further names of inodes, and
//! directories that the scan skipped. And which directories have gaps.

use std::collections::BTreeMap;

use crate::store::dirs::DirState;
use crate::store::{Error, Inventory, Table};
use crate::top::UsageSum;
use crate::top::links::HardLinks;
use crate::top::span::Span;

/// The corrections of the sums in an inventory. Memory grows with the number of directories that
/// have any, not with that of all directories.
#[derive(Debug, Default)]
pub(super) struct SumCorrections {
    /// Numbers of directories, each with the sum of what is too much in it and in all before it.
    totals: Vec<(i64, UsageSum)>,
    /// The numbers of incomplete directories.
    gaps: Vec<i64>,
}

impl SumCorrections {
    pub(super) fn read(inventory: &Inventory) -> Result<Self, Error> {
        let mut surplus: BTreeMap<i64, UsageSum> =
            HardLinks::read_all(inventory)?.surplus_by_dir().into_iter().collect();
        let mut gaps = Vec::new();
        let found = &inventory.manifest().completeness;
        if found.skipped + found.partial + found.failed > 0 {
            read_states(inventory, &mut surplus, &mut gaps)?;
        }
        gaps.sort_unstable();
        let mut total = UsageSum::default();
        let add = |(dir, sum): (i64, UsageSum)| {
            total.add(&sum);
            (dir, total)
        };
        Ok(Self { totals: surplus.into_iter().map(add).collect(), gaps })
    }

    /// Returns what is too much in the sums of a directory with this span.
    pub(super) fn within(&self, span: Span) -> UsageSum {
        let until = |end: i64| {
            let count = self.totals.partition_point(|(dir, _)| *dir < end);
            count.checked_sub(1).map_or_else(UsageSum::default, |at| self.totals[at].1)
        };
        until(span.last.saturating_add(1)).minus(&until(span.first))
    }

    /// Returns whether a directory in the span is incomplete.
    pub(super) fn has_gap(&self, span: Span) -> bool {
        let at = self.gaps.partition_point(|dir| *dir < span.first);
        self.gaps.get(at).is_some_and(|dir| span.contains(*dir))
    }
}

fn read_states(
    inventory: &Inventory,
    surplus: &mut BTreeMap<i64, UsageSum>,
    gaps: &mut Vec<i64>,
) -> Result<(), Error> {
    inventory.each(Table::Dirs, |group| {
        let (ids, states, blocks) =
            (group.numbers("dir_id")?, group.texts("state")?, group.numbers("t_blocks")?);
        for (row, id) in ids.or_zero().iter().enumerate() {
            match states.get(row).and_then(DirState::from_word) {
                Some(DirState::Skipped) => {
                    surplus.entry(*id).or_default().add(&UsageSum::new(1, blocks.or_zero()[row], 0));
                }
                Some(DirState::Partial | DirState::Failed) => gaps.push(*id),
                _ => {}
            }
        }
        Ok(())
    })
}
