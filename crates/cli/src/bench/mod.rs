//! `fathom bench`: from the command line to the exit status.

mod advise;
mod args;
mod commands;
mod estimate;
mod run;
mod sample;
pub(crate) mod table;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fathom_bench::{ArmKey, Error, Run, RunComparison, TimeChange, compare, report};
use fathom_inventory::export::replace_public;

use self::args::{BenchAction, BenchArgs, CommandsArgs, CompareArgs, ReportTarget, ReportTargets};
use self::run::{BenchEnd, BenchPaths};
use crate::shared::cmdline::exit::{FAILED, INTERRUPTED, PANICKED};
use crate::shared::interrupt::stop_on_termination;
use crate::shared::locale;
use crate::shared::output::{self, print, print_error, reason};

const NAME: &str = table::BENCH.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    if let [word, words @ ..] = &words[..]
        && word == "sample"
    {
        return sample::main(words);
    }
    match args::parse(words.iter().cloned(), locale::current()) {
        Ok(BenchAction::Bench(args)) => bench(&args, command_line(&words)),
        Ok(BenchAction::Commands(args)) => run_commands(&args, command_line(&words)),
        Ok(BenchAction::Compare(args)) => compare_runs(&args),
        Ok(BenchAction::Advise(args)) => advise::main(&args, command_line(&words)),
        Err(end) => end.answer(&table::BENCH),
    }
}

/// Returns the command line, quoted for a shell.
fn command_line(words: &[OsString]) -> String {
    format!("{NAME} {}", shell_words(words.iter().map(OsString::as_os_str)))
}

/// Joins `words`, quoted for a shell.
fn shell_words<'a>(words: impl Iterator<Item = &'a OsStr>) -> String {
    let plain = |word: &OsStr| {
        let text = word.to_string_lossy();
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@%".contains(c);
        if !text.is_empty() && text.chars().all(safe) {
            text.into_owned()
        } else {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
    };
    words.map(plain).collect::<Vec<_>>().join(" ")
}

fn bench_paths() -> Result<BenchPaths, String> {
    let own = std::env::current_exe();
    let own = own
        .map_err(|error| format!("cannot find this program: {}", String::from_utf8_lossy(&reason(&error))))?;
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home).unwrap_or_else(std::env::temp_dir);
    Ok(BenchPaths { own, search: set("PATH").unwrap_or_default(), cache: cache.join("fathom/playground") })
}

fn bench(args: &BenchArgs, command: String) -> u8 {
    let stop: Arc<AtomicBool> = stop_on_termination();
    let ran = bench_paths().and_then(|paths| run::run(args, command, paths, &stop));
    match ran {
        Ok((run, ended)) => answer(&args.targets, &run, ended),
        Err(message) => fail(&message),
    }
}

fn run_commands(args: &CommandsArgs, command: String) -> u8 {
    let (run, ended) = commands::measure(args, command, &stop_on_termination());
    match ended {
        // Nothing was measured.
        BenchEnd::Failed(message) if run.rows.is_empty() => fail(&message),
        ended => answer(&args.targets, &run, ended),
    }
}

/// Writes the reports of `run`, which ended in the way `ended`. Returns the exit status.
fn answer(targets: &ReportTargets, run: &Run, ended: BenchEnd) -> u8 {
    let counts = run.arms.iter().any(|arm| arm.runs > 0);
    // A report of nothing would take the place of an earlier one.
    let written = if counts || matches!(ended, BenchEnd::Complete) { write(targets, run) } else { 0 };
    match ended {
        BenchEnd::Interrupted => {
            print_error(NAME, b"interrupted: what was measured before is all there is");
            INTERRUPTED
        }
        BenchEnd::Failed(message) => fail(&message),
        BenchEnd::Complete if !counts => {
            print_error(NAME, b"no sample counts, so there is no answer");
            FAILED
        }
        BenchEnd::Complete => written,
    }
}

