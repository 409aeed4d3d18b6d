//! The largest of many items, in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::UsageSum;

/// The largest items so far, by allocated size and then by apparent size, which is the only one of
/// some imports; of equal ones, those with the least keys.
#[derive(Debug)]
pub(super) struct Largest<K> {
    count: usize,
    /// A heap whose top is the item to be replaced.
    kept: BinaryHeap<(Reverse<[u64; 2]>, K, UsageSum)>,
}

/// Returns the sizes that decide the order.
pub(super) fn sizes(sum: &UsageSum) -> [u64; 2] {
    [sum.allocated, sum.apparent]
}

impl<K: Ord> Largest<K> {
    pub(super) fn new(count: usize) -> Self {
        Self { count, kept: BinaryHeap::new() }
    }

    /// Returns whether an item with this sum may be among the largest.
    pub(super) fn admits(&self, sum: &UsageSum) -> bool {
        let last = self.kept.peek().filter(|_| self.kept.len() >= self.count);
        self.count > 0 && last.is_none_or(|(Reverse(least), ..)| sizes(sum) >= *least)
    }

    pub(super) fn push(&mut self, key: K, sum: UsageSum) {
        if self.admits(&sum) {
            self.kept.push((Reverse(sizes(&sum)), key, sum));
            if self.kept.len() > self.count {
                self.kept.pop();
            }
        }
    }

    /// Returns the items, the largest first.
    pub(super) fn sorted(self) -> impl Iterator<Item = (K, UsageSum)> {
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
            largest.push(key, UsageSum::new(1, blocks, 0));
        }
        assert_eq!(largest.sorted().map(|(key, _)| key).collect::<Vec<_>>(), ["e", "b", "c"]);
        let mut apparent = Largest::new(2);
        for (key, bytes) in [("a", 1), ("b", 7), ("c", 3)] {
            apparent.push(key, UsageSum { apparent: bytes, ..UsageSum::default() });
        }
        assert_eq!(apparent.sorted().map(|(key, _)| key).collect::<Vec<_>>(), ["b", "c"]);
        let mut none = Largest::new(0);
        none.push("a", UsageSum::default());
        assert_eq!(none.sorted().count(), 0);
    }
}
