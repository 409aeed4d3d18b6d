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

const SHOWN: &str = "How it is shown";
const PRUNING: &str = "What prune keeps";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<HistoryOption>] = &[
    long(HistoryOption::Json, "json", SHOWN, "JSON objects, one a line"),
    long(HistoryOption::KeepLast, "keep-last", PRUNING, "the last N inventories")
        .required("N", ValueKind::Text),
    long(
        HistoryOption::KeepDaily,
        "keep-daily",
        PRUNING,
        "the newest inventory of each of the last N days that have any",
    )
    .required("N", ValueKind::Text),
    long(
        HistoryOption::KeepWeekly,
        "keep-weekly",
        PRUNING,
        "the newest inventory of each of the last N weeks that have any",
    )
    .required("N", ValueKind::Text),
    long(
        HistoryOption::KeepMonthly,
        "keep-monthly",
        PRUNING,
        "the newest inventory of each of the last N months that have any",
    )
    .required("N", ValueKind::Text),
    long(HistoryOption::DryRun, "dry-run", PRUNING, "remove nothing; show what would be removed"),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const HISTORY: Command<HistoryOption> = Command {
    name: "fathom history",
    brief: "list dated inventories, and remove old ones",
    usage: &["[OPTION]... [DIR]", "prune [OPTION]... DIR"],
    about: &[
        "Lists the inventories that `fathom scan --keep` made in DIR, or else in the current directory, the oldest first.",
        "Each line has the local time at which the scan began, the space allocated by all that was found, the number of entries, the share of \
         directories that are complete (or `stopped`, `unfinished` or `unreadable`), the size of the inventory itself, its name, and \
         the scanned trees; on a terminal, a header comes first.",
        "`fathom history prune` removes the inventories in DIR that none of the options `--keep-...` keeps, and prints the path of each.",
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
        "The rules apply on their own to each set of inventories of the same machine, PATHs and exclusions (`--exclude`, `--ignore-vcs`, \
         `--max-depth`, `-x`). Days, weeks (from Monday on) and months are those of the local time \
         zone (TZ); those without an inventory do not count.",
        "Always kept: of each set, the newest inventory whose scan came to its end, and the newest one that is complete. An \
         inventory of a scan that was stopped or killed is kept until a later scan of the same set comes to its end. Files and directories with \
         other names than those that `fathom scan --keep` gives, and inventories that hold anything else than their own files, are \
         not touched.",
        "An inventory is renamed to a hidden name before its files are removed, so none is ever there in part. What an interrupted run leaves is \
         removed by the next one.",
    ],
    man_only: true,
};

const OBJECTS: Note = Note {
    title: "JSON",
    text: &[
        "An object for each inventory, with its `path`, `start` and `end` in seconds since 1970, `bytes` (allocated), `apparent`, `entries`, \
         `state` (`ended`, `stopped`, `unfinished` or `unreadable`), `complete`, the share of complete directories as `ratio`, \
         its own size as `disk_bytes`, the `host`, and the `roots`. What is unknown is null.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything that was requested is done.",
        "1: an inventory could not be read or removed.",
        "2: the command line was wrong, there is no DIR, or another run adds to it.",
    ],
    man_only: true,
};
