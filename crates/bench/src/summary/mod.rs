//! Statistics of the samples of a cell.
//!
//! Owns: the choice of the samples that are compared. Does not own: the numerics (`stats`) and the
//! printed form (`report`).

mod samples;
mod warnings;

use crate::arms::BASELINE;
use crate::histogram;
use crate::stats::{Bootstrap, lower_bounds, median, sign_interval};
use crate::workload::NULL;
use crate::{ArmName, ArmSummary, CommandUse, Interval, Noise, Row};

use samples::{ArmSamples, CellSamples, LogRatios};

/// The largest difference from the best arm that is considered immaterial, fixed in advance.
pub const MARGIN: f64 = 0.05;

/// With fewer blocks, not even a difference that is the same in every block passes a sign test.
pub const BLOCKS_MIN: u32 = 6;

/// Statistics of one cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellSummary {
    /// The arms without the baseline's second copy, sorted by time, then by name. Arms without a
    /// counted sample are last.
    pub arms: Vec<ArmSummary>,
    /// `None` if the baseline and its second copy have no block in common.
    pub noise: Option<Noise>,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
}

/// Computes the statistics of `rows`, the samples of the cell called `cell`. A ratio uses the
/// blocks in which both arms have a counted sample. An arm is among the best unless it is shown,
/// simultaneously for all arms, to be slower than the fastest by more than [`MARGIN`] and the noise
/// floor.
#[must_use]
pub fn summarise(rows: &[Row], cell: &str, baseline: &ArmName, seed: u64) -> CellSummary {
    let mut samples = CellSamples::of(rows);
    let loops: Vec<_> = samples.arms.extract_if(.., |arm| arm.name.method == NULL).collect();
    let (copies, mut arms): (Vec<_>, Vec<_>) = samples.arms.iter().partition(|arm| arm.name.is_second_copy());
    arms.sort_by(|one, other| one.sort_key().total_cmp(&other.sort_key()).then_with(|| one.by_name(other)));
    let bootstrap = Bootstrap::new(samples.blocks, seed);
    let base = arms.iter().find(|arm| arm.name == *baseline).copied();
    let copy = copies.into_iter().find(|arm| arm.name == baseline.second_copy());
    let noise = base.zip(copy).and_then(|(base, copy)| noise_of(&bootstrap, cell, base, copy));
    let floor = noise.as_ref().map_or(0.0, |noise| noise.floor);
    // A few samples, which may have been lucky, are no measure for the others.
    let is_sure = |arm: &&&ArmSamples<'_>| arm.rows.len() >= BLOCKS_MIN as usize;
    let best = arms.iter().find(is_sure).or(arms.first()).copied();
    let compared = ReferenceArms { bootstrap: &bootstrap, base, best, arms: &arms };
    let best = if samples.blocks < BLOCKS_MIN as usize {
        vec![false; arms.len()]
    } else {
        compared.among_best(MARGIN.max(floor))
    };
    let mut warnings = warnings::of(noise.as_ref(), rows);
    warnings.extend(loop_costs(&loops, &arms));
    let summaries = arms.iter().zip(best);
    let arms = summaries.map(|(arm, among_best)| compared.summary(arm, cell, among_best)).collect();
    CellSummary { arms, noise, warnings }
}

/// Describes what the loop around the calls takes in each language. It is a part of the time of
/// every arm of that language.
fn loop_costs(loops: &[ArmSamples<'_>], arms: &[&ArmSamples<'_>]) -> Option<String> {
    let cost = |null: &ArmSamples<'_>| {
        let own = ArmName::new(&null.name.lang, BASELINE);
        let blocking = arms.iter().find(|arm| arm.name == own)?;
        let shares: Vec<f64> = null.log_ratios_to(blocking).into_iter().flatten().map(f64::exp).collect();
        let block_ns = null.median(|row| per_unit(row.seconds * 1e9, row.ops))?;
        Some(format!("{} {block_ns:.0} ns ({:.1} %)", null.name.lang, median(&shares)? * 100.0))
    };
    let costs: Vec<String> = loops.iter().filter_map(cost).collect();
    (!costs.is_empty()).then(|| {
        format!("the loop around the calls takes, for each block, and of 'blocking': {}", costs.join(", "))
    })
}

