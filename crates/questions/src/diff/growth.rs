//! Computes how much each directory has grown, with everything below it. An inode with several
//! names counts once, and so does an entry that several operands cover, as in [`crate::top`].

use std::cmp::Reverse;

use super::pairs::DirPairs;
use super::tree::DirTree;
use super::{DiffOptions, PairedTrees, Side, Sides};
use crate::top::dirs::{DirSums, of_trees};
use crate::top::links::HardLinks;
use crate::top::scope::Scope;
use crate::top::{QueryError, UsageSum};
use fathom_inventory::store::Span;
use fathom_inventory::store::{DirState, Error, Inventory, Table};

/// The growth of a directory. Negative values say that it has shrunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirGrowth {
    /// The path of the directory; of a removed directory, its path in the old inventory.
    pub path: Vec<u8>,
    /// The growth in allocated bytes.
    pub allocated: i64,
    /// The growth in apparent size, in bytes.
    pub apparent: i64,
    /// The growth in the number of entries.
    pub entries: i64,
    /// Whether both inventories have everything below the directory.
    pub complete: bool,
}

impl DirGrowth {
    fn of(old: &UsageSum, new: &UsageSum) -> Self {
        let [allocated, apparent, entries] = new.growth_since(old);
        Self { path: Vec::new(), allocated, apparent, entries, complete: true }
    }

    /// Returns the sort key, by which the largest absolute difference comes first.
    fn rank(&self) -> Reverse<(u64, u64, u64)> {
        Reverse((self.allocated.unsigned_abs(), self.apparent.unsigned_abs(), self.entries.unsigned_abs()))
    }

    fn add(&mut self, other: &Self) {
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.apparent = self.apparent.saturating_add(other.apparent);
        self.entries = self.entries.saturating_add(other.entries);
        self.complete &= other.complete;
    }
}

/// A report of the growth of directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowthReport {
    /// The largest absolute difference first. Directories without a difference are left out.
    pub rows: Vec<DirGrowth>,
    /// The growth of all trees that both inventories have.
    pub total: DirGrowth,
    /// The paths of the trees that only one of the inventories has.
    pub unmatched: Sides<Vec<Vec<u8>>>,
}

/// Reports the `count` directories that changed most.
///
/// # Errors
/// As [`super::diff`].
///
/// ```
/// use fathom_questions::diff::{DiffOptions, Sides, growth};
/// use fathom_inventory::store::Inventory;
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # use fathom_scans::scan::{Scan, scan};
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let inventory = Inventory::open(&out)?;
/// let options = DiffOptions { below: None, scratch: temp.path().to_owned() };
/// // An inventory has not grown since itself.
/// let report = growth(&Sides { old: &inventory, new: &inventory }, &options, 10)?;
/// assert!(report.rows.is_empty() && report.total.allocated == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn growth(
    inventories: &Sides<&Inventory>,
    options: &DiffOptions,
    count: usize,
) -> Result<GrowthReport, QueryError> {
    report(inventories, options, count, |_, found| found)
}

/// Reports the `count` directories that grew most. A directory is left out if it did not grow, or
/// if one of its subdirectories has nine tenths of its growth: that one tells more.
///
/// # Errors
/// As [`super::diff`].
pub fn grown(
    inventories: &Sides<&Inventory>,
    options: &DiffOptions,
    count: usize,
) -> Result<GrowthReport, QueryError> {
    report(inventories, options, count, |paired, mut found| {
        let tree = &paired.trees.new;
        let mut largest_below = vec![0; tree.len()];
        for (growth, _, new) in &found {
            if let Some(above) = new.and_then(|new| tree.parent(new)) {
                let largest: &mut i64 = &mut largest_below[above as usize];
                *largest = growth.allocated.max(*largest);
            }
        }
        let below = |new: Option<u32>| new.map_or(0, |new| largest_below[new as usize]);
        found.retain(|(growth, _, new)| {
            growth.allocated > 0 && below(*new) < growth.allocated - growth.allocated / 10
        });
        found
    })
}

/// A directory, by its numbers in the old and in the new inventory, and its growth.
type FoundDir = (DirGrowth, Option<u32>, Option<u32>);

