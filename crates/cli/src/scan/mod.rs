//! `fathom scan`: from the command line to the exit status.

mod args;
mod estimate;
mod inodes;
mod keep;
mod select;
mod stream;
pub(crate) mod table;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use fathom_inventory::store::ReuseSummary;
use fathom_scans::scan::{Observer, Problem, ScanOutcome, resume, scan};
use fathom_text::quote::{Charset, quoteaf, shell_escape};
use fathom_text::strerror;
use fathom_walk::Progress;

use self::args::{ScanAction, ScanArgs};
use crate::shared::cmdline::exit::{FAILED, MISUSED};
use crate::shared::interrupt::TerminationSignals;
use crate::shared::inventory::missing;
use crate::shared::locale;
use crate::shared::output;
use crate::shared::progress::ProgressMeter;
use crate::shared::start::AutoStart;

const NAME: &str = table::SCAN.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    fathom_io::sys::keep_freed_memory();
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(ScanAction::Scan(args)) if args.output.as_os_str() == stream::STANDARD_OUTPUT => {
            stream::run(*args, charset)
        }
        Ok(ScanAction::Scan(args)) => make(*args, charset),
        Ok(ScanAction::Estimate(args)) => estimate::run(*args, charset),
        Ok(ScanAction::Keep(args)) => keep::run(*args, charset),
        Err(end) => end.answer(&table::SCAN),
    }
}

fn print_error(message: &[u8]) {
    output::print_error(NAME, message);
}

/// The observer of a scan: shows progress and reports problems.
struct ScanWatch<'a> {
    meter: &'a ProgressMeter,
    charset: Charset,
}

impl Observer for ScanWatch<'_> {
    fn progress(&mut self, progress: Progress) {
        self.meter.show(progress);
    }

    fn problem(&mut self, problem: &Problem) {
        self.meter.clear();
        let (path, cause) = (quoteaf(&problem.path, self.charset), strerror(problem.errno));
        print_error(&[b"cannot ", problem.operation.as_bytes(), b" ", &path, b": ", &cause].concat());
    }

    fn warning(&mut self, message: &[u8]) {
        self.meter.clear();
        print_error(message);
    }
}

/// Makes an inventory. Returns the exit status, [`MISUSED`] if there is none.
fn make(args: ScanArgs, charset: Charset) -> u8 {
    let output = args.output.clone();
    let (status, is_stopped) = make_part(args, charset);
    if is_stopped {
        let output = shell_escape(output.as_os_str().as_bytes(), charset);
        print_error(&[b"to continue: fathom scan --resume -o ", &output[..]].concat());
    }
    status
}

/// Makes an inventory. Returns the exit status, [`MISUSED`] if there is none, and whether the scan
/// was stopped before its end.
fn make_part(args: ScanArgs, charset: Charset) -> (u8, bool) {
    let ScanArgs { mut scan, output, resume, stats, progress } = args;
    let signals = TerminationSignals::on_signals();
    scan.stop = signals.stop.clone();
    let start = AutoStart::read(NAME.as_bytes(), charset, scan.model, scan.threads.is_some());
    scan.hints = start.hints.clone();
    let meter =
        ProgressMeter::new(progress).with_expected(|| inodes::expected(&scan.roots, scan.one_file_system));
    let begin = if resume { self::resume } else { self::scan };
    let ended = begin(&scan, &output, &mut ScanWatch { meter: &meter, charset });
    meter.clear();
    match ended {
        Ok(outcome) => {
            if stats {
                start.notes(&outcome.summary.devices).for_each(|note| print_error(note.as_bytes()));
                print_error(describe(&outcome).as_bytes());
            }
            if let Some(since) = &outcome.manifest.since {
                print_error(skipped(since, outcome.manifest.completeness.complete).as_bytes());
            }
            (status(&outcome, &signals), outcome.manifest.completeness.stopped.is_some())
        }
        Err(error) => {
            print_error(error.to_string().as_bytes());
            (MISUSED, false)
        }
    }
}

/// Reports the gaps in the inventory. Returns the exit status.
fn status(outcome: &ScanOutcome, signals: &TerminationSignals) -> u8 {
    let found = &outcome.manifest.completeness;
    let Some(missing) = missing(found) else { return 0 };
    print_error(missing.as_bytes());
    if found.stopped.as_deref() == Some("interrupted") { signals.status() } else { FAILED }
}

/// Returns a sentence about the directories that `--since` skipped.
fn skipped(since: &ReuseSummary, directories: u64) -> String {
    let unseen = match since.directories {
        0 => "",
        _ => "; files changed in place in them still have their old sizes",
    };
    format!(
        "{} of {directories} directories had not changed: their {} entries were copied from '{}'{unseen}",
        since.directories, since.entries, since.path
    )
}

fn describe(outcome: &ScanOutcome) -> String {
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
