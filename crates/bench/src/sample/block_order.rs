//! The order of blocks within a partition: ascending, or a random permutation.

use std::ops::Range;

use crate::stats::Random;

/// An iterator over the blocks of a partition.
#[derive(Clone, Debug)]
pub(super) struct BlockOrder {
    blocks: Range<u64>,
    next: u64,
    shuffle: Option<Permutation>,
    /// The permutation, precomputed if the partition is small, so that it costs nothing while the
    /// clock runs.
    list: Vec<u32>,
}

/// Longest precomputed permutation: 4 MiB of `u32`.
const LIST_MAX: u64 = 1 << 20;

/// A permutation of the integers below a number. Each step is an invertible function on a
/// power-of-two range (Kensler 2013, Correlated Multi-Jittered Sampling, uses other steps). It runs
/// within the timed loop, so it is limited to four multiplications.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    count: u64,
    /// The addend and the odd factor of each round.
    rounds: [(u64, u64); 4],
    mask: u64,
    shift: u32,
}

impl Permutation {
    /// Permutes the integers below `count` by `seed`.
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let bits = 64 - (count.max(2) - 1).leading_zeros();
        let mut random = Random::new(seed);
        let rounds = [(); 4].map(|()| (random.bits(), random.bits() | 1));
        Self { count, rounds, mask: u64::MAX >> (64 - bits), shift: (bits / 3).max(1) }
    }

    /// Returns the image of `index`, which is below the count. Applies the function repeatedly
    /// until its result is in range (cycle walking, Black and Rogaway 2002).
    #[inline]
    pub(super) fn image(&self, index: u64) -> u64 {
        let mut image = self.image_in_range(index);
        while image >= self.count {
            image = self.image_in_range(image);
        }
        image
    }

    #[inline]
    fn image_in_range(&self, mut index: u64) -> u64 {
        for (addend, factor) in self.rounds {
            index = index.wrapping_add(addend).wrapping_mul(factor) & self.mask;
            index ^= index >> self.shift;
        }
        index
    }
}

impl BlockOrder {
    /// Orders `blocks` ascending, or permutes them by `seed`.
    pub(super) fn new(blocks: Range<u64>, seed: Option<u64>) -> Self {
        let count = blocks.end - blocks.start;
        let shuffle = seed.map(|seed| Permutation::new(count, seed));
        let mut order = Self { blocks, next: 0, shuffle, list: Vec::new() };
        if let Some(shuffle) = order.shuffle.as_ref().filter(|_| count <= LIST_MAX) {
            order.list = (0..count).map(|index| shuffle.image(index) as u32).collect();
        }
        order
    }
}

impl Iterator for BlockOrder {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let index = self.next;
        if index >= self.blocks.end - self.blocks.start {
            return None;
        }
        self.next += 1;
        let place = match &self.shuffle {
            None => index,
            Some(shuffle) => match self.list.get(index as usize) {
                Some(place) => (*place).into(),
                None => shuffle.image(index),
            },
        };
        Some(self.blocks.start + place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_block_comes_once_in_an_order_of_the_seed() {
        for count in [0, 1, 2, 3, 7, 64, 1000, 65_537] {
            let shuffled: Vec<u64> = BlockOrder::new(10..10 + count, Some(7)).collect();
            let mut sorted = shuffled.clone();
            sorted.sort_unstable();
            let ascending: Vec<u64> = BlockOrder::new(10..10 + count, None).collect();
            assert_eq!(ascending, (10..10 + count).collect::<Vec<_>>());
            assert!(sorted == ascending, "{count}");
            if count > 7 {
                assert!(shuffled != ascending);
                assert!(shuffled != BlockOrder::new(10..10 + count, Some(8)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_list_that_would_be_long_is_not_made() {
        let mut long = BlockOrder::new(0..LIST_MAX + 1, Some(7));
        assert!(long.list.is_empty());
        assert!(long.next().is_some_and(|block| block <= LIST_MAX));
        assert_eq!(BlockOrder::new(0..LIST_MAX, Some(7)).list.len() as u64, LIST_MAX);
    }

    /// The kernel must not detect a sequential stream and read ahead, even across a few other
    /// reads.
    #[test]
    fn no_distance_between_blocks_is_frequent_in_random_order() {
        let counts = [8192, 10_000, 65_536, 100_003];
        for (count, seed) in counts.into_iter().flat_map(|count| (0..10).map(move |seed| (count, seed))) {
            let blocks: Vec<u64> = BlockOrder::new(0..count, Some(seed)).collect();
            for lag in 1..=4 {
                let mut times = HashMap::new();
                for pair in blocks.windows(lag + 1) {
                    *times.entry(pair[lag].wrapping_sub(pair[0])).or_insert(0) += 1;
                }
                let most = times.into_values().max().unwrap_or_default();
                assert!(most < 20, "{most} of {count} at lag {lag}");
            }
        }
    }
}
