//! The judgement whether commands meet the requirements on them.

use crate::commands::{CommandCase, CommandRequirement, LANG, RequirementLimit};
use crate::report::{interval, significant};
use crate::summary::{CellSummary, least_ratio, ratio_between};
use crate::{ArmName, ArmSummary, Interval, RequirementOutcome, RequirementVerdict, Row};

/// Judges the requirements of `case` by its samples `rows` and their `summary`.
#[must_use]
pub fn judge(case: &CommandCase, rows: &[Row], summary: &CellSummary, seed: u64) -> Vec<RequirementVerdict> {
    let cell = MeasuredCell { case, rows, summary, seed };
    case.requirements.iter().map(|requirement| cell.verdict(requirement)).collect()
}

struct MeasuredCell<'a> {
    case: &'a CommandCase,
    rows: &'a [Row],
    summary: &'a CellSummary,
    seed: u64,
}

impl<'a> MeasuredCell<'a> {
    fn verdict(&self, requirement: &CommandRequirement) -> RequirementVerdict {
        let (measured, outcome) = self.measure(requirement).unwrap_or_default();
        let (cell, requirement) = (self.case.name.clone(), requirement.sentence());
        RequirementVerdict { cell, requirement, measured, outcome }
    }

    fn measure(
        &self,
        CommandRequirement { command, limit }: &CommandRequirement,
    ) -> Option<(String, RequirementOutcome)> {
        let ours = match limit {
            RequirementLimit::Time { .. } | RequirementLimit::Seconds(_) => self.fastest(command)?,
            RequirementLimit::Memory { .. } | RequirementLimit::MemoryBytes(_) => self.leanest(command)?.0,
        };
        Some(match limit {
            RequirementLimit::Time { share, than } => {
                let other = self.fastest(than)?;
                let [ours, name] = [ours, other].map(|arm| ArmName::new(LANG, &arm.method));
                let ratio = ratio_between(self.rows, &ours, &name, self.seed)?;
                let least = least_ratio(self.rows, &ours, &name)?;
                (format!("{} of {}", interval(&ratio), other.method), outcome(&ratio, least, *share))
            }
            RequirementLimit::Seconds(seconds) => {
                let times = self.counted(ours).map(Row::compared_s);
                let least = times.fold(f64::INFINITY, f64::min);
                (format!("{} s", interval(&ours.seconds)), outcome(&ours.seconds, least, *seconds))
            }
            RequirementLimit::Memory { share, than } => {
                let (own, (other, theirs)) = (self.peak_memory(ours)?, self.leanest(than)?);
                let text = format!("{} MB, {} {} MB", megabytes(own), other.method, megabytes(theirs));
                (text, exactly(own <= theirs * share))
            }
            RequirementLimit::MemoryBytes(bytes) => {
                let own = self.peak_memory(ours)?;
                (format!("{} MB", megabytes(own)), exactly(own <= *bytes))
            }
        })
    }

    /// Returns the measured commands that `name` means.
    fn measured(&self, name: &str) -> Vec<&'a ArmSummary> {
        let is_member = |arm: &&ArmSummary| self.case.members(name).any(|member| member.name == arm.method);
        self.summary.arms.iter().filter(|arm| arm.runs > 0).filter(is_member).collect()
    }

    fn fastest(&self, name: &str) -> Option<&'a ArmSummary> {
        self.measured(name)
            .into_iter()
            .min_by(|one, other| one.seconds.median.total_cmp(&other.seconds.median))
    }

    fn leanest(&self, name: &str) -> Option<(&'a ArmSummary, f64)> {
        let peaks = self.measured(name).into_iter().filter_map(|arm| Some((arm, self.peak_memory(arm)?)));
        peaks.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Iterates over the counted samples of a command.
    fn counted(&self, arm: &ArmSummary) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.method == arm.method && row.discarded.is_empty())
    }

    /// Returns the largest peak memory of all samples of a command, in bytes.
    fn peak_memory(&self, arm: &ArmSummary) -> Option<f64> {
        self.counted(arm).filter_map(|row| row.memory_bytes).max().map(|bytes| bytes as f64)
    }
}

