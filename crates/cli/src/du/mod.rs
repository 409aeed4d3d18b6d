//! `fathom du`: from the command line to the exit status.

mod additions;
mod args;
mod from;
mod operands;
mod report;
pub(crate) mod table;
mod verbose;
mod view;

use std::ffi::OsString;
use std::sync::Arc;

use fathom_du::scan::{Engine, ScanOutcome, scan};
use fathom_walk::Op;

use crate::shared::cmdline::Information;
use crate::shared::cmdline::exit::{FAILED, INTERRUPTED, PANICKED};
use crate::shared::flag::Scope;
use crate::shared::interrupt::stop_on_interrupt;
use crate::shared::output::{self, write_stderr};
use crate::shared::progress::ProgressMeter;
use crate::shared::start::AutoStart;
use crate::shared::{help, locale};
use additions::Additions;
use args::{DuAction, DuArgs, Invocation, OperandSource};
use operands::OperandReader;
use report::DuReporter;
use view::View;

/// Runs the command called `name` with the arguments `words`. Returns the exit status.
pub(crate) fn main(name: &[u8], scope: Scope, words: Vec<OsString>) -> u8 {
    let invocation = Invocation { name: name.to_vec(), scope, charset: locale::current() };
    let parsed = args::parse(&invocation, words.into_iter(), &locale::env);
    write_stderr(&parsed.stderr);
    match parsed.action {
        DuAction::Run(args) => run(&invocation, *args),
        DuAction::Inform(information) => {
            let name = String::from_utf8_lossy(name);
            let text = match information {
                Information::Help => help::render(&table::DU, &name, scope),
                Information::Version => help::version(version_name(scope)),
            };
            output::print(&name, &text)
        }
        DuAction::Fail => FAILED,
    }
}

fn version_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Original => "du (fathom)",
        Scope::Full => table::DU.name,
    }
}

fn run(invocation: &Invocation, args: DuArgs) -> u8 {
    // No operand at all selects the whole inventory of `--from`; an empty file of operands selects
    // nothing.
    let everything = matches!(&args.operands, OperandSource::Listed(words) if words.is_empty());
    let operands = match OperandReader::open(args.operands, invocation) {
        Ok(operands) => operands,
        Err(message) => {
            write_stderr(&[&invocation.name[..], b": ", &message, b"\n"].concat());
            return FAILED;
        }
    };
    let mut options = args.options;
    let mut view = view::choose(&mut options, args.format, args.unit_chosen, &args.extra, invocation.charset);
    let stop = match invocation.scope {
        Scope::Full => stop_on_interrupt(),
        Scope::Original => Arc::default(),
    };
    let meter = ProgressMeter::new(args.extra.progress);
    let start = start(invocation, &args.extra);
    let threads = args.extra.threads.map(usize::from);
    let engine = Engine { model: args.extra.model, threads, hints: start.hints.clone() };
    let (known, total) = (operands.known(), options.total);
    let mut reporter = DuReporter::new(invocation, operands, view.as_mut(), &meter, &stop);
    let mut watch = |progress| meter.show(progress);
    let options = Arc::new(options);
    let outcome = match &args.extra.from {
        Some(inventory) => {
            from::report_inventory(inventory, everything, &options, invocation.charset, &mut reporter)
                .map_err(|message| (message, FAILED))
        }
        None => scan(options, engine, &known, &mut reporter, &mut watch).map_err(|error| {
            let status = if error.op() == Op::Work { PANICKED } else { FAILED };
            (error.to_string().into_bytes(), status)
        }),
    };
    meter.clear();
    match outcome {
        Ok(outcome) => {
            if args.extra.verbose {
                let model = args.extra.model;
                write_stderr(&verbose::describe(invocation, model, &start, &outcome, reporter.problems()));
            }
            finish(reporter, &outcome, total)
        }
        Err((error, status)) => {
            write_stderr(&[&invocation.name[..], b": ", &error, b"\n"].concat());
            status
        }
    }
}

/// Reads the starting point of the walk from the profile; there is none with `--from`.
fn start(invocation: &Invocation, extra: &Additions) -> AutoStart {
    match extra.from {
        Some(_) => AutoStart::default(),
        None => AutoStart::read(&invocation.name, invocation.charset, extra.model, extra.threads.is_some()),
    }
}

fn finish(mut reporter: DuReporter<'_, dyn View>, outcome: &ScanOutcome, total: bool) -> u8 {
    reporter.finish_view(outcome, total);
    let interrupted = reporter.is_interrupted();
    if interrupted {
        reporter.print_error(b"interrupted: the results are partial");
    }
    match (reporter.finish(), interrupted) {
        (_, true) => INTERRUPTED,
        (status, false) => status,
    }
}
