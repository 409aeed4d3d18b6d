//! A small seeded generator: the same seed gives the same tree and the same commands on any
//! machine.

/// A generator with the choices that test cases need.
#[derive(Clone, Debug)]
pub(crate) struct Random(fathom_io::Random);

impl Random {
    /// Returns a generator whose output depends on `seed` alone.
    pub(crate) fn new(seed: u64) -> Random {
        Random(fathom_io::Random::new(seed))
    }

    /// Returns 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// Returns a number below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    /// Returns true with a probability of `percent` in a hundred.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `choices`, which must not be empty.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// Returns a random index into `weights`, each index with its weight.
    pub(crate) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        weights
            .iter()
            .position(|&weight| {
                let here = left < weight;
                left = left.saturating_sub(weight);
                here
            })
            .expect("left is below the sum")
    }

    /// Shuffles `items`.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }
}
