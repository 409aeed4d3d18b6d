//! Reasons to believe the numbers of a cell less.

use crate::{Interval, Noise};

/// With fewer blocks than this not even a difference that is the same in all of them passes a sign test.
const BLOCKS_MIN: usize = 6;

pub(super) fn of(blocks: usize, noise: Option<&Noise>) -> Vec<String> {
    let few = (blocks < BLOCKS_MIN)
        .then(|| format!("{blocks} blocks are too few to rank by: {BLOCKS_MIN} are the least, 20 are good"));
    let biased = noise.filter(|noise| excludes_one(&noise.ratio)).map(|noise| {
        let Interval { median, low, high } = noise.ratio;
        format!(
            "'{}' differs from its own copy: ratio {median:.3} [{low:.3}, {high:.3}]; do not believe small differences",
            noise.method
        )
    });
    few.into_iter().chain(biased).collect()
}

fn excludes_one(interval: &Interval) -> bool {
    interval.low > 1.0 || interval.high < 1.0
}
