//! `fathom rm`: from the command line to the exit status.

mod args;
mod paths;
mod question;
mod report;
pub(crate) mod table;

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use fathom_remove::{
    Observer, OpenFiles, RemovalAction, RemovalFailure, RemovalLimit, RemovalOperation, RemovalOptions,
    RemovalSummary, Target, remove, working_directories,
};
use fathom_text::quote::{Charset, quoteaf};

use self::args::{PathList, PathSource, RmArgs};
use self::paths::{ListedTarget, Paths, PathsError, file_bytes};
use self::question::Confirmation;
use self::report::{EventWords, KeptReasons, RmReport, cause};
use crate::shared::cmdline::exit::{FAILED, MISUSED};
use crate::shared::interrupt::TerminationSignals;
use crate::shared::locale;
use crate::shared::output;
use crate::shared::progress::ProgressMeter;
use crate::shared::removal::{RemovalLog, trash_options};
use crate::shared::start::AutoStart;
use crate::shared::value::ShowWhen;

const NAME: &str = table::RM.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    let charset = locale::current();
    match args::parse(words.into_iter(), charset) {
        Ok(args) => run(args, charset),
        Err(end) => end.answer(&table::RM),
    }
}

fn run(mut args: RmArgs, charset: Charset) -> u8 {
    let signals = TerminationSignals::default();
    let refused = |path: &Path, error: &std::io::Error| {
        let name = quoteaf(file_bytes(path), charset);
        output::print_error(NAME, &[b"cannot open ", &name[..], b": ", &cause(error)].concat());
        MISUSED
    };
    let log = match args.log.as_ref().filter(|_| !args.dry_run) {
        None => None,
        Some(path) => match RemovalLog::open(path, if args.trash { "trash" } else { "remove" }) {
            Ok(log) => Some(log),
            Err(error) => return refused(path, &error),
        },
    };
    let list_failure = RefCell::new(None);
    let source = std::mem::replace(&mut args.paths, PathSource::Operands(Vec::new()));
    let list = if let PathSource::From0(list) = &source { list.clone() } else { PathList::default() };
    let file = list.file.clone();
    let confirmation = match Confirmation::of(&args, &list) {
        Ok(confirmation) => confirmation,
        Err(message) => {
            output::print_error(NAME, &message);
            return MISUSED;
        }
    };
    let paths = match Paths::open(source, &list_failure) {
        Ok(paths) => paths,
        Err(error) => return refused(&file, &error),
    };
    let report = Arc::new(RmReport::new(charset, words_of(&args), log, signals.stop.clone()));
    let options = options(&args, &signals, charset);
    let paths = paths.filter_map(|target| known(target, &report));
    let ended = removed(&args, &options, &signals, Box::new(paths), confirmation, &report);
    if let Some(failure) = list_failure.take() {
        report.fail(&list_message(&failure, &file, charset));
    }
    match ended {
        Ok(Some(summary)) => finish(&args, &summary, &report, &signals),
        Ok(None) => report.status().max(FAILED),
        Err(error) => {
            report.print_error(error.to_string().as_bytes());
            MISUSED
        }
    }
}

/// Asks if necessary, and removes the paths. Returns `None` if the answer was no.
fn removed(
    args: &RmArgs,
    options: &RemovalOptions,
    signals: &TerminationSignals,
    paths: Box<dyn Iterator<Item = Target> + '_>,
    confirmation: Option<Confirmation>,
    report: &Arc<RmReport>,
) -> Result<Option<RemovalSummary>, fathom_walk::Error> {
    let meter = ProgressMeter::new(args.progress);
    let run = |targets: Box<dyn Iterator<Item = Target> + '_>, options: &RemovalOptions, observer| {
        let ended = remove(targets, options, observer, &mut |progress| meter.show(progress));
        meter.clear();
        ended
    };
    let Some(mut confirmation) = confirmation else {
        signals.register();
        return run(paths, options, report.clone()).map(Some);
    };
    let targets: Vec<_> = paths.filter_map(|target| as_shown(target, report)).collect();
    let open_files = Some(Arc::new(OpenFiles::read()));
    let count = RemovalOptions { action: RemovalAction::DryRun, open_files, ..options.clone() };
    let mut done = RemovalSummary::default();
    loop {
        let reasons = Arc::new(KeptReasons::default());
        let plan = run(Box::new(targets.iter().cloned()), &count, reasons.clone())?;
        let possible = plan.possible;
        let is_asked = possible.files + possible.directories > 0;
        if is_asked && !confirmation.is_given(&shown(plan), &reasons.texts(report.charset()), &signals.stop) {
            let stopped = signals.has_arrived();
            return Ok(stopped.then_some(RemovalSummary { stopped, ..done }));
        }
        // Until now, a signal has ended the process, also while it waited for the answer.
        signals.register_once();
        let limited = RemovalOptions { limit: Some(possible), ..options.clone() };
        let ended = run(Box::new(targets.iter().cloned()), &limited, report.clone())?;
        done = sum(&done, &ended);
        if !ended.exceeded || signals.has_arrived() {
            return Ok(Some(done));
        }
        let removed = question::counts(&done);
        report.print_error(
            format!("more entries appeared after the count; removed {removed} so far").as_bytes(),
        );
    }
}

