//! The schedule of samples, and the decision which of them are counted.
//!
//! Each block runs every arm once, in an order shuffled by the seed (randomised multiple
//! interleaved trials: Abedi and Brecht, ICPE 2017), and the baseline a second time under another
//! name, to measure the noise. The execution of a sample belongs to an [`Executor`].

mod rules;

use std::collections::{BTreeMap, VecDeque};

use crate::stats::Random;
use crate::{ArmName, Error, Op, Row, UnavailableArm};

pub use rules::{
    CACHED_COLD_MAX, CACHED_WARM_MIN, FAILED_LATER, NOT_VERIFIED, REPEATS_MAX, STEAL_MAX, UNFINISHED,
};

/// Executes samples.
pub trait Executor {
    /// Executes `arm` once for `block`. The runner sets the row's `block`, and its `method` for the
    /// second copy of the baseline. A row that is `disturbed` is repeated, unless the machine is in
    /// use all the time.
    ///
    /// # Errors
    /// With [`Op::Start`] if the arm cannot run on this machine; any other operation ends the run.
    fn execute(&mut self, arm: &ArmName, block: u32) -> Result<Row, Error>;
}

/// Observes a run and may stop it.
pub trait RunObserver {
    /// Called before each sample.
    fn next(&mut self, progress: &Progress<'_>);

    /// Returns whether to end the run. Called before each sample and after a failed one, because an
    /// interrupt may also have killed the sample's process.
    fn stop(&mut self) -> bool;
}

/// The position of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The block, from 1.
    pub block: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// The arm of the next sample.
    pub arm: &'a ArmName,
    /// Finished samples of this block, including repetitions.
    pub done: usize,
    /// Remaining samples of this block, including the next.
    pub left: usize,
}

/// The samples to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// The arms, with unique names.
    pub arms: Vec<ArmName>,
    /// The arm that runs twice in each block.
    pub baseline: ArmName,
    /// Number of blocks.
    pub blocks: u32,
    /// The number of blocks, from the first on, of arms that do not run in all of them.
    pub fewer_blocks: BTreeMap<ArmName, u32>,
    /// The seed of the order.
    pub seed: u64,
}

impl RunPlan {
    /// Plans all `arms` in all `blocks`.
    #[must_use]
    pub fn new(arms: Vec<ArmName>, baseline: ArmName, blocks: u32, seed: u64) -> Self {
        Self { arms, baseline, blocks, fewer_blocks: BTreeMap::new(), seed }
    }
}

/// The way in which a run ended.
#[derive(Debug)]
pub enum RunEnd {
    /// All blocks are finished.
    Complete,
    /// [`RunObserver::stop`] returned true.
    Interrupted,
    /// A sample failed, or its data was wrong.
    Failed(Error),
}

/// The result of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// Every sample in order of execution. Samples that are not counted have a reason in
    /// [`Row::discarded`].
    pub rows: Vec<Row>,
    /// Arms that cannot run on this machine.
    pub unavailable: Vec<UnavailableArm>,
    /// Number of finished blocks.
    pub blocks: u32,
    /// The way in which the run ended.
    pub end: RunEnd,
}

/// Runs `plan`. The samples of an unfinished block are not counted.
pub fn run(plan: &RunPlan, executor: &mut dyn Executor, observer: &mut dyn RunObserver) -> RunOutcome {
    let outcome = RunOutcome { rows: Vec::new(), unavailable: Vec::new(), blocks: 0, end: RunEnd::Complete };
    let mut runner = Runner { plan, executor, observer, outcome, disturbed: 0, undisturbed: 0 };
    for block in 1..=plan.blocks {
        if let Err(end) = runner.block(block) {
            runner.discard_block(block);
            runner.outcome.end = end;
            break;
        }
        runner.outcome.blocks = block;
    }
    runner.outcome
}

/// Returns the arms of a block in order of execution, each with the name in its rows. The order
/// does not depend on which arms turned out to be unavailable.
fn order(plan: &RunPlan, block: u32) -> Vec<(ArmName, ArmName)> {
    let runs = |arm: &&ArmName| plan.fewer_blocks.get(*arm).is_none_or(|blocks| block <= *blocks);
    let mut arms: Vec<_> = plan.arms.iter().filter(runs).map(|arm| (arm.clone(), arm.clone())).collect();
    if plan.arms.contains(&plan.baseline) && runs(&&plan.baseline) {
        arms.push((plan.baseline.clone(), plan.baseline.second_copy()));
    }
    Random::substream(plan.seed, block.into()).shuffle(&mut arms);
    arms
}

