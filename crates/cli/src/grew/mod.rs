//! `fathom grew`: from the command line to the exit status.

mod args;
mod limits;
mod measure;
mod show;
pub(crate) mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fathom_inventory::store::Inventory;
use fathom_questions::diff::{Sides, unmatched};
use fathom_scans::history::{History, baseline, newest};
use fathom_text::quote::{Charset, quoteaf};

use self::args::{GrewArgs, GrewBy, GrewSource};
use self::measure::GrowthMeasure;
use crate::history::prune::{report_later, until_now};
use crate::shared::cmdline::exit::{DONE, FAILED, LIMIT_REACHED, MISUSED};
use crate::shared::inventory::gaps;
use crate::shared::locale;
use crate::shared::output::{self, Output};
use crate::shared::screen::Screen;
use crate::shared::value::ShowWhen;

const NAME: &str = table::GREW.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    fathom_io::sys::keep_freed_memory();
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(args) => run(&args, charset).unwrap_or_else(|(message, status)| {
            print_error(&message);
            status
        }),
        Err(end) => end.answer(&table::GREW),
    }
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

/// A message and the exit status.
type GrewFailure = (Vec<u8>, u8);

fn failed(error: impl std::error::Error) -> GrewFailure {
    (error.to_string().into_bytes(), FAILED)
}

fn run(args: &GrewArgs, charset: Charset) -> Result<u8, GrewFailure> {
    let paths = match &args.source {
        GrewSource::Inventories(paths) => paths.clone(),
        GrewSource::Store { directory, moment } => choose(directory, *moment, charset)?,
    };
    let (old, new) =
        (Inventory::open(&paths.old).map_err(failed)?, Inventory::open(&paths.new).map_err(failed)?);
    let inventories = Sides { old: &old, new: &new };
    for (inventory, path) in [(&old, &paths.old), (&new, &paths.new)] {
        let found = &inventory.manifest().completeness;
        if !found.is_complete() {
            print_error(&[b"warning: ", &quoted(path, charset)[..], gaps(found).as_bytes()].concat());
        }
    }
    if let Some(since) = new.manifest().since.as_ref().filter(|since| since.directories > 0) {
        let directories = since.directories;
        let what = "had not changed and were not read: files changed in place still show their old sizes (scan without --only-changed or --since reads everything)";
        print_error(format!("{directories} directories {what}").as_bytes());
    }
    if args.by != GrewBy::Dir {
        check_trees(&inventories, charset)?;
    }
    let measure = GrowthMeasure::of(&inventories, args.by, args.lines).map_err(failed)?;
    for root in measure.unmatched.iter().take(3) {
        print_error(
            &[b"warning: only one inventory has ", &quoteaf(root, charset)[..], b": not compared"].concat(),
        );
    }
    if let Err(why) = &measure.space {
        print_error(format!("cannot say when the file system will be full: {why}").as_bytes());
    }
    let mut out = Output::new();
    if args.json {
        show::json(&measure, &paths, &mut out);
    } else {
        show::text(&measure, &Screen::new(ShowWhen::Never, charset), &mut out);
    }
    Ok(out.finish(NAME).max(check(&measure, args)))
}

/// Compares the growth with the limits, and reports what is reached. Returns the exit status.
fn check(measure: &GrowthMeasure, args: &GrewArgs) -> u8 {
    let check = args.limits.check(measure);
    for reached in &check.reached {
        print_error(format!("limit reached: {reached}").as_bytes());
    }
    if let Some(why) = &check.unknown {
        print_error(format!("cannot check --fail-if-full-within: {why}").as_bytes());
    }
    match (check.reached.is_empty(), check.unknown) {
        (false, _) => LIMIT_REACHED,
        (true, Some(_)) => FAILED,
        (true, None) => DONE,
    }
}

/// Checks that both inventories have the same trees: the totals of groups cover all trees.
fn check_trees(inventories: &Sides<&Inventory>, charset: Charset) -> Result<(), GrewFailure> {
    let Sides { old, new } = unmatched(inventories).map_err(failed)?;
    match old.first().or(new.first()) {
        None => Ok(()),
        Some(root) => {
            let why = b": --by owner, ext and type compare inventories of the same trees";
            Err(([b"only one inventory has ", &quoteaf(root, charset)[..], why].concat(), MISUSED))
        }
    }
}

fn quoted(path: &Path, charset: Charset) -> Vec<u8> {
    quoteaf(path.as_os_str().as_encoded_bytes(), charset)
}

/// Chooses two inventories of a store.
fn choose(store: &Path, moment: Option<i64>, charset: Charset) -> Result<Sides<PathBuf>, GrewFailure> {
    let misused = |error: fathom_inventory::store::Error| (error.to_string().into_bytes(), MISUSED);
    let read = History::open(store).and_then(|history| until_now(&history));
    let (snapshots, later) = read.map_err(misused)?;
    report_later(&later, charset, &mut print_error);
    let lacks = |what: &[u8]| ([&quoted(store, charset)[..], what].concat(), MISUSED);
    let newest = newest(&snapshots)
        .ok_or_else(|| lacks(b" has no finished inventory: fathom scan --keep makes them"))?;
    let baseline = baseline(&snapshots, newest, moment).ok_or_else(|| {
        lacks(b" has only one inventory of these trees with these exclusions: nothing to compare")
    })?;
    if baseline.is_younger {
        let what = b" has no inventory that old: comparing with the oldest";
        print_error(&[&quoted(store, charset)[..], what].concat());
    }
    Ok(Sides { old: baseline.snapshot.path.clone(), new: newest.path.clone() })
}