/// Returns what the question has of a plan: what will be tried, also where it could not be counted.
fn shown(plan: RemovalSummary) -> RemovalSummary {
    let RemovalLimit { files, directories } = plan.possible;
    RemovalSummary { files, directories, ..plan }
}

fn sum(one: &RemovalSummary, other: &RemovalSummary) -> RemovalSummary {
    RemovalSummary {
        files: one.files + other.files,
        directories: one.directories + other.directories,
        allocated: one.allocated.saturating_add(other.allocated),
        freed: one.freed.saturating_add(other.freed),
        held: one.held.saturating_add(other.held),
        failures: one.failures + other.failures,
        ..*other
    }
}

/// Returns the target of a list. A path that is none is reported.
fn known(target: ListedTarget, report: &RmReport) -> Option<Target> {
    let failed = |(path, cause)| {
        report.failed(&RemovalFailure { path, operation: RemovalOperation::Remove, cause });
    };
    target.map_err(failed).ok()
}

/// Adds the inode that is there now, so that only that one is removed after the question. A target
/// that is not there is reported, and never removed.
fn as_shown(target: Target, report: &RmReport) -> Option<Target> {
    let path = target.path_bytes();
    let failed = |cause| report.failed(&RemovalFailure { path, operation: RemovalOperation::Remove, cause });
    target.shown_now().map_err(failed).ok()
}

/// Prints the sums where they are wanted. Returns the exit status.
fn finish(args: &RmArgs, summary: &RemovalSummary, report: &RmReport, signals: &TerminationSignals) -> u8 {
    let (done, would) = if args.trash { ("trashed", "would trash") } else { ("removed", "would remove") };
    if args.dry_run && !(summary.stopped && signals.has_arrived()) {
        // The trash keeps all blocks.
        let amount = if args.trash { question::amount_kept(summary) } else { question::amount(summary) };
        report.print(format!("{would} {amount}\n").as_bytes());
    }
    let status = report.status();
    if summary.stopped && signals.has_arrived() {
        let done = if args.dry_run { "counted" } else { done };
        report.print_error(format!("interrupted: {done} {}", question::counts(summary)).as_bytes());
        return signals.status();
    }
    if !args.dry_run && std::io::stderr().is_terminal() && args.progress != ShowWhen::Never {
        report.print_error(format!("{done} {}", question::counts(summary)).as_bytes());
    }
    status
}

fn options(args: &RmArgs, signals: &TerminationSignals, charset: Charset) -> RemovalOptions {
    let start = AutoStart::read(NAME.as_bytes(), charset, args.model, args.threads.is_some());
    let action = match (args.dry_run, args.trash) {
        (true, _) => RemovalAction::DryRun,
        (false, true) => RemovalAction::Trash(trash_options()),
        (false, false) => RemovalAction::Delete,
    };
    RemovalOptions {
        action,
        recursive: args.recursive,
        ignore_missing: args.force,
        measure: args.log.is_some(),
        limit: None,
        open_files: (args.dry_run && !args.trash).then(|| Arc::new(OpenFiles::read())),
        // Without a working directory, nothing contains it.
        protected: working_directories().unwrap_or_default(),
        model: args.model,
        threads: args.threads,
        hints: start.hints,
        stop: signals.stop.clone(),
    }
}

/// Returns the words of `-v`.
fn words_of(args: &RmArgs) -> Option<EventWords> {
    args.verbose.then_some(match (args.dry_run, args.trash) {
        (true, true) => ["would trash", "would trash"],
        (true, false) => ["would remove", "would remove directory"],
        (false, true) => ["trashed", "trashed"],
        (false, false) => ["removed", "removed directory"],
    })
}

fn list_message(failure: &PathsError, file: &Path, charset: Charset) -> Vec<u8> {
    let name = quoteaf(file_bytes(file), charset);
    match failure {
        PathsError::Read(error) => [b"cannot read ", &name[..], b": ", &cause(error)].concat(),
        PathsError::Empty => [&name[..], b" has an empty path: stopping there"].concat(),
        PathsError::TooLong => [&name[..], b" has a path of more than 16 MiB: stopping there"].concat(),
        PathsError::NoId => [
            &name[..],
            b" has a path without device, inode and time before it, as `fathom list --ids` prints them: stopping there",
        ]
        .concat(),
    }
}
