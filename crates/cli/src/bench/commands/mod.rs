//! `fathom bench run`: checks the outputs of commands and measures them.

mod args;
pub(crate) mod table;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_bench::commands::{CommandExecutor, LANG, OutputSum};
use fathom_bench::runner::{self, RunOutcome, RunPlan};
use fathom_bench::summary::summarise;
use fathom_bench::{ArmName, Run};

use self::args::{CommandsArgs, SameOutput};
use super::NAME;
use super::measuring::{BLOCKS, BenchEnd, BenchMeter, end_of, new_run, run_end};
use super::reports::{answer, fail};
use crate::shared::interrupt::stop_on_termination;
use crate::shared::locale;
use crate::shared::output::{ERASE, draw, print_error};
use crate::shared::progress::format_seconds;

/// Runs the command with the arguments `words` behind `run`. Returns the exit status.
pub(super) fn main(words: Vec<OsString>, command: String) -> u8 {
    let args = match args::parse(words, locale::current()) {
        Ok(args) => args,
        Err(end) => return end.answer(&table::COMMANDS_RUN),
    };
    let (run, ended) = measure(&args, command, &stop_on_termination());
    match ended {
        // Nothing was measured.
        BenchEnd::Failed(message) if run.rows.is_empty() => fail(&message),
        ended => answer(&args.targets, &run, ended),
    }
}

/// Runs the commands of `args` once each, and compares their outputs, then in blocks.
fn measure(args: &CommandsArgs, command: String, stop: &AtomicBool) -> (Run, BenchEnd) {
    let (label, end) = (label(args), end_of(args.run.time));
    let blocks = args.run.blocks.unwrap_or(BLOCKS);
    let mut run = Run { blocks, ..new_run(command, args.run.seed, Path::new(".")) };
    let mut executor = CommandExecutor::new(&args.arms, args.rules, &label, stop);
    match check(args, blocks, &mut executor, stop) {
        Ok(notes) => run.notes.extend(notes),
        Err(end) => return (run, end),
    }
    let arms: Vec<ArmName> = args.arms.iter().map(|arm| ArmName::new(LANG, &arm.name)).collect();
    let baseline = arms[0].clone();
    let plan = RunPlan { arms, baseline: baseline.clone(), blocks, seed: run.seed };
    let mut meter = BenchMeter::new(stop, label.clone()).until(end);
    let RunOutcome { rows, blocks: done, end, .. } = runner::run(&plan, &mut executor, &mut meter);
    drop(meter);
    let found = summarise(&rows, &label, &baseline, run.seed);
    run.notes.extend(found.warnings.into_iter().chain(executor.notes().iter().cloned()));
    (run.arms, run.noise, run.rows) = (found.arms, found.noise.into_iter().collect(), rows);
    let (end, note) = run_end(end, (done, blocks), stop);
    run.notes.extend(note);
    (run, end)
}

/// Names the cell, the same in runs that can be compared.
fn label(args: &CommandsArgs) -> String {
    let first = &args.arms[0].prepare;
    let is_shared = args.arms.iter().all(|arm| arm.prepare == *first);
    match first {
        None => "commands".to_owned(),
        Some(text) if is_shared => format!("commands, each after '{}'", text.to_string_lossy()),
        Some(_) => "commands, each after a preparation of its own".to_owned(),
    }
}

/// Runs each command once, unmeasured, and compares the outputs. Returns what differs.
fn check(
    args: &CommandsArgs,
    blocks: u32,
    executor: &mut CommandExecutor<'_>,
    stop: &AtomicBool,
) -> Result<Vec<String>, BenchEnd> {
    let shown = std::io::stderr().is_terminal();
    let (mut sums, mut seconds) = (Vec::new(), Vec::new());
    for (at, arm) in args.arms.iter().enumerate() {
        if shown {
            draw(format!("\r\x1b[Koutput {} of {}: {}", at + 1, args.arms.len(), arm.name).as_bytes());
        }
        let checked = executor.check(at);
        if shown {
            draw(ERASE);
        }
        let (sum, took) = checked.map_err(|error| {
            if stop.load(Ordering::Relaxed) {
                BenchEnd::Interrupted
            } else {
                BenchEnd::Failed(error.to_string())
            }
        })?;
        sums.push(sum);
        seconds.push(took);
    }
    let notes = differences(args, &sums)?;
    if shown {
        // The first command is also the control.
        let block: f64 = seconds.iter().chain(seconds.first()).sum();
        let (samples, all) = (seconds.len() + 1, format_seconds(block * f64::from(blocks)));
        let text = format!("{blocks} blocks of {samples} samples, about {all} besides preparations");
        print_error(NAME, text.as_bytes());
    }
    Ok(notes)
}

/// Compares all outputs with the first.
fn differences(args: &CommandsArgs, sums: &[OutputSum]) -> Result<Vec<String>, BenchEnd> {
    let first = sums[0];
    let mut notes = Vec::new();
    for (arm, sum) in args.arms.iter().zip(sums) {
        let same_lines = sum.lines_hash == first.lines_hash && sum.bytes == first.bytes;
        let is_allowed = match args.same_output {
            SameOutput::Noted => true,
            SameOutput::Bytes => *sum == first,
            SameOutput::Lines => same_lines,
        };
        if *sum == first {
            continue;
        }
        let how = if same_lines {
            "have the same lines in another order".to_owned()
        } else {
            format!("differ: they have {} and {} bytes", first.bytes, sum.bytes)
        };
        let note = format!("the outputs of '{}' and '{}' {how}", args.arms[0].name, arm.name);
        if !is_allowed {
            return Err(BenchEnd::Failed(format!("cannot compare: {note}")));
        }
        notes.push(note);
    }
    Ok(notes)
}
