//! Names that share an inode: which of them counts, and what the others add too much.

use std::collections::HashMap;

use super::Sum;
use super::scope::Scope;
use crate::store::{Error, Inventory, Table};

/// A name of an inode that has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    dev: i64,
    ino: i64,
    /// Where the walk met it: the number of its row. The number of its directory is another order,
    /// as a name may follow the subdirectories of the directory it is in.
    place: usize,
    dir_id: i64,
    sum: Sum,
}

/// Two names of an inode, of which none is between them in the order of the walk. The second is one too many wherever both
/// are below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The lower and the higher number of their directories.
    low: i64,
    high: i64,
    second: i64,
    pub(super) sum: Sum,
}

/// All such names in a part of an inventory.
#[derive(Debug)]
pub(crate) struct Links(Vec<Name>);

impl Links {
    /// Reads the names of `scope`, and those that an overlap of operands repeats.
    pub(super) fn read(inventory: &Inventory, scope: &Scope) -> Result<Self, Error> {
        let mut names = Vec::new();
        let mut start = 0;
        inventory.each(Table::Links, |group| {
            let [dir_id, dev, ino] = [group.numbers("dir_id")?, group.numbers("dev")?, group.numbers("ino")?];
            let [size, blocks] = [group.numbers("size")?, group.numbers("blocks")?];
            for row in (0..group.rows()).filter(|row| scope.span.has(dir_id.or_zero()[*row])) {
                let [dev, ino, dir_id] = [&dev, &ino, &dir_id].map(|column| column.or_zero()[row]);
                let sum = Sum::new(1, blocks.or_zero()[row], size.or_zero()[row]);
                names.push(Name { dev, ino, place: start + row, dir_id, sum });
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

    /// All names of an inventory.
    pub(crate) fn read_all(inventory: &Inventory) -> Result<Self, Error> {
        Self::read(inventory, &Scope::whole())
    }

    /// Only the names that count in `scope`.
    pub(super) fn within(mut self, scope: &Scope) -> Self {
        self.0.retain(|name| scope.has(name.dir_id));
        self
    }

    /// In the order of the higher of their directories' numbers.
    pub(super) fn pairs(&self) -> Vec<Pair> {
        let same = |pair: &&[Name]| (pair[0].dev, pair[0].ino) == (pair[1].dev, pair[1].ino);
        let pair = |pair: &[Name]| {
            let (first, second) = (pair[0].dir_id, pair[1].dir_id);
            Pair { low: first.min(second), high: first.max(second), second, sum: pair[1].sum }
        };
        let mut pairs: Vec<_> = self.0.windows(2).filter(same).map(pair).collect();
        pairs.sort_unstable_by_key(|pair| pair.high);
        pairs
    }

    /// Returns the sum of the names that do not count.
    pub(super) fn spare(&self) -> Sum {
        let mut spare = Sum::default();
        self.pairs().iter().for_each(|pair| spare.add(&pair.sum));
        spare
    }

    /// Returns the sums of the names that do not count, by their directory.
    pub(super) fn surplus(&self) -> HashMap<i64, Sum> {
        let mut surplus: HashMap<i64, Sum> = HashMap::new();
        self.pairs().iter().for_each(|pair| surplus.entry(pair.second).or_default().add(&pair.sum));
        surplus
    }

    /// Where each inode counts.
    pub(super) fn firsts(&self) -> Firsts {
        // The last to come in is the first in the order of the walk.
        Firsts(self.0.iter().rev().map(|name| ((name.dev, name.ino), Some(name.dir_id))).collect())
    }
}

/// Adds the rows of operands that are no directories and have one name: `scan a/f a` has two rows
/// of such a file.
fn read_operands(inventory: &Inventory, scope: &Scope, names: &mut Vec<Name>) -> Result<(), Error> {
    let mut start = 0;
    inventory.each(Table::Entries, |group| {
        let [dir_id, dev, ino] = [group.numbers("dir_id")?, group.numbers("dev")?, group.numbers("ino")?];
        let [size, blocks, nlink] =
            [group.numbers("size")?, group.numbers("blocks")?, group.numbers("nlink")?];
        for row in (0..group.rows()).filter(|row| nlink.or_zero()[*row] <= 1) {
            let [dev, ino, dir_id] = [&dev, &ino, &dir_id].map(|column| column.or_zero()[row]);
            if scope.is_operand((dev, ino)) {
                let sum = Sum::new(1, blocks.or_zero()[row], size.or_zero()[row]);
                names.push(Name { dev, ino, place: start + row, dir_id, sum });
            }
        }
        start += group.rows();
        Ok(())
    })
}

/// The directory in which an inode counts, until it has been counted.
#[derive(Debug)]
pub(super) struct Firsts(HashMap<(i64, i64), Option<i64>>);

impl Firsts {
    /// Whether this name is the one that counts; it is once.
    pub(super) fn counts(&mut self, dev: i64, ino: i64, dir_id: i64) -> bool {
        let Some(first) = self.0.get_mut(&(dev, ino)) else { return true };
        let counts = *first == Some(dir_id);
        if counts {
            *first = None;
        }
        counts
    }
}

/// What names in common are too many, directory by directory in the order of the rows: that of a directory follows those of
/// all below it.
#[derive(Debug)]
pub(super) struct Surplus {
    pairs: std::iter::Peekable<std::vec::IntoIter<Pair>>,
    /// Pairs of which both names have been passed, those with the highest lower number on top.
    open: std::collections::BinaryHeap<(i64, Sum)>,
    /// Directories with names that are too many, none below another.
    found: Vec<(i64, Sum)>,
    passed: i64,
}

impl Surplus {
    pub(super) fn new(links: &Links) -> Self {
        let pairs = links.pairs().into_iter().peekable();
        Self { pairs, open: Default::default(), found: Vec::new(), passed: i64::MIN }
    }

    /// What is too many in the directories from `pre` to `post`; none if they are out of order.
    pub(super) fn of(&mut self, pre: i64, post: i64) -> Option<Sum> {
        if pre > post || post < self.passed {
            return None;
        }
        self.passed = post;
        while let Some(pair) = self.pairs.next_if(|pair| pair.high <= post) {
            self.open.push((pair.low, pair.sum));
        }
        let mut sum = Sum::default();
        while self.open.peek().is_some_and(|(first, _)| *first >= pre) {
            self.open.pop().into_iter().for_each(|(_, below)| sum.add(&below));
        }
        while let Some((_, below)) = self.found.pop_if(|found| found.0 >= pre) {
            sum.add(&below);
        }
        if sum.entries > 0 {
            self.found.push((pre, sum));
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(names: &[(i64, i64)]) -> Links {
        let sum = Sum::new(1, 1, 1);
        let name = |(place, (ino, dir_id)): (usize, &(i64, i64))| Name {
            dev: 0,
            ino: *ino,
            place,
            dir_id: *dir_id,
            sum,
        };
        let mut names: Vec<_> = names.iter().enumerate().map(name).collect();
        names.sort_unstable();
        Links(names)
    }

    /// 1 has 2 and 5; 2 has 3 and 4.
    const ROWS: [(i64, i64); 5] = [(3, 3), (4, 4), (2, 4), (5, 5), (1, 5)];

    #[test]
    fn a_name_is_too_many_where_another_is_below_as_well() {
        let too_many = |names: &[(i64, i64)]| {
            let mut surplus = Surplus::new(&links(names));
            ROWS.map(|(pre, post)| surplus.of(pre, post).unwrap().entries)
        };
        assert_eq!(too_many(&[(7, 3), (7, 4)]), [0, 0, 1, 0, 1]);
        assert_eq!(too_many(&[(7, 3), (7, 3), (7, 3)]), [2, 0, 2, 0, 2]);
        assert_eq!(too_many(&[(7, 2), (7, 5), (8, 4), (8, 5)]), [0, 0, 0, 0, 2]);
        assert_eq!(too_many(&[(7, 4), (7, 2), (7, 1)]), [0, 0, 1, 0, 2], "names behind subdirectories");
        assert_eq!(too_many(&[(7, 0), (7, 5)]), [0; 5], "an operand of its own");
        assert_eq!(Surplus::new(&links(&[])).of(2, 1), None);
    }

    #[test]
    fn an_inode_counts_once_and_where_the_walk_met_it_first() {
        let mut firsts = links(&[(7, 4), (7, 3), (7, 3)]).firsts();
        assert_eq!(
            [(7, 3), (7, 4), (7, 3), (7, 4), (8, 1), (8, 1)].map(|(ino, dir)| firsts.counts(0, ino, dir)),
            [false, true, false, false, true, true]
        );
    }
}
