//! What is measured, in which order: the constants, then of each workload the arms that may be the best.

use std::time::{Duration, Instant};

use super::constants::{Constants, Cost};
use super::predict::{contested, predict};
use super::question::{candidates, depths, direct, questions};
use super::site::Bench;
use super::verdict::{Candidate, Verdict, sentence, verdict};
use super::{Advice, LeftOut, flips};
use crate::arms::Arm;
use crate::lab::{Cache, Cell};
use crate::sample::Deed;
use crate::summary::{self, summarise};
use crate::{ArmName, Error, Op, Row, Run, Summary, runner};

/// Blocks for the constants of blocking calls and depths.
const BLOCKS_BASE: u32 = 3;
/// Blocks of the first round among contested arms, and the fewest and most of the second.
const BLOCKS_FIRST: u32 = 3;
const BLOCKS_SECOND: std::ops::RangeInclusive<u32> = 3..=12;
/// What it may go on for beyond its time, until no more is asked.
const GRACE: Duration = Duration::from_secs(45);
/// An arm that took this many times as long as the best one in the first round is not in the second.
const BEATEN: f64 = 1.5;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Of the order, the data and the intervals.
    pub seed: u64,
    /// How large the work is, 1 for the usual.
    pub scale: f64,
    /// About how long it may take. Each arm that is contested is measured a few times in any case.
    pub time: Duration,
}

/// How it ended.
#[derive(Debug)]
pub enum End {
    /// Everything was asked.
    Complete,
    /// Somebody wanted no more. What is known by then is in the advice.
    Interrupted,
    /// Data was wrong, or something failed.
    Failed(Error),
}

/// Finds out what to advise. `run` has what is known beforehand: the program, the machine, the notes.
pub fn advise(ask: &Ask, run: Run, bench: &mut dyn Bench) -> (Advice, End) {
    let started = Instant::now();
    let advice = Advice { run, ..Advice::default() };
    let mut inquiry = Inquiry { ask, bench, started, advice, bases: Vec::new() };
    let end = inquiry.all().err().unwrap_or(End::Complete);
    (inquiry.concluded(), end)
}

const LATE: &str = "no time was left for it";

pub(super) fn baseline() -> ArmName {
    ArmName::new("rust", "blocking")
}

struct Inquiry<'a> {
    ask: &'a Ask,
    bench: &'a mut dyn Bench,
    started: Instant,
    advice: Advice,
    /// Cells that can be asked about, with what blocking calls take there.
    bases: Vec<(Cell, Cost)>,
}

