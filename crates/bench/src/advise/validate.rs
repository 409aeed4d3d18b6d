//! Validation of advice: its regret on cells that it was not derived from, compared to fixed
//! choices.

use fathom_io::Model;
use serde::{Deserialize, Serialize};

use super::advisor::{AdviceEnd, AdviceOptions, baseline, with_share};
use super::cells::{advice_cells, candidates};
use super::source::SampleSource;
use super::verdict::Verdict;
use crate::arms::{Arm, BASELINE};
use crate::fixture::Cell;
use crate::stats::median;
use crate::summary::summarise;
use crate::{ArmName, ArmSummary, Op, runner};

/// Sizes of the validation cells relative to the cells of the advice.
const SCALES: [f64; 2] = [0.5, 2.0];
/// Threads of [`Strategy::AlwaysThreads`].
const FIXED_THREADS: u32 = 8;
/// Operations in flight of [`Strategy::AlwaysUring`].
const FIXED_DEPTH: u32 = 32;

/// A rule that chooses an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The advised arm.
    Advice,
    /// Blocking calls for every workload.
    AlwaysBlocking,
    /// The arm of the `threads` model nearest to 8 threads.
    AlwaysThreads,
    /// The arm of the `uring` model nearest to 32 operations in flight.
    AlwaysUring,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 4] = [Self::Advice, Self::AlwaysBlocking, Self::AlwaysThreads, Self::AlwaysUring];

    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::AlwaysBlocking => "always blocking",
            Self::AlwaysThreads => "always 8 threads",
            Self::AlwaysUring => "always io_uring",
        }
    }

    /// Returns the arm that the strategy chooses; blocking calls if the workload has no arm of its
    /// model.
    fn choose<'a>(self, verdict: &Verdict, arms: &'a [ArmSummary]) -> Option<&'a ArmSummary> {
        let nearest = |model: Model, wanted: u32| {
            let of_model = arms.iter().filter(|arm| arm.model == model.name() && arm.runs > 0);
            of_model.min_by_key(|arm| (arm.threads * arm.depth).abs_diff(wanted))
        };
        let named = |method: &str| arms.iter().find(|arm| arm.method == method && arm.runs > 0);
        let found = match self {
            Self::Advice => return named(&verdict.method),
            Self::AlwaysBlocking => None,
            Self::AlwaysThreads => nearest(Model::Threads(None), FIXED_THREADS),
            Self::AlwaysUring => nearest(Model::Uring(None), FIXED_DEPTH),
        };
        found.or_else(|| named(BASELINE))
    }
}

/// The cost of a choice in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regret {
    /// The label of the cell.
    pub cell: String,
    /// The strategy.
    pub strategy: Strategy,
    /// The chosen arm.
    pub method: String,
    /// The fastest arm.
    pub best: String,
    /// Time of the chosen arm divided by the time of the fastest, minus one: the median over blocks
    /// in which the fastest was known already, at least 0.
    pub regret: f64,
}

/// The regret of every strategy in every validation cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// One entry for each cell and strategy.
    pub regrets: Vec<Regret>,
}

impl Validation {
    /// Returns the regrets of `strategy`.
    fn of(&self, strategy: Strategy) -> Vec<f64> {
        self.regrets.iter().filter(|regret| regret.strategy == strategy).map(|regret| regret.regret).collect()
    }

    /// Returns the median regret of `strategy`; `None` if there are no cells.
    #[must_use]
    pub fn median(&self, strategy: Strategy) -> Option<f64> {
        median(&self.of(strategy))
    }

    /// Returns the largest regret of `strategy`; `None` if there are no cells.
    #[must_use]
    pub fn worst(&self, strategy: Strategy) -> Option<f64> {
        self.of(strategy).into_iter().max_by(f64::total_cmp)
    }
}

