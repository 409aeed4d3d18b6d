//! `fathom du`: from the command line to the exit status.

pub(crate) mod args;
pub(crate) mod extra;
mod from;
mod operands;
pub(crate) mod progress;
mod report;
pub(crate) mod table;
mod verbose;
pub(crate) mod view;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use fathom_du::scan::{Engine, ScanOutcome, scan};
use fathom_walk::Op;

use crate::flag::Scope;
use crate::interrupt::{INTERRUPTED, stop_on_interrupt};
use crate::output::{Output, PANICKED, write_stderr};
use crate::start::AutoStart;
use crate::{help, locale};
use args::{DuAction, DuArgs, Invocation, OperandSource};
use extra::Additions;
use operands::OperandReader;
use progress::ProgressMeter;
use report::DuReporter;
use view::View;

/// Exit status if nothing could be measured.
const FAILED: u8 = 1;

/// Runs the command called `name` with the arguments `words`. Returns the exit status.
pub(crate) fn main(name: &[u8], scope: Scope, words: impl Iterator<Item = OsString>) -> u8 {
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let invocation = Invocation { name: name.to_vec(), scope, charset: locale::charset(&env) };
    let parsed = args::parse(&invocation, words, &env);
    write_stderr(&parsed.stderr);
    match parsed.action {
        DuAction::Run(args) => run(&invocation, *args),
        DuAction::Help => {
            print(&invocation, &help::render(&table::DU, &String::from_utf8_lossy(name), scope))
        }
        DuAction::Version => print(&invocation, &help::version(version_name(scope))),
        DuAction::Fail => FAILED,
    }
}

fn version_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Original => "du (fathom)",
        Scope::Full => "fathom du",
    }
}

fn print(invocation: &Invocation, text: &str) -> u8 {
    let mut out = Output::new();
    out.buffer().extend_from_slice(text.as_bytes());
    out.finish(&String::from_utf8_lossy(&invocation.name))
}

fn run(invocation: &Invocation, args: DuArgs) -> u8 {
    // No operand at all selects the whole inventory of `--from`; an empty file of operands selects
    // nothing.
    let everything = matches!(&args.operands, OperandSource::Listed(words) if words.is_empty());
    let operands = match OperandReader::open(args.operands, invocation) {
        Ok(operands) => operands,
        Err(message) => {
            write_stderr(&[&invocation.name[..], b": ", &message, b"\n"].concat());
            return 1;
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
    let engine = Engine { choice: args.extra.model, threads, hints: start.hints.clone() };
    let (known, total) = (operands.known(), options.total);
    let mut reporter = DuReporter::new(invocation, operands, view.as_mut(), &meter, &stop);
    let mut watch = |progress| meter.show(progress);
    let options = Arc::new(options);
    let outcome = match &args.extra.from {
        Some(inventory) => {
            from::report_inventory((inventory, everything), &options, invocation.charset, &mut reporter)
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
