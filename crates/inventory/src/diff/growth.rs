//! How much larger or smaller each directory has become, with everything below it. An inode with
//! several names, and what several operands have, counts once, as in [`crate::top`].

use std::cmp::Reverse;

use super::pairs::Pairs;
use super::tree::Tree;
use super::{Ask, Joined, Side, Sides};
use crate::store::{Error, Inventory, State, Table};
use crate::top::below::Span;
use crate::top::dirs::{Tally, of_trees};
use crate::top::links::Links;
use crate::top::scope::Scope;
use crate::top::{Failure, Sum};

/// What a directory has become larger by; what is below zero has become less.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// Where it is, or if it is no more, was.
    pub path: Vec<u8>,
    /// Allocated bytes.
    pub allocated: i64,
    /// Bytes that files and links hold.
    pub apparent: i64,
    /// Entries.
    pub entries: i64,
    /// Whether both inventories have all that is below it.
    pub complete: bool,
}

impl Growth {
    fn of(old: &Sum, new: &Sum) -> Self {
        let difference = |old: u64, new: u64| {
            let difference = i128::from(new) - i128::from(old);
            difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        };
        Self {
            path: Vec::new(),
            allocated: difference(old.allocated, new.allocated),
            apparent: difference(old.apparent, new.apparent),
            entries: difference(old.entries, new.entries),
            complete: true,
        }
    }

    /// The largest difference first.
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

/// A report of what has become larger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The largest difference first; none without any.
    pub rows: Vec<Growth>,
    /// What all trees that both inventories have come to.
    pub total: Growth,
    /// Trees of each inventory that the other does not have.
    pub lone: Sides<Vec<Vec<u8>>>,
}

/// Reports the `count` directories of which most has changed.
///
/// # Errors
/// As [`super::diff`].
pub fn growth(inventories: &Sides<&Inventory>, ask: &Ask, count: usize) -> Result<Report, Failure> {
    let joined = Joined::read(inventories, ask.below.as_deref())?;
    let sums = inventories.both(|side, inventory| sums(inventory, joined.trees.get(side)))?;
    let scopes = inventories.both(|side, inventory| {
        let lone: Vec<i64> = joined.lone_roots(side).map(i64::from).collect();
        Scope::of_trees(inventory, &lone)
    })?;
    let gaps = gaps(&joined.trees, &joined.pairs);
    let mut found = Vec::new();
    let mut total = Growth { complete: true, ..Growth::default() };
    for (old, new) in pairs(&joined) {
        let sum =
            |side: Side, dir: Option<u32>| dir.map_or_else(Sum::default, |dir| sums.get(side)[dir as usize]);
        let mut growth = Growth::of(&sum(Side::Old, old), &sum(Side::New, new));
        let has_gap = |side: Side, dir: Option<u32>| dir.is_some_and(|dir| gaps.get(side)[dir as usize]);
        growth.complete = !has_gap(Side::Old, old) && !has_gap(Side::New, new);
        if joined.is_top(old, new) {
            total.add(&growth);
        }
        if growth.rank() != Reverse((0, 0, 0)) && !is_repeated(&scopes, old, new) {
            found.push((growth, old, new));
        }
    }
    if ask.below.is_none() {
        let sums = inventories.both(|side, inventory| of_trees(inventory, scopes.get(side)))?;
        total = Growth { complete: total.complete, ..Growth::of(&sums.old, &sums.new) };
    }
    found.sort_by_key(|(growth, ..)| growth.rank());
    // Those that are level with the last are told apart by their paths.
    let last = found.get(count.saturating_sub(1)).map(|(growth, ..)| growth.rank());
    let kept = last.map_or(found.len(), |last| found.partition_point(|(growth, ..)| growth.rank() <= last));
    let named = found.into_iter().take(kept).map(|(growth, old, new)| {
        let path = match (old, new) {
            (_, Some(new)) => joined.trees.new.path(new),
            (old, None) => old.and_then(|old| joined.trees.old.path(old)),
        };
        let refused = || Failure::Unreadable(inventories.new.refused("a path in it is too long"));
        Ok(Growth { path: path.ok_or_else(refused)?, ..growth })
    });
    let mut rows = named.collect::<Result<Vec<_>, Failure>>()?;
    rows.sort_by(|one, two| (one.rank(), &one.path).cmp(&(two.rank(), &two.path)));
    rows.truncate(count);
    Ok(Report { rows, total, lone: joined.lone() })
}

/// Whether a directory is in an earlier operand as well.
fn is_repeated(scopes: &Sides<Scope>, old: Option<u32>, new: Option<u32>) -> bool {
    match (old, new) {
        (_, Some(new)) => scopes.new.is_repeated(new.into()),
        (old, None) => old.is_some_and(|old| scopes.old.is_repeated(old.into())),
    }
}

/// What everything in each directory comes to.
fn sums(inventory: &Inventory, tree: &Tree) -> Result<Vec<Sum>, Error> {
    let links = Links::read_all(inventory)?;
    let mut tally = Tally::new(&links, Span::ALL);
    let mut sums = vec![Sum::default(); tree.len()];
    inventory.each(Table::Dirs, |group| {
        let ids = group.numbers("dir_id")?;
        for line in tally.rows(group)? {
            sums[tree.at(ids.or_zero()[line.row])? as usize] = line.sum;
        }
        Ok(())
    })?;
    Ok(sums)
}

/// All directories that are asked for, with their counterparts. Those that the other inventory may have without its being known
/// are not among them.
fn pairs(joined: &Joined) -> impl Iterator<Item = (Option<u32>, Option<u32>)> {
    let lone =
        |side: Side, dir: u32| joined.pairs.of(side, dir).is_none() && !joined.pairs.is_hidden(side, dir);
    let gone = joined.trees.old.all().filter(move |dir| lone(Side::Old, *dir)).map(|dir| (Some(dir), None));
    let rest = joined.trees.new.all().filter_map(move |dir| {
        let old = joined.pairs.of(Side::New, dir);
        (old.is_some() || lone(Side::New, dir)).then_some((old, Some(dir)))
    });
    gone.chain(rest).filter(|(old, new)| joined.is_within(*old, *new))
}

/// By directory, whether anything at or below it is missing in this inventory and known in the other, or missing in both.
fn gaps(trees: &Sides<Tree>, pairs: &Pairs) -> Sides<Vec<bool>> {
    let of = |side: Side| {
        let (here, there) = (trees.get(side), trees.get(side.other()));
        let mut gaps = vec![false; here.len()];
        for dir in here.all().rev() {
            let is_left_out_of_both =
                || pairs.of(side, dir).is_some_and(|twin| there.state(twin) == State::Skipped);
            gaps[dir as usize] |= match here.state(dir) {
                State::Complete => false,
                State::Skipped => !is_left_out_of_both(),
                State::Partial | State::Failed => true,
            };
            if let Some(parent) = here.parent(dir) {
                gaps[parent as usize] |= gaps[dir as usize];
            }
        }
        gaps
    };
    Sides { old: of(Side::Old), new: of(Side::New) }
}
