//! Which block is next: one after the other, or each once in random order without a list of them.

use std::ops::Range;

/// The blocks of a partition.
#[derive(Clone, Debug)]
pub(super) struct Order {
    blocks: Range<u64>,
    next: u64,
    /// For random order: keys, and half the bits of a number that counts the blocks.
    shuffle: Option<([u64; 4], u32)>,
}

fn mix(number: u64) -> u64 {
    let z = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let z = (z ^ (z >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    z ^ (z >> 33)
}

impl Order {
    /// `blocks` ascending, or shuffled by `seed`.
    pub(super) fn new(blocks: Range<u64>, seed: Option<u64>) -> Self {
        let count = blocks.end - blocks.start;
        let half = (64 - count.max(2).leading_zeros()).div_ceil(2);
        let shuffle = seed.map(|seed| ([1, 2, 3, 4].map(|round| mix(seed ^ mix(round))), half));
        Self { blocks, next: 0, shuffle }
    }

    /// A Feistel network of four rounds is a permutation of numbers with an even count of bits; one that leads out of the range is
    /// followed until it leads back (cycle walking, Black and Rogaway 2002).
    fn shuffled(&self, mut index: u64, keys: &[u64; 4], half: u32) -> u64 {
        let count = self.blocks.end - self.blocks.start;
        let mask = (1 << half) - 1;
        loop {
            let (mut left, mut right) = (index >> half, index & mask);
            for key in keys {
                (left, right) = (right, left ^ (mix(right ^ key) & mask));
            }
            index = (left << half) | right;
            if index < count {
                return index;
            }
        }
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
            Some((keys, half)) => self.shuffled(index, keys, *half),
        };
        Some(self.blocks.start + place)
    }
}

#[cfg(test)]
mod tests {
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
    fn neighbours_are_rare_in_random_order() {
        let blocks: Vec<u64> = Order::new(0..10_000, Some(1)).collect();
        let neighbours = blocks.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(neighbours < 20, "{neighbours} of 10000");
    }
}
