//! One run of the benchmark: chooses the arms, measures all cells and collects the results.

use std::ffi::{CString, OsStr};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use fathom_bench::arms::{Arm, BASELINE, arms, own_arms};
use fathom_bench::fixture::{CacheState, Capacity, Cell, Fixture, remove_stale};
use fathom_bench::lang::{Lang, Program, Toolchain};
use fathom_bench::runner::{self, RunOutcome, RunPlan};
use fathom_bench::summary::summarise;
use fathom_bench::{ArmName, ProcessExecutor, Programs, Run, UnavailableArm, Workload};
use fathom_du::usage::{UsageOptions, usage};
use fathom_io::{Model, Use};

use super::args::BenchArgs;
use super::estimate::RunEstimate;
use crate::bench::NAME;
use crate::bench::measuring::{BenchEnd, BenchMeter, BenchPaths, end_of, error_text, new_run, run_end};
use crate::shared::output::print_error;

/// Said before the caches of the whole machine are dropped.
const CACHES_DROPPED: &[u8] =
    b"dropping the caches of the whole machine before each cold sample (not with `--cache warm`)";

/// Runs all cells that `args` describe.
///
/// # Errors
/// Returns a message without the program name.
pub(super) fn run(
    args: &BenchArgs,
    command: String,
    paths: BenchPaths,
    stop: &AtomicBool,
) -> Result<(Run, BenchEnd), String> {
    let (given, end) = (args, end_of(args.time));
    let args = &with_own_size(args)?;
    // A tree of the user's own is never changed.
    let stale = if args.own.is_some() { Vec::new() } else { remove_stale(&args.path) };
    let room = Capacity::at(&args.path)
        .map_err(|error| format!("cannot access '{}': {}", args.path.display(), error_text(&error)))?;
    let mut run = Run {
        blocks: args.blocks,
        notes: check_room(args, &room)?,
        ..new_run(command, args.seed, &args.path)
    };
    run.notes
        .extend(stale.iter().map(|path| format!("removed '{}', left by an earlier run", path.display())));
    run.notes.extend(smaller_than_asked(given, args));
    run.notes.extend(unreadable(args, end, stop));
    let mut arms = if args.numbers.is_given() {
        own_arms(args.workload, &args.models, &args.numbers)
    } else {
        arms(args.workload, &args.models)
    };
    run.notes.extend(models_without_an_arm(args, &arms));
    let others = languages(args, &paths, &mut arms, &mut run, stop);
    leave_out_what_lacks_memory(args, &room, &mut arms, &mut run);
    let mut programs = Programs { own: paths.own, others, stop };
    // The number of entries of a tree of the user's own is not known.
    if std::io::stderr().is_terminal() && !(args.own.is_some() && args.workload.is_of_tree()) {
        let mut estimate = RunEstimate::default();
        let cells = args.caches.iter().map(|cache| cell_of(args, *cache, 0));
        let measured = cells.filter(|cell| cell.stays_warm(&args.path).is_none());
        measured.for_each(|cell| estimate.add(&cell, &arms, args.blocks));
        print_error(NAME, estimate.text().as_bytes());
    }
    let mut ended = BenchEnd::Complete;
    for (at, cache) in args.caches.iter().enumerate() {
        // Each cell has an equal share of the time that is left.
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let end = end_of(left.map(|left| left / (args.caches.len() - at) as u32));
        ended = cell(args, *cache, end, &arms, &mut programs, &mut run).unwrap_or_else(BenchEnd::Failed);
        if !matches!(ended, BenchEnd::Complete) {
            break;
        }
    }
    Ok((run, ended))
}

/// Returns `args` with the size of the user's own file, if there is one and it is smaller, and
/// checks that data of the user's own is of the right kind.
fn with_own_size(args: &BenchArgs) -> Result<BenchArgs, String> {
    let mut args = args.clone();
    let Some(path) = &args.own else { return Ok(args) };
    let failed = |cause: &str| format!("cannot read '{}': {cause}", path.display());
    let meta = path.metadata().map_err(|error| failed(&error_text(&error)))?;
    match (args.workload.is_of_tree(), meta.is_dir(), meta.is_file()) {
        (true, true, _) => Ok(args),
        (true, false, _) => Err(failed("Not a directory")),
        (false, _, false) => Err(failed("not a regular file")),
        (false, _, true) => {
            let unit = if args.direct { DIRECT_BYTES } else { 1 };
            args.size = args.size.min(meta.len()) / unit * unit;
            if args.size == 0 { Err(failed("the file is empty")) } else { Ok(args) }
        }
    }
}

