//! The options of `fathom grew`: names and help texts. `args.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom grew`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrewOption {
    Since,
    By,
    Lines,
    Json,
}

/// The values of `--by`.
pub(crate) const BY_WORDS: &[&str] = &["dir", "owner", "ext", "type"];

const SHOWN: &str = "What is shown, and how";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<GrewOption>] = &[
    long(GrewOption::Since, "since", SHOWN, "compare with the newest inventory not younger than TIME: `monday`, `7d`, `2026-01-31`")
        .required("TIME", ValueKind::Text)
        .more(
            "TIME is `today`, `yesterday`, a day of the week (the last one before today; three letters are enough), an age such as `7d` or `12h`, \
             a date with or without a time, or `@SECONDS`. A day begins at midnight in the local time zone. If every inventory is younger, the oldest \
             one is taken, and standard error says so. Without this option, the one before the newest.",
        ),
    long(GrewOption::By, "by", SHOWN, "what a line is about: `dir`, `owner`, `ext` or `type`")
        .required("WHAT", ValueKind::Words(BY_WORDS))
        .more(
            "`dir`, the default: directories, each with everything below it, but none of which one subdirectory has nine tenths of the \
             growth: that one has a line. `owner`, `ext` and `type`: totals by owner, by what follows the last dot of the name, and by type.",
        ),
    both(GrewOption::Lines, b'n', "lines", SHOWN, "at most N lines; otherwise 20").required("N", ValueKind::Text),
    long(GrewOption::Json, "json", SHOWN, "JSON objects, one a line"),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const GREW: Command<GrewOption> = Command {
    name: "fathom grew",
    brief: "show what grew, and when the filesystem will be full",
    usage: &["[OPTION]... [DIR]", "[OPTION]... OLD NEW"],
    about: &[
        "Compares two inventories and shows what grew most: the newest in DIR whose scan came to its end, and an earlier one of \
         the same trees. DIR is where `fathom scan --keep` puts them; without one, the current directory. Or any two inventories, OLD and NEW. \
         The scanned trees are not read.",
        "The first line has the time between the two scans, the growth of all trees, the growth a day, the space that is free now, and \
         in how many days it is used up at that rate, if the scans are at least an hour apart. Each further line has the growth of the allocated space, the same a day, \
         the growth of the number of entries, and what it is about; on a terminal, a header comes before them.",
    ],
    sections: &[SHOWN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[RULES, OBJECTS, STATUS],
    examples: &[
        ("fathom grew --since monday store", "what grew this week"),
        ("fathom grew --since 30d --by owner store", "who fills the disk"),
        ("fathom grew --json old.inv new.inv", "between two inventories, for programs"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-history", "fathom-diff", "fathom-top"],
};

const RULES: Note = Note {
    title: "What counts",
    text: &[
        "A file with several names counts once. A directory that was moved is compared with itself at its former place. `~` stands before a \
         line if something below it is missing in one of the inventories. Trees that only one of the inventories has are not compared by \
         `--by dir`; the others refuse such inventories.",
        "The free space is that of the filesystem of the scanned trees, as df(1) shows it for users other than root. It is left out, and standard \
         error says why, if NEW was made on another machine, if the directories of an inventory are on several filesystems (`scan -x` keeps to one), or if a scanned directory is not \
         there any more.",
    ],
    man_only: true,
};

const OBJECTS: Note = Note {
    title: "JSON",
    text: &[
        "An object for each line, with `bytes` (allocated), `apparent`, `entries`, `bytes_per_day`, and the `path` of a directory with `complete`, or `by` and \
         `key`, which is null for entries that have no such thing; owners have an `id`. The last object has the paths of the inventories as `old` \
         and `new`, the times of the scans as `start` and `end` in seconds since 1970, the `days` between them, the `total`, the `available` bytes and \
         `days_until_full`, each null if it is unknown, and whether both are `complete`.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: it is shown, even if nothing grew or an inventory is incomplete.",
        "1: an inventory cannot be read or is damaged, or the output cannot be written.",
        "2: the command line was wrong, DIR has no two inventories of the same trees with the same exclusions, or `--by` needs inventories of the same trees.",
    ],
    man_only: true,
};
