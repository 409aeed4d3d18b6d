//! Hard links: under which of its names the sizes of an inode count, and the surplus of the others.
//! All names are entries.

use std::collections::HashMap;

use super::UsageSum;
use super::scope::Scope;
use fathom_inventory::store::{Error, Inventory, Table};

/// A name of an inode that has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LinkName {
    dev: i64,
    ino: i64,
    /// The index of the row, which is the order of the walk. Directory numbers are in another
    /// order, as a name may come after the subdirectories of its directory.
    row_index: usize,
    dir_id: i64,
    sum: UsageSum,
    /// The number of names of the inode, in the inventory or not.
    links: i64,
}

/// Two names of an inode that are neighbours in the order of the walk. The second one is counted
/// too often in every directory that contains both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkPair {
    /// The lesser and the greater of the numbers of their directories.
    low: i64,
    high: i64,
    second: i64,
    pub(super) sum: UsageSum,
}

/// The names of inodes that have several, in a part of an inventory.
#[derive(Debug)]
pub(crate) struct HardLinks(Vec<LinkName>);

impl HardLinks {
    /// Reads the names in the span of `scope`, including those that overlapping operands repeat.
    pub(super) fn read(inventory: &Inventory, scope: &Scope) -> Result<Self, Error> {
        let mut names = Vec::new();
        let mut start = 0;
        inventory.each(Table::Links, |group| {
            let [dir_id, dev, ino] = [group.numbers("dir_id")?, group.numbers("dev")?, group.numbers("ino")?];
            let [size, blocks, nlink] =
                [group.numbers("size")?, group.numbers("blocks")?, group.numbers("nlink")?];
            for row in (0..group.rows()).filter(|row| scope.span.contains(dir_id.or_zero()[*row])) {
                let [dev, ino, dir_id] = [&dev, &ino, &dir_id].map(|column| column.or_zero()[row]);
                // Each name is an entry; only the sizes of the inode count once.
                let sum = UsageSum::new(0, blocks.or_zero()[row], size.or_zero()[row]);
                let links = nlink.or_zero()[row];
                names.push(LinkName { dev, ino, row_index: start + row, dir_id, sum, links });
            }
            start += group.rows();
            Ok(())
        })?;
        if scope.has_operands() {
            read_operands(inventory, scope, &mut names)?;
        }
        names.sort_unstable();
        Ok(Self(names))
    }

    /// Reads all names of an inventory.
    pub(crate) fn read_all(inventory: &Inventory) -> Result<Self, Error> {
        Self::read(inventory, &Scope::whole())
    }

    /// Keeps the names in directories and of inodes, by device and number, for which `keeps` is
    /// true.
    pub(crate) fn retain(&mut self, keeps: &mut dyn FnMut(i64, (u64, u64)) -> bool) {
        let inode = |name: &LinkName| (name.dev.cast_unsigned(), name.ino.cast_unsigned());
        let mut gone: HashMap<(u64, u64), i64> = HashMap::new();
        self.0.retain(|name| {
            let stays = keeps(name.dir_id, inode(name));
            if !stays {
                *gone.entry(inode(name)).or_default() += 1;
            }
            stays
        });
        // The inode has fewer names now.
        self.0.iter_mut().for_each(|name| name.links -= gone.get(&inode(name)).copied().unwrap_or_default());
    }

    /// Keeps the names that count in `scope`.
    pub(super) fn within(mut self, scope: &Scope) -> Self {
        self.0.retain(|name| scope.contains(name.dir_id));
        self
    }

    /// Returns the pairs of neighbouring names, sorted by the greater directory number.
    pub(super) fn pairs(&self) -> Vec<LinkPair> {
        let same = |pair: &&[LinkName]| (pair[0].dev, pair[0].ino) == (pair[1].dev, pair[1].ino);
        let pair = |pair: &[LinkName]| {
            let (first, second) = (pair[0].dir_id, pair[1].dir_id);
            LinkPair { low: first.min(second), high: first.max(second), second, sum: pair[1].sum }
        };
        let mut pairs: Vec<_> = self.0.windows(2).filter(same).map(pair).collect();
        pairs.sort_unstable_by_key(|pair| pair.high);
        pairs
    }

