//! The three small du programs: each sums the lengths of regular files with one fixed I/O model, so
//! that their times differ by the model only. Owns their command line and output; `fathom-du` does
//! the rest.

#[allow(dead_code, reason = "shared with `fathom`, which uses more of it")]
#[path = "shared/cmdline/mod.rs"]
mod cmdline;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::Arc;

use fathom_du::dedup::KnownOperands;
use fathom_du::options::{Follow, HardLinks, Measure, Options};
use fathom_du::problem::Problem;
use fathom_du::scan::{Engine, Line, Operand, Report, scan};
use fathom_text::human::BlockSize;
use fathom_text::quote::{Charset, NameStyle};
use fathom_walk::{Model, Op};

use cmdline::description::Command;
use cmdline::flag::{self, Flag, short};
use cmdline::output::{self, Output, print_error, stdout_is_terminal};

/// The options of the programs.
#[derive(Clone, Copy)]
enum RduOption {
    Human,
    Summarize,
}

const OPTIONS: &str = "Options";

const FLAGS: &[Flag<RduOption>] = &[
    short(RduOption::Human, b'h', OPTIONS, "sizes for people, in powers of 1024"),
    short(RduOption::Summarize, b's', OPTIONS, "one line for each DIR, not for all directories below it too"),
    flag::help(OPTIONS),
    flag::version(OPTIONS),
];

/// The description of the program called `name`.
const fn description(name: &'static str) -> Command<RduOption> {
    Command {
        name,
        brief: "show the length of the regular files below directories",
        usage: &["[-hs] [DIR]..."],
        about: &[
            "Shows how long the regular files below each DIR (or the current directory) are together: the size, a tab, \
             the directory. Hard links count each time, directories and links nothing. `fathom du` does more.",
        ],
        sections: &[OPTIONS],
        flags: FLAGS,
        commands: &[],
        notes: &[],
        examples: &[],
        see_also: &[],
    }
}

/// Runs the program called `name` with one I/O model.
pub(crate) fn main(name: &'static str, model: Model) -> ExitCode {
    fathom_io::sys::restore_sigpipe();
    output::report_panics(name);
    ExitCode::from(output::exit_status(|| run(name, model)))
}

fn run(name: &'static str, model: Model) -> u8 {
    let command = description(name);
    let mut args = RduArgs::default();
    let parsed = cmdline::parse(&command, std::env::args_os().skip(1), Charset::Ascii, |key, _| {
        match key {
            RduOption::Human => args.human = true,
            RduOption::Summarize => args.summarize = true,
        }
        Ok(())
    });
    match parsed {
        Ok(paths) if paths.is_empty() => measure(name, model, args, vec![".".into()]),
        Ok(paths) => measure(name, model, args, paths),
        Err(end) => end.answer(&command),
    }
}

/// The options given.
#[derive(Default)]
struct RduArgs {
    human: bool,
    summarize: bool,
}

fn measure(name: &'static str, model: Model, args: RduArgs, paths: Vec<OsString>) -> u8 {
    let options = Options {
        measure: Measure::Lengths,
        links: HardLinks::EachTime,
        follow: Follow::Operands,
        depth_max: args.summarize.then_some(0),
        ..Options::default()
    };
    let block_size = if args.human { BlockSize::HUMAN } else { BlockSize::BYTES };
    let mut report =
        RduReport { name, block_size, paths: paths.into_iter(), out: Output::new(), failed: false };
    let engine = Engine { model, ..Engine::default() };
    if let Err(error) = scan(Arc::new(options), engine, &KnownOperands::AtMostOne, &mut report, &mut |_| ()) {
        report.print_error(error.to_string().as_bytes());
        if error.op() == Op::Work {
            return cmdline::exit::PANICKED;
        }
    }
    report.out.finish(name).max(u8::from(report.failed))
}

/// Prints a line for each directory.
struct RduReport {
    name: &'static str,
    block_size: BlockSize,
    paths: std::vec::IntoIter<OsString>,
    out: Output,
    failed: bool,
}

impl RduReport {
    fn print_error(&mut self, message: &[u8]) {
        self.failed = true;
        self.out.flush();
        print_error(self.name, message);
    }
}

impl Report for RduReport {
    fn next_operand(&mut self, _wait: bool) -> Operand {
        match self.paths.next().map(|path| CString::new(path.into_vec())) {
            None => Operand::End,
            Some(Ok(path)) if !path.is_empty() => Operand::Path(path),
            Some(_) => Operand::Message(b"invalid zero-length file name".to_vec()),
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        let buffer = self.out.buffer();
        self.block_size.write(line.totals.bytes, buffer);
        buffer.push(b'\t');
        NameStyle::of(stdout_is_terminal(), false, Charset::Ascii).write(line.path, buffer);
        buffer.push(b'\n');
        self.out.flush_if_full();
    }

    fn problem(&mut self, problem: &Problem<'_>) {
        self.print_error(&problem.message(Charset::Ascii));
    }

    fn message(&mut self, message: &[u8]) {
        self.print_error(message);
    }

    fn stopped(&mut self) -> bool {
        self.out.has_failed()
    }
}
