//! The blocks of a file that a mixed workload reads. It overwrites the others.

use super::block_order::Permutation;

/// Makes the choice independent of the order of the blocks, which has the same seed.
const SALT: u64 = 0x6d69_7865_6400_0000;

/// The choice between reading and overwriting each block of a file. It depends on the seed, not on
/// the sample, so that the blocks that are read keep their content.
#[derive(Clone, Debug)]
pub(crate) struct ReadChoice {
    permutation: Permutation,
    /// Number of blocks that are read.
    reads: u64,
}

impl ReadChoice {
    /// Chooses `percent` % of `blocks` blocks, rounded to the nearest number of blocks, by `seed`.
    pub(crate) fn new(blocks: u64, percent: u8, seed: u64) -> Self {
        let reads = (u128::from(blocks) * u128::from(percent.min(100)) + 50) / 100;
        let reads = u64::try_from(reads).unwrap_or(blocks);
        Self { permutation: Permutation::new(blocks, seed ^ SALT), reads }
    }

    /// Returns whether `block` is read.
    #[inline]
    pub(crate) fn is_read(&self, block: u64) -> bool {
        self.permutation.image(block) < self.reads
    }

    /// Returns the number of blocks that are read.
    pub(crate) fn reads(&self) -> u64 {
        self.reads
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        /// The share of reads is the requested one, in the whole file and by chance in its parts.
        #[test]
        fn the_share_of_reads_is_exact(blocks in 1_u64..20_000, percent in 0_u8..=100, seed: u64) {
            let choice = ReadChoice::new(blocks, percent, seed);
            let count = |range: std::ops::Range<u64>| range.filter(|block| choice.is_read(*block)).count() as u64;
            prop_assert_eq!(count(0..blocks), choice.reads());
            let wanted = blocks as f64 * f64::from(percent) / 100.0;
            prop_assert!((choice.reads() as f64 - wanted).abs() <= 0.5, "{} of {}", choice.reads(), blocks);
            // Six standard deviations of drawings with replacement, which vary more.
            let (half, share) = (blocks / 2, f64::from(percent) / 100.0);
            let deviation = (half as f64 * share * (1.0 - share)).sqrt() * 6.0 + 1.0;
            prop_assert!((count(0..half) as f64 - half as f64 * share).abs() <= deviation);
        }
    }

    #[test]
    fn the_choice_depends_on_the_seed_alone() {
        let chosen = |seed| {
            let choice = ReadChoice::new(1000, 70, seed);
            (0..1000).map(|block| choice.is_read(block)).collect::<Vec<_>>()
        };
        assert_eq!(chosen(1), chosen(1));
        assert_ne!(chosen(1), chosen(2));
    }
}
