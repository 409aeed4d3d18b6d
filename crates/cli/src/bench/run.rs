//! A run: the arms, the lab, the order, and what becomes of the samples.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_bench::advise::Look;
use fathom_bench::arms::{Arm, arms};
use fathom_bench::lab::{Cache, Cell, Lab, Room};
use fathom_bench::lang::{Lang, Program, Toolchain};
use fathom_bench::runner::{self, End, Outcome, Plan, Progress, Watch};
use fathom_bench::sample::Deed;
use fathom_bench::summary::summarise;
use fathom_bench::{ArmName, Desk, Programs, Run, Unavailable, machine, report};

use super::args::BenchArgs;
use crate::output::draw;

/// How a run came to its end.
#[derive(Debug)]
pub(super) enum Ended {
    Complete,
    Interrupted,
    Failed(String),
}

/// What the environment says.
#[derive(Debug)]
pub(super) struct Places {
    /// This program.
    pub(super) own: PathBuf,
    /// Where toolchains are looked for.
    pub(super) search: std::ffi::OsString,
    /// Where programs are built.
    pub(super) cache: PathBuf,
}

/// The arm all others are compared with.
const BASELINE: &str = "blocking";

/// What is shown on a terminal while it runs.
pub(super) struct Meter<'a> {
    stop: &'a AtomicBool,
    label: String,
    shown: bool,
}

impl<'a> Meter<'a> {
    /// For the cell of that name; it tells the runner when `stop` has become true.
    pub(super) fn new(stop: &'a AtomicBool, label: String) -> Self {
        Self { stop, label, shown: std::io::stderr().is_terminal() }
    }
}

impl Look for Meter<'_> {
    fn cell(&mut self, label: &str) {
        label.clone_into(&mut self.label);
    }
}

impl Watch for Meter<'_> {
    fn next(&mut self, progress: &Progress<'_>) {
        if self.shown {
            let Progress { block, blocks, arm, done, left } = progress;
            let line = format!(
                "\r\x1b[K{}: block {block} of {blocks}, {} of {}: {arm}",
                self.label,
                done + 1,
                done + left
            );
            draw(line.as_bytes());
        }
    }

    fn stop(&mut self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        if self.shown {
            draw(b"\r\x1b[K");
        }
    }
}

/// Runs what `args` say, cell by cell. The message of a refusal is without the program's name.
pub(super) fn run(
    args: &BenchArgs,
    command: String,
    places: Places,
    stop: &AtomicBool,
) -> Result<(Run, Ended), String> {
    let mut run = Run { blocks: args.blocks, notes: room(args)?, ..begun(command, args.seed, &args.path) };
    let mut arms = arms(args.deed, &args.models);
    let others = languages(args, &places, &mut arms, &mut run, stop);
    let mut programs = Programs { own: places.own, others, stop };
    let mut ended = Ended::Complete;
    for cache in &args.caches {
        ended = cell(args, *cache, &arms, &mut programs, &mut run)?;
        if !matches!(ended, Ended::Complete) {
            break;
        }
    }
    Ok((run, ended))
}

/// A run of `command` on the filesystem of `path` that begins now.
pub(super) fn begun(command: String, seed: Option<u64>, path: &Path) -> Run {
    Run {
        schema: report::SCHEMA,
        program: format!("fathom {}", env!("CARGO_PKG_VERSION")),
        command,
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        seed: seed.unwrap_or_else(any_seed),
        machine: machine::fingerprint(path),
        ..Run::default()
    }
}

/// A seed nobody chose, short enough to be typed again.
fn any_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_nanos())
}

/// Whether there is room for the work, and what the reader should know of it.
fn room(args: &BenchArgs) -> Result<Vec<String>, String> {
    if args.deed.is_of_tree() {
        return Ok(Vec::new());
    }
    let path = args.path.display();
    let room = Room::at(&args.path).map_err(|error| format!("cannot look at '{path}': {}", words(&error)))?;
    let most = arms(args.deed, &args.models).iter().map(|arm| arm.threads * arm.depth).max().unwrap_or(1);
    let buffers = (most as u64).saturating_mul(args.block as u64);
    room.check(args.size, buffers).map_err(|why| format!("no room in '{path}': {why}"))?;
    Ok(room.notes(args.size, args.deed.writes(), args.caches.contains(&Cache::Warm)))
}

pub(super) fn words(error: &std::io::Error) -> String {
    String::from_utf8_lossy(&crate::output::reason(error)).into_owned()
}

/// Builds the programs of the languages asked for, and adds their arms.
fn languages(
    args: &BenchArgs,
    places: &Places,
    arms: &mut Vec<Arm>,
    run: &mut Run,
    stop: &AtomicBool,
) -> Vec<Program> {
    let asked = |lang: &Lang| args.langs.iter().any(|name| name == lang.name());
    let mut programs = Vec::new();
    for lang in Lang::ALL.into_iter().filter(asked) {
        let found = Toolchain::find(lang, &places.search, stop);
        let built = found.and_then(|toolchain| toolchain.build(&places.cache, stop));
        match built.and_then(|program| Ok((program.list(stop)?, program))) {
            Ok((offers, program)) => {
                for arm in lang.arms() {
                    let reason = offers.iter().find(|offer| offer.method == arm.method);
                    match reason.map(|offer| offer.unavailable.clone()) {
                        Some(None) => arms.push(Arm::of(lang, arm)),
                        Some(Some(reason)) => run.unavailable.push(missing(lang, &arm.to_string(), reason)),
                        None => {
                            run.unavailable.push(missing(lang, &arm.to_string(), "not offered".to_owned()))
                        }
                    }
                }
                programs.push(program);
            }
            Err(error) => run.unavailable.push(missing(lang, "all", error.cause())),
        }
    }
    programs
}

fn missing(lang: Lang, method: &str, reason: String) -> Unavailable {
    Unavailable { lang: lang.name().to_owned(), method: method.to_owned(), reason }
}

/// Runs all blocks of one cell, and adds what came of it to `run`.
fn cell(
    args: &BenchArgs,
    cache: Cache,
    arms: &[Arm],
    programs: &mut Programs<'_>,
    run: &mut Run,
) -> Result<Ended, String> {
    let BenchArgs { deed, size, block, files, direct, sync, .. } = *args;
    let cell = Cell { deed, size, block, files, direct, sync, cache, seed: run.seed };
    let label = cell.label();
    let mut arms = arms.to_vec();
    if deed == Deed::Write && size.is_multiple_of(block as u64) && args.models.is_empty() && !sync {
        arms.push(Arm::control());
    }
    let baseline = ArmName::new("rust", BASELINE);
    let names = arms.iter().map(Arm::full_name).collect();
    let plan = Plan { arms: names, baseline: baseline.clone(), blocks: args.blocks, seed: run.seed };
    let mut lab = Lab::new(&args.path, cell).map_err(|error| error.to_string())?;
    let stop = programs.stop;
    let mut meter = Meter::new(stop, label.clone());
    let Outcome { rows, unavailable, end, .. } =
        runner::run(&plan, &mut Desk::new(&mut lab, &arms, programs), &mut meter);
    drop(meter);
    let found = summarise(&rows, &label, &baseline, run.seed);
    run.arms.extend(found.arms);
    run.noise.extend(found.noise);
    run.notes.extend(found.doubts);
    run.unavailable.extend(unavailable);
    run.rows.extend(rows);
    Ok(match end {
        End::Complete => Ended::Complete,
        End::Interrupted => Ended::Interrupted,
        End::Failed(error) => Ended::Failed(error.to_string()),
    })
}
