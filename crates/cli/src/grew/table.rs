//! The options of `fathom grew`: names and help texts. `args.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom grew`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrewOption {
    Since,
    By,
    Lines,
    FailIfGrew,
    FailIfFullWithin,
    Json,
}

/// The values of `--by`.
pub(crate) const BY_WORDS: &[&str] = &["dir", "owner", "ext", "type"];

const SHOWN: &str = "Output";
const ALERTS: &str = "Alerts";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<GrewOption>] = &[
    long(
        GrewOption::Since,
        "since",
        SHOWN,
        "compare with the last inventory made at or before TIME: `monday`, `7d`, `2026-01-31`",
    )
    .required("TIME", ValueKind::Text)
    .more(
        "TIME is `today`, `yesterday`, a day of the week (the last one before today; three letters are \
             enough), an age such as `7d` or `12h`, a date with or without a time, or `@SECONDS`. A day \
             begins at midnight in the local time zone. If every inventory is younger, the oldest is used, \
             and standard error says so. Without this option, the last two inventories are compared.",
    ),
    long(GrewOption::By, "by", SHOWN, "list growth by `dir` (default), `owner`, `ext` or `type`")
        .required("WHAT", ValueKind::Words(BY_WORDS))
        .more(
            "`dir` lists directories, each with everything below it; a directory is omitted if one of its \
             subdirectories has nine tenths of its growth, because that one is listed. `owner`, `ext` and \
             `type` list totals by owner, file name extension and type.",
        ),
    both(GrewOption::Lines, b'n', "lines", SHOWN, "print at most N lines (default: 20)")
        .required("N", ValueKind::Text),
    long(
        GrewOption::FailIfGrew,
        "fail-if-grew",
        ALERTS,
        "exit with status 3 if the trees grew by SIZE or more",
    )
    .required("SIZE", ValueKind::Text)
    .more("SIZE is a number of bytes, or with a unit, such as `500M` or `10G`."),
    long(
        GrewOption::FailIfFullWithin,
        "fail-if-full-within",
        ALERTS,
        "exit with status 3 if the file system is full, or will be within TIME at this rate",
    )
    .required("TIME", ValueKind::Text)
    .more(
        "TIME is such as `12h`, `14d` or `2w`. If it cannot be said when the file system will be full, \
             because the scans are less than an hour apart or the free space is unknown, standard error \
             says why, and the exit status is 1.",
    ),
    long(GrewOption::Json, "json", SHOWN, "print JSON, one object per line"),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const GREW: Command<GrewOption> = Command {
    name: "fathom grew",
    brief: "show what grew, and when the file system will be full",
    usage: &["[OPTION]... [DIR]", "[OPTION]... OLD NEW"],
    about: &[
        "Compares two inventories and shows what grew most. In DIR, where `fathom scan --keep` puts \
         inventories (default: the current directory), the newest finished inventory is compared with an \
         earlier one of the same trees. OLD and NEW are any two inventories. The scanned trees are not \
         read.",
        "The first line has the time between the two scans, the growth of all trees, the growth per day, \
         the space that is free now, and, if the scans are at least an hour apart, in how many days it \
         will be used up. Each further line has the growth of the disk usage, the growth per day, the \
         growth of the number of entries, and the directory or group, below a header on a terminal.",
    ],
    sections: &[SHOWN, ALERTS, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[RULES, OBJECTS, STATUS],
    examples: &[
        ("fathom grew --since monday store", "what grew this week"),
        ("fathom grew --since 30d --by owner store", "whose files grew"),
        ("fathom grew --since 7d --fail-if-full-within 14d store", "an alert, for cron"),
        ("fathom grew --json old.inv new.inv", "the growth between two inventories, as JSON"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-history", "fathom-diff", "fathom-top"],
};

const RULES: Note = Note {
    title: "What counts",
    text: &[
        "Each name of a file is an entry; its size counts once. A directory that was moved is compared with itself at its \
         former place. `~` precedes a line if something below the directory is missing in an inventory. \
         `--by dir` ignores trees that only one inventory has; the other values refuse such inventories.",
        "The free space is that of the file system of the scanned trees, as df(1) shows it for users other \
         than root. It is left out, and standard error says why, if NEW was made on another machine, if \
         the scanned directories are on several file systems (`scan -x` stays on one), or if a scanned \
         directory no longer exists.",
    ],
    man_only: true,
};

const OBJECTS: Note = Note {
    title: "JSON",
    text: &[
        "Each line becomes an object with `bytes` (disk usage), `apparent`, `entries`, `bytes_per_day`, \
         and either the `path` of a directory with `complete`, or `by` and `key`, which is null for \
         entries that lack the property; owners have an `id`. The last object has the paths of the \
         inventories as `old` and `new`, the times of the scans as `start` and `end` in seconds since \
         1970, the `days` between them, the `total`, the `available` bytes and `days_until_full`, each \
         null if unknown, and whether both are `complete`.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: done, even if nothing grew or an inventory is incomplete.",
        "1: an inventory cannot be read or is damaged, the output cannot be written, or \
         `--fail-if-full-within` cannot be checked.",
        "2: the command line is wrong, DIR lacks two inventories of the same trees with the same \
         exclusions, or `--by` needs inventories of the same trees.",
        "3: a limit of `--fail-if-grew` or `--fail-if-full-within` is reached.",
    ],
    man_only: true,
};
