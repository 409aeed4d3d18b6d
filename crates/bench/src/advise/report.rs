//! Advice as text for a terminal, and as the first section of a page.

use std::fmt::Write;

use serde_json::json;

use super::validate::{Strategy, Validation};
use super::verdict::Verdict;
use super::{Advice, CostConstants, OpCost};
use crate::Interval;
use crate::arms::BASELINE;
use crate::profile::VALID;
use crate::report::{Align, aligned, escape_line, interval, significant};

/// The largest number of equally good arms that a row names.
const NAMED: usize = 3;

/// Formats `advice`: a line for each command, or one sentence if nothing matters, the verdicts, the
/// cells left out, the conditions that would change a verdict, and the measured costs.
#[must_use]
pub fn text(advice: &Advice) -> String {
    let parts = [
        lead(advice).iter().map(|line| format!("{}\n", escape_line(line))).collect(),
        verdicts(&advice.verdicts),
        list("left out", advice.left_out.iter().map(|left| format!("{}: {}", left.cell, left.reason))),
        list("the answer changes if", advice.sensitivity.iter().cloned()),
        constants(&advice.constants),
        advice.validation.as_ref().map_or(String::new(), validation),
        list("it holds for", advice.run.machine.iter().map(|(name, value)| format!("{name}: {value}"))),
        again(advice),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Returns the section that stands before the run on a page, as JSON: its title, its sentences, and
/// lists with their titles.
#[must_use]
pub fn page_lead(advice: &Advice) -> String {
    let verdict = |verdict: &Verdict| {
        let [title, method, to_blocking, _, others, _] = row(verdict);
        let others = if others.is_empty() { others } else { format!("; as good: {others}") };
        format!("{title}: {method}, in {to_blocking} of the time of blocking calls{others}")
    };
    let verdicts: Vec<String> = advice.verdicts.iter().map(verdict).collect();
    let left_out = advice.left_out.iter().map(|left| format!("{}: {}", left.cell, left.reason));
    json!({
        "title": "Advice",
        "sentences": lead(advice),
        "lists": [
            ["By workload", verdicts],
            ["Left out", left_out.collect::<Vec<_>>()],
            ["The answer changes if", advice.sensitivity],
        ],
    })
    .to_string()
}

/// Returns the lines that come first.
fn lead(advice: &Advice) -> Vec<String> {
    let matters = advice.verdicts.iter().any(|verdict| verdict.matters || verdict.ratio.is_some());
    let lines = if matters && !advice.commands.is_empty() {
        advice.commands.clone()
    } else {
        vec![advice.sentence.clone()]
    };
    in_use(advice).into_iter().chain(lines).collect()
}

/// Returns a line about the use of the machine by others, which is in the way of answers.
fn in_use(advice: &Advice) -> Option<String> {
    let cpus = advice.constants.cpus;
    let load = advice.load.filter(|load| *load > f64::from(cpus))?;
    let (open, all) = (advice.open_questions, advice.open_questions + advice.verdicts.len());
    Some(format!(
        "The machine is in use (load {load:.1} on {cpus} CPUs): {open} of {all} questions have no answer."
    ))
}

fn again(advice: &Advice) -> String {
    let command = escape_line(&advice.run.command);
    let seed =
        if command.contains("--seed") { String::new() } else { format!(" --seed {}", advice.run.seed) };
    let days = VALID.as_hours() / 24;
    format!("Ask again when any of that has changed, or after {days} days: {command}{seed}\n")
}

fn list(title: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("  {}\n", escape_line(&line))).collect();
    if lines.is_empty() { lines } else { format!("{title}:\n{lines}") }
}

fn verdicts(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let head = ["workload", "use", "time by blocking", "time by best", "may be as fast", "measured"];
    let rows: Vec<Vec<String>> =
        std::iter::once(head.map(String::from)).chain(verdicts.iter().map(row)).map(Vec::from).collect();
    let mut align = [Align::Left; 6];
    (align[2], align[3], align[5]) = (Align::Right, Align::Right, Align::Right);
    let legend = "time by: divided by that of blocking calls, of the fastest arm; median over blocks [95 % interval]\n";
    format!("{}{legend}", aligned(&align, &rows))
}

fn row(verdict: &Verdict) -> [String; 6] {
    let measured = verdict.candidates.iter().filter(|candidate| candidate.measured_us.is_some()).count();
    let others = verdict.among_best.iter().filter(|method| **method != verdict.method);
    let mut others: Vec<String> = others.map(|method| escape_line(method)).collect();
    let more = others.len().saturating_sub(NAMED);
    others.truncate(NAMED);
    others.extend((more > 0).then(|| format!("and {more} more")));
    let ratio = |ratio: &Option<crate::Interval>| ratio.as_ref().map_or("1".to_owned(), interval);
    [
        escape_line(&verdict.title()),
        escape_line(&verdict.method),
        ratio(&verdict.ratio),
        ratio(&verdict.ratio_to_best),
        if verdict.matters { others.join(", ") } else { "all others".to_owned() },
        format!("{measured} of {}", verdict.candidates.len()),
    ]
}

fn constants(constants: &CostConstants) -> String {
    let us = |value: f64| format!("{} us", significant(value, 2));
    let of = |method: &str| {
        let found = constants.overhead_interval_us(method).map(with_ends);
        found.or_else(|| constants.overhead_us(method).map(us))
    };
    let wall = |cost: &OpCost| cost.wall_interval_us.map_or_else(|| us(cost.wall_us), with_ends);
    let nops = constants.nops;
    let handed_over = match constants.writes_are_handed_over {
        Some(true) => Some("always handed to a kernel thread".to_owned()),
        Some(false) => Some("done in place unless they would wait".to_owned()),
        None => None,
    };
    let facts = [
        ("a cached read of 4 KiB, blocking", constants.warm(BASELINE).map(wall)),
        ("a hand-off to a pool, one at a time", of("pool=1")),
        ("32 at a time, in batches", of("pool=32:batch=8")),
        ("a hand-off through tokio", of("tokio=1")),
        ("an operation through a ring", nops.map(|nops| us(nops.inline_us))),
        ("the same handed to a kernel thread", nops.map(|nops| us(nops.handed_over_us))),
        ("32 of those at a time", nops.map(|nops| us(nops.handed_over_deep_us))),
        ("buffered writes through a ring", handed_over),
        ("an fdatasync after 4 KiB, median", constants.sync_p50_us.map(us)),
        ("99th percentile", constants.sync_p99_us.map(us)),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    let mut text = list("costs on this machine", known);
    for cost in &constants.direct_read {
        let _ =
            writeln!(text, "  4 KiB past the page cache, {}: {} each", escape_line(&cost.method), wall(cost));
    }
    text
}

/// Formats a time in microseconds with its interval. A difference of two times may be none, or less
/// than none.
fn with_ends(us: Interval) -> String {
    let two = |value: f64| significant(value, 2);
    let Interval { median, low, high } = us;
    match (low.is_nan() || high.is_nan(), low <= 0.0) {
        (true, _) if median > 0.0 => format!("{} us", two(median)),
        (true, _) => "below the noise".to_owned(),
        (false, true) if high <= 0.0 => "nothing".to_owned(),
        (false, true) => format!("at most {} us, perhaps none", two(high)),
        (false, false) => format!("{} us [{}, {}]", two(median), two(low), two(high)),
    }
}

/// Formats the regret of the advice on each cell, then the median and the worst regret of each
/// strategy.
fn validation(validation: &Validation) -> String {
    let percent = |share: f64| format!("{} %", significant(share * 100.0, 2));
    let mut rows =
        vec![["workload, not seen before", "fastest", "advised", "regret"].map(String::from).to_vec()];
    rows.extend(validation.regrets.iter().filter(|regret| regret.strategy == Strategy::Advice).map(
        |regret| {
            vec![
                escape_line(&regret.cell),
                escape_line(&regret.best),
                escape_line(&regret.method),
                percent(regret.regret),
            ]
        },
    ));
    let cells = aligned(&[Align::Left, Align::Left, Align::Left, Align::Right], &rows);
    let or_dash = |share: Option<f64>| share.map_or("-".to_owned(), percent);
    let mut rows = vec![["choice", "median regret", "worst"].map(String::from).to_vec()];
    rows.extend(Strategy::ALL.map(|strategy| {
        let (median, worst) = (validation.median(strategy), validation.worst(strategy));
        vec![strategy.name().to_owned(), or_dash(median), or_dash(worst)]
    }));
    format!("{cells}\n{}", aligned(&[Align::Left, Align::Right, Align::Right], &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_offs_have_intervals_and_are_never_less_than_nothing() {
        let interval = |median, low, high| Interval { median, low, high };
        assert_eq!(with_ends(interval(5.0, 4.5, 5.5)), "5.0 us [4.5, 5.5]");
        assert_eq!(with_ends(interval(0.1, -0.2, 0.4)), "at most 0.40 us, perhaps none");
        assert_eq!(with_ends(interval(-1.2, -2.0, -0.4)), "nothing");
        assert_eq!(with_ends(interval(5.0, f64::NAN, f64::NAN)), "5.0 us");
        assert_eq!(with_ends(interval(-1.2, f64::NAN, f64::NAN)), "below the noise");
    }
}
