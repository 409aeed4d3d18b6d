//! Draws a sample with unequal probabilities.

use fathom_walk::Random;

/// Draws about `count` items with probabilities proportional to their `sizes` and none above 1,
/// by systematic sampling (Madow 1949). Neighbours share a draw, so items that are alike should
/// be next to each other.
pub(super) fn draw(random: &mut Random, sizes: &[f64], count: f64) -> DrawResult {
    if count >= sizes.len() as f64 {
        return DrawResult {
            taken: (0..sizes.len()).map(|index| (index, 1.0)).collect(),
            scale: f64::INFINITY,
        };
    }
    let scale = scale(sizes, count);
    let start = random.fraction();
    let (mut sum, mut drawn) = (0.0_f64, Vec::new());
    for (index, size) in sizes.iter().enumerate() {
        let probability = size * scale;
        if probability >= 1.0 {
            drawn.push((index, 1.0));
            continue;
        }
        let before = (sum - start).ceil();
        sum += probability;
        if (sum - start).ceil() > before {
            drawn.push((index, probability));
        }
    }
    DrawResult { taken: drawn, scale }
}

/// The result of a draw.
#[derive(Debug, PartialEq)]
pub(super) struct DrawResult {
    /// The indices drawn, in order, each with its probability.
    pub(super) taken: Vec<(usize, f64)>,
    scale: f64,
}

impl DrawResult {
    /// Returns the probability with which an item of this size was to be drawn.
    pub(super) fn probability(&self, size: f64) -> f64 {
        (size * self.scale).min(1.0)
    }
}

/// Returns the factor that turns sizes into probabilities that add up to `count`, none above 1.
fn scale(sizes: &[f64], count: f64) -> f64 {
    let mut scale = 0.0;
    loop {
        let (mut certain, mut rest) = (0.0, 0.0);
        for size in sizes {
            if size * scale >= 1.0 {
                certain += 1.0;
            } else {
                rest += size;
            }
        }
        let next = (count - certain) / rest;
        if !next.is_finite() || next <= scale {
            return scale;
        }
        scale = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_drawn_as_often_as_its_probability_says() {
        let sizes = [1.0, 1.0, 2.0, 4.0, 100.0, 1.0, 3.0];
        let (mut random, mut times, rounds) = (Random::new(1), [0_u32; 7], 40_000);
        for _ in 0..rounds {
            let DrawResult { taken: drawn, .. } = draw(&mut random, &sizes, 3.0);
            assert!(
                (2..=4).contains(&drawn.len()) && drawn.iter().any(|(index, p)| (*index, *p) == (4, 1.0))
            );
            drawn.iter().for_each(|(index, _)| times[*index] += 1);
        }
        for (size, times) in sizes.iter().zip(times) {
            let expected = (size / 6.0).min(1.0);
            assert!((f64::from(times) / f64::from(rounds) - expected).abs() < 0.01, "{size}: {times}");
        }
    }

    #[test]
    fn with_room_for_all_all_are_drawn_and_with_less_than_one_sometimes_none() {
        let mut random = Random::new(2);
        let all = draw(&mut random, &[1.0, 9.0], 2.0);
        assert_eq!((&all.taken[..], all.probability(1.0)), (&[(0, 1.0), (1, 1.0)][..], 1.0));
        assert_eq!(draw(&mut random, &[], 1.0).taken, []);
        let half = draw(&mut random, &[1.0, 2.0, 3.0], 0.5);
        assert!((half.probability(3.0) - 0.25).abs() < 1e-9);
        let some = (0..10_000).filter(|_| !draw(&mut random, &[1.0, 2.0, 3.0], 0.5).taken.is_empty()).count();
        assert!((4_800..5_200).contains(&some), "{some}");
    }
}