    /// Returns the allocated bytes of each name, by the number of its directory, in this order.
    pub(crate) fn bytes_by_dir(&self) -> Vec<(i64, u64)> {
        let mut bytes: Vec<_> = self.0.iter().map(|name| (name.dir_id, name.sum.allocated)).collect();
        bytes.sort_unstable();
        bytes
    }

    /// Returns the sums of the inodes all of whose names are here, for the directories that have
    /// all of them.
    pub(crate) fn whole(&self) -> LinkSurplus {
        let same = |one: &LinkName, other: &LinkName| (one.dev, one.ino) == (other.dev, other.ino);
        let inodes = self.0.chunk_by(same).filter(|names| names.len() as i64 >= names[0].links);
        let pair = |names: &[LinkName]| {
            let dirs = || names.iter().map(|name| name.dir_id);
            let (low, high) = (dirs().min().unwrap_or(0), dirs().max().unwrap_or(0));
            LinkPair { low, high, second: high, sum: names[0].sum }
        };
        let mut pairs: Vec<_> = inodes.map(pair).collect();
        pairs.sort_unstable_by_key(|pair| pair.high);
        LinkSurplus::of_pairs(pairs)
    }

    /// Returns the sum of the names that do not count.
    pub(super) fn surplus_total(&self) -> UsageSum {
        let mut surplus = UsageSum::default();
        self.pairs().iter().for_each(|pair| surplus.add(&pair.sum));
        surplus
    }

    /// Returns the sum of the names that do not count, for each directory.
    pub(crate) fn surplus_by_dir(&self) -> HashMap<i64, UsageSum> {
        let mut surplus: HashMap<i64, UsageSum> = HashMap::new();
        self.pairs().iter().for_each(|pair| surplus.entry(pair.second).or_default().add(&pair.sum));
        surplus
    }

    /// Returns the directory in which each inode counts.
    pub(super) fn first_names(&self) -> FirstNames {
        // The names are inserted in reverse, so the first one in the order of the walk stays in the
        // map.
        FirstNames(self.0.iter().rev().map(|name| ((name.dev, name.ino), Some(name.dir_id))).collect())
    }
}

/// Adds the rows of operands that are not directories and have one name: `scan a/f a` has two rows
/// for such a file.
fn read_operands(inventory: &Inventory, scope: &Scope, names: &mut Vec<LinkName>) -> Result<(), Error> {
    let mut start = 0;
    inventory.each(Table::Entries, |group| {
        let [dir_id, dev, ino] = [group.numbers("dir_id")?, group.numbers("dev")?, group.numbers("ino")?];
        let [size, blocks, nlink] =
            [group.numbers("size")?, group.numbers("blocks")?, group.numbers("nlink")?];
        for row in (0..group.rows()).filter(|row| nlink.or_zero()[*row] <= 1) {
            let [dev, ino, dir_id] = [&dev, &ino, &dir_id].map(|column| column.or_zero()[row]);
            if scope.is_operand((dev, ino)) {
                let sum = UsageSum::new(1, blocks.or_zero()[row], size.or_zero()[row]);
                names.push(LinkName { dev, ino, row_index: start + row, dir_id, sum, links: 1 });
            }
        }
        start += group.rows();
        Ok(())
    })
}

/// The directory in which each inode counts; `None` once it has been counted.
#[derive(Debug)]
pub(super) struct FirstNames(HashMap<(i64, i64), Option<i64>>);

impl FirstNames {
    /// Returns whether this name is the one that counts. It does so once.
    pub(super) fn counts(&mut self, dev: i64, ino: i64, dir_id: i64) -> bool {
        let Some(first) = self.0.get_mut(&(dev, ino)) else { return true };
        let counts = *first == Some(dir_id);
        if counts {
            *first = None;
        }
        counts
    }
}

/// Computes the surplus of hard links for each directory, in the order of the rows. The row of a
/// directory follows the rows of everything below it.
#[derive(Debug)]
pub(crate) struct LinkSurplus {
    pairs: std::iter::Peekable<std::vec::IntoIter<LinkPair>>,
    /// Pairs both names of which have been passed, the one with the greatest lesser number on top.
    open: std::collections::BinaryHeap<(i64, UsageSum)>,
    /// Surplus found so far, by the outermost directory whose row has been read. No directory is
    /// below another.
    found: Vec<(i64, UsageSum)>,
    last_post: i64,
}

