//! The finding of a cell: the one judgement that tables, pages, JSON and advice state.

use serde::{Deserialize, Serialize};

use super::{escape_line, interval, significant};
use crate::summary::{BLOCKS_MIN, MARGIN};
use crate::{ArmSummary, Noise, Run};

/// The largest number of equally fast, or of slower arms that the sentence names.
const NAMED_MAX: usize = 3;
/// The noise floor from which on a tie is no finding: two runs of one method differed as much.
const UNDECIDED_FLOOR: f64 = 0.5;

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
    Tie(ToBaseline<'a>),
    /// No arm is shown to be faster, but two runs of one method differed by half or more.
    Noisy(ToBaseline<'a>),
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
    /// Other arms that may be as fast as the fastest.
    pub peers: Vec<&'a ArmSummary>,
    /// Arms that are shown to be slower than the baseline by more than the threshold.
    pub slower: Vec<&'a ArmSummary>,
}

/// An arm that is shown to be faster than the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct FasterArm<'a> {
    /// The fastest of those that are shown to be faster.
    pub arm: &'a ArmSummary,
    /// The baseline.
    pub baseline: &'a ArmSummary,
    /// Other arms that may be as fast.
    pub peers: Vec<&'a ArmSummary>,
}

/// The answer to the question which arm of a cell to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellDecision {
    /// One arm is the fastest, or the baseline is.
    Use,
    /// The baseline and others may be equally fast.
    Tie,
    /// The samples do not decide.
    #[default]
    NotDecided,
}

/// The sentence of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSentence {
    /// The label of the cell.
    pub cell: String,
    /// The decision that the sentence states.
    #[serde(default)]
    pub decision: CellDecision,
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
                let others = counted.iter().copied().filter(|arm| arm.ratio.is_some());
                let peers: Vec<_> = others.clone().filter(|arm| arm.among_best).collect();
                let slower = others.filter(|arm| is_shown_slower(arm, threshold)).collect();
                let faster = counted.iter().copied().find(|arm| is_shown_faster(arm, threshold));
                if let Some(arm) = faster {
                    let peers = peers.into_iter().filter(|other| !std::ptr::eq(*other, arm)).collect();
                    return Self::Faster(FasterArm { arm, baseline, peers });
                }
                let is_first = best.ratio.is_none() && peers.is_empty();
                let found = ToBaseline { baseline, next, threshold, peers, slower };
                match is_first {
                    true => Self::Baseline(found),
                    false if threshold >= UNDECIDED_FLOOR => Self::Noisy(found),
                    false => Self::Tie(found),
                }
            }
        }
    }

    /// Returns the decision.
    #[must_use]
    pub fn decision(&self) -> CellDecision {
        match self {
            Self::Faster(_) | Self::Baseline(_) => CellDecision::Use,
            Self::Tie(_) => CellDecision::Tie,
            Self::Nothing | Self::Alone(_) | Self::TooFew(_) | Self::Unrelated(..) | Self::Noisy(_) => {
                CellDecision::NotDecided
            }
        }
    }

    /// States the finding.
    fn sentence(&self, words: &ArmWords) -> String {
        match self {
            Self::Nothing => "Not decided: no sample was valid.".to_owned(),
            Self::Alone(only) => {
                format!("Not decided: only {} was measured.", words.name(only))
            }
            Self::TooFew(blocks) => {
                format!("Not decided: {blocks} blocks are too few; use at least {BLOCKS_MIN}, better 20.")
            }
            Self::Unrelated(best, others) => {
                let best = words.name(best);
                let peers = peers(others, words);
                format!("Not decided: no baseline was measured; {best} is the fastest.{peers}")
            }
            Self::Tie(found) => {
                let (base, peers) = (words.name(found.baseline), peers(&found.peers, words));
                let (least, slower) = (significant(found.threshold * 100.0, 2), slower(found, words));
                format!("Tie: use {base}; nothing is faster by more than {least} %.{peers}{slower}")
            }
            Self::Noisy(found) => {
                let times = significant(1.0 + found.threshold, 2);
                let slower = slower(found, words);
                format!(
                    "Not decided: two runs of one method differed by {times} times; repeat on a quiet machine.{slower}"
                )
            }
            Self::Baseline(found) => {
                let (base, next) = (words.name(found.baseline), words.name(found.next));
                let ratio = words.ratio(found.next);
                format!("Use {base}: nothing is faster. The next, {next}, takes {ratio} times as long.")
            }
            Self::Faster(FasterArm { arm, baseline, peers: others }) => {
                let (name, ratio, base) = (words.name(arm), words.ratio(arm), words.name(baseline));
                let least = arm.ratio.map_or(1.0, |ratio| 1.0 / ratio.high);
                let (least, peers) = (significant(least, 3), peers(others, words));
                format!(
                    "Use {name}: at least {least} times as fast as {base}, with {ratio} of its time.{peers}"
                )
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

/// Returns whether `arm` is shown to be slower than the baseline, and by more than the share
/// `threshold`. An arm that may be as fast as the fastest, if all arms are considered, is not.
fn is_shown_slower(arm: &ArmSummary, threshold: f64) -> bool {
    !arm.among_best && arm.ratio.is_some_and(|ratio| ratio.low > 1.0 + threshold)
}

/// Names the arms that are slower, with the least factor, or their number if there are many.
fn slower(found: &ToBaseline<'_>, words: &ArmWords) -> String {
    let low = |arm: &&ArmSummary| arm.ratio.map_or(1.0, |ratio| ratio.low);
    let least = found.slower.iter().map(low).min_by(f64::total_cmp).unwrap_or(1.0);
    let parts: Vec<String> = found
        .slower
        .iter()
        .map(|arm| format!("{} at least {} times as long", words.name(arm), significant(low(arm), 2)))
        .collect();
    match parts.as_slice() {
        [] => String::new(),
        [.., _] if parts.len() > NAMED_MAX => {
            format!(" {} others take at least {} times as long.", parts.len(), significant(least, 2))
        }
        parts => format!(" Slower: {}.", parts.join(", ")),
    }
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
        let found = CellFinding::of(arms, noise);
        let (decision, sentence) = (found.decision(), found.sentence(&words));
        CellSentence { cell: cell.to_owned(), decision, sentence }
    };
    cells.into_iter().map(sentence).collect()
}
