//! The order of measurements: first the cost constants, then each workload, the most valuable
//! first: its blocking calls and its contested arms.

use std::time::{Duration, Instant};

use super::cells::{advice_cells, candidates, depth_arms, direct_cell, warm_read_cell};
use super::commands::command_lines;
use super::costs::{CostConstants, OpCost};
use super::predict::{contested, predict};
use super::source::SampleSource;
use super::verdict::{Candidate, Verdict, sentence, verdict};
use super::{Advice, SkippedCell, sensitivity};
use crate::Workload;
use crate::arms::{Arm, BASELINE};
use crate::fixture::{CacheState, Cell};
use crate::report::CellFinding;
use crate::stats::median;
use crate::summary::{self, summarise};
use crate::{ArmName, ArmSummary, Error, Op, Row, Run, runner};

/// Blocks of the measurement of blocking calls in a cell.
const BLOCKS_BASE: u32 = 3;
/// Blocks of the measurements of constants: the fewest that have intervals.
const BLOCKS_CONSTANTS: u32 = summary::BLOCKS_MIN;
/// Blocks of the first round among the contested arms.
const BLOCKS_FIRST: u32 = 3;
/// Fewest and most blocks of the second round.
const BLOCKS_SECOND: std::ops::RangeInclusive<u32> = 3..=12;
/// An arm that took more than this multiple of the best time in the first round is excluded from
/// the second.
const BEATEN_RATIO: f64 = 1.5;

/// The measurements of constants have this share of the operations of a cell: a constant is the
/// cost of one operation.
const CONSTANTS_SHARE: u64 = 8;
/// The same for the operations past the page cache, of which there are few.
const DIRECT_SHARE: u64 = 2;
/// A cell that depends on the device has at least this share of its operations. The samples that
/// tell how many fit into the time have so many.
const SHARE_MIN: f64 = 1.0 / 64.0;
/// A sample of blocking calls that is shorter than this says little about the others.
const SAMPLE_MIN_S: f64 = 0.05;
/// Arms of a cell that the predictions leave, if it has many.
const CONTESTED_USUALLY: u32 = 8;
/// Seconds of a sample besides its operations.
const SAMPLE_S: f64 = 0.03;

/// Parameters of an advice run.
#[derive(Clone, Debug)]
pub struct AdviceOptions {
    /// The seed of the sample order, of the data and of the intervals.
    pub seed: u64,
    /// Size of the workloads relative to the default of 1.
    pub scale: f64,
    /// The time that the cells share. Contested arms are measured a minimum number of times in any
    /// case.
    pub time: Duration,
    /// The time after which no further cell is measured, except the first.
    pub time_max: Duration,
    /// The time after which no further sample begins: a question that was begun has no answer.
    pub limit: Duration,
    /// The same until the first question is answered, and the time after which no further cell is
    /// measured until then.
    pub first_limit: Duration,
}

/// The way in which an advice run ended.
#[derive(Debug)]
pub enum AdviceEnd {
    /// All cells were measured.
    Complete,
    /// The user stopped the run. The advice contains the results up to then.
    Interrupted,
    /// Data was wrong, or an operation failed.
    Failed(Error),
}

/// Measures and returns the advice. `run` supplies the known conditions: the program, the machine,
/// the notes.
pub fn advise(options: &AdviceOptions, run: Run, source: &mut dyn SampleSource) -> (Advice, AdviceEnd) {
    let started = source.now();
    let advice = Advice { run, ..Advice::default() };
    let mut advisor = Advisor { options, source, started, advice, skipped: Vec::new() };
    let end = advisor.run().err().unwrap_or(AdviceEnd::Complete);
    if matches!(end, AdviceEnd::Complete) {
        advisor.skip_unmeasured();
    }
    (advisor.finish(), end)
}

/// A noise floor above this says nothing: an arm may be twice as fast, or half.
const NOISE_MAX: f64 = 1.0;

const NO_TIME_LEFT: &str = "not measured: out of time";

pub(super) fn baseline() -> ArmName {
    ArmName::new("rust", BASELINE)
}