/// Returns a note if the user's own file is smaller than the size that was asked for.
fn smaller_than_asked(given: &BenchArgs, own: &BenchArgs) -> Option<String> {
    let path = own.own.as_ref().filter(|_| given.has_size && own.size < given.size)?;
    Some(format!("'{}' has {} B, fewer than the --size of {} B", path.display(), own.size, given.size))
}

/// Returns a note about the directories of the user's own tree that cannot be read.
/// Directories that the walk has not reached at `end` have none.
fn unreadable(args: &BenchArgs, end: Option<Instant>, stop: &AtomicBool) -> Option<String> {
    let tree = args.own.as_ref().filter(|_| args.workload.is_of_tree())?;
    let root = CString::new(tree.as_os_str().as_bytes()).ok()?;
    let ends = AtomicBool::new(false);
    let mut watch = |_| {
        let is_over = end.is_some_and(|end| Instant::now() >= end);
        ends.store(is_over || stop.load(Ordering::Relaxed), Ordering::Relaxed);
    };
    let found = usage(root, UsageOptions::default(), &ends, &mut watch).ok()?;
    let first = found.problems.first()?;
    let path = Path::new(OsStr::from_bytes(&first.path)).display();
    let cause = error_text(&first.errno.into());
    Some(format!(
        "files skipped, because they cannot be read: {}, such as '{path}': {cause}",
        found.problem_count
    ))
}

/// The bytes of the user's own file that are read with `O_DIRECT` are a multiple of this.
const DIRECT_BYTES: u64 = 4096;

/// Checks that there is room for the work. Returns notes about the room for the report.
fn check_room(args: &BenchArgs, room: &Capacity) -> Result<Vec<String>, String> {
    let path = args.path.display();
    let cell = cell_of(args, CacheState::Any, 0);
    room.check(&cell.demand()).map_err(|why| format!("no room in '{path}': {why}"))?;
    let is_file = !args.workload.is_of_tree();
    let is_warm = args.caches.contains(&CacheState::Warm);
    Ok(if is_file { room.notes(args.size, cell.bytes_written(), is_warm) } else { Vec::new() })
}

/// Moves the arms whose buffers do not fit into memory from `arms` to those that are unavailable.
fn leave_out_what_lacks_memory(args: &BenchArgs, room: &Capacity, arms: &mut Vec<Arm>, run: &mut Run) {
    if args.workload.is_of_tree() {
        return;
    }
    let cell = cell_of(args, CacheState::Any, 0);
    arms.retain(|arm| {
        let reason = room.lacks_memory_for(cell.buffer_bytes(arm));
        let ArmName { lang, method } = arm.full_name();
        run.unavailable.extend(reason.iter().map(|reason| UnavailableArm {
            lang: lang.clone(),
            method: method.clone(),
            reason: reason.clone(),
        }));
        reason.is_none()
    });
}

fn cell_of(args: &BenchArgs, cache: CacheState, seed: u64) -> Cell {
    let BenchArgs { workload, size, block, files, direct, sync, read_percent, rate, .. } = *args;
    Cell {
        workload,
        size,
        block,
        files,
        direct,
        sync,
        cache,
        read_percent,
        rate,
        seed,
        own: args.own.clone(),
    }
}

/// Builds the programs in the requested languages and adds their arms.
fn languages(
    args: &BenchArgs,
    paths: &BenchPaths,
    arms: &mut Vec<Arm>,
    run: &mut Run,
    stop: &AtomicBool,
) -> Vec<Program> {
    let asked = |lang: &Lang| args.langs.iter().any(|name| name == lang.name());
    let mut programs = Vec::new();
    for lang in Lang::ALL.into_iter().filter(asked) {
        let found = Toolchain::find(lang, &paths.search, stop);
        let built = found.and_then(|toolchain| toolchain.build(&paths.cache, stop));
        match built.and_then(|program| Ok((program.list(args.workload, stop)?, program))) {
            Ok((offers, program)) => {
                for arm in lang.arms(args.workload, &args.numbers).iter().map(|arm| Arm::of(lang, *arm)) {
                    let Some((_, playground)) = arm.playground.filter(|_| is_wanted(args, &arm)) else {
                        continue;
                    };
                    let offer = offers.iter().find(|offer| offer.method == playground.method);
                    match offer.map(|offer| offer.unavailable.clone()) {
                        Some(None) => arms.push(arm),
                        Some(Some(reason)) => run.unavailable.push(missing(lang, &arm.name, reason)),
                        None => run.unavailable.push(missing(lang, &arm.name, "not offered".to_owned())),
                    }
                }
                programs.push(program);
            }
            Err(error) => run.unavailable.push(missing(lang, "all", error.cause())),
        }
    }
    programs
}

