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
    Cases,
    Name,
    Prepare,
    Cold,
    Output,
    SameOutput,
    IgnoreFailure,
}

/// The values of `--output`.
pub(super) const OUTPUT_WORDS: &[&str] = &["pipe", "null"];

/// The values of `--same-output`.
pub(super) const SAME_OUTPUT_WORDS: &[&str] = &["bytes", "lines", "any"];

const COMMANDS: &str = "The commands";

const FLAGS: &[Flag<CommandsOption>] = &[
    long(CommandsOption::Cases, "cases", COMMANDS, "read commands and requirements from FILE").required("FILE", ValueKind::File),
    long(CommandsOption::Prepare, "prepare", COMMANDS, "run TEXT with sh(1) before each sample, unmeasured; give it once for all commands, or once for each")
        .required("TEXT", ValueKind::Text),
    long(CommandsOption::Cold, "cold", COMMANDS, "drop the kernel's caches before each sample, except the program itself (`sh` for text); needs root"),
    long(CommandsOption::Name, "name", COMMANDS, "show a command as NAME; give it once for each").required("NAME", ValueKind::Text),
    long(CommandsOption::Output, "output", COMMANDS, "send the output to a `pipe` that is read, or to `/dev/null` with `null` (default: pipe)")
        .required("WHERE", ValueKind::Words(OUTPUT_WORDS))
        .more("Programs such as tar(1) and grep(1) do less work if they write to `/dev/null`."),
    long(CommandsOption::SameOutput, "same-output", COMMANDS, "fail unless all outputs have the same `bytes` (default), or the same `lines` in any order; `any` compares nothing")
        .optional("HOW", ValueKind::Words(SAME_OUTPUT_WORDS))
        .more("Without this option, a difference is noted below the table."),
    long(CommandsOption::IgnoreFailure, "ignore-failure", COMMANDS, "continue if a command exits with a status other than 0"),
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
    usage: &["[OPTION]... -- COMMAND [-- COMMAND]...", "[OPTION]... --cases=FILE"],
    about: &[
        "Measures any commands by the same rules as the workloads, each against the first, which runs twice as the control: time, processor \
         time, peak memory, page faults, context switches, migrations to another CPU, and bytes that devices read and wrote.",
        "A command is words; a single word with a space in it is text for sh(1), which may have a `--` of its own. Each command runs once \
         before the first sample, to compare the outputs.",
    ],
    sections: &[COMMANDS, RUN, SHOWN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[CASES, NUMBERS, STATUS],
    examples: &[
        ("fathom bench run -- du -s . -- fathom du -s .", "compare two commands"),
        ("fathom bench run --cases cases.toml", "check whether commands are as fast as a file requires"),
    ],
    see_also: &["fathom-bench", "fathom-bench-compare"],
};

const CASES: Note = Note {
    title: "Files of cases",
    text: &[
        "A file is TOML, with a table `[[case]]` for each case: `name`; `blocks`, which `--blocks` overrides; `directory`, in which the \
         commands run, relative to the file; `cold`, `output`, `same-output` and `ignore-failure` as the options of these names; \
         `timeout-seconds`, after which a command has failed; `command` and `require`.",
        "A command has a `name`, and `run`: a list of words, or text for sh(1). It may have `prepare`, text for sh(1) that runs before each \
         sample; `group`, a word by which requirements mean several commands; `blocks`, if it is slow: it runs in so many blocks only; \
         `optional = true`: if it fails, it is skipped, with the reason.",
        "A requirement names a `command`, or a group of which the best counts, and one limit: `time` or `memory`, a share of that of the \
         command or group `than`; `seconds`; or `memory-bytes`. Time is the median, in ratios over the blocks; memory is the peak of all \
         samples. The outcome is `met`, `missed`, `unsure` if the limit is exceeded, but lies within the interval of what was measured, or \
         `not measured`. Fewer than 6 blocks have no interval: there the least of them counts.",
    ],
    man_only: true,
};

const NUMBERS: Note = Note {
    title: "Numbers",
    text: &[
        "The time runs from the start of the process to its end, without what prepares it. Processor time, faults, switches and \
         blocks are those of the process and of the descendants that it has waited for (getrusage(2)); the peak memory is that of \
         the largest of them. The kernel begins it at the private memory of the program that starts a command, so that of a \
         small command is only known to be less than that, which is noted. Migrations are counted for root, or where \
         `/proc/sys/kernel/perf_event_paranoid` is 1 or less.",
        "A command has no standard input. If it fails, the run ends with the first line of its standard error.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0 if the commands were measured. 1 if a command failed, if the outputs differ with `--same-output`, if a requirement was missed or \
         not measured, or if no sample counted. \
         2 for a wrong command line. 130 after Ctrl-C: what was measured before is shown.",
    ],
    man_only: true,
};
