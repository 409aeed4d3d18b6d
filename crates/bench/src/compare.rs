//! Comparison of two saved runs.
//!
//! The samples of two runs are not interleaved, so ratios within blocks do not exist: medians are
//! compared, and the interval of their ratio follows from the intervals of both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Serialize;

use crate::report::{Align, aligned, escape_line, interval, markdown, markdown_text};
use crate::{ArmSummary, Interval, Run};

/// The result of comparing two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunComparison {
    /// Properties of the machine or the program that differ. Each may be the cause of a difference
    /// in time.
    pub conditions: Vec<ConditionDifference>,
    /// Arms that both runs have, in the order of the first run.
    pub arms: Vec<ArmComparison>,
    /// Arms that only the first run has.
    pub only_first: Vec<ArmKey>,
    /// Arms that only the second run has.
    pub only_second: Vec<ArmKey>,
}

/// A condition that differs between two runs. `None`: the run does not record it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConditionDifference {
    /// A name of [`Run::machine`], or `program`.
    pub name: String,
    /// The value in the first run.
    pub first: Option<String>,
    /// The value in the second run.
    pub second: Option<String>,
}

/// Identifies an arm within a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ArmKey {
    /// See [`ArmSummary::cell`].
    pub cell: String,
    /// See [`ArmSummary::lang`].
    pub lang: String,
    /// See [`ArmSummary::method`].
    pub method: String,
}

/// The times of an arm in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmComparison {
    /// The arm.
    #[serde(flatten)]
    pub arm: ArmKey,
    /// Seconds in the first run.
    pub first: Interval,
    /// Seconds in the second run.
    pub second: Interval,
    /// The second median divided by the first; `None` if a run has no median. The interval is
    /// unknown if it is unknown for a run.
    pub ratio: Option<Interval>,
    /// The change that the interval shows.
    pub change: TimeChange,
}

/// A change of the time of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeChange {
    /// The interval of the ratio is above 1.
    Slower,
    /// The interval of the ratio is below 1.
    Faster,
    /// The interval holds 1.
    NotShown,
    /// There is no interval: a run has fewer than six blocks, or no median.
    Unknown,
}

impl TimeChange {
    fn of(ratio: Option<Interval>) -> Self {
        match ratio {
            Some(ratio) if ratio.low > 1.0 => Self::Slower,
            Some(ratio) if ratio.high < 1.0 => Self::Faster,
            Some(ratio) if ratio.low.is_finite() && ratio.high.is_finite() => Self::NotShown,
            _ => Self::Unknown,
        }
    }

    /// Returns the word of the tables.
    fn name(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::NotShown => "not shown",
            Self::Unknown => "unknown",
        }
    }
}

/// Compares `first` with `second`. If a run has several arms of the same name, the first of them is
/// used.
#[must_use]
pub fn compare(first: &Run, second: &Run) -> RunComparison {
    let (of_first, of_second) = (by_key(first), by_key(second));
    let missing = |run: &Run, other: &BTreeMap<ArmKey, &ArmSummary>| {
        let keys = run.arms.iter().map(key).filter(|key| !other.contains_key(key));
        let mut seen = BTreeSet::new();
        keys.filter(|key| seen.insert(key.clone())).collect()
    };
    let mut seen = BTreeSet::new();
    let keys = first.arms.iter().map(key).filter(|key| seen.insert(key.clone()));
    let arms = keys.filter_map(|key| {
        let (one, other) = (of_first.get(&key)?, of_second.get(&key)?);
        Some(compared(key, &one.seconds, &other.seconds))
    });
    RunComparison {
        conditions: conditions(first, second),
        arms: arms.collect(),
        only_first: missing(first, &of_second),
        only_second: missing(second, &of_first),
    }
}

fn key(arm: &ArmSummary) -> ArmKey {
    ArmKey { cell: arm.cell.clone(), lang: arm.lang.clone(), method: arm.method.clone() }
}

fn by_key(run: &Run) -> BTreeMap<ArmKey, &ArmSummary> {
    // In reverse, so that the first of several arms of the same name is the one that remains.
    run.arms.iter().rev().map(|arm| (key(arm), arm)).collect()
}

fn compared(arm: ArmKey, first: &Interval, second: &Interval) -> ArmComparison {
    let ratio = ratio(first, second);
    ArmComparison { arm, first: *first, second: *second, ratio, change: TimeChange::of(ratio) }
}

