//! Validation of advice: its regret on cells that it was not derived from, compared to fixed
//! choices.

use fathom_io::Model;
use serde::{Deserialize, Serialize};

use super::advisor::{AdviceEnd, AdviceOptions, baseline, with_share};
use super::cells::{advice_cells, candidates};
use super::source::SampleSource;
use super::verdict::Verdict;
use crate::fixture::Cell;
use crate::stats::median;
use crate::summary::summarise;
use crate::{ArmSummary, Op, runner};

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
        found.or_else(|| named("blocking"))
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
    /// Time of the chosen arm divided by that of the fastest, minus one: the median over blocks, at
    /// least 0.
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
/// than `options`, in `blocks` blocks each. On a slow device they have fewer operations, as those
/// of the advice.
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
            match regrets(verdict, &with_share(&cell, verdict.operations_share), cpus, blocks, source) {
                Ok(regrets) => validation.regrets.extend(regrets),
                Err(end) => return (validation, end),
            }
        }
    }
    (validation, AdviceEnd::Complete)
}

fn regrets(
    verdict: &Verdict,
    cell: &Cell,
    cpus: usize,
    blocks: u32,
    source: &mut dyn SampleSource,
) -> Result<Vec<Regret>, AdviceEnd> {
    let outcome =
        source.measure(cell, &candidates(cell, cpus), blocks, cell.seed).map_err(AdviceEnd::Failed)?;
    match outcome.end {
        runner::RunEnd::Complete => {}
        runner::RunEnd::Interrupted => return Err(AdviceEnd::Interrupted),
        runner::RunEnd::Failed(error) if error.op() == Op::Verify => return Err(AdviceEnd::Failed(error)),
        // A cell that cannot be measured here says nothing about the advice.
        runner::RunEnd::Failed(_) => return Ok(Vec::new()),
    }
    let arms = summarise(&outcome.rows, &cell.label(), &baseline(), cell.seed).arms;
    Ok(Strategy::ALL.into_iter().filter_map(|strategy| regret(strategy, verdict, cell, &arms)).collect())
}

fn regret(strategy: Strategy, verdict: &Verdict, cell: &Cell, arms: &[ArmSummary]) -> Option<Regret> {
    let chosen = strategy.choose(verdict, arms)?;
    let ratio = chosen.ratio_to_best.map_or(1.0, |ratio| ratio.median);
    Some(Regret {
        cell: cell.label(),
        strategy,
        method: chosen.method.clone(),
        best: arms.first()?.method.clone(),
        regret: (ratio - 1.0).max(0.0),
    })
}
