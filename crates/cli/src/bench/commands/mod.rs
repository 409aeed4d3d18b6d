//! `fathom bench run`: checks the outputs of commands and measures them, case by case.

mod args;
pub(crate) mod table;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fathom_bench::commands::{CommandArm, CommandCase, CommandExecutor, LANG, OutputSum, SameOutput};
use fathom_bench::judgement::judge;
use fathom_bench::runner::{self, RunOutcome, RunPlan};
use fathom_bench::summary::{CellSummary, summarise};
use fathom_bench::{ArmName, RequirementOutcome, Run, UnavailableArm};

use self::args::CommandsArgs;
use super::NAME;
use super::measuring::{BLOCKS, BenchEnd, BenchMeter, end_of, new_run, run_end};
use super::reports::{answer, fail};
use crate::shared::cmdline::exit::FAILED;
use crate::shared::interrupt::stop_on_termination;
use crate::shared::locale;
use crate::shared::output::{ERASE, draw, print_error};
use crate::shared::progress::format_seconds;

/// Runs the command with the arguments `words` behind `run`. Returns the exit status.
pub(super) fn main(words: Vec<std::ffi::OsString>, command: String) -> u8 {
    let args = match args::parse(words, locale::current()) {
        Ok(args) => args,
        Err(end) => return end.answer(&table::COMMANDS_RUN),
    };
    let (run, ended) = measure(&args, command, &stop_on_termination());
    match ended {
        // Nothing was measured.
        BenchEnd::Failed(message) if run.rows.is_empty() => fail(&message),
        ended => answer(&args.targets, &run, ended).max(missed(&run)),
    }
}

/// Returns the exit status of the requirements.
fn missed(run: &Run) -> u8 {
    let is_missed = |outcome| matches!(outcome, RequirementOutcome::Missed | RequirementOutcome::Unmeasured);
    if run.verdicts.iter().any(|verdict| is_missed(verdict.outcome)) { FAILED } else { 0 }
}

/// Measures the cases of `args`, one after the other. A case that fails is told, and the others go
/// on.
fn measure(args: &CommandsArgs, command: String, stop: &AtomicBool) -> (Run, BenchEnd) {
    let end = end_of(args.run.time);
    let blocks = |case: &CommandCase| args.run.blocks.or(case.blocks).unwrap_or(BLOCKS);
    let first = &args.cases[0];
    let place = first.directory.as_deref().unwrap_or(Path::new("."));
    // Cases with numbers of their own have none together.
    let all = if args.cases.iter().all(|case| blocks(case) == blocks(first)) { blocks(first) } else { 0 };
    let mut run = Run { blocks: all, ..new_run(command, args.run.seed, place) };
    let mut failure = None;
    for case in &args.cases {
        let of_case = CaseRun { case, blocks: blocks(case), stop, end };
        let is_single = args.cases.len() == 1;
        let told = |text: String| if is_single { text } else { format!("{}: {text}", case.name) };
        let mut part = Run { seed: run.seed, ..Run::default() };
        match of_case.measure(&mut part) {
            BenchEnd::Complete => add(&mut run, part, told),
            BenchEnd::Failed(message) => {
                add(&mut run, part, told);
                let earlier = failure.replace(told(message));
                earlier.inspect(|message| print_error(NAME, message.as_bytes()));
            }
            BenchEnd::Interrupted => {
                add(&mut run, part, told);
                return (run, BenchEnd::Interrupted);
            }
        }
    }
    (run, failure.map_or(BenchEnd::Complete, BenchEnd::Failed))
}

/// Adds the part of a case to `run`, with texts that tell which case they are about.
fn add(run: &mut Run, part: Run, told: impl Fn(String) -> String) {
    run.arms.extend(part.arms);
    run.noise.extend(part.noise);
    run.rows.extend(part.rows);
    run.verdicts.extend(part.verdicts);
    run.notes.extend(part.notes.into_iter().map(&told));
    run.unavailable
        .extend(part.unavailable.into_iter().map(|arm| UnavailableArm { reason: told(arm.reason), ..arm }));
}

/// The measurement of a case.
#[derive(Clone, Copy)]
struct CaseRun<'a> {
    case: &'a CommandCase,
    blocks: u32,
    stop: &'a AtomicBool,
    /// The time from which on no sample begins.
    end: Option<Instant>,
}

