//! The options of `fathom bench run`.

use crate::bench::measuring::{RUN, RunOption, blocks, seed, time};
use crate::bench::reports::{SHOWN, TargetOption, csv, html, json, markdown};
use crate::bench::table::{ABOUT, TIME_MORE};
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, long};

/// The options of `fathom bench run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandsOption {
    Run(RunOption),
    Report(TargetOption),
    Name,
    Prepare,
    Output,
    SameOutput,
    IgnoreFailure,
}

/// The values of `--output`.
pub(super) const OUTPUT_WORDS: &[&str] = &["pipe", "null"];

/// The values of `--same-output`.
pub(super) const SAME_OUTPUT_WORDS: &[&str] = &["bytes", "lines"];

const COMMANDS: &str = "The commands";

const FLAGS: &[Flag<CommandsOption>] = &[
    long(CommandsOption::Prepare, "prepare", COMMANDS, "run TEXT by sh(1) before each sample, unmeasured; once for all commands, or once for each")
        .required("TEXT", ValueKind::Text),
    long(CommandsOption::Name, "name", COMMANDS, "call a command NAME in the reports; once for each").required("NAME", ValueKind::Text),
    long(CommandsOption::Output, "output", COMMANDS, "send the output to a `pipe` that is read, or to `/dev/null` with `null` (default: pipe)")
        .required("WHERE", ValueKind::Words(OUTPUT_WORDS))
        .more("Programs such as tar(1) and grep(1) do less work if they write to `/dev/null`."),
    long(CommandsOption::SameOutput, "same-output", COMMANDS, "measure nothing unless all outputs have the same `bytes`, or the same `lines` in any order (default: bytes)")
        .optional("HOW", ValueKind::Words(SAME_OUTPUT_WORDS))
        .more("Without this option, a difference is noted below the table."),
    long(CommandsOption::IgnoreFailure, "ignore-failure", COMMANDS, "continue if a command exits with another status than 0"),
    blocks(CommandsOption::Run(RunOption::Blocks), "repeat every command N times (default: 10)"),
    time(CommandsOption::Run(RunOption::Time), "answer within TIME, such as `30s` or `2m`").more(TIME_MORE),
    seed(CommandsOption::Run(RunOption::Seed)),
    csv(CommandsOption::Report(TargetOption::Csv)),
    json(CommandsOption::Report(TargetOption::Json)),
    html(CommandsOption::Report(TargetOption::Html)),
    markdown(CommandsOption::Report(TargetOption::Markdown)),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const COMMANDS_RUN: Command<CommandsOption> = Command {
    name: "fathom bench run",
    brief: "measure commands of your own against each other",
    usage: &["[OPTION]... -- COMMAND [-- COMMAND]..."],
    about: &[
        "Measures any commands by the same rules as the workloads, each against the first, which runs twice as the control: time, processor \
         time, peak memory, page faults, context switches, migrations to another CPU, and bytes that devices read and wrote.",
        "A command is words; a single word with a space in it is text for sh(1), which may have a `--` of its own. Each command runs once \
         before the first sample, to compare the outputs.",
    ],
    sections: &[COMMANDS, RUN, SHOWN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[NUMBERS, STATUS],
    examples: &[(
        "fathom bench run -- du -s . -- fathom du -s .",
        "which of two commands is faster, and by how much",
    )],
    see_also: &["fathom-bench", "fathom-bench-compare"],
};

const NUMBERS: Note = Note {
    title: "Numbers",
    text: &[
        "The time runs from the start of the process to its end, without what prepares it. Processor time, faults, switches and \
         blocks are those of the process and of the descendants that it has waited for (getrusage(2)); the peak memory is that of \
         the largest of them. The kernel begins it at the memory of the program that starts a command, so that of a small command \
         is only known to be less than a few megabytes, which is noted. Migrations are counted for root, or where \
         `/proc/sys/kernel/perf_event_paranoid` is 1 or less.",
        "A command has no standard input. If it fails, the run ends with the first line of its standard error.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0 if the commands were measured. 1 if a command failed, if the outputs differ with `--same-output`, or if no sample counted. \
         2 for a wrong command line. 130 after Ctrl-C: what was measured before is shown.",
    ],
    man_only: true,
};