struct Runner<'a> {
    plan: &'a RunPlan,
    executor: &'a mut dyn Executor,
    observer: &'a mut dyn RunObserver,
    outcome: RunOutcome,
    /// Samples so far during which others used the machine, and those during which nobody did.
    disturbed: u32,
    undisturbed: u32,
}

impl Runner<'_> {
    fn block(&mut self, block: u32) -> Result<(), RunEnd> {
        let mut queue: VecDeque<_> =
            order(self.plan, block).into_iter().map(|(arm, name)| (arm, name, 0)).collect();
        let mut done = 0;
        while let Some((arm, name, repeats)) = queue.pop_front() {
            if self.is_unavailable(&arm) {
                continue;
            }
            if self.observer.stop() {
                return Err(RunEnd::Interrupted);
            }
            let left = queue.len() + 1;
            self.observer.next(&Progress { block, blocks: self.plan.blocks, arm: &name, done, left });
            let may_repeat = repeats < REPEATS_MAX;
            let counts = self.sample(&arm, &name, block, may_repeat)?;
            done += 1;
            if !counts && may_repeat {
                queue.push_back((arm, name, repeats + 1));
            }
        }
        Ok(())
    }

    /// Executes one sample. Returns false if it is not counted.
    fn sample(
        &mut self,
        arm: &ArmName,
        name: &ArmName,
        block: u32,
        may_repeat: bool,
    ) -> Result<bool, RunEnd> {
        let mut row = match self.executor.execute(arm, block) {
            Ok(row) => row,
            Err(_) if self.observer.stop() => return Err(RunEnd::Interrupted),
            Err(error) if error.is_unavailable() => {
                self.record_unavailable(arm, &error);
                return Ok(true);
            }
            Err(error) => return Err(RunEnd::Failed(error)),
        };
        row.block = block;
        row.method.clone_from(&name.method);
        row.second_copy = name.is_second_copy();
        self.judge(&mut row, may_repeat);
        let (counts, failure) = (row.discarded.is_empty(), rules::fatal_error(&row));
        self.outcome.rows.push(row);
        failure.map_or(Ok(counts), |error| Err(RunEnd::Failed(error)))
    }

    /// Records whether others used the machine during `row`, and why it is not counted.
    fn judge(&mut self, row: &mut Row, may_repeat: bool) {
        if let Some(disturbance) = rules::disturbance(row) {
            disturbance.clone_into(&mut row.disturbed);
        }
        if let Some(reason) = rules::discard_reason(row) {
            reason.clone_into(&mut row.discarded);
        }
        if row.disturbed.is_empty() {
            self.undisturbed += 1;
            return;
        }
        self.disturbed += 1;
        let is_exception = self.disturbed <= self.undisturbed + REPEATS_MAX;
        if may_repeat && is_exception && row.discarded.is_empty() {
            row.discarded.clone_from(&row.disturbed);
        }
    }

    fn is_unavailable(&self, arm: &ArmName) -> bool {
        let gone = &self.outcome.unavailable;
        gone.iter().any(|gone| gone.lang == arm.lang && gone.method == arm.method)
    }

    fn record_unavailable(&mut self, arm: &ArmName, error: &Error) {
        let reason = error.cause();
        let ArmName { lang, method } = arm.clone();
        // An arm that cannot go on has no samples in the blocks to come, so it has none at all.
        let rows = self.outcome.rows.iter_mut().filter(|row| (&row.lang, &row.method) == (&lang, &method));
        rows.filter(|row| row.discarded.is_empty())
            .for_each(|row| FAILED_LATER.clone_into(&mut row.discarded));
        self.outcome.unavailable.push(UnavailableArm { lang, method, reason });
    }

    /// Discards the samples of an unfinished block: not every arm ran under its conditions.
    fn discard_block(&mut self, block: u32) {
        let rows = self.outcome.rows.iter_mut().filter(|row| row.block == block);
        rows.filter(|row| row.discarded.is_empty()).for_each(|row| UNFINISHED.clone_into(&mut row.discarded));
    }
}
