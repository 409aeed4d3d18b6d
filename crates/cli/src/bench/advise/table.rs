//! The options of `fathom bench advise`.

use crate::bench::measuring::{RUN, RunOption, blocks, seed, time};
use crate::bench::reports::{SHOWN, TargetOption, csv, html, json};
use crate::bench::table::{ABOUT, FILES};
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, long};

/// The options of `fathom bench advise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdviseOption {
    Run(RunOption),
    Report(TargetOption),
    Path,
    Quick,
    Save,
    Validate,
}

const FLAGS: &[Flag<AdviseOption>] = &[
    long(AdviseOption::Quick, "quick", RUN, "do a tenth of the work, in half a minute (unless `--time` is given) and with less certainty"),
    time(AdviseOption::Run(RunOption::Time), "answer within TIME, such as `30s` or `2m` (default: 3m)").more(
        "The most valuable questions come first: walks, serving, small files, copies, reads, writes. A question is listed as \
         not measured if TIME runs out, and `--save` omits it. The first question may take three minutes whatever TIME is, \
         except with `--quick`.",
    ),
    long(AdviseOption::Path, "path", RUN, "measure the filesystem of DIR, like the operand (default: the current directory)")
        .required("DIR", ValueKind::File),
    long(AdviseOption::Save, "save", RUN, "save the advice for this filesystem as a profile, which `--io auto` starts from")
        .optional("FILE", ValueKind::File)
        .more("The default FILE is `fathom/io-profile.json` in `$XDG_CONFIG_HOME` or `~/.config`."),
    long(AdviseOption::Validate, "validate", RUN, "then test the advice on other sizes and seeds against fixed choices, which takes minutes more"),
    blocks(AdviseOption::Run(RunOption::Blocks), "repeat each part of the validation N times (default: 7)"),
    seed(AdviseOption::Run(RunOption::Seed)),
    csv(AdviseOption::Report(TargetOption::Csv)),
    json(AdviseOption::Report(TargetOption::Json)),
    html(AdviseOption::Report(TargetOption::Html)),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const ADVISE: Command<AdviseOption> = Command {
    name: "fathom bench advise",
    brief: "recommend I/O models for a filesystem, for each kind of work",
    usage: &["[OPTION]... [DIR]"],
    about: &[
        "Answers for all workloads in less than three minutes: measures the cost of calls, hand-offs and rings here, predicts \
         every model from that, measures the models that may be the best, and says in one sentence per workload what to use \
         and what would change that.",
    ],
    sections: &[RUN, SHOWN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[FILES, STATUS],
    examples: &[("fathom bench advise --quick", "which I/O model to use on this file system, roughly")],
    see_also: &["fathom-bench", "fathom-io"],
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0 if a question was answered. 1 if none was, if something failed, or if there is no room. 2 for a wrong command line, \
         or if a sample panicked, which is a bug. 130 after Ctrl-C: what was measured before is shown.",
    ],
    man_only: true,
};