/// Measures all candidates in cells of the same workloads as `verdicts`, with other seeds and sizes
/// than `options`, in `blocks` blocks each; then the fastest and the chosen arms in as many blocks
/// again, from which the regrets are. The fastest of many arms had luck in the blocks that made it
/// the fastest, so those would overstate every regret. On a slow device the cells have fewer
/// operations, as the times of the advice.
pub fn validate(
    verdicts: &[Verdict],
    options: &AdviceOptions,
    blocks: u32,
    source: &mut dyn SampleSource,
) -> (Validation, AdviceEnd) {
    let cpus = source.probe().cpus;
    let mut validation = Validation::default();
    for (number, scale) in (1_u64..).zip(SCALES) {
        for cell in advice_cells(options.seed.wrapping_add(number), scale * options.scale) {
            let is_its = |verdict: &&Verdict| {
                verdict.workload == cell.workload.name() && verdict.cache == cell.cache.name()
            };
            let Some(verdict) = verdicts.iter().find(is_its) else { continue };
            let cell = with_share(&cell, verdict.operations_share);
            let mut trial = Trial { cell: &cell, blocks, source: &mut *source };
            match trial.regrets(verdict, cpus) {
                Ok(regrets) => validation.regrets.extend(regrets),
                Err(end) => return (validation, end),
            }
        }
    }
    (validation, AdviceEnd::Complete)
}

/// The validation in one cell.
struct Trial<'a> {
    cell: &'a Cell,
    blocks: u32,
    source: &'a mut dyn SampleSource,
}

impl Trial<'_> {
    fn regrets(&mut self, verdict: &Verdict, cpus: usize) -> Result<Vec<Regret>, AdviceEnd> {
        let candidates = candidates(self.cell, cpus);
        let first = self.measure(&candidates, 0, &baseline())?;
        let Some(fastest) = first.first().map(|arm| arm.method.clone()) else { return Ok(Vec::new()) };
        let choices: Vec<(Strategy, String)> = Strategy::ALL
            .into_iter()
            .filter_map(|strategy| Some((strategy, strategy.choose(verdict, &first)?.method.clone())))
            .collect();
        let is_compared =
            |name: &str| name == fastest || choices.iter().any(|(_, chosen)| chosen.as_str() == name);
        // The first candidate is the baseline, which every measurement has.
        let compared: Vec<Arm> = (0..)
            .zip(&candidates)
            .filter(|(at, arm)| *at == 0 || is_compared(&arm.name))
            .map(|(_, arm)| arm.clone())
            .collect();
        let second = self.measure(&compared, self.blocks, &ArmName::new("rust", &fastest))?;
        let regret_of = |(strategy, method): (Strategy, String)| {
            let chosen = second.iter().find(|arm| arm.method == method && arm.runs > 0)?;
            let ratio = if method == fastest { 1.0 } else { chosen.ratio?.median };
            let regret = (ratio - 1.0).max(0.0);
            Some(Regret { cell: self.cell.label(), strategy, method, best: fastest.clone(), regret })
        };
        Ok(choices.into_iter().filter_map(regret_of).collect())
    }

    /// Measures `arms` and returns their summaries, with ratios to `reference`; none if the cell
    /// cannot be measured here, which says nothing about the advice.
    fn measure(
        &mut self,
        arms: &[Arm],
        before: u32,
        reference: &ArmName,
    ) -> Result<Vec<ArmSummary>, AdviceEnd> {
        let seed = self.cell.seed.wrapping_add(before.into());
        let outcome =
            self.source.measure(self.cell, arms, self.blocks, seed, None).map_err(AdviceEnd::Failed)?;
        match outcome.end {
            runner::RunEnd::Complete => {}
            runner::RunEnd::Interrupted => return Err(AdviceEnd::Interrupted),
            runner::RunEnd::Failed(error) if error.op() == Op::Verify => {
                return Err(AdviceEnd::Failed(error));
            }
            runner::RunEnd::Failed(_) => return Ok(Vec::new()),
        }
        Ok(summarise(&outcome.rows, &self.cell.label(), reference, self.cell.seed).arms)
    }
}