struct Advisor<'a> {
    options: &'a AdviceOptions,
    source: &'a mut dyn SampleSource,
    started: Instant,
    advice: Advice,
    /// Workload and cache state of the cells that are left out.
    skipped: Vec<(Workload, CacheState)>,
}

impl Advisor<'_> {
    fn run(&mut self) -> Result<(), AdviceEnd> {
        let probe = self.source.probe();
        self.advice.load = probe.load;
        self.advice.constants = CostConstants {
            cpus: u32::try_from(probe.cpus).unwrap_or(u32::MAX),
            nops: probe.nops,
            writes_are_handed_over: probe.writes_are_handed_over,
            ..CostConstants::default()
        };
        let cells = advice_cells(self.options.seed, self.options.scale);
        let warm = warm_read_cell(&cells);
        let warm_base = self.measure_warm_reads(warm)?;
        self.measure_depths(warm)?;
        let mut is_begun = false;
        let mut shares = DeviceShares::default();
        for (at, cell) in cells.iter().enumerate() {
            if let Some(reason) = self.source.stays_warm(cell) {
                self.advice.left_out.push(SkippedCell { cell: cell.label(), reason });
            } else if is_begun && self.is_out_of_time() {
                self.skip(cell, NO_TIME_LEFT.to_owned());
            } else {
                is_begun = true;
                let (is_measured, left) = (std::ptr::eq(cell, warm), cells.len() - at);
                let Some(share) = self.fit(cell, left, &mut shares)? else { continue };
                let fitted = with_share(cell, share);
                let base = if is_measured { warm_base.clone() } else { self.measure_baseline(&fitted)? };
                if let Some(base) = base {
                    let found = self.decide(&fitted, &base, left)?;
                    self.advice
                        .verdicts
                        .extend(found.map(|found| Verdict { operations_share: share, ..found }));
                }
            }
        }
        Ok(())
    }

    /// Returns the share of the operations of `cell` that fits into an equal share of the remaining
    /// time, with `left` cells to go. Cells that do not depend on the device take about the same
    /// time everywhere. Returns `None` if the cell cannot be measured here.
    fn fit(&mut self, cell: &Cell, left: usize, shares: &mut DeviceShares) -> Result<Option<f64>, AdviceEnd> {
        if !cell.uses_device() {
            return Ok(Some(1.0));
        }
        if let Some(share) = shares.of(cell) {
            return Ok(Some(share));
        }
        let arms = candidates(cell, self.cpus());
        let rows = self.measure(&with_share(cell, SHARE_MIN), &arms[..1], 1, 0)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let seconds: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
        let operations_s = median(&seconds).unwrap_or_default() / SHARE_MIN;
        let rounds = BLOCKS_FIRST + BLOCKS_SECOND.start();
        let contested = (arms.len() as u32).min(CONTESTED_USUALLY);
        let samples = 2 * BLOCKS_BASE + (contested + 1) * rounds;
        let time_s = self.time_share(left).as_secs_f64();
        let fits = time_s / ((operations_s + SAMPLE_S) * f64::from(samples));
        let share = share_that_fits(fits.max(SAMPLE_MIN_S / operations_s));
        shares.0.push((cell.clone(), share));
        Ok(Some(share))
    }

    /// Returns an equal share of the remaining time, with `left` cells to go.
    fn time_share(&self, left: usize) -> Duration {
        let used = self.source.now() - self.started;
        self.options.time.saturating_sub(used) / u32::try_from(left).unwrap_or(1)
    }

    fn is_out_of_time(&self) -> bool {
        let AdviceOptions { time_max, first_limit, .. } = *self.options;
        let is_first = self.advice.verdicts.is_empty();
        self.source.now() - self.started > if is_first { first_limit } else { time_max }
    }

    fn cpus(&self) -> usize {
        self.advice.constants.cpus as usize
    }

    /// Measures `arms` in `blocks` blocks, numbered from `before + 1`. If the cell cannot be
    /// measured here, records that and returns no rows.
    fn measure(
        &mut self,
        cell: &Cell,
        arms: &[Arm],
        blocks: u32,
        before: u32,
    ) -> Result<Vec<Row>, AdviceEnd> {
        let seed = self.options.seed.wrapping_add(before.into());
        let is_first = self.advice.verdicts.is_empty();
        let limit = if is_first { self.options.first_limit } else { self.options.limit };
        let end = self.started.checked_add(limit);
        let measured = self.source.measure(cell, arms, blocks, seed, end);
        let mut outcome = measured.map_err(AdviceEnd::Failed)?;
        outcome.rows.iter_mut().for_each(|row| row.block += before);
        for unavailable in outcome.unavailable {
            if !self.advice.run.unavailable.contains(&unavailable) {
                self.advice.run.unavailable.push(unavailable);
            }
        }
        self.advice.run.rows.extend(outcome.rows.iter().cloned());
        match outcome.end {
            runner::RunEnd::Complete => Ok(outcome.rows),
            runner::RunEnd::Interrupted if self.source.is_stopped() => Err(AdviceEnd::Interrupted),
            // The time is over: what was answered before is all there is.
            runner::RunEnd::Interrupted => Err(AdviceEnd::Complete),
            runner::RunEnd::Failed(error) if matches!(error.op(), Op::Verify | Op::Prepare) => {
                Err(AdviceEnd::Failed(error))
            }
            runner::RunEnd::Failed(error) => {
                self.skip(cell, error.to_string());
                Ok(Vec::new())
            }
        }
    }

    /// Records that a question has no answer, and why.
    fn skip(&mut self, cell: &Cell, reason: String) {
        self.skipped.push((cell.workload, cell.cache));
        self.advice.left_out.push(SkippedCell { cell: cell.label(), reason });
    }

    /// Records the questions for which the time was over.
    fn skip_unmeasured(&mut self) {
        for cell in self.open_questions() {
            if !self.skipped.contains(&(cell.workload, cell.cache)) {
                self.skip(&cell, NO_TIME_LEFT.to_owned());
            }
        }
    }

    /// Returns the cells that could be measured here and have no answer.
    fn open_questions(&self) -> Vec<Cell> {
        let mut cells = advice_cells(self.options.seed, self.options.scale);
        let is_answered = |cell: &Cell| {
            let is_it =
                |one: &Verdict| one.workload == cell.workload.name() && one.cache == cell.cache.name();
            self.advice.verdicts.iter().any(is_it)
        };
        cells.retain(|cell| !is_answered(cell) && self.source.stays_warm(cell).is_none());
        cells
    }

    fn summaries(&self, cell: &Cell, rows: &[Row]) -> summary::CellSummary {
        summarise(rows, &cell.label(), &baseline(), self.options.seed)
    }

    /// Measures every arm on a warm cache, which yields the costs of their hand-offs. Returns the
    /// cost of blocking calls.
    fn measure_warm_reads(&mut self, cell: &Cell) -> Result<Option<OpCost>, AdviceEnd> {
        let (arms, part) = (candidates(cell, self.cpus()), part_of(cell, CONSTANTS_SHARE));
        let rows = self.measure(&part, &arms, BLOCKS_CONSTANTS, 0)?;
        let costs: Vec<OpCost> = self.summaries(&part, &rows).arms.iter().filter_map(OpCost::of).collect();
        self.advice.constants.warm_read = costs;
        let base = self.advice.constants.warm(BASELINE).cloned();
        self.skip_if_unknown(cell, base.as_ref(), &rows);
        Ok(base)
    }

    /// Records why the cost of blocking calls in `cell` is unknown, if it is.
    fn skip_if_unknown(&mut self, cell: &Cell, base: Option<&OpCost>, rows: &[Row]) {
        // Without rows, the reason is recorded already.
        if base.is_none() && !rows.is_empty() {
            self.skip(cell, first_discard_reason(rows));
        }
    }

    /// Measures the gain from depth on this device. A filesystem without `O_DIRECT` is not an
    /// error.
    fn measure_depths(&mut self, warm: &Cell) -> Result<(), AdviceEnd> {
        let cell = part_of(&direct_cell(warm), DIRECT_SHARE);
        let rows = self.measure(&cell, &depth_arms(&cell), BLOCKS_CONSTANTS, 0)?;
        self.advice.constants.direct_read =
            self.summaries(&cell, &rows).arms.iter().filter_map(OpCost::of).collect();
        Ok(())
    }

    /// Measures blocking calls in `cell` and returns their cost, if it becomes known.
    fn measure_baseline(&mut self, cell: &Cell) -> Result<Option<OpCost>, AdviceEnd> {
        let blocking = &candidates(cell, self.cpus())[..1];
        let rows = self.measure(cell, blocking, BLOCKS_BASE, 0)?;
        let summaries = self.summaries(cell, &rows);
        let found = summaries.arms.first();
        if cell.workload == Workload::AppendSync {
            self.advice.constants.sync_p50_us = found.and_then(|arm| arm.p50_us);
            self.advice.constants.sync_p99_us = found.and_then(|arm| arm.p99_us);
        }
        let base = found.and_then(OpCost::of);
        self.skip_if_unknown(cell, base.as_ref(), &rows);
        Ok(base)
    }

    /// Measures the contested arms of `cell` and decides between them. The cell may use an equal
    /// share of the remaining time, with `left` cells to go.
    fn decide(&mut self, cell: &Cell, base: &OpCost, left: usize) -> Result<Option<Verdict>, AdviceEnd> {
        let arms = candidates(cell, self.cpus());
        let predictions: Vec<Option<f64>> =
            arms.iter().map(|arm| predict(&self.advice.constants, cell, base, arm)).collect();
        let wanted = contested(&predictions);
        let picked: Vec<Arm> =
            arms.iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(arm, _)| arm.clone()).collect();
        let Some(summaries) = self.measure_contested(cell, &picked, left)? else { return Ok(None) };
        let candidates =
            arms.iter().zip(predictions).map(|(arm, us)| candidate(arm, us, &summaries.arms)).collect();
        let found = verdict(&summaries.arms, summaries.noise.as_ref(), candidates);
        let noisy = summaries.noise.as_ref().filter(|noise| noise.floor > NOISE_MAX);
        if let Some(noise) = noisy {
            let per_cent = (noise.floor * 100.0).round();
            self.skip(cell, format!("two runs of blocking calls differ by up to {per_cent} %"));
        }
        let is_noisy = noisy.is_some();
        self.advice.run.arms.extend(summaries.arms);
        self.advice.run.noise.extend(summaries.noise);
        let warnings = summaries.warnings.into_iter().map(|warning| format!("{}: {warning}", cell.label()));
        self.advice.run.notes.extend(warnings);
        let found = found.filter(|_| !is_noisy);
        Ok(found.map(|found| Verdict { workload: cell.workload.name().to_owned(), ..found }))
    }

    /// Measures `arms`, those that are not beaten in the first round more often, and once more if
    /// the noise of few blocks hides a gain that is shown without it.
    fn measure_contested(
        &mut self,
        cell: &Cell,
        arms: &[Arm],
        left: usize,
    ) -> Result<Option<summary::CellSummary>, AdviceEnd> {
        let (start, share) = (self.source.now(), self.time_share(left));
        let mut rows = self.measure(cell, arms, BLOCKS_FIRST, 0)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let better = self.unbeaten(cell, &rows, arms);
        let more = more_blocks(share, self.source.now() - start, arms.len(), better.len());
        rows.extend(self.measure(cell, &better, more, BLOCKS_FIRST)?);
        let summaries = self.summaries(cell, &rows);
        if !has_hidden_gain(&summaries) || self.time_share(left).is_zero() {
            return Ok(Some(summaries));
        }
        rows.extend(self.measure(cell, &better, more, BLOCKS_FIRST + more)?);
        Ok(Some(self.summaries(cell, &rows)))
    }

    /// Returns the baseline and the arms that are not clearly slower than the best.
    fn unbeaten(&self, cell: &Cell, rows: &[Row], arms: &[Arm]) -> Vec<Arm> {
        let found = self.summaries(cell, rows).arms;
        let is_beaten = |arm: &Arm| {
            let summary = found.iter().find(|summary| summary.method == arm.name);
            let ratio = summary.and_then(|summary| summary.ratio_to_best);
            ratio.is_some_and(|ratio| ratio.median > BEATEN_RATIO)
        };
        let mut arms = arms.iter();
        let baseline = arms.next().cloned();
        baseline.into_iter().chain(arms.filter(|arm| !is_beaten(arm)).cloned()).collect()
    }

    fn finish(self) -> Advice {
        let open: Vec<Workload> = self.open_questions().iter().map(|cell| cell.workload).collect();
        let mut advice = self.advice;
        advice.sentence = sentence(&advice.verdicts);
        advice.commands = command_lines(&advice.verdicts, &open);
        advice.open_questions = open.len();
        advice.sensitivity = sensitivity::sensitivity(&advice.constants, &advice.verdicts);
        advice.walk_in_flight = sensitivity::walk_in_flight(&advice.constants, &advice.verdicts);
        advice
    }
}

