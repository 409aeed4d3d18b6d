//! Which block is next: one after the other, or each once in random order.

use std::ops::Range;

/// The blocks of a partition.
#[derive(Clone, Debug)]
pub(super) struct Order {
    blocks: Range<u64>,
    next: u64,
    shuffle: Option<Shuffle>,
    /// The shuffled places, if they are few: made before the clock starts, they cost nothing while it runs.
    list: Vec<u32>,
}

/// Longest list of places, which takes 4 MiB.
const LIST_MAX: u64 = 1 << 20;

fn mix(number: u64) -> u64 {
    let z = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let z = (z ^ (z >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    z ^ (z >> 33)
}

/// A permutation of all numbers of some bits: each of its steps can be undone (Kensler 2013, Correlated Multi-Jittered Sampling, does
/// it with other steps). It is a part of every sample, so it has to be cheap: four multiplications.
#[derive(Clone, Debug)]
struct Shuffle {
    /// What is added, and the odd number that is multiplied with.
    rounds: [(u64, u64); 4],
    mask: u64,
    shift: u32,
}

impl Shuffle {
    /// Of at least the numbers below `count`.
    fn new(count: u64, seed: u64) -> Self {
        let bits = 64 - (count.max(2) - 1).leading_zeros();
        let key = |number| mix(seed ^ mix(number));
        let rounds = [1, 2, 3, 4].map(|round| (key(round), key(!round) | 1));
        Self { rounds, mask: u64::MAX >> (64 - bits), shift: (bits / 3).max(1) }
    }

    #[inline]
    fn image(&self, mut index: u64) -> u64 {
        for (addend, factor) in self.rounds {
            index = index.wrapping_add(addend).wrapping_mul(factor) & self.mask;
            index ^= index >> self.shift;
        }
        index
    }
}

impl Order {
    /// `blocks` ascending, or shuffled by `seed`.
    pub(super) fn new(blocks: Range<u64>, seed: Option<u64>) -> Self {
        let count = blocks.end - blocks.start;
        let shuffle = seed.map(|seed| Shuffle::new(count, seed));
        let mut order = Self { blocks, next: 0, shuffle, list: Vec::new() };
        if let Some(shuffle) = order.shuffle.as_ref().filter(|_| count <= LIST_MAX) {
            order.list = (0..count).map(|index| order.shuffled(index, shuffle) as u32).collect();
        }
        order
    }

    /// An image that lies out of the range is followed until it leads back (cycle walking, Black and Rogaway 2002).
    #[inline]
    fn shuffled(&self, index: u64, shuffle: &Shuffle) -> u64 {
        let count = self.blocks.end - self.blocks.start;
        let mut image = shuffle.image(index);
        while image >= count {
            image = shuffle.image(image);
        }
        image
    }
}

impl Iterator for Order {
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
                None => self.shuffled(index, shuffle),
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
            let shuffled: Vec<u64> = Order::new(10..10 + count, Some(7)).collect();
            let mut sorted = shuffled.clone();
            sorted.sort_unstable();
            let ascending: Vec<u64> = Order::new(10..10 + count, None).collect();
            assert_eq!(ascending, (10..10 + count).collect::<Vec<_>>());
            assert!(sorted == ascending, "{count}");
            if count > 7 {
                assert!(shuffled != ascending);
                assert!(shuffled != Order::new(10..10 + count, Some(8)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_list_that_would_be_long_is_not_made() {
        let mut long = Order::new(0..LIST_MAX + 1, Some(7));
        assert!(long.list.is_empty());
        assert!(long.next().is_some_and(|block| block <= LIST_MAX));
        assert_eq!(Order::new(0..LIST_MAX, Some(7)).list.len() as u64, LIST_MAX);
    }

    /// Also after several others: whatever is seen as a stream is read ahead.
    #[test]
    fn no_distance_between_blocks_is_frequent_in_random_order() {
        let counts = [8192, 10_000, 65_536, 100_003];
        for (count, seed) in counts.into_iter().flat_map(|count| (0..10).map(move |seed| (count, seed))) {
            let blocks: Vec<u64> = Order::new(0..count, Some(seed)).collect();
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
