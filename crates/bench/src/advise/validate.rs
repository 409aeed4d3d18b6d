//! Whether advice is good: what it costs on samples it has not seen, beside what fixed choices cost.

use serde::{Deserialize, Serialize};

use super::inquiry::{Ask, End, baseline};
use super::question::{candidates, questions};
use super::site::Bench;
use super::verdict::Verdict;
use crate::lab::Cell;
use crate::stats::median;
use crate::summary::summarise;
use crate::{Op, Summary, runner};

/// Sizes of what was not seen, as multiples of what was.
const SCALES: [f64; 2] = [0.5, 2.0];
/// Threads, and operations of a ring, of the fixed choices.
const FIXED_THREADS: u32 = 8;
const FIXED_DEPTH: u32 = 32;

/// Somebody's choice of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// What was advised.
    Advice,
    /// Blocking calls, whatever the work is.
    AlwaysBlocking,
    /// Eight threads, or as near to eight as the workload has.
    AlwaysThreads,
    /// A ring with 32 operations under way, or as near to 32 as the workload has.
    AlwaysUring,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Advice, Self::AlwaysBlocking, Self::AlwaysThreads, Self::AlwaysUring];

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Advice => "advice",
            Self::AlwaysBlocking => "always blocking",
            Self::AlwaysThreads => "always 8 threads",
            Self::AlwaysUring => "always io_uring",
        }
    }

    /// The arm it would take; where a workload has no such arm, blocking calls.
    fn choice<'a>(self, verdict: &Verdict, arms: &'a [Summary]) -> Option<&'a Summary> {
        let nearest = |model: &str, wanted: u32| {
            let of_model = arms.iter().filter(|arm| arm.model == model && arm.runs > 0);
            of_model.min_by_key(|arm| (arm.threads * arm.depth).abs_diff(wanted))
        };
        let named = |method: &str| arms.iter().find(|arm| arm.method == method && arm.runs > 0);
        let found = match self {
            Self::Advice => return named(&verdict.method),
            Self::AlwaysBlocking => None,
            Self::AlwaysThreads => nearest("threads", FIXED_THREADS),
            Self::AlwaysUring => nearest("uring", FIXED_DEPTH),
        };
        found.or_else(|| named("blocking"))
    }
}

/// What a choice cost in a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regret {
    /// The cell.
    pub cell: String,
    /// Who chose.
    pub strategy: Strategy,
    /// What was chosen.
    pub method: String,
    /// The fastest arm.
    pub best: String,
    /// Time of the chosen arm divided by that of the fastest, minus one: the median over blocks, but not less than zero.
    pub regret: f64,
}

/// What choices cost in all cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Cells by strategies.
    pub regrets: Vec<Regret>,
}

impl Validation {
    /// Those of `strategy`.
    fn of(&self, strategy: Strategy) -> Vec<f64> {
        self.regrets.iter().filter(|regret| regret.strategy == strategy).map(|regret| regret.regret).collect()
    }

    /// The median regret of `strategy`; `None` without cells.
    #[must_use]
    pub fn median(&self, strategy: Strategy) -> Option<f64> {
        median(&self.of(strategy))
    }

    /// The worst one.
    #[must_use]
    pub fn worst(&self, strategy: Strategy) -> Option<f64> {
        self.of(strategy).into_iter().max_by(f64::total_cmp)
    }
}

/// Measures all candidates in cells like those of `verdicts`, with the seed and around the size of `ask`, `blocks` times each.
pub fn validate(verdicts: &[Verdict], ask: &Ask, blocks: u32, bench: &mut dyn Bench) -> (Validation, End) {
    let cpus = bench.probe().cpus;
    let mut validation = Validation::default();
    for (number, scale) in (1_u64..).zip(SCALES) {
        for cell in questions(ask.seed.wrapping_add(number), scale * ask.scale) {
            let is_its = |verdict: &&Verdict| {
                verdict.workload == cell.deed.name() && verdict.cache == cell.cache.name()
            };
            let Some(verdict) = verdicts.iter().find(is_its) else { continue };
            match regrets(verdict, &cell, cpus, blocks, bench) {
                Ok(regrets) => validation.regrets.extend(regrets),
                Err(end) => return (validation, end),
            }
        }
    }
    (validation, End::Complete)
}

fn regrets(
    verdict: &Verdict,
    cell: &Cell,
    cpus: usize,
    blocks: u32,
    bench: &mut dyn Bench,
) -> Result<Vec<Regret>, End> {
    let outcome = bench.measure(cell, &candidates(cell, cpus), blocks, cell.seed).map_err(End::Failed)?;
    match outcome.end {
        runner::End::Complete => {}
        runner::End::Interrupted => return Err(End::Interrupted),
        runner::End::Failed(error) if error.op() == Op::Verify => return Err(End::Failed(error)),
        // What cannot be done here is no fault of the advice.
        runner::End::Failed(_) => return Ok(Vec::new()),
    }
    let arms = summarise(&outcome.rows, &cell.label(), &baseline(), cell.seed).arms;
    Ok(Strategy::ALL.into_iter().filter_map(|strategy| regret(strategy, verdict, cell, &arms)).collect())
}

fn regret(strategy: Strategy, verdict: &Verdict, cell: &Cell, arms: &[Summary]) -> Option<Regret> {
    let chosen = strategy.choice(verdict, arms)?;
    let ratio = chosen.ratio_to_best.map_or(1.0, |ratio| ratio.median);
    Some(Regret {
        cell: cell.label(),
        strategy,
        method: chosen.method.clone(),
        best: arms.first()?.method.clone(),
        regret: (ratio - 1.0).max(0.0),
    })
}
