//! `fathom bench advise`: recommends I/O models for a filesystem, saves the advice as a profile,
//! and validates it.

mod args;
pub(crate) mod table;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use fathom_bench::advise::{
    self, Advice, AdviceEnd, AdviceObserver, AdviceOptions, DirectorySource, page_lead, text, validate,
};
use fathom_bench::fixture::{Capacity, Demand};
use fathom_bench::profile::{Filesystem, HostConditions, Profile};
use fathom_bench::{Programs, machine, report};
use fathom_io::sys::cpus_allowed;

use self::args::AdviseArgs;
use super::NAME;
use super::measuring::{BenchMeter, bench_paths, error_text, new_run};
use super::reports::{ReportTarget, fail, page, write_report};
use crate::shared::cmdline::exit::{FAILED, INTERRUPTED};
use crate::shared::interrupt::stop_on_termination;
use crate::shared::locale;
use crate::shared::output::{print, print_error};
use crate::shared::progress::format_seconds;
use crate::shared::start;

/// Time limit for the measurements, including the cost constants. The rest of the announced three
/// minutes is reserve.
const TIME: Duration = Duration::from_secs(120);
/// The time after which no further question is begun.
const TIME_MAX: Duration = Duration::from_secs(165);
/// The time after which no further sample begins.
const LIMIT: Duration = Duration::from_secs(175);
/// The same with `--quick`.
const LIMIT_QUICK: Duration = Duration::from_secs(27);
/// The fraction of the work, and of the time for it, with `--quick`.
const QUICK: f64 = 0.1;
/// Disk space of the largest workload, with its copy.
const ROOM: u64 = 512 << 20;
/// Added to the seed, so that the validation uses data that the advice has not seen.
const UNSEEN: u64 = 1_000_003;

/// Runs the command with the arguments `words` behind `advise`. Returns the exit status.
pub(super) fn main(words: Vec<OsString>, command: String) -> u8 {
    match args::parse(words, locale::current()) {
        Ok(args) => run(&args, command),
        Err(end) => end.answer(&table::ADVISE),
    }
}

fn run(args: &AdviseArgs, command: String) -> u8 {
    let update = || args.save.as_ref().map(|target| ProfileUpdate::new(args, target)).transpose();
    let budget = AdviceBudget::of(args);
    match check_room(args, &budget).and_then(|()| Ok((bench_paths()?, update()?))) {
        Err(message) => {
            print_error(NAME, message.as_bytes());
            FAILED
        }
        Ok((paths, update)) => {
            let stop = stop_on_termination();
            let mut programs = Programs { own: paths.own, others: Vec::new(), stop: &stop };
            let meter = BenchMeter::new(&stop, String::new());
            let mut site = DirectorySource::new(args.path.clone(), &mut programs, meter);
            let (advice, saved, end) = measure_and_save(args, &budget, update, command, &mut site);
            let end = match (end, site.remove_files()) {
                (end @ AdviceEnd::Failed(_), _) | (end, Ok(())) => end,
                (_, Err(error)) => AdviceEnd::Failed(error),
            };
            drop(site);
            conclude(args, &advice, saved, end)
        }
    }
}

/// The work and the time of an advice run.
struct AdviceBudget {
    scale: f64,
    time: Duration,
    time_max: Duration,
    limit: Duration,
    first_limit: Duration,
}

impl AdviceBudget {
    fn of(args: &AdviseArgs) -> Self {
        // Where others use the machine, trees are small: they take a part of the time to make.
        let is_in_use = machine::load().is_some_and(|load| load > cpus_allowed() as f64);
        let most = if is_in_use { QUICK } else { 1.0 };
        let usual = Self { scale: most, time: TIME, time_max: TIME_MAX, limit: LIMIT, first_limit: LIMIT };
        match args.run.time {
            limit if args.quick => {
                let limit = limit.unwrap_or(LIMIT_QUICK);
                let (time, time_max) = (TIME.mul_f64(QUICK), limit.mul_f64(0.9));
                Self { scale: QUICK, time, time_max, limit, first_limit: limit }
            }
            Some(limit) => {
                // A question that was begun is to be answered: a part of the time is left for it.
                let scale = (limit.as_secs_f64() / TIME_MAX.as_secs_f64()).clamp(QUICK, most);
                let first_limit = limit.max(LIMIT);
                Self { scale, time: limit.mul_f64(0.7), time_max: limit.mul_f64(0.8), limit, first_limit }
            }
            None => usual,
        }
    }

    fn options(&self, seed: u64) -> AdviceOptions {
        let Self { scale, time, time_max, limit, first_limit } = *self;
        AdviceOptions { seed, scale, time, time_max, limit, first_limit }
    }
}

/// Returns the disk space, in bytes, that an advice run with `scale` of the work takes at a time.
fn room(scale: f64) -> u64 {
    (ROOM as f64 * scale) as u64
}

fn check_room(args: &AdviseArgs, budget: &AdviceBudget) -> Result<(), String> {
    let path = args.path.display();
    let room = Capacity::at(&args.path)
        .map_err(|error| format!("cannot access '{path}': {}", error_text(&error)))?;
    let disk_bytes = self::room(budget.scale);
    room.check(&Demand { disk_bytes, files: 0 }).map_err(|why| format!("no room in '{path}': {why}"))
}

