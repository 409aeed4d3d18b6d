//! `fathom bench advise`: what to use on a filesystem, and whether that advice is any good.

use std::path::PathBuf;
use std::time::Duration;

use fathom_bench::advise::{self, Advice, Ask, End, Look, Site, text, validate};
use fathom_bench::lab::Room;
use fathom_bench::profile::{Filesystem, Here, Profile};
use fathom_bench::{Programs, report};

use super::args::{AdviseArgs, Target};
use super::run::{Meter, begun, words};
use super::{FAILED, MISUSED, NAME, fail, places, put};
use crate::interrupt::{INTERRUPTED, stop_and_clean_up};
use crate::output::{print, say};
use crate::start;

/// What measuring may take, with the constants: the rest of three minutes is for what goes on longer than expected.
const TIME: Duration = Duration::from_secs(120);
/// The work with `--quick`, which then is measured no more often than needed.
const QUICK: f64 = 0.1;
/// Bytes that the largest question has on the disk, with its copy.
const ROOM: u64 = 512 << 20;
/// Added to the seed for what the advice has not seen.
const UNSEEN: u64 = 1_000_003;

/// Runs the command; the exit status.
pub(super) fn main(args: &AdviseArgs, command: String) -> u8 {
    let keep = || args.save.as_ref().map(|target| Keep::new(args, target)).transpose();
    match check_room(args).and_then(|()| Ok((places()?, keep()?))) {
        Err(message) => {
            say(NAME, message.as_bytes());
            MISUSED
        }
        Ok((places, keep)) => {
            let stop = stop_and_clean_up();
            let mut programs = Programs { own: places.own, others: Vec::new(), stop: &stop };
            let meter = Meter::new(&stop, String::new());
            let mut site = Site::new(args.path.clone(), &mut programs, meter);
            let (advice, saved, end) = ask(args, keep, command, &mut site);
            drop(site);
            conclude(args, &advice, saved, end)
        }
    }
}

fn check_room(args: &AdviseArgs) -> Result<(), String> {
    let path = args.path.display();
    let room = Room::at(&args.path).map_err(|error| format!("cannot look at '{path}': {}", words(&error)))?;
    room.check(if args.quick { ROOM / 10 } else { ROOM }, 0)
        .map_err(|why| format!("no room in '{path}': {why}"))
}

/// The advice, the exit status of keeping it, which comes before a validation that somebody may end, and how it ended.
fn ask<L: Look>(
    args: &AdviseArgs,
    keep: Option<Keep>,
    command: String,
    site: &mut Site<'_, '_, L>,
) -> (Advice, u8, End) {
    let run = begun(command, args.seed, &args.path);
    let seed = run.seed;
    let (scale, time) = if args.quick { (QUICK, Duration::ZERO) } else { (1.0, TIME) };
    let (mut advice, end) = advise::advise(&Ask { seed, scale, time }, run, site);
    let complete = matches!(end, End::Complete) && !advice.verdicts.is_empty();
    let saved = keep.filter(|_| complete).map_or(0, |keep| keep.save(&advice));
    match args.validate.filter(|_| complete) {
        Some(blocks) => {
            let unseen = Ask { seed: seed.wrapping_add(UNSEEN), scale, time };
            let (validation, end) = validate(&advice.verdicts, &unseen, blocks, site);
            advice.validation = Some(validation);
            (advice, saved, end)
        }
        None => (advice, saved, end),
    }
}

/// Where advice is to be kept, and for which filesystem; known before anything is measured.
struct Keep {
    path: PathBuf,
    filesystem: Filesystem,
    profile: Profile,
}

impl Keep {
    fn new(args: &AdviseArgs, target: &Target) -> Result<Self, String> {
        let path = match target {
            Target::File(path) => path.clone(),
            Target::Output => start::path(|name| std::env::var_os(name)).ok_or(
                "cannot save the advice: no directory for settings is named by HOME or XDG_CONFIG_HOME, or FATHOM_PROFILE is empty",
            )?,
        };
        let filesystem = Filesystem::of(&args.path)
            .ok_or("cannot save the advice: the mount table does not have this filesystem")?;
        let profile = Profile::read(&path).map_err(|error| error.to_string())?.unwrap_or_default();
        Ok(Self { path, filesystem, profile })
    }

    /// Puts the advice into the profile, in the place of an older one for the same filesystem.
    fn save(mut self, advice: &Advice) -> u8 {
        self.profile.put(advice.entry(self.filesystem, &Here::now()));
        match self.profile.write(&self.path) {
            Ok(()) => {
                say(NAME, format!("saved in '{}'", self.path.display()).as_bytes());
                0
            }
            Err(error) => fail(&error.to_string()),
        }
    }
}

fn conclude(args: &AdviseArgs, advice: &Advice, saved: u8, end: End) -> u8 {
    let written = write(args, advice).max(saved);
    match end {
        End::Interrupted => {
            say(NAME, b"interrupted: what was measured before is all there is");
            INTERRUPTED
        }
        End::Failed(error) => fail(&error.to_string()),
        End::Complete if advice.verdicts.is_empty() => {
            say(NAME, b"no sample counts, so there is no advice");
            FAILED
        }
        End::Complete => written,
    }
}

/// Writes all reports that were asked for; the exit status.
fn write(args: &AdviseArgs, advice: &Advice) -> u8 {
    let mut status = 0;
    if let Some(target) = &args.csv {
        let csv = report::csv(&advice.run.rows);
        status = status.max(csv.map_or_else(|error| fail(&error.to_string()), |text| put(target, &text)));
    }
    if let Some(target) = &args.json {
        let json = serde_json::to_string_pretty(advice);
        let put = |text: String| put(target, &(text + "\n"));
        status =
            status.max(json.map_or_else(|error| fail(&format!("cannot write the advice: {error}")), put));
    }
    if let Some(path) = &args.html {
        status = status.max(put(&Target::File(path.clone()), &report::html::html(&advice.run)));
    }
    if args.csv != Some(Target::Output) && args.json != Some(Target::Output) {
        status = status.max(print(NAME, &format!("{}\n{}", text(advice), report::table(&advice.run))));
    }
    status
}
