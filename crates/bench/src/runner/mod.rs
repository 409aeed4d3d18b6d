//! The order of samples, and which of them count.
//!
//! Each block runs every arm once, in an order shuffled by the seed (randomised multiple interleaved trials: Abedi and Brecht,
//! ICPE 2017), and one arm twice, under two names, to show the noise. Does not own how a sample is executed: that is an
//! [`Executor`]'s.

mod rules;

use std::collections::VecDeque;

use crate::stats::Random;
use crate::{ArmName, Error, Op, Row, Unavailable};

pub use rules::{CACHED_COLD_MAX, CACHED_WARM_MIN, NOT_VERIFIED, REPEATS_MAX, STEAL_MAX, UNFINISHED};

/// What executes samples.
pub trait Executor {
    /// Executes `arm` once for `block`. The runner sets the row's `block`, and its `method` for the copy of an arm. A row that
    /// comes with a reason in `discarded` does not count, as one that breaks a rule.
    ///
    /// # Errors
    /// With [`Op::Start`] if the arm cannot run here; with any other operation, the run ends.
    fn execute(&mut self, arm: &ArmName, block: u32) -> Result<Row, Error>;
}

/// Who looks on.
pub trait Watch {
    /// Called before each sample.
    fn next(&mut self, progress: &Progress<'_>);

    /// Whether to end now; asked before each sample, and after one that failed, perhaps for the same reason.
    fn stop(&mut self) -> bool;
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The block, from 1.
    pub block: u32,
    /// How many there are.
    pub blocks: u32,
    /// What is executed next.
    pub arm: &'a ArmName,
    /// Samples of this block that are done, repeated ones included.
    pub done: usize,
    /// Samples of this block that are to come, this one included.
    pub left: usize,
}

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The arms, each with a name of its own.
    pub arms: Vec<ArmName>,
    /// Which of them runs twice a block.
    pub baseline: ArmName,
    /// How often.
    pub blocks: u32,
    /// What the order comes from.
    pub seed: u64,
}

/// How a run ended.
#[derive(Debug)]
pub enum End {
    /// As planned.
    Complete,
    /// By [`Watch::stop`].
    Interrupted,
    /// A sample failed, or its data was wrong.
    Failed(Error),
}

/// What a run gave.
#[derive(Debug)]
pub struct Outcome {
    /// Every sample in the order they were made, also those that do not count: [`Row::discarded`] says why.
    pub rows: Vec<Row>,
    /// Arms that cannot run here.
    pub unavailable: Vec<Unavailable>,
    /// Blocks that were finished.
    pub blocks: u32,
    /// How it ended.
    pub end: End,
}

/// Runs `plan`. A block that is not finished does not count.
pub fn run(plan: &Plan, executor: &mut dyn Executor, watch: &mut dyn Watch) -> Outcome {
    let outcome = Outcome { rows: Vec::new(), unavailable: Vec::new(), blocks: 0, end: End::Complete };
    let mut runner = Runner { plan, executor, watch, outcome };
    for block in 1..=plan.blocks {
        if let Err(end) = runner.block(block) {
            runner.forget(block);
            runner.outcome.end = end;
            break;
        }
        runner.outcome.blocks = block;
    }
    runner.outcome
}

/// The arms of a block in its order, each with the name it goes by. What was left out before does not change the order of
/// the others.
fn order(plan: &Plan, block: u32) -> Vec<(ArmName, ArmName)> {
    let mut arms: Vec<_> = plan.arms.iter().map(|arm| (arm.clone(), arm.clone())).collect();
    if plan.arms.contains(&plan.baseline) {
        arms.push((plan.baseline.clone(), plan.baseline.again()));
    }
    Random::part(plan.seed, block.into()).shuffle(&mut arms);
    arms
}

struct Runner<'a> {
    plan: &'a Plan,
    executor: &'a mut dyn Executor,
    watch: &'a mut dyn Watch,
    outcome: Outcome,
}

impl Runner<'_> {
    fn block(&mut self, block: u32) -> Result<(), End> {
        let mut queue: VecDeque<_> =
            order(self.plan, block).into_iter().map(|(arm, name)| (arm, name, 0)).collect();
        let mut done = 0;
        while let Some((arm, name, repeats)) = queue.pop_front() {
            if self.is_unavailable(&arm) {
                continue;
            }
            if self.watch.stop() {
                return Err(End::Interrupted);
            }
            let left = queue.len() + 1;
            self.watch.next(&Progress { block, blocks: self.plan.blocks, arm: &name, done, left });
            let counts = self.sample(&arm, &name, block)?;
            done += 1;
            if !counts && repeats < REPEATS_MAX {
                queue.push_back((arm, name, repeats + 1));
            }
        }
        Ok(())
    }

    /// Makes one sample; whether nothing is left to do about it.
    fn sample(&mut self, arm: &ArmName, name: &ArmName, block: u32) -> Result<bool, End> {
        let mut row = match self.executor.execute(arm, block) {
            Ok(row) => row,
            Err(_) if self.watch.stop() => return Err(End::Interrupted),
            Err(error) if error.is_unavailable() => {
                self.leave_out(arm, &error);
                return Ok(true);
            }
            Err(error) => return Err(End::Failed(error)),
        };
        row.block = block;
        row.method.clone_from(&name.method);
        if let Some(reason) = rules::reason(&row) {
            reason.clone_into(&mut row.discarded);
        }
        let (counts, failure) = (row.discarded.is_empty(), rules::failure(&row));
        self.outcome.rows.push(row);
        failure.map_or(Ok(counts), |error| Err(End::Failed(error)))
    }

    fn is_unavailable(&self, arm: &ArmName) -> bool {
        let gone = &self.outcome.unavailable;
        gone.iter().any(|gone| gone.lang == arm.lang && gone.method == arm.method)
    }

    fn leave_out(&mut self, arm: &ArmName, error: &Error) {
        let reason = error.cause();
        let ArmName { lang, method } = arm.clone();
        self.outcome.unavailable.push(Unavailable { lang, method, reason });
    }

    /// Counts nothing of a block that was not finished: its arms did not have the same chances.
    fn forget(&mut self, block: u32) {
        let rows = self.outcome.rows.iter_mut().filter(|row| row.block == block);
        rows.filter(|row| row.discarded.is_empty()).for_each(|row| UNFINISHED.clone_into(&mut row.discarded));
    }
}
