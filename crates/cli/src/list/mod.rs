//! `fathom list`: from the command line to the exit status.

mod any;
mod args;
mod from;
mod lookup;
mod operands;
mod path;
mod plan;
pub(crate) mod report;
pub(crate) mod table;
pub(crate) mod vcs;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use fathom_text::quote::Charset;
use fathom_walk::{Error, Fields, Follow, Options, Progress, Summary, run as walk, run_unordered};

use self::args::ListArgs;
use self::plan::{LineBuffer, LineFormat};
use self::report::ListReport;
use crate::shared::cmdline::exit::{INTERRUPTED, MISUSED};
use crate::shared::interrupt::stop_on_interrupt;
use crate::shared::locale;
use crate::shared::progress::ProgressMeter;
use crate::shared::start::AutoStart;

const NAME: &str = table::LIST.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    let charset = locale::current();
    match args::parse(words.into_iter(), charset, &locale::env) {
        Ok(mut args) if args.from.is_some() => {
            let report = ListReport::new(charset, stop_on_interrupt());
            let inventory = args.from.take().unwrap_or_default();
            list_inventory(&inventory, args, &report, charset)
        }
        Ok(args) => {
            let start = AutoStart::read(NAME.as_bytes(), charset, args.model, args.threads.is_some());
            run(args, &start, ListReport::new(charset, stop_on_interrupt()))
        }
        Err(end) => end.answer(&table::LIST),
    }
}

/// Lists the contents of an inventory.
fn list_inventory(inventory: &Path, args: ListArgs, report: &ListReport, charset: Charset) -> u8 {
    args.warnings.iter().for_each(|warning| report.print_error(&[b"warning: ", &warning[..]].concat()));
    let counts = matches!(args.plan.format, LineFormat::Count);
    let operands = args.is_of_operands.then_some(&args.operands);
    let ended = from::list(inventory, operands, args.plan, report, charset);
    if counts {
        report.write(format!("{}\n", report.entries()).as_bytes(), 0);
    }
    if report.is_interrupted() {
        report.print_error(b"interrupted: the list is partial");
        return INTERRUPTED;
    }
    report.status().max(ended.err().unwrap_or(0))
}

fn run(args: ListArgs, start: &AutoStart, report: ListReport) -> u8 {
    let (report, meter) = (Arc::new(report), ProgressMeter::new(args.progress));
    args.warnings.iter().for_each(|warning| report.print_error(&[b"warning: ", &warning[..]].concat()));
    args.problems.iter().for_each(|problem| report.problem(problem));
    let (stats, counts) = (args.stats, matches!(args.plan.format, LineFormat::Count));
    let ended = list(options(&args, start), args, &report, &mut |progress| meter.show(progress));
    meter.clear();
    let summary = match ended {
        Ok(summary) => summary,
        Err(error) => {
            report.print_error(error.to_string().as_bytes());
            return MISUSED;
        }
    };
    if counts {
        report.write(format!("{}\n", report.entries()).as_bytes(), 0);
    }
    if stats {
        start.notes(&summary.devices).for_each(|note| report.print_error(note.as_bytes()));
        report.print_error(describe(&report, &summary).as_bytes());
    }
    if report.is_interrupted() {
        report.print_error(b"interrupted: the list is partial");
        return INTERRUPTED;
    }
    report.status()
}

fn options(args: &ListArgs, start: &AutoStart) -> Options {
    let links = if args.plan.dereference { Follow::Yes } else { Follow::No };
    let fields = args.plan.fields();
    Options::default()
        .model(args.model)
        .threads(args.threads)
        .follow_roots(links)
        .follow_links(links)
        .fields(fields.unwrap_or(Fields::IDENTITY))
        .stat_dirs(fields.is_some())
        .inspect_directories(args.plan.vcs.is_some())
        .hints(start.hints.clone())
}

fn list(
    options: Options,
    args: ListArgs,
    report: &Arc<ListReport>,
    watch: &mut dyn FnMut(Progress),
) -> Result<Summary, Error> {
    let (plan, operands) = (Arc::new(args.plan), args.operands);
    if !args.in_order {
        let visitor = any::AnyOrderVisitor { plan, report: report.clone() };
        return run_unordered(options, visitor, &mut any::RootSupplier { operands, report }, watch);
    }
    let mut consumer = path::OrderedConsumer { plan: &plan, operands, report, lines: LineBuffer::default() };
    let ended = walk(options, path::PathOrderVisitor(plan.clone()), &mut consumer, watch);
    consumer.flush();
    ended
}

fn describe(report: &ListReport, summary: &Summary) -> String {
    let (progress, calls) = (summary.progress, summary.calls);
    let workers = summary.workers_over_time.iter().map(|(_, count)| *count).max().unwrap_or(0);
    format!(
        "{} listed of {} entries in {} directories, {} problems, {:.1} ms, up to {workers} workers; system calls: \
         {} open, {} getdents, {} stat",
        report.entries(),
        progress.entries,
        progress.directories,
        report.problems(),
        summary.elapsed.as_secs_f64() * 1e3,
        calls.open,
        calls.read,
        calls.stat,
    )
}