impl Inquiry<'_> {
    fn all(&mut self) -> Result<(), End> {
        let probe = self.bench.probe();
        self.advice.constants = Constants {
            cpus: u32::try_from(probe.cpus).unwrap_or(u32::MAX),
            nops: probe.nops,
            writes_are_handed_over: probe.writes_are_handed_over,
            ..Constants::default()
        };
        let cells = questions(self.ask.seed, self.ask.scale);
        let (warm, rest) = cells.split_first().expect("there are questions");
        self.warm_read(warm)?;
        self.depths(warm)?;
        for cell in rest {
            match &probe.stays_warm {
                Some(reason) if is_cold_tree(cell) => self.leave_out(cell, reason.clone()),
                _ if self.is_late() => self.leave_out(cell, LATE.to_owned()),
                _ => self.base(cell)?,
            }
        }
        let bases = std::mem::take(&mut self.bases);
        for (at, (cell, base)) in bases.iter().enumerate() {
            // The first question is answered however busy the machine is.
            if at > 0 && self.is_late() {
                self.leave_out(cell, LATE.to_owned());
            } else {
                self.decide(cell, base, bases.len() - at)?;
            }
        }
        Ok(())
    }

    fn is_late(&self) -> bool {
        self.started.elapsed() > self.ask.time + GRACE
    }

    fn cpus(&self) -> usize {
        self.advice.constants.cpus as usize
    }

    /// Samples of `arms` in blocks that are numbered from after `before`; none, with the cell left out, if it cannot be asked about here.
    fn rows(&mut self, cell: &Cell, arms: &[Arm], blocks: u32, before: u32) -> Result<Vec<Row>, End> {
        let seed = self.ask.seed.wrapping_add(before.into());
        let mut outcome = self.bench.measure(cell, arms, blocks, seed).map_err(End::Failed)?;
        outcome.rows.iter_mut().for_each(|row| row.block += before);
        for unavailable in outcome.unavailable {
            if !self.advice.run.unavailable.contains(&unavailable) {
                self.advice.run.unavailable.push(unavailable);
            }
        }
        self.advice.run.rows.extend(outcome.rows.iter().cloned());
        match outcome.end {
            runner::End::Complete => Ok(outcome.rows),
            runner::End::Interrupted => Err(End::Interrupted),
            runner::End::Failed(error) if matches!(error.op(), Op::Verify | Op::Prepare) => {
                Err(End::Failed(error))
            }
            runner::End::Failed(error) => {
                self.leave_out(cell, error.to_string());
                Ok(Vec::new())
            }
        }
    }

    fn leave_out(&mut self, cell: &Cell, reason: String) {
        self.advice.left_out.push(LeftOut { cell: cell.label(), reason });
    }

    fn summaries(&self, cell: &Cell, rows: &[Row]) -> summary::Cell {
        summarise(rows, &cell.label(), &baseline(), self.ask.seed)
    }

    /// All arms on a warm cache: what their hand-offs cost.
    fn warm_read(&mut self, cell: &Cell) -> Result<(), End> {
        let arms = candidates(cell, self.cpus());
        let rows = self.rows(cell, &arms, BLOCKS_BASE, 0)?;
        let costs: Vec<Cost> = self.summaries(cell, &rows).arms.iter().filter_map(Cost::of).collect();
        self.advice.constants.warm_read = costs;
        match self.advice.constants.warm("blocking").cloned() {
            Some(base) => self.bases.push((cell.clone(), base)),
            None if rows.is_empty() => {}
            None => self.leave_out(cell, why_none_counts(&rows)),
        }
        Ok(())
    }

    /// What depth gains on this disk. A filesystem that has no O_DIRECT, or no disk, is no failure.
    fn depths(&mut self, warm: &Cell) -> Result<(), End> {
        let cell = direct(warm);
        let rows = self.rows(&cell, &depths(&cell), BLOCKS_BASE, 0)?;
        self.advice.constants.direct_read =
            self.summaries(&cell, &rows).arms.iter().filter_map(Cost::of).collect();
        Ok(())
    }

    /// What blocking calls take in `cell`.
    fn base(&mut self, cell: &Cell) -> Result<(), End> {
        let blocking = &candidates(cell, self.cpus())[..1];
        let rows = self.rows(cell, blocking, BLOCKS_BASE, 0)?;
        let summaries = self.summaries(cell, &rows);
        let found = summaries.arms.first();
        if cell.deed == Deed::AppendSync {
            self.advice.constants.sync_p50_us = found.and_then(|arm| arm.p50_us);
            self.advice.constants.sync_p99_us = found.and_then(|arm| arm.p99_us);
        }
        match found.and_then(Cost::of) {
            Some(base) => self.bases.push((cell.clone(), base)),
            // A cell that failed has been left out with its reason.
            None if rows.is_empty() => {}
            None => self.leave_out(cell, why_none_counts(&rows)),
        }
        Ok(())
    }

    /// Measures the contested arms of `cell`, the better ones more often. It may use its part of what is left of the time, with
    /// `left` cells to go.
    fn decide(&mut self, cell: &Cell, base: &Cost, left: usize) -> Result<(), End> {
        let arms = candidates(cell, self.cpus());
        let predictions: Vec<Option<f64>> =
            arms.iter().map(|arm| predict(&self.advice.constants, cell, base, arm)).collect();
        let wanted = contested(&predictions);
        let picked: Vec<Arm> =
            arms.iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(arm, _)| arm.clone()).collect();
        let begun = Instant::now();
        let share = self.ask.time.saturating_sub(self.started.elapsed()) / u32::try_from(left).unwrap_or(1);
        let mut rows = self.rows(cell, &picked, BLOCKS_FIRST, 0)?;
        if rows.is_empty() {
            return Ok(());
        }
        let better = self.unbeaten(cell, &rows, &picked);
        let more = more_blocks(share, begun.elapsed(), picked.len(), better.len());
        rows.extend(self.rows(cell, &better, more, BLOCKS_FIRST)?);
        let summaries = self.summaries(cell, &rows);
        let candidates =
            arms.iter().zip(predictions).map(|(arm, us)| candidate(arm, us, &summaries.arms)).collect();
        if let Some(found) = verdict(&summaries.arms, summaries.noise.as_ref(), candidates) {
            self.advice.verdicts.push(Verdict { workload: cell.deed.name().to_owned(), ..found });
        }
        self.advice.run.arms.extend(summaries.arms);
        self.advice.run.noise.extend(summaries.noise);
        let doubts = summaries.doubts.into_iter().map(|doubt| format!("{}: {doubt}", cell.label()));
        self.advice.run.notes.extend(doubts);
        Ok(())
    }

    /// The baseline, and the arms that are not clearly beaten.
    fn unbeaten(&self, cell: &Cell, rows: &[Row], arms: &[Arm]) -> Vec<Arm> {
        let found = self.summaries(cell, rows).arms;
        let is_beaten = |arm: &Arm| {
            let summary = found.iter().find(|summary| summary.method == arm.name);
            let ratio = summary.and_then(|summary| summary.ratio_to_best);
            ratio.is_some_and(|ratio| ratio.median > BEATEN)
        };
        let mut arms = arms.iter();
        let baseline = arms.next().cloned();
        baseline.into_iter().chain(arms.filter(|arm| !is_beaten(arm)).cloned()).collect()
    }

    fn concluded(self) -> Advice {
        let mut advice = self.advice;
        advice.sentence = sentence(&advice.verdicts);
        advice.flips = flips::flips(&advice.constants, &advice.verdicts);
        advice.walk_in_flight = flips::walk_in_flight(&advice.constants, &advice.verdicts);
        advice
    }
}

/// How many more blocks of `better` arms fit into `share` of the time, where some blocks of `first` arms took `spent`.
fn more_blocks(share: Duration, spent: Duration, first: usize, better: usize) -> u32 {
    // The baseline runs twice.
    let sample = spent.as_secs_f64() / f64::from(BLOCKS_FIRST) / (first + 1) as f64;
    let fit = share.saturating_sub(spent).as_secs_f64() / (sample * (better + 1) as f64);
    // A cast of what is too large, or of no number, is the largest, or zero.
    (fit as u32).clamp(*BLOCKS_SECOND.start(), *BLOCKS_SECOND.end())
}

fn candidate(arm: &Arm, predicted_us: Option<f64>, found: &[Summary]) -> Candidate {
    let found = found.iter().find(|summary| summary.method == arm.name).and_then(Cost::of);
    Candidate { method: arm.name.clone(), predicted_us, measured_us: found.map(|cost| cost.wall_us) }
}

fn is_cold_tree(cell: &Cell) -> bool {
    cell.cache == Cache::Cold && !matches!(cell.deed, Deed::Read | Deed::RandomRead)
}

fn why_none_counts(rows: &[Row]) -> String {
    rows.first().map_or_else(|| "no arm can run".to_owned(), |row| row.discarded.clone())
}
