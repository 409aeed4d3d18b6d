//! The options of `fathom bench compare`.

use crate::bench::reports::{SHOWN, TargetOption, json, markdown};
use crate::bench::table::ABOUT;
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, long};

/// The options of `fathom bench compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompareOption {
    Report(TargetOption),
    FailAbove,
}

const FLAGS: &[Flag<CompareOption>] = &[
    long(CompareOption::FailAbove, "fail-above", SHOWN, "exit with 1 if an arm is shown to be slower by more than PERCENT")
        .required("PERCENT", ValueKind::Text)
        .more(
            "Shown: the interval of the ratio is above 1. An arm with fewer than six blocks in a run has no interval. If such an \
             arm, or one that the second run lacks, leaves the question open, the status is 1 as well.",
        ),
    json(CompareOption::Report(TargetOption::Json)),
    markdown(CompareOption::Report(TargetOption::Markdown)),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const COMPARE: Command<CompareOption> = Command {
    name: "fathom bench compare",
    brief: "show what became slower between two saved runs",
    usage: &["[OPTION]... OLD.json NEW.json"],
    about: &[
        "Reads two runs that `--json` has saved, and shows how much longer each arm takes in the second, with the interval \
         of the ratio.",
    ],
    sections: &[SHOWN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[STATUS],
    examples: &[(
        "fathom bench compare --fail-above 5% old.json new.json",
        "exit with 1 if anything became slower",
    )],
    see_also: &["fathom-bench", "fathom-bench-run"],
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0 if the runs could be compared. 1 if not, or if an arm is slower than `--fail-above` allows. 2 for a wrong command line.",
    ],
    man_only: true,
};
