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

use fathom_du::scan::{Engine, Outcome, scan};

use crate::flag::Scope;
use crate::interrupt::{INTERRUPTED, stop_on_interrupt};
use crate::output::{Output, complain};
use crate::start::Start;
use crate::{help, locale};
use args::{Caller, DuArgs, Operands, Parsed};
use extra::Extra;
use operands::Source;
use progress::Meter;
use report::Reporter;
use view::View;

/// Runs the command called `name` with `words`; the exit status.
pub(crate) fn main(name: &[u8], scope: Scope, words: impl Iterator<Item = OsString>) -> u8 {
    let env = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let caller = Caller { name: name.to_vec(), scope, charset: locale::charset(&env) };
    let parsed = args::parse(&caller, words, &env);
    complain(&parsed.stderr);
    match parsed.parsed {
        Parsed::Run(args) => run(&caller, *args),
        Parsed::Help => print(&caller, &help::render(&table::DU, &String::from_utf8_lossy(name), scope)),
        Parsed::Version => print(&caller, &help::version(version_name(scope))),
        Parsed::Fail => 1,
    }
}

fn version_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Original => "du (fathom)",
        Scope::Full => "fathom du",
    }
}

fn print(caller: &Caller, text: &str) -> u8 {
    let mut out = Output::new();
    out.buffer().extend_from_slice(text.as_bytes());
    out.finish(&String::from_utf8_lossy(&caller.name))
}

fn run(caller: &Caller, args: DuArgs) -> u8 {
    // An empty file of operands asks for nothing, no operand at all asks `--from` for everything.
    let everything = matches!(&args.operands, Operands::Listed(words) if words.is_empty());
    let source = match Source::open(args.operands, caller) {
        Ok(source) => source,
        Err(message) => {
            complain(&[&caller.name[..], b": ", &message, b"\n"].concat());
            return 1;
        }
    };
    let mut options = args.options;
    let mut view = view::choose(&mut options, args.format, args.unit_chosen, &args.extra, caller.charset);
    let stop = match caller.scope {
        Scope::Full => stop_on_interrupt(),
        Scope::Original => Arc::default(),
    };
    let meter = Meter::new(args.extra.progress);
    let start = start(caller, &args.extra);
    let threads = args.extra.threads.map(usize::from);
    let engine = Engine { choice: args.extra.model, threads, leaps: start.leaps.clone() };
    let (operands, total) = (source.known(), options.total);
    let mut reporter = Reporter::new(caller, source, view.as_mut(), &meter, &stop);
    let mut watch = |progress| meter.show(progress);
    let options = Arc::new(options);
    let outcome = match &args.extra.from {
        Some(inventory) => from::tell((inventory, everything), &options, caller.charset, &mut reporter),
        None => scan(options, engine, &operands, &mut reporter, &mut watch)
            .map_err(|error| error.to_string().into_bytes()),
    };
    meter.clear();
    match outcome {
        Ok(outcome) => {
            if args.extra.verbose {
                let model = args.extra.model;
                complain(&verbose::describe(caller, model, &start, &outcome, reporter.problems()));
            }
            finish(reporter, &outcome, total)
        }
        Err(error) => {
            complain(&[&caller.name[..], b": ", &error, b"\n"].concat());
            1
        }
    }
}

/// Where the walk starts, if there is one.
fn start(caller: &Caller, extra: &Extra) -> Start {
    match extra.from {
        Some(_) => Start::default(),
        None => Start::read(&caller.name, caller.charset, extra.model, extra.threads.is_some()),
    }
}

fn finish(mut reporter: Reporter<'_, dyn View>, outcome: &Outcome, total: bool) -> u8 {
    reporter.finish_view(outcome, total);
    let interrupted = reporter.is_interrupted();
    if interrupted {
        reporter.complain(b"interrupted: the results are partial");
    }
    match (reporter.finish(), interrupted) {
        (_, true) => INTERRUPTED,
        (status, false) => status,
    }
}
