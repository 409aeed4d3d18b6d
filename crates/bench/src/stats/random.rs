//! Reproducible random numbers: the same seed yields the same numbers on every platform.

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): 64 bits of state, no weak seeds, sufficient for
/// shuffling and resampling.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// The increment of the state: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl Random {
    /// Seeds the generator.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Seeds the generator of substream `number` of `seed`, which is independent of the use of
    /// other substreams.
    #[must_use]
    pub fn substream(seed: u64, number: u64) -> Self {
        Self(Self(seed ^ number.wrapping_mul(STEP)).bits())
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0. Multiplication instead of rejection: the
    /// bias is below `end` / 2^64.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// Shuffles `items` (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers are the output of Vigna's splitmix64.c for this seed.
    #[test]
    fn the_numbers_are_those_of_the_reference() {
        let mut random = Random::new(1_234_567);
        let numbers: Vec<u64> = (0..5).map(|_| random.bits()).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn every_order_is_as_frequent_as_any_other() {
        let mut counts = std::collections::BTreeMap::new();
        let mut random = Random::new(1);
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            random.shuffle(&mut items);
            *counts.entry(items).or_insert(0_i32) += 1;
        }
        assert_eq!(counts.len(), 24);
        // Chi-squared with 23 degrees of freedom is below 49.7 in 999 of 1,000 cases.
        let chi: f64 = counts.values().map(|count| f64::from((count - 1000).pow(2)) / 1000.0).sum();
        assert!(chi < 49.7, "{chi}");
    }

    #[test]
    fn substreams_of_a_seed_differ() {
        let first = |number| Random::substream(7, number).bits();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