/// Divides the second median by the first. The interval of the logarithm is the interval of a
/// difference of two independent estimates with the given intervals (MOVER: Zou and Donner 2008,
/// Construction of confidence limits about effect measures).
fn ratio(first: &Interval, second: &Interval) -> Option<Interval> {
    let median = (first.median > 0.0 && second.median > 0.0).then(|| second.median / first.median)?;
    let below = |estimate: &Interval| (estimate.median / estimate.low).ln();
    let above = |estimate: &Interval| (estimate.high / estimate.median).ln();
    let known = |end: f64| if end.is_finite() { end } else { f64::NAN };
    let low = known(median * (-below(second).hypot(above(first))).exp());
    let high = known(median * above(second).hypot(below(first)).exp());
    median.is_finite().then_some(Interval { median, low, high })
}

fn conditions(first: &Run, second: &Run) -> Vec<ConditionDifference> {
    let (of_first, of_second) = (named(first), named(second));
    let names: BTreeSet<&str> = of_first.keys().chain(of_second.keys()).copied().collect();
    let of = |all: &BTreeMap<&str, &str>, name: &str| all.get(name).map(|value| (*value).to_owned());
    names
        .into_iter()
        .map(|name| ConditionDifference {
            name: name.to_owned(),
            first: of(&of_first, name),
            second: of(&of_second, name),
        })
        .filter(|difference| difference.first != difference.second)
        .collect()
}

fn named(run: &Run) -> BTreeMap<&str, &str> {
    let machine = run.machine.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    machine.chain([("program", run.program.as_str())]).collect()
}

impl RunComparison {
    /// Returns the arms that are shown to be slower, by more than the share `above` in the median.
    #[must_use]
    pub fn slower_by(&self, above: f64) -> Vec<&ArmComparison> {
        let is_slower = |compared: &&ArmComparison| {
            compared.change == TimeChange::Slower
                && compared.ratio.is_some_and(|ratio| ratio.median > 1.0 + above)
        };
        self.arms.iter().filter(is_slower).collect()
    }

    /// Formats the comparison as a table for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.conditions_text();
        if !text.is_empty() {
            text.push('\n');
        }
        for arms in self.arms.chunk_by(|one, next| one.arm.cell == next.arm.cell) {
            let _ = writeln!(text, "{}\n\n{}", escape_line(&arms[0].arm.cell), aligned(&ALIGN, &rows(arms)));
        }
        text + &self.missing_text()
    }

    /// Names the arms that are not in both runs, one a line.
    fn missing_text(&self) -> String {
        let mut text = String::new();
        if self.arms.is_empty() {
            text += "the two runs have no arm in common\n";
        }
        for (which, keys) in [("first", &self.only_first), ("second", &self.only_second)] {
            for ArmKey { cell, lang, method } in keys {
                let _ = writeln!(
                    text,
                    "only in the {which}: {} {}, {}",
                    escape_line(lang),
                    escape_line(method),
                    escape_line(cell)
                );
            }
        }
        text
    }

    /// Formats the comparison as tables in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = markdown_list(&self.conditions_text());
        for arms in self.arms.chunk_by(|one, next| one.arm.cell == next.arm.cell) {
            let _ = writeln!(
                text,
                "### {}\n\n{}",
                markdown_text(&arms[0].arm.cell),
                markdown(&ALIGN, &rows(arms))
            );
        }
        text + &markdown_list(&self.missing_text())
    }

    fn conditions_text(&self) -> String {
        let mut text = String::new();
        let value_text = |value: &Option<String>| value.as_deref().map_or("not said".to_owned(), escape_line);
        for ConditionDifference { name, first, second } in &self.conditions {
            let _ =
                writeln!(text, "  {}: {}, then {}", escape_line(name), value_text(first), value_text(second));
        }
        let machine = self.conditions.iter().any(|condition| condition.name != "program");
        match (text.is_empty(), machine) {
            (true, _) => text,
            (false, true) => format!("compared across machines:\n{text}"),
            (false, false) => format!("compared across programs:\n{text}"),
        }
    }
}

/// Formats the lines of `text` as a list in Markdown.
fn markdown_list(text: &str) -> String {
    let items: String =
        text.lines().map(|line| format!("- {}\n", markdown_text(line.trim_start()))).collect();
    if items.is_empty() { items } else { items + "\n" }
}

const ALIGN: [Align; 6] = [Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Left];

/// Formats seconds; an arm without a counted sample has none.
fn seconds(seconds: &Interval) -> String {
    if seconds.median > 0.0 { interval(seconds) } else { "-".to_owned() }
}

fn rows(arms: &[ArmComparison]) -> Vec<Vec<String>> {
    let head = ["lang", "arm", "first, seconds", "second, seconds", "ratio", "change"].map(String::from);
    let rows = arms.iter().map(|compared| {
        vec![
            escape_line(&compared.arm.lang),
            escape_line(&compared.arm.method),
            seconds(&compared.first),
            seconds(&compared.second),
            compared.ratio.as_ref().map_or("-".to_owned(), interval),
            compared.change.name().to_owned(),
        ]
    });
    std::iter::once(head.to_vec()).chain(rows).collect()
}