/// Reports the first `count` directories of those that `select` keeps of all that changed.
fn report(
    inventories: &Sides<&Inventory>,
    options: &DiffOptions,
    count: usize,
    select: impl FnOnce(&PairedTrees, Vec<FoundDir>) -> Vec<FoundDir>,
) -> Result<GrowthReport, QueryError> {
    let paired = PairedTrees::read(inventories, options.below.as_deref())?;
    let sums = inventories.both(|side, inventory| sums(inventory, paired.trees.get(side)))?;
    let scopes = inventories.both(|side, inventory| {
        let unmatched: Vec<i64> = paired.unmatched_roots(side).map(i64::from).collect();
        Scope::of_trees(inventory, &unmatched)
    })?;
    let gaps = gaps(&paired.trees, &paired.pairs);
    let mut found = Vec::new();
    let mut total = DirGrowth { complete: true, ..DirGrowth::default() };
    for (old, new) in pairs(&paired) {
        let sum = |side: Side, dir: Option<u32>| {
            dir.map_or_else(UsageSum::default, |dir| sums.get(side)[dir as usize])
        };
        let mut growth = DirGrowth::of(&sum(Side::Old, old), &sum(Side::New, new));
        let has_gap = |side: Side, dir: Option<u32>| dir.is_some_and(|dir| gaps.get(side)[dir as usize]);
        growth.complete = !has_gap(Side::Old, old) && !has_gap(Side::New, new);
        if paired.is_top(old, new) {
            total.add(&growth);
        }
        if growth.rank() != Reverse((0, 0, 0)) && !is_repeated(&scopes, old, new) {
            found.push((growth, old, new));
        }
    }
    if options.below.is_none() {
        let sums = inventories.both(|side, inventory| of_trees(inventory, scopes.get(side)))?;
        total = DirGrowth { complete: total.complete, ..DirGrowth::of(&sums.old, &sums.new) };
    }
    let mut found = select(&paired, found);
    found.sort_by_key(|(growth, ..)| growth.rank());
    // Directories of equal rank are ordered by their paths, so all that are level with the last row
    // need one.
    let last = found.get(count.saturating_sub(1)).map(|(growth, ..)| growth.rank());
    let buffered =
        last.map_or(found.len(), |last| found.partition_point(|(growth, ..)| growth.rank() <= last));
    let named = found.into_iter().take(buffered).map(|(growth, old, new)| {
        let path = match (old, new) {
            (_, Some(new)) => paired.trees.new.path(new),
            (old, None) => old.and_then(|old| paired.trees.old.path(old)),
        };
        let refused = || QueryError::Unreadable(inventories.new.refused("a path in it is too long"));
        Ok(DirGrowth { path: path.ok_or_else(refused)?, ..growth })
    });
    let mut rows = named.collect::<Result<Vec<_>, QueryError>>()?;
    rows.sort_by(|one, two| (one.rank(), &one.path).cmp(&(two.rank(), &two.path)));
    rows.truncate(count);
    Ok(GrowthReport { rows, total, unmatched: paired.unmatched() })
}

/// Returns whether an earlier operand covers the directory as well.
fn is_repeated(scopes: &Sides<Scope>, old: Option<u32>, new: Option<u32>) -> bool {
    match (old, new) {
        (_, Some(new)) => scopes.new.is_repeated(new.into()),
        (old, None) => old.is_some_and(|old| scopes.old.is_repeated(old.into())),
    }
}

/// Returns, for each directory, the sum of everything at and below it.
fn sums(inventory: &Inventory, tree: &DirTree) -> Result<Vec<UsageSum>, Error> {
    let links = HardLinks::read_all(inventory)?;
    let mut tally = DirSums::new(&links, Span::ALL);
    let mut sums = vec![UsageSum::default(); tree.len()];
    inventory.each(Table::Dirs, |group| {
        let ids = group.numbers("dir_id")?;
        for dir in tally.rows(group)? {
            sums[tree.at(ids.or_zero()[dir.row])? as usize] = dir.sum;
        }
        Ok(())
    })?;
    Ok(sums)
}

/// Iterates over the requested directories, each with its counterpart. Directories that may be in a
/// part that the other inventory does not cover are left out.
fn pairs(paired: &PairedTrees) -> impl Iterator<Item = (Option<u32>, Option<u32>)> {
    let unmatched =
        |side: Side, dir: u32| paired.pairs.of(side, dir).is_none() && !paired.pairs.is_hidden(side, dir);
    let gone =
        paired.trees.old.all().filter(move |dir| unmatched(Side::Old, *dir)).map(|dir| (Some(dir), None));
    let rest = paired.trees.new.all().filter_map(move |dir| {
        let old = paired.pairs.of(Side::New, dir);
        (old.is_some() || unmatched(Side::New, dir)).then_some((old, Some(dir)))
    });
    gone.chain(rest).filter(|(old, new)| paired.is_within(*old, *new))
}

/// Returns, for each directory, whether anything at or below it is missing. A directory that both
/// scans skipped is not missing.
fn gaps(trees: &Sides<DirTree>, pairs: &DirPairs) -> Sides<Vec<bool>> {
    let of = |side: Side| {
        let (here, there) = (trees.get(side), trees.get(side.other()));
        let mut gaps = vec![false; here.len()];
        for dir in here.all().rev() {
            let is_left_out_of_both = || {
                pairs.of(side, dir).is_some_and(|counterpart| there.state(counterpart) == DirState::Skipped)
            };
            gaps[dir as usize] |= match here.state(dir) {
                DirState::Complete => false,
                DirState::Skipped => !is_left_out_of_both(),
                DirState::Partial | DirState::Failed => true,
            };
            if let Some(parent) = here.parent(dir) {
                gaps[parent as usize] |= gaps[dir as usize];
            }
        }
        gaps
    };
    Sides { old: of(Side::Old), new: of(Side::New) }
}
