//! The options of `fathom history`: names and help texts. `args.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, long};

/// The options of `fathom history`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryOption {
    Json,
    KeepLast,
    KeepDaily,
    KeepWeekly,
    KeepMonthly,
    DryRun,
}

const SHOWN: &str = "Output";
const PRUNING: &str = "Options of prune";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<HistoryOption>] = &[
    long(HistoryOption::Json, "json", SHOWN, "print JSON, one object per line"),
    long(HistoryOption::KeepLast, "keep-last", PRUNING, "keep the last N inventories")
        .required("N", ValueKind::Text),
    long(
        HistoryOption::KeepDaily,
        "keep-daily",
        PRUNING,
        "keep the newest inventory of each of the last N days that have any",
    )
    .required("N", ValueKind::Text),
    long(
        HistoryOption::KeepWeekly,
        "keep-weekly",
        PRUNING,
        "keep the newest inventory of each of the last N weeks that have any",
    )
    .required("N", ValueKind::Text),
    long(
        HistoryOption::KeepMonthly,
        "keep-monthly",
        PRUNING,
        "keep the newest inventory of each of the last N months that have any",
    )
    .required("N", ValueKind::Text),
    long(HistoryOption::DryRun, "dry-run", PRUNING, "print what would be removed, and remove nothing"),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const HISTORY: Command<HistoryOption> = Command {
    name: "fathom history",
    brief: "list dated inventories, and remove old ones",
    usage: &["[OPTION]... [DIR]", "prune [OPTION]... DIR"],
    about: &[
        "Lists the inventories that `fathom scan --keep` made in DIR, oldest first. Without DIR, lists the \
         current directory.",
        "Each line has the local time at which the scan began, the disk usage and the number of all \
         entries, the share of directories that are complete (or `stopped`, `unfinished` or `unreadable`), \
         the size of the inventory itself, its name, and the scanned trees, below a header on a terminal.",
        "`fathom history prune` removes the inventories in DIR that none of the `--keep-...` options \
         keeps, and prints the path of each.",
    ],
    sections: &[SHOWN, PRUNING, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[KEPT, OBJECTS, STATUS],
    examples: &[
        ("fathom history store", "the inventories of a store"),
        (
            "fathom history prune --keep-daily 14 --keep-weekly 8 --keep-monthly 12 --dry-run store",
            "what would be removed",
        ),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-grew", "fathom-diff"],
};

const KEPT: Note = Note {
    title: "What is kept",
    text: &[
        "The rules apply separately to each set of inventories of the same machine, PATHs and exclusions \
         (`--exclude`, `--ignore-vcs`, `--max-depth`, `-x`). Days, weeks (from Monday) and months are \
         those of the local time zone (TZ); those without an inventory do not count.",
        "Two inventories of each set are always kept: the newest whose scan was finished, and the newest \
         that is complete. The inventory of a stopped or killed scan is kept until a later scan of the \
         same set is finished. Files and directories with names that `fathom scan --keep` does not give, \
         and inventories with additional files in them, are not touched.",
        "An inventory is renamed to a hidden name before its files are removed, so that it is never partly \
         there. A later run removes what an interrupted run left.",
    ],
    man_only: true,
};

const OBJECTS: Note = Note {
    title: "JSON",
    text: &["Each inventory is an object with its `path`, `start` and `end` in seconds since 1970, `bytes` \
         (disk usage), `apparent`, `entries`, `state` (`ended`, `stopped`, `unfinished` or `unreadable`), \
         `complete`, the share of complete directories as `ratio`, its own size as `disk_bytes`, the \
         `host`, and the `roots`. Unknown values are null."],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: done.",
        "1: an inventory could not be read or removed.",
        "2: the command line is wrong, DIR does not exist, or another run is adding to it.",
    ],
    man_only: true,
};