/// Measures, saves and validates the advice. Returns the advice, the exit status of saving it, and
/// how the measurements ended. The advice is saved before the validation, which the user may
/// interrupt.
fn measure_and_save<L: AdviceObserver>(
    args: &AdviseArgs,
    budget: &AdviceBudget,
    update: Option<ProfileUpdate>,
    command: String,
    site: &mut DirectorySource<'_, '_, L>,
) -> (Advice, u8, AdviceEnd) {
    let mut run = new_run(command, args.run.seed, &args.path);
    let path = args.path.canonicalize().unwrap_or_else(|_| args.path.clone());
    run.machine.insert(0, ("path".to_owned(), path.display().to_string()));
    let seed = run.seed;
    let AdviceBudget { scale, limit, .. } = *budget;
    if std::io::stderr().is_terminal() {
        let (most, disk) = (format_seconds(limit.as_secs_f64()), room(scale) >> 20);
        print_error(NAME, format!("at most {most}; writes up to {disk} MiB at a time").as_bytes());
    }
    if site.drops_caches() {
        print_error(NAME, b"dropping the caches of the whole machine before each cold sample of many files");
    }
    let (mut advice, end) = advise::advise(&budget.options(seed), run, site);
    let complete = matches!(end, AdviceEnd::Complete) && !advice.verdicts.is_empty();
    let saved = update.filter(|_| complete).map_or(0, |update| update.save(&advice));
    match args.validation_blocks().filter(|_| complete) {
        Some(blocks) => {
            // The validation has its own time.
            let unseen = budget.options(seed.wrapping_add(UNSEEN));
            let (validation, end) = validate(&advice.verdicts, &unseen, blocks, site);
            advice.validation = Some(validation);
            (advice, saved, end)
        }
        None => (advice, saved, end),
    }
}

/// The profile to update with the advice. It is read and checked before anything is measured.
struct ProfileUpdate {
    path: PathBuf,
    filesystem: Filesystem,
    profile: Profile,
}

impl ProfileUpdate {
    fn new(args: &AdviseArgs, target: &ReportTarget) -> Result<Self, String> {
        let path = match target {
            ReportTarget::File(path) => path.clone(),
            ReportTarget::Output => start::path(|name| std::env::var_os(name)).ok_or(
                "cannot save the advice: no directory for settings is named by HOME or XDG_CONFIG_HOME, or FATHOM_PROFILE is empty",
            )?,
        };
        let filesystem = Filesystem::of(&args.path)
            .ok_or("cannot save the advice: the mount table does not have this filesystem")?;
        let profile = Profile::read(&path).map_err(|error| error.to_string())?.unwrap_or_default();
        Ok(Self { path, filesystem, profile })
    }

    /// Saves the advice in the profile, replacing the entry of the same filesystem.
    fn save(mut self, advice: &Advice) -> u8 {
        self.profile.put(advice.entry(self.filesystem, &HostConditions::now()));
        match self.profile.write(&self.path) {
            Ok(()) => {
                print_error(NAME, format!("saved the advice in '{}'", self.path.display()).as_bytes());
                0
            }
            Err(error) => fail(&error.to_string()),
        }
    }
}

fn conclude(args: &AdviseArgs, advice: &Advice, saved: u8, end: AdviceEnd) -> u8 {
    let written = write(args, advice).max(saved);
    match end {
        AdviceEnd::Interrupted => {
            print_error(NAME, b"interrupted: only what was measured until then is shown");
            INTERRUPTED
        }
        AdviceEnd::Failed(error) => fail(&error.to_string()),
        AdviceEnd::Complete if advice.verdicts.is_empty() => {
            print_error(NAME, b"no advice: no question was answered; the reasons are above");
            FAILED
        }
        AdviceEnd::Complete => written,
    }
}

/// Writes all requested reports. Returns the exit status.
fn write(args: &AdviseArgs, advice: &Advice) -> u8 {
    let mut status = 0;
    if let Some(target) = &args.targets.csv {
        let csv = report::csv(&advice.run.rows);
        status =
            status.max(csv.map_or_else(|error| fail(&error.to_string()), |text| write_report(target, &text)));
    }
    if let Some(target) = &args.targets.json {
        let json = serde_json::to_string_pretty(advice);
        let write = |text: String| write_report(target, &(text + "\n"));
        status =
            status.max(json.map_or_else(|error| fail(&format!("cannot write the advice: {error}")), write));
    }
    if let Some(path) = &args.targets.html {
        let target = ReportTarget::File(path.clone());
        let page = page(&advice.run, Some(&page_lead(advice)));
        status = status
            .max(page.map_or_else(|error| fail(&error.to_string()), |text| write_report(&target, &text)));
    }
    if args.targets.csv != Some(ReportTarget::Output) && args.targets.json != Some(ReportTarget::Output) {
        status =
            status.max(print(NAME, &format!("{}\n{}", text(advice), super::reports::table(&advice.run))));
    }
    status
}
