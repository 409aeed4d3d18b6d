//! Warnings about the statistics of a cell.

use std::collections::BTreeMap;

use super::samples::counts;
use crate::{Interval, Noise, Row};

pub(super) fn of(noise: Option<&Noise>, rows: &[Row]) -> Vec<String> {
    let biased = noise.filter(|noise| excludes_one(&noise.ratio)).map(|noise| {
        let Interval { median, low, high } = noise.ratio;
        format!(
            "'{}' differs from its own copy: ratio {median:.3} [{low:.3}, {high:.3}]; do not believe small differences",
            noise.method
        )
    });
    biased.into_iter().chain(disturbed(rows)).collect()
}

/// Describes the use of the machine by others while `rows` were measured.
fn disturbed(rows: &[Row]) -> Option<String> {
    let counted = rows.iter().filter(|row| counts(row)).count();
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| counts(row) && !row.disturbed.is_empty()) {
        *causes.entry(&row.disturbed).or_default() += 1;
    }
    let samples = causes.values().sum::<usize>();
    let causes: Vec<_> = causes.into_iter().map(|(cause, count)| format!("{cause} ({count})")).collect();
    (samples > 0).then(|| {
        let causes = causes.join(", ");
        format!("others used the machine during {samples} of {counted} samples, which count: {causes}")
    })
}

fn excludes_one(interval: &Interval) -> bool {
    interval.low > 1.0 || interval.high < 1.0
}
