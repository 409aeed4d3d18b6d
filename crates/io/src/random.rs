//! Reproducible random numbers: the same seed yields the same numbers on every platform.

/// The increment of the state: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator of random numbers, `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014): 64 bits of
/// state and no weak seeds. Sufficient for sampling, shuffling and test cases; not for secrets.
///
/// ```
/// let mut random = fathom_io::Random::new(7);
/// assert!(random.below(6) < 6);
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

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
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns `len` random bytes, which no coder compresses.
    #[must_use]
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.bits().to_le_bytes()).flatten().take(len).collect()
    }

    /// Returns a number from 0 to below 1.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
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

/// Returns a hash of `word`: each bit of the result depends on all of its bits.
pub(crate) fn mix(word: u64) -> u64 {
    Random::new(word).bits()
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
    fn numbers_stay_within_their_bounds() {
        let mut random = Random::new(2);
        for end in [1, 2, 7, usize::MAX] {
            assert!((0..1000).all(|_| random.below(end) < end));
        }
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.fraction())));
        assert_eq!((random.below(0), random.bytes(13).len()), (0, 13));
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
    fn substreams_differ_from_one_another_and_do_not_depend_on_use() {
        let first = |number| Random::substream(7, number).bits();
        assert_eq!(first(3), first(3));
        assert_ne!(first(3), first(4));
        assert_ne!(first(0), Random::new(7).bits());
    }
}