impl LinkSurplus {
    pub(crate) fn new(links: &HardLinks) -> Self {
        Self::of_pairs(links.pairs())
    }

    fn of_pairs(pairs: Vec<LinkPair>) -> Self {
        let pairs = pairs.into_iter().peekable();
        Self { pairs, open: Default::default(), found: Vec::new(), last_post: i64::MIN }
    }

    /// Returns the surplus that is in no directory, because the names are below several roots.
    pub(crate) fn rest(self) -> UsageSum {
        let mut sum = UsageSum::default();
        self.open.iter().for_each(|(_, between)| sum.add(between));
        self.pairs.for_each(|pair| sum.add(&pair.sum));
        sum
    }

    /// Returns the surplus in the directories from `pre` to `post`; `None` if the rows are out of
    /// order.
    pub(crate) fn of(&mut self, pre: i64, post: i64) -> Option<UsageSum> {
        if pre > post || post < self.last_post {
            return None;
        }
        self.last_post = post;
        while let Some(pair) = self.pairs.next_if(|pair| pair.high <= post) {
            self.open.push((pair.low, pair.sum));
        }
        let mut sum = UsageSum::default();
        while self.open.peek().is_some_and(|(first, _)| *first >= pre) {
            self.open.pop().into_iter().for_each(|(_, below)| sum.add(&below));
        }
        while let Some((_, below)) = self.found.pop_if(|found| found.0 >= pre) {
            sum.add(&below);
        }
        if sum != UsageSum::default() {
            self.found.push((pre, sum));
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(names: &[(i64, i64)]) -> HardLinks {
        let sum = UsageSum::new(1, 1, 1);
        let name = |(row_index, (ino, dir_id)): (usize, &(i64, i64))| LinkName {
            dev: 0,
            ino: *ino,
            row_index,
            dir_id: *dir_id,
            sum,
            links: 2,
        };
        let mut names: Vec<_> = names.iter().enumerate().map(name).collect();
        names.sort_unstable();
        HardLinks(names)
    }

    /// Directory 1 has 2 and 5, directory 2 has 3 and 4.
    const ROWS: [(i64, i64); 5] = [(3, 3), (4, 4), (2, 4), (5, 5), (1, 5)];

    #[test]
    fn a_name_is_too_many_where_another_is_below_as_well() {
        let too_many = |names: &[(i64, i64)]| {
            let mut surplus = LinkSurplus::new(&links(names));
            ROWS.map(|(pre, post)| surplus.of(pre, post).unwrap().entries)
        };
        assert_eq!(too_many(&[(7, 3), (7, 4)]), [0, 0, 1, 0, 1]);
        assert_eq!(too_many(&[(7, 3), (7, 3), (7, 3)]), [2, 0, 2, 0, 2]);
        assert_eq!(too_many(&[(7, 2), (7, 5), (8, 4), (8, 5)]), [0, 0, 0, 0, 2]);
        assert_eq!(too_many(&[(7, 4), (7, 2), (7, 1)]), [0, 0, 1, 0, 2], "names behind subdirectories");
        assert_eq!(too_many(&[(7, 0), (7, 5)]), [0; 5], "an operand of its own");
        let mut surplus = LinkSurplus::new(&links(&[(7, 0), (7, 5), (8, 9), (8, 9), (9, 2), (9, 3)]));
        assert!(ROWS.iter().all(|(pre, post)| surplus.of(*pre, *post).is_some()));
        assert_eq!(surplus.rest().entries, 2, "what no directory contains");
        assert_eq!(LinkSurplus::new(&links(&[])).of(2, 1), None);
    }

    #[test]
    fn an_inode_counts_once_and_where_the_walk_met_it_first() {
        let mut first_names = links(&[(7, 4), (7, 3), (7, 3)]).first_names();
        assert_eq!(
            [(7, 3), (7, 4), (7, 3), (7, 4), (8, 1), (8, 1)]
                .map(|(ino, dir)| first_names.counts(0, ino, dir)),
            [false, true, false, false, true, true]
        );
    }
}
