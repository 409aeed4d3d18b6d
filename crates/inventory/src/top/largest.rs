//! The largest of many: what is wanted is kept, and nothing else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Sum;

/// The largest so far; of equal ones those with the least keys.
#[derive(Debug)]
pub(super) struct Largest<K> {
    count: usize,
    /// The one to give way is on top.
    kept: BinaryHeap<(Reverse<u64>, K, Sum)>,
}

impl<K: Ord> Largest<K> {
    pub(super) fn new(count: usize) -> Self {
        Self { count, kept: BinaryHeap::new() }
    }

    /// Whether something of this sum may be among them.
    pub(super) fn admits(&self, sum: &Sum) -> bool {
        let last = self.kept.peek().filter(|_| self.kept.len() >= self.count);
        self.count > 0 && last.is_none_or(|(Reverse(least), ..)| sum.allocated >= *least)
    }

    pub(super) fn offer(&mut self, key: K, sum: Sum) {
        if self.admits(&sum) {
            self.kept.push((Reverse(sum.allocated), key, sum));
            if self.kept.len() > self.count {
                self.kept.pop();
            }
        }
    }

    /// The largest first.
    pub(super) fn sorted(self) -> impl Iterator<Item = (K, Sum)> {
        self.kept.into_sorted_vec().into_iter().map(|(_, key, sum)| (key, sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_stay_and_equal_ones_by_key() {
        let mut largest = Largest::new(3);
        for (key, blocks) in [("d", 1), ("c", 5), ("b", 5), ("a", 1), ("e", 9), ("f", 5)] {
            largest.offer(key, Sum::new(1, blocks, 0));
        }
        assert_eq!(largest.sorted().map(|(key, _)| key).collect::<Vec<_>>(), ["e", "b", "c"]);
        let mut none = Largest::new(0);
        none.offer("a", Sum::default());
        assert_eq!(none.sorted().count(), 0);
    }
}