/// Writes all requested reports. Returns the exit status.
fn write(targets: &ReportTargets, run: &Run) -> u8 {
    let csv = |run: &Run| {
        if targets.csv_is_plain { Ok(report::plain_csv(&run.rows)) } else { report::csv(&run.rows) }
    };
    let mut status = 0;
    let mut add = |target: &Option<ReportTarget>, text: &dyn Fn(&Run) -> Result<String, Error>| {
        let Some(target) = target else { return };
        status = status
            .max(text(run).map_or_else(|error| fail(&error.to_string()), |text| write_report(target, &text)));
    };
    add(&targets.csv, &csv);
    add(&targets.json, &report::to_json);
    add(&targets.html.clone().map(ReportTarget::File), &|run| Ok(report::html::html(run)));
    if targets.csv != Some(ReportTarget::Output) && targets.json != Some(ReportTarget::Output) {
        let table = if targets.markdown { report::markdown_table } else { report::table };
        status = status.max(print(NAME, &table(run)));
    }
    status
}

/// Prints why there is no answer. Returns the exit status; a panic of a sample has the status of a
/// bug.
fn fail(message: &str) -> u8 {
    print_error(NAME, message.as_bytes());
    if message.contains(output::BUG) { PANICKED } else { FAILED }
}

fn write_report(target: &ReportTarget, text: &str) -> u8 {
    match target {
        ReportTarget::Output => print(NAME, text),
        ReportTarget::File(path) => match save(path, text) {
            Ok(()) => 0,
            Err(message) => fail(&message),
        },
    }
}

/// Writes a report, which everybody may read. A regular file is replaced once the report is on the
/// disk; a device or a pipe is written to.
fn save(path: &Path, text: &str) -> Result<(), String> {
    if path.metadata().is_ok_and(|meta| !meta.is_file()) {
        let failed = |error| {
            let words = String::from_utf8_lossy(&reason(&error)).into_owned();
            format!("cannot write '{}': {words}", path.display())
        };
        return std::fs::write(path, text).map_err(failed);
    }
    replace_public(path, text).map_err(|error| error.to_string())
}

fn compare_runs(args: &CompareArgs) -> u8 {
    let read = |path: &Path| report::read(path);
    match read(&args.old).and_then(|old| Ok((old, read(&args.new)?))) {
        Err(error) => fail(&error.to_string()),
        Ok((old, new)) => {
            let comparison = compare(&old, &new);
            let status = match &args.json {
                None if args.markdown => print(NAME, &comparison.markdown()),
                None => print(NAME, &comparison.text()),
                Some(target) => match serde_json::to_string_pretty(&comparison) {
                    Ok(text) => write_report(target, &(text + "\n")),
                    Err(error) => fail(&format!("cannot write the comparison: {error}")),
                },
            };
            status.max(args.fail_above.map_or(0, |above| judge(&comparison, above)))
        }
    }
}

/// Returns the exit status of a comparison in which no arm may be slower by more than the share
/// `above`, or impossible to judge.
fn judge(comparison: &RunComparison, above: f64) -> u8 {
    let unknown = comparison.arms.iter().filter(|compared| compared.change == TimeChange::Unknown);
    let unknown: Vec<&ArmKey> = unknown.map(|compared| &compared.arm).chain(&comparison.only_first).collect();
    let slower: Vec<&ArmKey> =
        comparison.slower_by(above).into_iter().map(|compared| &compared.arm).collect();
    let mut status = 0;
    if !slower.is_empty() {
        let most = ((above * 1e6).round() / 1e4).to_string();
        status = fail(&format!("slower by more than {most} %: {}", arm_names(&slower)));
    }
    if !unknown.is_empty() || comparison.arms.is_empty() {
        let cause = "both runs need an arm with at least six blocks";
        let names = if unknown.is_empty() { "any arm".to_owned() } else { arm_names(&unknown) };
        status = fail(&format!("cannot judge {names}: {cause}"));
    }
    status
}

fn arm_names(arms: &[&ArmKey]) -> String {
    let name = |ArmKey { cell, lang, method }: &ArmKey| format!("{lang} {method} ({cell})");
    arms.iter().map(|arm| name(arm)).collect::<Vec<_>>().join(", ")
}