impl<'a> CaseRun<'a> {
    /// Runs the commands once each, and compares their outputs, then in blocks. Adds what was found
    /// to `run`.
    fn measure(self, run: &mut Run) -> BenchEnd {
        let Self { case, blocks, stop, end } = self;
        let mut executor = CommandExecutor::new(case, stop);
        let is_over = end.is_some_and(|end| Instant::now() >= end);
        let present = match if is_over { Ok(Vec::new()) } else { self.check(&mut executor, run) } {
            Ok(present) => present,
            Err(end) => {
                run.verdicts.extend(judge(case, &[], &CellSummary::default(), run.seed));
                return end;
            }
        };
        let name = |arm: &CommandArm| ArmName::new(LANG, &arm.name);
        let baseline = name(&case.commands[0]);
        let fewer_blocks = present.iter().filter_map(|arm| Some((name(arm), arm.blocks?))).collect();
        let arms = present.iter().map(|arm| name(arm)).collect();
        let plan = RunPlan { arms, baseline: baseline.clone(), blocks, fewer_blocks, seed: run.seed };
        let mut meter = BenchMeter::new(stop, case.name.clone()).until(end);
        let RunOutcome { rows, blocks: done, end, unavailable } =
            runner::run(&plan, &mut executor, &mut meter);
        drop(meter);
        let found = summarise(&rows, &case.name, &baseline, run.seed);
        run.verdicts.extend(judge(case, &rows, &found, run.seed));
        run.notes.extend(found.warnings.into_iter().chain(executor.notes().iter().cloned()));
        run.arms.extend(found.arms);
        run.noise.extend(found.noise);
        run.unavailable.extend(unavailable);
        run.rows.extend(rows);
        let (end, note) = run_end(end, (done, blocks), stop);
        run.notes.extend(note);
        end
    }

    /// Runs each command once, unmeasured, and compares the outputs. Adds what differs, and
    /// optional commands that fail, to `run`. Returns the commands that can be measured.
    fn check(
        self,
        executor: &mut CommandExecutor<'_>,
        run: &mut Run,
    ) -> Result<Vec<&'a CommandArm>, BenchEnd> {
        let shown = std::io::stderr().is_terminal();
        let commands = &self.case.commands;
        let (mut present, mut sums, mut block_s) = (Vec::new(), Vec::new(), 0.0);
        for (at, arm) in commands.iter().enumerate() {
            if shown {
                draw(
                    format!(
                        "\r\x1b[K{}: output {} of {}: {}",
                        self.case.name,
                        at + 1,
                        commands.len(),
                        arm.name
                    )
                    .as_bytes(),
                );
            }
            let checked = executor.check(at);
            if shown {
                draw(ERASE);
            }
            match checked {
                Ok((sum, took)) => {
                    // The first command is also the control.
                    block_s += if at == 0 { 2.0 * took } else { took };
                    present.push(arm);
                    sums.push(sum);
                }
                Err(_) if self.stop.load(Ordering::Relaxed) => return Err(BenchEnd::Interrupted),
                Err(error) if error.is_unavailable() && at > 0 => {
                    run.unavailable.push(left_out(arm, error.cause()))
                }
                Err(error) => return Err(BenchEnd::Failed(error.to_string())),
            }
        }
        let present = self.compared(present, &sums, run)?;
        if shown {
            let all = format_seconds(block_s * f64::from(self.blocks));
            let (blocks, samples) = (self.blocks, present.len() + 1);
            let text = format!("{blocks} blocks of {samples} samples, about {all} besides preparations");
            print_error(NAME, text.as_bytes());
        }
        Ok(present)
    }

    /// Compares all outputs with the first. Returns the commands whose output is as required.
    fn compared(
        self,
        present: Vec<&'a CommandArm>,
        sums: &[OutputSum],
        run: &mut Run,
    ) -> Result<Vec<&'a CommandArm>, BenchEnd> {
        let (first, rule) = (sums[0], self.case.same_output);
        let mut kept = Vec::new();
        for (arm, sum) in present.into_iter().zip(sums) {
            let same_lines = sum.lines_hash == first.lines_hash && sum.bytes == first.bytes;
            if *sum == first || rule == SameOutput::Any {
                kept.push(arm);
                continue;
            }
            let how = if same_lines {
                "have the same lines in another order".to_owned()
            } else {
                format!("differ: they have {} and {} bytes", first.bytes, sum.bytes)
            };
            let note = format!("the outputs of '{}' and '{}' {how}", self.case.commands[0].name, arm.name);
            if rule == SameOutput::Noted || (rule == SameOutput::Lines && same_lines) {
                kept.push(arm);
                run.notes.push(note);
            } else if arm.is_optional {
                run.unavailable.push(left_out(arm, note));
            } else {
                return Err(BenchEnd::Failed(format!("cannot compare: {note}")));
            }
        }
        Ok(kept)
    }
}

fn left_out(arm: &CommandArm, reason: String) -> UnavailableArm {
    UnavailableArm { lang: LANG.to_owned(), method: arm.name.clone(), reason }
}
