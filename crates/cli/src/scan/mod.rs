//! `fathom scan`: from the command line to the exit status.

mod args;
mod estimate;
mod inodes;
mod select;
pub(crate) mod table;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use fathom_inventory::scan::{Outcome, Problem, Watch, resume, scan};
use fathom_inventory::store::{Completeness, Since};
use fathom_text::quote::{Charset, quoteaf};
use fathom_text::words;
use fathom_walk::Progress;

use self::args::{Asked, ScanArgs};
use crate::du::progress::Meter;
use crate::flag::Scope;
use crate::interrupt::Ending;
use crate::output::{self, print, say_misuse};
use crate::start::Start;
use crate::{help, locale};

const NAME: &str = "fathom scan";
/// Exit status where there is no inventory.
const NOTHING: u8 = 2;

/// Runs the command with `words`; the exit status.
pub(crate) fn main(words: impl Iterator<Item = OsString>) -> u8 {
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let charset = locale::charset(&env);
    match args::parse(words, charset) {
        Ok(Asked::Scan(args)) => run(*args, charset),
        Ok(Asked::Estimate(args)) => estimate::run(*args, charset),
        Ok(Asked::Help) => print(NAME, &help::render(&table::SCAN, NAME, Scope::Full)),
        Ok(Asked::Version) => print(NAME, &help::version(NAME)),
        Err(message) => {
            say_misuse(NAME, &message);
            NOTHING
        }
    }
}

fn say(message: &[u8]) {
    output::say(NAME, message);
}

/// What is shown while a scan runs.
struct Shown<'a> {
    meter: &'a Meter,
    charset: Charset,
}

impl Watch for Shown<'_> {
    fn progress(&mut self, progress: Progress) {
        self.meter.show(progress);
    }

    fn problem(&mut self, problem: &Problem) {
        self.meter.clear();
        let (path, cause) = (quoteaf(&problem.path, self.charset), words(problem.errno));
        say(&[b"cannot ", problem.deed.as_bytes(), b" ", &path, b": ", &cause].concat());
    }

    fn warning(&mut self, message: &[u8]) {
        self.meter.clear();
        say(message);
    }
}

fn run(args: ScanArgs, charset: Charset) -> u8 {
    let ScanArgs { mut scan, output, resume, stats, progress } = args;
    let ending = Ending::on_signals();
    scan.stop = ending.stop.clone();
    let start = Start::read(NAME.as_bytes(), charset, scan.choice, scan.threads.is_some());
    scan.leaps = start.leaps.clone();
    let meter = Meter::new(progress).of(|| inodes::expected(&scan.roots, scan.one_file_system));
    let begin = if resume { self::resume } else { self::scan };
    let ended = begin(&scan, &output, &mut Shown { meter: &meter, charset });
    meter.clear();
    match ended {
        Ok(outcome) => {
            if stats {
                start.notes(&outcome.summary.devices).for_each(|note| say(note.as_bytes()));
                say(describe(&outcome).as_bytes());
            }
            if let Some(since) = &outcome.manifest.since {
                say(skipped(since, outcome.manifest.completeness.complete).as_bytes());
            }
            status(&outcome, &ending)
        }
        Err(error) => {
            say(error.to_string().as_bytes());
            NOTHING
        }
    }
}

/// Says what is missing, if anything is.
fn status(outcome: &Outcome, ending: &Ending) -> u8 {
    let found = &outcome.manifest.completeness;
    let Some(missing) = missing(found) else { return 0 };
    say(missing.as_bytes());
    if found.stopped.as_deref() == Some("interrupted") { ending.status() } else { 1 }
}

/// What an inventory lacks, as a sentence; none if it is complete.
pub(crate) fn missing(found: &Completeness) -> Option<String> {
    if found.is_complete() {
        return None;
    }
    let ratio = 100.0 * found.ratio().unwrap_or(0.0);
    let lacking = found.partial + found.failed + found.missing_roots;
    let all = lacking + found.complete;
    let why = found.stopped.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    Some(format!(
        "the inventory is incomplete{why}: {lacking} of {all} directories known are not there or not whole, {} entries \
         are without metadata{}; {ratio:.4} % of the directories are complete",
        found.unknown_entries,
        unknown_values(found),
    ))
}

/// The values of columns that were asked for and could not be found out, as a part of a sentence.
pub(crate) fn unknown_values(found: &Completeness) -> String {
    match found.unknown_values {
        0 => String::new(),
        count => format!(", {count} values that --also asked for are unknown"),
    }
}

/// What was not read.
fn skipped(since: &Since, directories: u64) -> String {
    format!(
        "{} of {directories} directories had not changed: their {} entries are taken from '{}', as they were then",
        since.directories, since.entries, since.path
    )
}

fn describe(outcome: &Outcome) -> String {
    let (manifest, summary) = (&outcome.manifest, &outcome.summary);
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let workers = summary.workers_over_time.iter().map(|(_, count)| *count).max().unwrap_or(0);
    format!(
        "{} entries, {} directories complete, {:.1} ms, up to {workers} workers; {bytes} bytes in {} files",
        manifest.entries,
        manifest.completeness.complete,
        summary.elapsed.as_secs_f64() * 1e3,
        manifest.files.len(),
    )
}
