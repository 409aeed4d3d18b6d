//! `--verbose`: the model, the number of workers over time, the work done and the errors.

use std::collections::BTreeMap;
use std::fmt::Write;

use fathom_du::scan::ScanOutcome;
use fathom_io::Model;

use super::args::Invocation;
use crate::shared::start::AutoStart;

/// Returns the lines for standard error.
pub(crate) fn describe(
    invocation: &Invocation,
    model: Model,
    start: &AutoStart,
    outcome: &ScanOutcome,
    problems: &BTreeMap<&'static str, u64>,
) -> Vec<u8> {
    let name = String::from_utf8_lossy(&invocation.name);
    let mut text = String::new();
    let ran = match model {
        Model::Auto => "auto: blocking calls, adaptive number of threads".to_owned(),
        other => other.to_string(),
    };
    let summary = &outcome.summary;
    let workers: Vec<String> = summary
        .workers_over_time
        .iter()
        .map(|(when, count)| format!("{count} at {:.1} ms", when.as_secs_f64() * 1e3))
        .collect();
    let progress = summary.progress;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name}: model: {ran}");
    for note in start.notes(&summary.devices) {
        let _ = writeln!(text, "{name}: {note}");
    }
    let _ = writeln!(text, "{name}: workers: {}", workers.join(", "));
    let _ = writeln!(
        text,
        "{name}: read: {} entries in {} directories in {:.1} ms",
        progress.entries,
        progress.directories,
        summary.elapsed.as_secs_f64() * 1e3
    );
    let calls = &summary.calls;
    let _ = writeln!(
        text,
        "{name}: system calls: {} open, {} getdents, {} stat, {} reopened",
        calls.open, calls.read, calls.stat, calls.reopen
    );
    for (kind, count) in problems {
        let _ = writeln!(text, "{name}: errors: {count} {kind}");
    }
    text.into_bytes()
}
