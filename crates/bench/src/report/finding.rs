//! The finding of a cell: the one judgement that tables, pages, JSON and advice state.

use serde::{Deserialize, Serialize};

use super::{escape_line, interval, significant};
use crate::summary::{BLOCKS_MIN, MARGIN};
use crate::{ArmSummary, Noise, Run};

/// The largest number of equally fast arms that the sentence names.
const NAMED_MAX: usize = 3;

/// The result that the samples of a cell show.
#[derive(Clone, Debug, PartialEq)]
pub enum CellFinding<'a> {
    /// No sample was counted.
    Nothing,
    /// No other arm was counted.
    Alone(&'a ArmSummary),
    /// The number of blocks is below [`BLOCKS_MIN`].
    TooFew(u32),
    /// The baseline was not counted. This arm is the fastest, and those may be as fast.
    Unrelated(&'a ArmSummary, Vec<&'a ArmSummary>),
    /// No arm is shown to be faster than the baseline by more than the margin and the noise.
    NoDifference(ToBaseline<'a>),
    /// The baseline is the fastest.
    Baseline(ToBaseline<'a>),
    /// An arm is shown to be faster than the baseline.
    Faster(FasterArm<'a>),
}

/// The baseline and the fastest of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct ToBaseline<'a> {
    /// The baseline.
    pub baseline: &'a ArmSummary,
    /// The fastest of the others.
    pub next: &'a ArmSummary,
    /// The share of time up to which a difference is not material, or noise.
    pub threshold: f64,
}

/// An arm that is shown to be faster than the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct FasterArm<'a> {
    /// The fastest of those that are shown to be faster.
    pub arm: &'a ArmSummary,
    /// Whether no arm has a shorter time, shown or not.
    pub is_fastest: bool,
    /// The baseline.
    pub baseline: &'a ArmSummary,
    /// Other arms that may be as fast.
    pub peers: Vec<&'a ArmSummary>,
}

/// The sentence of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSentence {
    /// The label of the cell.
    pub cell: String,
    /// The sentence.
    pub sentence: String,
}

impl<'a> CellFinding<'a> {
    /// Judges the arms of a cell, which are sorted by time.
    #[must_use]
    pub fn of(arms: impl IntoIterator<Item = &'a ArmSummary>, noise: Option<&Noise>) -> Self {
        let counted: Vec<&ArmSummary> = arms.into_iter().filter(|arm| arm.runs > 0).collect();
        let Some(best) = counted.first().copied() else { return Self::Nothing };
        let blocks = counted.iter().map(|arm| arm.runs).max().unwrap_or_default();
        let baseline = baseline_of(&counted);
        match (baseline, counted.as_slice()) {
            (_, [only]) => Self::Alone(only),
            _ if blocks < BLOCKS_MIN => Self::TooFew(blocks),
            (None, _) => {
                let others = counted.iter().copied().skip(1);
                Self::Unrelated(best, others.filter(|arm| arm.among_best).collect())
            }
            (Some(baseline), _) => {
                let next = counted.iter().copied().find(|arm| arm.ratio.is_some()).unwrap_or(best);
                let threshold = noise.map_or(MARGIN, |noise| noise.floor.max(MARGIN));
                let to_baseline = ToBaseline { baseline, next, threshold };
                let faster = counted.iter().copied().find(|arm| is_shown_faster(arm, threshold));
                let Some(arm) = faster else {
                    let others_may_be_as_fast =
                        counted.iter().any(|arm| arm.ratio.is_some() && arm.among_best);
                    return if best.ratio.is_none() && !others_may_be_as_fast {
                        Self::Baseline(to_baseline)
                    } else {
                        Self::NoDifference(to_baseline)
                    };
                };
                let others = counted.iter().copied().filter(|other| !std::ptr::eq(*other, arm));
                let peers = others.filter(|other| other.among_best && other.ratio.is_some()).collect();
                Self::Faster(FasterArm { arm, is_fastest: std::ptr::eq(arm, best), baseline, peers })
            }
        }
    }

