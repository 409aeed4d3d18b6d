//! What the samples of a cell come to.
//!
//! Owns which samples are compared with which. Does not own the numerics (`stats`) or what is printed (`report`).

mod doubts;
mod samples;

use crate::stats::{Bootstrap, lower_bounds, median, sign_interval};
use crate::{ArmName, Interval, Noise, Row, Summary};

use samples::{Arm, Logs, Samples};

/// A difference from the best arm that does not matter, fixed before anything is measured.
pub const MARGIN: f64 = 0.05;

/// The method that every language has, which its others are compared with.
const BLOCKING: &str = "blocking";

/// What the samples of one cell come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// Its arms, the fastest first, then by name; last, those of which no sample counts. The copy that shows the noise is not
    /// among them.
    pub arms: Vec<Summary>,
    /// `None` if the baseline and its copy have no block in common.
    pub noise: Option<Noise>,
    /// Reasons to believe the numbers less, a sentence each.
    pub doubts: Vec<String>,
}

/// Summarises `rows`, which are all of the cell called `cell`. Ratios are over the blocks in which both arms have a sample that
/// counts. An arm is among the best unless it is shown, for all arms at once, to be slower than the fastest by more than
/// [`MARGIN`] and the noise floor.
#[must_use]
pub fn summarise(rows: &[Row], cell: &str, baseline: &ArmName, seed: u64) -> Cell {
    let samples = Samples::of(rows);
    let (copies, mut arms): (Vec<_>, Vec<_>) = samples.arms.iter().partition(|arm| arm.name.is_again());
    arms.sort_by(|one, other| one.rank().total_cmp(&other.rank()).then_with(|| one.by_name(other)));
    let bootstrap = Bootstrap::new(samples.blocks, seed);
    let base = arms.iter().find(|arm| arm.name == *baseline).copied();
    let copy = copies.into_iter().find(|arm| arm.name == baseline.again());
    let noise = base.zip(copy).and_then(|(base, copy)| noise_of(&bootstrap, cell, base, copy));
    let floor = noise.as_ref().map_or(0.0, |noise| noise.floor);
    let compared = Compared { bootstrap: &bootstrap, base, best: arms.first().copied(), arms: &arms };
    let best = compared.among_best(MARGIN.max(floor));
    let doubts = doubts::of(samples.blocks, noise.as_ref(), base);
    let summaries = arms.iter().zip(best);
    let arms = summaries.map(|(arm, among_best)| compared.summary(arm, cell, among_best)).collect();
    Cell { arms, noise, doubts }
}

fn noise_of(bootstrap: &Bootstrap, cell: &str, base: &Arm<'_>, copy: &Arm<'_>) -> Option<Noise> {
    let ratio = ratio(bootstrap, &copy.logs_to(base))?;
    let floor = (ratio.high - ratio.low) / 2.0;
    Some(Noise { cell: cell.to_owned(), method: base.name.method.clone(), ratio, floor })
}

/// The median of what is known of `values`, with the bootstrap's interval or that of the sign test, whichever is wider.
///
/// The bootstrap alone is too sure of the median of few values: with 8 to 20 blocks its interval misses in up to 7.5 % of cases,
/// not in 5 %, because its ends can only be values that occurred.
fn interval(bootstrap: &Bootstrap, values: &[Option<f64>]) -> Option<Interval> {
    let Interval { median, low, high } = bootstrap.interval(values)?;
    let (least, most) = sign_interval(&values.iter().flatten().copied().collect::<Vec<_>>())?;
    Some(Interval { median, low: low.min(least), high: high.max(most) })
}

/// The median of ratios, from their logarithms.
fn ratio(bootstrap: &Bootstrap, logs: &Logs) -> Option<Interval> {
    let logs = interval(bootstrap, logs)?;
    Some(Interval { median: logs.median.exp(), low: logs.low.exp(), high: logs.high.exp() })
}

/// What arms are compared with.
struct Compared<'a> {
    bootstrap: &'a Bootstrap,
    base: Option<&'a Arm<'a>>,
    best: Option<&'a Arm<'a>>,
    /// The fastest first.
    arms: &'a [&'a Arm<'a>],
}

impl Compared<'_> {
    /// Of each arm, whether it is not shown to be slower than the best one by more than `margin`. No evidence is none against it.
    fn among_best(&self, margin: f64) -> Vec<bool> {
        let Some(best) = self.best else { return Vec::new() };
        let logs: Vec<Logs> = self.arms.iter().map(|arm| arm.logs_to(best)).collect();
        let bounds = lower_bounds(self.bootstrap, &logs);
        let shown = |bound: Option<f64>| bound.is_some_and(|bound| bound > margin.ln_1p());
        self.arms.iter().zip(bounds).map(|(arm, bound)| !arm.rows.is_empty() && !shown(bound)).collect()
    }

    /// The ratio of `arm` to `other`; `None` if they are the same, or have no block in common.
    fn ratio(&self, arm: &Arm<'_>, other: Option<&Arm<'_>>) -> Option<Interval> {
        let other = other.filter(|other| other.name != arm.name)?;
        ratio(self.bootstrap, &arm.logs_to(other))
    }

    fn own_blocking(&self, arm: &Arm<'_>) -> Option<&Arm<'_>> {
        let own = ArmName::new(&arm.name.lang, BLOCKING);
        self.arms.iter().copied().find(|arm| arm.name == own)
    }

    fn summary(&self, arm: &Arm<'_>, cell: &str, among_best: bool) -> Summary {
        let ArmName { lang, method } = arm.name.clone();
        let of = |column: fn(&Row) -> Option<f64>| arm.median(column);
        Summary {
            cell: cell.to_owned(),
            lang,
            method,
            model: arm.first.model.clone(),
            threads: arm.first.threads,
            depth: arm.first.depth,
            cache: arm.first.cache.clone(),
            runs: arm.rows.len() as u32,
            discarded: arm.discarded,
            seconds: interval(self.bootstrap, &arm.seconds).unwrap_or_default(),
            ratio: self.ratio(arm, self.base),
            ratio_to_best: self.ratio(arm, self.best),
            ratio_to_own: self.ratio(arm, self.own_blocking(arm)),
            among_best,
            bytes_per_s: of(|row| Some(row.bytes_per_s)).unwrap_or_default(),
            ops_per_s: of(|row| Some(row.ops_per_s)).unwrap_or_default(),
            cpu_s_per_gb: of(|row| each(row.cpu_s * 1e9, row.size_bytes)),
            cpu_s_per_million_ops: of(|row| each(row.cpu_s * 1e6, row.ops)).unwrap_or_default(),
            p50_us: of(|row| row.p50_us),
            p95_us: of(|row| row.p95_us),
            p99_us: of(|row| row.p99_us),
            switches_per_op: of(switches_per_op),
            punted: of(|row| row.punted),
        }
    }
}

/// The part of each of `count`; `None` if there is nothing.
fn each(total: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| total / count as f64)
}

fn switches_per_op(row: &Row) -> Option<f64> {
    let switches = row.switches?.saturating_add(row.switches_forced.unwrap_or_default());
    each(switches as f64, row.ops)
}

impl Arm<'_> {
    /// The median of a column over the samples that have it.
    fn median(&self, column: fn(&Row) -> Option<f64>) -> Option<f64> {
        median(&self.rows.iter().filter_map(|row| column(row)).collect::<Vec<_>>())
    }
}