/// Returns whether `--models` selects `arm`. Blocking calls and the loop without them, which every
/// language has, are in any selection.
fn is_wanted(args: &BenchArgs, arm: &Arm) -> bool {
    let is_selected = arm.model.is_some_and(|model| args.models.contains(&model));
    args.models.is_empty() || is_selected || arm.is_null() || arm.name == BASELINE
}

/// Returns a note for each model of `--models` without an arm for the workload.
fn models_without_an_arm(args: &BenchArgs, arms: &[Arm]) -> Vec<String> {
    let has_arm = |model: &Model| arms.iter().any(|arm| arm.model == Some(*model));
    let note =
        |model: &Model| format!("skipped: '{}' has no arm with the model {model}", args.workload.name());
    args.models.iter().filter(|model| !has_arm(model)).map(note).collect()
}

fn missing(lang: Lang, method: &str, reason: String) -> UnavailableArm {
    UnavailableArm { lang: lang.name().to_owned(), method: method.to_owned(), reason }
}

/// Runs all blocks of one cell and adds the results to `run`.
fn cell(
    args: &BenchArgs,
    cache: CacheState,
    end: Option<Instant>,
    arms: &[Arm],
    programs: &mut Programs<'_>,
    run: &mut Run,
) -> Result<BenchEnd, String> {
    let BenchArgs { workload, size, block, sync, .. } = *args;
    let cell = cell_of(args, cache, run.seed);
    let label = cell.label();
    if let Some(reason) = cell.stays_warm(&args.path) {
        if args.caches.len() == 1 {
            return Ok(BenchEnd::Failed(format!("cannot measure '{label}': {reason}")));
        }
        run.notes.push(format!("skipped: {label}: {reason}"));
        return Ok(BenchEnd::Complete);
    }
    run.notes.extend(cell.caveat(&args.path));
    // With `--cache cold` alone it was asked for.
    if cell.drops_caches() && args.caches.len() > 1 {
        print_error(NAME, CACHES_DROPPED);
    }
    let mut arms = arms.to_vec();
    let is_usual = args.models.is_empty() && !args.numbers.is_given();
    if workload == Workload::Write && size.is_multiple_of(block as u64) && is_usual && !sync {
        arms.push(Arm::control());
    }
    if workload == Workload::RandomRead && cache == CacheState::Cold && is_usual {
        let blocking = arms.iter().filter(|arm| arm.name == BASELINE);
        let read_ahead: Vec<Arm> = blocking.map(Arm::with_read_ahead).collect();
        arms.extend(read_ahead);
    }
    if args.direct && workload.wanted() == Use::Ranges && is_usual {
        let blocking = arms.iter().filter(|arm| arm.name == BASELINE);
        let polled: Vec<Arm> = blocking.map(Arm::with_polled_calls).collect();
        arms.extend(polled);
    }
    // The loop of Rust is of interest beside another language's.
    if arms.iter().any(Arm::is_null) {
        arms.push(Arm::null());
    }
    let baseline = ArmName::new("rust", BASELINE);
    let names = arms.iter().map(Arm::full_name).collect();
    let plan = RunPlan::new(names, baseline.clone(), args.blocks, run.seed);
    let mut fixture = Fixture::new(&args.path, cell).map_err(|error| error.to_string())?;
    let stop = programs.stop;
    let mut meter = BenchMeter::new(stop, label.clone()).until(end);
    let RunOutcome { rows, unavailable, blocks, end } =
        runner::run(&plan, &mut ProcessExecutor::new(&mut fixture, &arms, programs), &mut meter);
    drop(meter);
    let removed = fixture.remove();
    let found = summarise(&rows, &label, &baseline, run.seed);
    run.arms.extend(found.arms);
    run.noise.extend(found.noise);
    run.notes.extend(found.warnings);
    run.unavailable.extend(unavailable);
    run.rows.extend(rows);
    let (end, note) = run_end(end, (blocks, args.blocks), stop);
    run.notes.extend(note.map(|note| format!("{label}: {note}")));
    Ok(match (end, removed) {
        (BenchEnd::Failed(error), _) => BenchEnd::Failed(error),
        (_, Err(error)) => BenchEnd::Failed(error.to_string()),
        (end, Ok(())) => end,
    })
}
