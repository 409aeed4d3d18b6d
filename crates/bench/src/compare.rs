//! Two saved runs side by side.
//!
//! They were not interleaved, so no ratio within blocks can be made of them: only medians are compared, and whether the
//! intervals overlap.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Serialize;

use crate::report::{Align, aligned, interval, plain, significant};
use crate::{Interval, Run, Summary};

/// What two runs have in common, and what not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// What is not the same about machine and program. If there is anything, a difference may come from there.
    pub conditions: Vec<Difference>,
    /// Arms of both, in the order of the first.
    pub arms: Vec<Compared>,
    /// Arms that only the first has.
    pub only_first: Vec<Key>,
    /// Arms that only the second has.
    pub only_second: Vec<Key>,
}

/// A condition that differs; `None` where a run does not say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What it is, as in [`Run::machine`], or `program`.
    pub name: String,
    /// In the first run.
    pub first: Option<String>,
    /// In the second.
    pub second: Option<String>,
}

/// An arm of a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// As in [`Summary::cell`].
    pub cell: String,
    /// As in [`Summary::lang`].
    pub lang: String,
    /// As in [`Summary::method`].
    pub method: String,
}

/// An arm that both runs have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Which.
    #[serde(flatten)]
    pub arm: Key,
    /// Its seconds in the first run.
    pub first: Interval,
    /// And in the second.
    pub second: Interval,
    /// The second median by the first; `None` where there is none.
    pub ratio: Option<f64>,
    /// Whether the intervals have a value in common: then nothing shows that there is a difference.
    pub overlap: bool,
}

/// Compares `first` with `second`. Of arms with the same name in one run, the first is taken.
#[must_use]
pub fn compare(first: &Run, second: &Run) -> Comparison {
    let (mine, theirs) = (by_key(first), by_key(second));
    let missing = |run: &Run, other: &BTreeMap<Key, &Summary>| {
        let keys = run.arms.iter().map(key).filter(|key| !other.contains_key(key));
        let mut seen = BTreeSet::new();
        keys.filter(|key| seen.insert(key.clone())).collect()
    };
    let mut seen = BTreeSet::new();
    let keys = first.arms.iter().map(key).filter(|key| seen.insert(key.clone()));
    let arms = keys.filter_map(|key| {
        let (one, other) = (mine.get(&key)?, theirs.get(&key)?);
        Some(compared(key, &one.seconds, &other.seconds))
    });
    Comparison {
        conditions: conditions(first, second),
        arms: arms.collect(),
        only_first: missing(first, &theirs),
        only_second: missing(second, &mine),
    }
}

fn key(arm: &Summary) -> Key {
    Key { cell: arm.cell.clone(), lang: arm.lang.clone(), method: arm.method.clone() }
}

fn by_key(run: &Run) -> BTreeMap<Key, &Summary> {
    // Backwards, so that the first of a name stays.
    run.arms.iter().rev().map(|arm| (key(arm), arm)).collect()
}

fn compared(arm: Key, first: &Interval, second: &Interval) -> Compared {
    let ratio = (first.median > 0.0 && second.median > 0.0).then(|| second.median / first.median);
    let ratio = ratio.filter(|ratio| ratio.is_finite());
    let overlap = first.low <= second.high && second.low <= first.high;
    Compared { arm, first: *first, second: *second, ratio, overlap }
}

fn conditions(first: &Run, second: &Run) -> Vec<Difference> {
    let (mine, theirs) = (named(first), named(second));
    let names: BTreeSet<&str> = mine.keys().chain(theirs.keys()).copied().collect();
    let of = |all: &BTreeMap<&str, &str>, name: &str| all.get(name).map(|value| (*value).to_owned());
    names
        .into_iter()
        .map(|name| Difference { name: name.to_owned(), first: of(&mine, name), second: of(&theirs, name) })
        .filter(|difference| difference.first != difference.second)
        .collect()
}

fn named(run: &Run) -> BTreeMap<&str, &str> {
    let machine = run.machine.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    machine.chain([("program", run.program.as_str())]).collect()
}

impl Comparison {
    /// As a table for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.conditions_text();
        for arms in self.arms.chunk_by(|one, next| one.arm.cell == next.arm.cell) {
            let _ = writeln!(text, "{}\n\n{}", plain(&arms[0].arm.cell), arms_text(arms));
        }
        if self.arms.is_empty() {
            text += "the two runs have no arm in common\n";
        }
        for (which, keys) in [("first", &self.only_first), ("second", &self.only_second)] {
            for Key { cell, lang, method } in keys {
                let _ =
                    writeln!(text, "only in the {which}: {} {}, {}", plain(lang), plain(method), plain(cell));
            }
        }
        text
    }

    fn conditions_text(&self) -> String {
        let mut text = String::new();
        let shown = |value: &Option<String>| value.as_deref().map_or("not said".to_owned(), plain);
        for Difference { name, first, second } in &self.conditions {
            let _ = writeln!(text, "  {}: {}, then {}", plain(name), shown(first), shown(second));
        }
        let machine = self.conditions.iter().any(|condition| condition.name != "program");
        match (text.is_empty(), machine) {
            (true, _) => text,
            (false, true) => format!("compared across machines:\n{text}\n"),
            (false, false) => format!("compared across programs:\n{text}\n"),
        }
    }
}

fn arms_text(arms: &[Compared]) -> String {
    let head =
        ["lang", "arm", "first, seconds", "second, seconds", "ratio", "intervals"].map(String::from).to_vec();
    let rows = arms.iter().map(|compared| {
        let ratio = compared.ratio.map_or("-".to_owned(), |ratio| significant(ratio, 3));
        vec![
            plain(&compared.arm.lang),
            plain(&compared.arm.method),
            interval(&compared.first),
            interval(&compared.second),
            ratio,
            if compared.overlap { "overlap" } else { "apart" }.to_owned(),
        ]
    });
    let align = [Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Left];
    aligned(&align, &std::iter::once(head).chain(rows).collect::<Vec<_>>())
}