    /// States the finding.
    fn sentence(&self, words: &ArmWords) -> String {
        match self {
            Self::Nothing => "No sample was counted, so nothing can be said.".to_owned(),
            Self::Alone(only) => {
                format!("Only {} was counted, so nothing can be compared.", words.name(only))
            }
            Self::TooFew(blocks) => {
                format!("{blocks} blocks are too few to rank by: {BLOCKS_MIN} are the least, 20 are good.")
            }
            Self::Unrelated(best, others) => {
                let best = words.name(best);
                format!(
                    "{best} is the fastest; there is no baseline to relate it to.{}",
                    peers(others, words)
                )
            }
            Self::NoDifference(found) => {
                let (base, next) = (words.name(found.baseline), next(found, words));
                let least = significant(found.threshold * 100.0, 2);
                format!(
                    "No material difference: nothing is shown to be faster than the baseline, {base}, by more than {least} %.{next}"
                )
            }
            Self::Baseline(found) => {
                format!("The baseline, {}, is the fastest.{}", words.name(found.baseline), next(found, words))
            }
            Self::Faster(FasterArm { arm, is_fastest, baseline, peers: others }) => {
                let (name, ratio, base) = (words.name(arm), words.ratio(arm), words.name(baseline));
                let (peers, rank) =
                    (peers(others, words), if *is_fastest { "the fastest" } else { "faster" });
                format!("{name} is {rank}: it takes {ratio} of the time of the baseline, {base}.{peers}")
            }
        }
    }
}

/// Returns the baseline among the arms with counted samples. It alone has no ratio to itself; if it
/// was not counted, no arm has one.
pub(crate) fn baseline_of<'a>(counted: &[&'a ArmSummary]) -> Option<&'a ArmSummary> {
    let mut without = counted.iter().copied().filter(|arm| arm.ratio.is_none());
    let baseline = without.next();
    baseline.filter(|_| without.next().is_none())
}

/// Returns whether `arm` is shown to be faster than the baseline, and by more than the share
/// `threshold`.
fn is_shown_faster(arm: &ArmSummary, threshold: f64) -> bool {
    arm.ratio.is_some_and(|ratio| ratio.high < 1.0 && ratio.median * (1.0 + threshold) <= 1.0)
}

fn next(found: &ToBaseline<'_>, words: &ArmWords) -> String {
    let next = found.next;
    format!(" The fastest of the others, {}, takes {} of its time.", words.name(next), words.ratio(next))
}

/// Names the other arms that may be as fast, or their number if there are many.
fn peers(peers: &[&ArmSummary], words: &ArmWords) -> String {
    let names: Vec<String> = peers.iter().map(|arm| words.name(arm)).collect();
    match names.as_slice() {
        [] => String::new(),
        [.., _] if names.len() > NAMED_MAX => format!(" {} others may be as fast.", names.len()),
        [one] => format!(" {one} may be as fast."),
        [first @ .., last] => format!(" {} and {last} may be as fast.", first.join(", ")),
    }
}

/// The words for arms and ratios in a sentence.
struct ArmWords {
    /// Whether the run has arms in several languages.
    languages: bool,
}

impl ArmWords {
    /// Names an arm.
    fn name(&self, arm: &ArmSummary) -> String {
        let method = escape_line(&arm.method);
        if self.languages { format!("{method} {}", escape_line(&arm.lang)) } else { method }
    }

    /// Formats the time of an arm divided by the baseline's.
    fn ratio(&self, arm: &ArmSummary) -> String {
        arm.ratio.as_ref().map_or_else(|| significant(1.0, 3), interval)
    }
}

/// Returns the sentence of each cell of `run`, in the order of their first arms.
#[must_use]
pub fn sentences(run: &Run) -> Vec<CellSentence> {
    let words = ArmWords { languages: run.arms.iter().any(|arm| arm.lang != run.arms[0].lang) };
    let mut cells: Vec<&str> = Vec::new();
    for arm in &run.arms {
        if !cells.contains(&arm.cell.as_str()) {
            cells.push(&arm.cell);
        }
    }
    let sentence = |cell: &str| {
        let arms = run.arms.iter().filter(|arm| arm.cell == cell);
        let noise = run.noise.iter().find(|noise| noise.cell == cell);
        CellFinding::of(arms, noise).sentence(&words)
    };
    cells.into_iter().map(|cell| CellSentence { cell: cell.to_owned(), sentence: sentence(cell) }).collect()
}