/// The shares of their operations that cells on the same kind of files have, so that they can use
/// the same files.
#[derive(Debug, Default)]
struct DeviceShares(Vec<(Cell, f64)>);

impl DeviceShares {
    fn of(&self, cell: &Cell) -> Option<f64> {
        let kind = |cell: &Cell| {
            let has_one_file = !cell.workload.is_of_tree() && !cell.workload.is_of_small_files();
            (cell.workload.is_of_tree(), has_one_file.then_some(cell.workload))
        };
        self.0.iter().find(|(known, _)| kind(known) == kind(cell)).map(|(_, share)| *share)
    }
}

/// Returns the smallest of 1, 1/2, 1/4 and so on that is at least `fits` and [`SHARE_MIN`].
fn share_that_fits(fits: f64) -> f64 {
    let mut share = 1.0;
    while share / 2.0 >= fits.max(SHARE_MIN) {
        share /= 2.0;
    }
    share
}

/// Returns `cell` with this share of its operations.
pub(super) fn with_share(cell: &Cell, share: f64) -> Cell {
    let part = |whole: u64| (whole as f64 * share) as u64;
    let block = cell.block.max(1) as u64;
    Cell { size: part(cell.size).next_multiple_of(block), files: part(cell.files).max(1), ..cell.clone() }
}