fn noise_of(
    bootstrap: &Bootstrap,
    cell: &str,
    base: &ArmSamples<'_>,
    copy: &ArmSamples<'_>,
) -> Option<Noise> {
    let ratio = ratio(bootstrap, &copy.log_ratios_to(base)).filter(|ratio| !ratio.low.is_nan())?;
    let floor = ratio.low.ln().abs().max(ratio.high.ln().abs()).exp_m1();
    Some(Noise { cell: cell.to_owned(), method: base.name.method.clone(), ratio, floor })
}

/// Returns the median of the known `values`, with the wider of the bootstrap interval and the sign
/// test interval.
///
/// The bootstrap alone is too narrow for a median of few values: with 8 to 20 blocks its interval
/// misses in up to 7.5 % of cases instead of 5 %, because its ends can only be values that
/// occurred. Fewer than [`BLOCKS_MIN`] values have no interval: its ends are unknown.
fn interval(bootstrap: &Bootstrap, values: &[Option<f64>]) -> Option<Interval> {
    let Interval { median, low, high } = bootstrap.interval(values)?;
    if values.iter().flatten().count() < BLOCKS_MIN as usize {
        return Some(Interval { median, low: f64::NAN, high: f64::NAN });
    }
    let (least, most) = sign_interval(&values.iter().flatten().copied().collect::<Vec<_>>())?;
    Some(Interval { median, low: low.min(least), high: high.max(most) })
}

/// Returns the median ratio with its interval, from logarithms of ratios.
fn ratio(bootstrap: &Bootstrap, logs: &LogRatios) -> Option<Interval> {
    let logs = interval(bootstrap, logs)?;
    Some(Interval { median: logs.median.exp(), low: logs.low.exp(), high: logs.high.exp() })
}

/// Returns the time of the arm `one` divided by the time of `other`: the median of the ratios
/// within the blocks of `rows`, the samples of a cell. `None` if they have no block in common.
#[must_use]
pub fn ratio_between(rows: &[Row], one: &ArmName, other: &ArmName, seed: u64) -> Option<Interval> {
    let samples = CellSamples::of(rows);
    let find = |name: &ArmName| samples.arms.iter().find(|arm| arm.name == *name);
    ratio(&Bootstrap::new(samples.blocks, seed), &find(one)?.log_ratios_to(find(other)?))
}

/// Returns the least of the ratios whose median [`ratio_between`] estimates.
#[must_use]
pub fn least_ratio(rows: &[Row], one: &ArmName, other: &ArmName) -> Option<f64> {
    let samples = CellSamples::of(rows);
    let find = |name: &ArmName| samples.arms.iter().find(|arm| arm.name == *name);
    let logs = find(one)?.log_ratios_to(find(other)?);
    logs.into_iter().flatten().map(f64::exp).reduce(f64::min)
}

/// The arms that an arm is compared with.
struct ReferenceArms<'a> {
    bootstrap: &'a Bootstrap,
    base: Option<&'a ArmSamples<'a>>,
    best: Option<&'a ArmSamples<'a>>,
    /// Sorted by time.
    arms: &'a [&'a ArmSamples<'a>],
}

