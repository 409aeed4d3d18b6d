//! The advice as one line for each thing that users do: a command of fathom, or a kind of program.

use fathom_io::Model;

use super::verdict::{Verdict, words};
use crate::Workload;

/// The name of each line and the workloads that it is about, the deciding one first.
const LINES: [(&str, &[&str]); 8] = [
    ("du, list, scan", &["stat", "walk"]),
    ("serve", &["serve"]),
    ("copying", &["copy"]),
    ("reading files", &["read"]),
    ("reading at random", &["random-read"]),
    ("many small files", &["small-files"]),
    ("writing files", &["write"]),
    ("appending to a log", &["append-sync"]),
];

/// Returns the lines for `verdicts`, as in `du, list, scan: 8 threads cold, blocking calls warm`. A
/// line without a verdict is absent, and so is one whose deciding workload has a question without
/// an answer: the other half may be the opposite.
pub(super) fn command_lines(verdicts: &[Verdict], unanswered: &[Workload]) -> Vec<String> {
    let is_open = |workloads: &[&str]| unanswered.iter().any(|open| open.name() == workloads[0]);
    let known = LINES.iter().filter(|(_, workloads)| !is_open(workloads));
    known.filter_map(|(name, workloads)| line(name, workloads, verdicts)).collect()
}

fn line(name: &str, workloads: &[&str], verdicts: &[Verdict]) -> Option<String> {
    let of = |workload: &&str| -> Vec<&Verdict> {
        verdicts.iter().filter(|verdict| verdict.workload == **workload).collect()
    };
    let mut found = workloads.iter().map(of).find(|found| !found.is_empty())?;
    // Cold first: it is where the choice matters most.
    found.sort_by(|one, other| one.cache.cmp(&other.cache));
    let phrases: Vec<String> = found.iter().map(|verdict| phrase(verdict)).collect();
    let is_same = phrases.iter().all(|phrase| *phrase == phrases[0]);
    let states = found.iter().zip(&phrases).map(|(verdict, phrase)| match verdict.cache.as_str() {
        "none" => phrase.clone(),
        cache => format!("{phrase} {cache}"),
    });
    let text = if is_same { phrases[0].clone() } else { states.collect::<Vec<_>>().join(", ") };
    Some(format!("{name}: {text}"))
}

fn phrase(verdict: &Verdict) -> String {
    let is_tie = !verdict.matters && verdict.is_of(Model::Sync);
    if is_tie { "blocking calls (no model is faster)".to_owned() } else { words(verdict) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_line_that_says_where_the_cache_matters() {
        let of = |workload: &str, cache: &str, model: &str, threads, matters| Verdict {
            workload: workload.to_owned(),
            cache: cache.to_owned(),
            model: model.to_owned(),
            method: model.to_owned(),
            threads,
            depth: 1,
            matters,
            ..Verdict::default()
        };
        let verdicts = [
            of("walk", "warm", "threads", 2, true),
            of("stat", "warm", "sync", 1, true),
            of("stat", "cold", "threads", 8, true),
            of("serve", "warm", "sendfile", 1, true),
            of("read", "warm", "sync", 1, false),
            of("read", "cold", "sync", 1, false),
            of("append-sync", "none", "sync", 1, true),
        ];
        assert_eq!(
            command_lines(&verdicts, &[Workload::Walk]),
            [
                "du, list, scan: 8 threads cold, blocking calls warm",
                "serve: sendfile",
                "reading files: blocking calls (no model is faster)",
                "appending to a log: blocking calls",
            ]
        );
        assert_eq!(command_lines(&verdicts, &[Workload::Stat]).len(), 3, "not from walks alone");
        assert_eq!(command_lines(&[], &[]), [] as [&str; 0]);
    }
}