/// Returns `cell` with one of `parts` of its operations.
fn part_of(cell: &Cell, parts: u64) -> Cell {
    let block = cell.block as u64;
    Cell { size: (cell.size / parts).next_multiple_of(block).max(block), ..cell.clone() }
}

/// Returns the number of further blocks of `better` arms that fit into `share`, given that
/// [`BLOCKS_FIRST`] blocks of `first` arms took `spent`.
fn more_blocks(share: Duration, spent: Duration, first: usize, better: usize) -> u32 {
    // The baseline runs twice in each block.
    let sample = spent.as_secs_f64() / f64::from(BLOCKS_FIRST) / (first + 1) as f64;
    let fit = share.saturating_sub(spent).as_secs_f64() / (sample * (better + 1) as f64);
    // The cast saturates, and maps NaN to zero.
    (fit as u32).clamp(*BLOCKS_SECOND.start(), *BLOCKS_SECOND.end())
}

/// Returns whether the fastest arm is shown to be faster than the baseline, but not by more than
/// the noise.
fn has_hidden_gain(cell: &summary::CellSummary) -> bool {
    let gain = cell.arms.iter().find(|arm| arm.runs > 0).and_then(|fastest| fastest.ratio);
    let is_found = matches!(CellFinding::of(&cell.arms, cell.noise.as_ref()), CellFinding::Faster(_));
    !is_found && gain.is_some_and(|ratio| ratio.high < 1.0)
}

fn candidate(arm: &Arm, predicted_us: Option<f64>, found: &[ArmSummary]) -> Candidate {
    let found = found.iter().find(|summary| summary.method == arm.name).and_then(OpCost::of);
    Candidate { method: arm.name.clone(), predicted_us, measured_us: found.map(|cost| cost.wall_us) }
}

fn first_discard_reason(rows: &[Row]) -> String {
    rows.first().map_or_else(|| "no arm can run".to_owned(), |row| row.discarded.clone())
}
