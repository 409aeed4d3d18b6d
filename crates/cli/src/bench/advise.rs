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
    match check_room(args).and_then(|()| places()) {
        Err(message) => {
            say(NAME, message.as_bytes());
            MISUSED
        }
        Ok(places) => {
            let stop = stop_and_clean_up();
            let mut programs = Programs { own: places.own, others: Vec::new(), stop: &stop };
            let meter = Meter::new(&stop, String::new());
            let mut site = Site::new(args.path.clone(), &mut programs, meter);
            let (advice, end) = ask(args, command, &mut site);
            drop(site);
            conclude(args, &advice, end)
        }
    }
}

fn check_room(args: &AdviseArgs) -> Result<(), String> {
    let path = args.path.display();
    let room = Room::at(&args.path).map_err(|error| format!("cannot look at '{path}': {}", words(&error)))?;
    room.check(ROOM, 0).map_err(|why| format!("no room in '{path}': {why}"))
}

fn ask<L: Look>(args: &AdviseArgs, command: String, site: &mut Site<'_, '_, L>) -> (Advice, End) {
    let run = begun(command, args.seed, &args.path);
    let seed = run.seed;
    let (scale, time) = if args.quick { (QUICK, Duration::ZERO) } else { (1.0, TIME) };
    let (mut advice, end) = advise::advise(&Ask { seed, scale, time }, run, site);
    match (end, args.validate) {
        (End::Complete, Some(blocks)) => {
            let unseen = Ask { seed: seed.wrapping_add(UNSEEN), scale, time };
            let (validation, end) = validate(&advice.verdicts, &unseen, blocks, site);
            advice.validation = Some(validation);
            (advice, end)
        }
        (end, _) => (advice, end),
    }
}

/// Puts the advice into the profile, in the place of an older one for the same filesystem.
fn keep(args: &AdviseArgs, target: &Target, advice: &Advice) -> Result<PathBuf, String> {
    let path = match target {
        Target::File(path) => path.clone(),
        Target::Output => start::path(|name| std::env::var_os(name))
            .ok_or("cannot save the advice: neither HOME nor XDG_CONFIG_HOME says where")?,
    };
    let filesystem = Filesystem::of(&args.path)
        .ok_or("cannot save the advice: the mount table does not have this filesystem")?;
    let saved = Profile::read(&path).and_then(|profile| {
        let mut profile = profile.unwrap_or_default();
        profile.put(advice.entry(filesystem, &Here::now()));
        profile.write(&path)
    });
    saved.map(|()| path).map_err(|error| error.to_string())
}

fn save(args: &AdviseArgs, target: &Target, advice: &Advice) -> u8 {
    match keep(args, target, advice) {
        Ok(path) => {
            say(NAME, format!("saved in '{}'", path.display()).as_bytes());
            0
        }
        Err(message) => fail(&message),
    }
}

fn conclude(args: &AdviseArgs, advice: &Advice, end: End) -> u8 {
    let written = write(args, advice);
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
        End::Complete => written.max(args.save.as_ref().map_or(0, |target| save(args, target, advice))),
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