/// Judges an estimate. Few samples have no interval: then `least`, the smallest value, is its lower
/// end.
fn outcome(found: &Interval, least: f64, limit: f64) -> RequirementOutcome {
    let low = if found.low.is_nan() { least } else { found.low };
    if found.median <= limit {
        RequirementOutcome::Met
    } else if low <= limit {
        RequirementOutcome::Unsure
    } else {
        RequirementOutcome::Missed
    }
}

fn exactly(is_met: bool) -> RequirementOutcome {
    if is_met { RequirementOutcome::Met } else { RequirementOutcome::Missed }
}

fn megabytes(bytes: f64) -> String {
    significant(bytes / 1e6, 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::CasesFile;
    use crate::summary::summarise;

    /// Samples of a command in eight blocks: seconds in the first, which grow by a hundredth each.
    fn rows(method: &str, seconds: f64, megabytes: u64) -> Vec<Row> {
        let row = |block: u32| Row {
            lang: LANG.to_owned(),
            method: method.to_owned(),
            block,
            seconds: seconds * (1.0 + 0.01 * f64::from(block % 4)),
            memory_bytes: Some(megabytes * 1_000_000),
            verified: true,
            ..Row::default()
        };
        (1..=8).map(row).collect()
    }

    #[test]
    fn few_blocks_are_judged_by_their_range() {
        let found = |median| Interval { median, low: f64::NAN, high: f64::NAN };
        assert_eq!(outcome(&found(1.0), 0.9, 1.0), RequirementOutcome::Met);
        assert_eq!(outcome(&found(1.1), 0.9, 1.0), RequirementOutcome::Unsure);
        assert_eq!(outcome(&found(1.1), 1.05, 1.0), RequirementOutcome::Missed);
        assert_eq!(outcome(&Interval { low: 0.95, ..found(1.1) }, 1.05, 1.0), RequirementOutcome::Unsure);
    }

    #[test]
    fn requirements_are_met_missed_unsure_or_not_measured() {
        let text = r#"
            [[case]]
            name = "c"
            command = [
                { name = "a", run = "a b" },
                { name = "b", run = "b b", group = "g" },
                { name = "c", run = "c b", group = "g" },
                { name = "gone", run = "d b" },
            ]
            require = [
                { command = "a", than = "b", time = 0.51 },
                { command = "a", than = "g", time = 1 },
                { command = "a", than = "g", time = 1.99 },
                { command = "a", seconds = 1.1 },
                { command = "a", seconds = 0.9 },
                { command = "a", seconds = 1.012 },
                { command = "a", than = "g", memory = 1 },
                { command = "a", memory-bytes = 10e6 },
                { command = "gone", seconds = 1 },
            ]
        "#;
        let case = CasesFile::parse(text, "c".as_ref()).expect("it makes sense").cases.remove(0);
        let rows = [rows("a", 1.0, 10), rows("b", 2.0, 9), rows("c", 0.5, 20)].concat();
        let summary = summarise(&rows, "c", &ArmName::new(LANG, "a"), 1);
        let verdicts = judge(&case, &rows, &summary, 1);
        let found: Vec<_> =
            verdicts.iter().map(|found| (found.outcome.word(), found.measured.as_str())).collect();
        let expected = [
            ("met", "0.500 [0.500, 0.500] of b"),
            ("missed", "2.00 [2.00, 2.00] of c"),
            ("missed", "2.00 [2.00, 2.00] of c"),
            ("met", "1.02 [1.00, 1.03] s"),
            ("missed", "1.02 [1.00, 1.03] s"),
            ("unsure", "1.02 [1.00, 1.03] s"),
            ("missed", "10.0 MB, b 9.00 MB"),
            ("met", "10.0 MB"),
            ("not measured", ""),
        ];
        assert_eq!(found, expected);
        assert_eq!(verdicts[1].requirement, "a takes at most 1 of the time of g");
    }
}