impl ReferenceArms<'_> {
    /// Returns for each arm whether it is not shown to be slower than the best one by more than
    /// `margin`. Two things show it: the bound that holds for all arms at the same time, and the
    /// interval of its ratio, which reports print. Of an arm with too few samples nothing is known.
    fn among_best(&self, margin: f64) -> Vec<bool> {
        let Some(best) = self.best else { return Vec::new() };
        let logs: Vec<LogRatios> = self.arms.iter().map(|arm| arm.log_ratios_to(best)).collect();
        let bounds = lower_bounds(self.bootstrap, &logs);
        let exceeds = |bound: Option<f64>| bound.is_some_and(|bound| bound > margin.ln_1p());
        let shown = |arm: &ArmSamples<'_>, bound| {
            exceeds(bound) && self.ratio(arm, self.best).is_some_and(|ratio| ratio.low > 1.0)
        };
        let is_known = |arm: &ArmSamples<'_>| arm.rows.len() >= BLOCKS_MIN as usize;
        self.arms.iter().zip(bounds).map(|(arm, bound)| is_known(arm) && !shown(arm, bound)).collect()
    }

    /// Returns the ratio of `arm` to `other`; `None` if they are the same or have no block in
    /// common.
    fn ratio(&self, arm: &ArmSamples<'_>, other: Option<&ArmSamples<'_>>) -> Option<Interval> {
        let other = other.filter(|other| other.name != arm.name)?;
        ratio(self.bootstrap, &arm.log_ratios_to(other))
    }

    fn own_blocking(&self, arm: &ArmSamples<'_>) -> Option<&ArmSamples<'_>> {
        let own = ArmName::new(&arm.name.lang, BASELINE);
        self.arms.iter().copied().find(|arm| arm.name == own)
    }

    fn summary(&self, arm: &ArmSamples<'_>, cell: &str, among_best: bool) -> ArmSummary {
        let ArmName { lang, method } = arm.name.clone();
        let of = |column: fn(&Row) -> Option<f64>| arm.median(column);
        ArmSummary {
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
            cpu_s_per_gb: of(|row| per_unit(row.cpu_s * 1e9, row.size_bytes)),
            cpu_s_per_million_ops: of(|row| per_unit(row.cpu_s * 1e6, row.ops)).unwrap_or_default(),
            p50_us: of(|row| row.p50_us),
            p95_us: of(|row| row.p95_us),
            p99_us: of(|row| row.p99_us),
            read_p50_us: of(|row| row.read_p50_us),
            read_p95_us: of(|row| row.read_p95_us),
            read_p99_us: of(|row| row.read_p99_us),
            write_p50_us: of(|row| row.write_p50_us),
            write_p95_us: of(|row| row.write_p95_us),
            write_p99_us: of(|row| row.write_p99_us),
            fdatasync_p50_us: of(|row| row.fdatasync_p50_us),
            fdatasync_p95_us: of(|row| row.fdatasync_p95_us),
            fdatasync_p99_us: of(|row| row.fdatasync_p99_us),
            switches_per_op: of(switches_per_op),
            memory_bytes: of(|row| row.memory_bytes.map(|bytes| bytes as f64)),
            punted: of(|row| row.punted),
            device_reads_per_op: of(|row| per_unit(row.device_reads? as f64, row.ops)),
            p999_us: of(|row| row.p999_us),
            mean_us: of(|row| row.mean_us),
            histogram: histogram::sum(arm.rows.iter().map(|row| row.histogram.as_slice())),
            command: arm.first.faults.map(|_| command_use(arm)),
        }
    }
}

fn command_use(arm: &ArmSamples<'_>) -> CommandUse {
    let of = |column: fn(&Row) -> Option<u64>| arm.median_of(column);
    CommandUse {
        cpu_user_s: arm.median(|row| Some(row.cpu_user_s)).unwrap_or_default(),
        cpu_sys_s: arm.median(|row| Some(row.cpu_sys_s)).unwrap_or_default(),
        switches: of(|row| Some(row.switches?.saturating_add(row.switches_forced?))),
        migrations: of(|row| row.migrations),
        faults: of(|row| row.faults),
        faults_major: of(|row| row.faults_major),
        read_bytes: of(|row| row.read_bytes),
        written_bytes: of(|row| row.written_bytes),
    }
}

/// Divides `total` by `count`; `None` if `count` is zero.
fn per_unit(total: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| total / count as f64)
}

fn switches_per_op(row: &Row) -> Option<f64> {
    let switches = row.switches?.saturating_add(row.switches_forced.unwrap_or_default());
    per_unit(switches as f64, row.ops)
}

impl ArmSamples<'_> {
    /// Returns the median of a column over the samples that have it.
    fn median(&self, column: fn(&Row) -> Option<f64>) -> Option<f64> {
        median(&self.rows.iter().filter_map(|row| column(row)).collect::<Vec<_>>())
    }

    /// Does the same for a column of counts.
    fn median_of(&self, column: fn(&Row) -> Option<u64>) -> Option<f64> {
        median(&self.rows.iter().filter_map(|row| Some(column(row)? as f64)).collect::<Vec<_>>())
    }
}
