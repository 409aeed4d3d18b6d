//! The options of `fathom top`: names and help texts. `args.rs` implements them.

use fathom_questions::top::ReportKind;

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom top`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopOption {
    By,
    Lines,
    Below,
    Json,
}

/// The values of `--by`.
pub(crate) const BY_WORDS: &[&str] = &{
    let mut words = [""; ReportKind::ALL.len()];
    let mut at = 0;
    while at < words.len() {
        words[at] = ReportKind::ALL[at].word();
        at += 1;
    }
    words
};

const SHOWN: &str = "What is shown, and how";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<TopOption>] = &[
    long(
        TopOption::By,
        "by",
        SHOWN,
        "what a line is about: `dir`, `file`, `user`, `group`, `ext`, `age`, `size`, `type` or `depth`",
    )
    .required("WHAT", ValueKind::Words(BY_WORDS))
    .more(
        "`dir`, the default: the largest directories, each with everything below it. `file`: the largest entries that are \
         no directories. `user`, `group`, `ext` and `type`: totals by owner, owning group, what follows the last dot of \
         the name, and type, the largest first, where allocated sizes are equal by apparent size. `age`, `size` and `depth`: totals by the time since the last modification, \
         by apparent size and by the number of directories above, all of them in their order.",
    ),
    both(TopOption::Lines, b'n', "lines", SHOWN, "at most N lines; otherwise 20, but all for `age`, `size` and `depth`")
        .required("N", ValueKind::Text),
    long(TopOption::Below, "below", SHOWN, "only the directory PATH and everything below it")
        .required("PATH", ValueKind::File)
        .more("PATH is a path in the inventory, or relative to one of the scanned trees."),
    long(TopOption::Json, "json", SHOWN, "JSON objects, one a line"),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const TOP: Command<TopOption> = Command {
    name: "fathom top",
    brief: "show what takes the most space, from an inventory",
    usage: &["[OPTION]... INVENTORY"],
    about: &[
        "Shows what takes the most space, as it was when `fathom scan` made INVENTORY. The scanned trees are not read. Of a \
         directory of `fathom scan --keep`, the newest inventory answers.",
        "Each line has the space allocated, the apparent size (directories have none), the number of entries, the share \
         of the space, and what it is about; on a terminal, a header comes first. A file with several names counts once, under the first of them in the \
         order of the scan; a directory has it if any of the names is below.",
    ],
    sections: &[SHOWN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[OBJECTS, TRUST, STATUS],
    examples: &[
        ("fathom top home.inv", "the largest directories"),
        ("fathom top --by user --below projects home.inv", "who fills one of them"),
        ("fathom top --by file -n 100 --json home.inv", "the largest files, for programs"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-du"],
};

const OBJECTS: Note = Note {
    title: "JSON",
    text: &[
        "An object for each line, with `bytes` (allocated), `apparent`, `entries` and `share`. Those of directories and files \
         have a `path`, all others `by` and `key`, which is null for entries that have no such thing; owners have an `id`. \
         What is not UTF-8 is in `path_bytes`, in hexadecimal. The last object has the `total` and whether the inventory \
         is `complete`.",
    ],
    man_only: true,
};

const TRUST: Note = Note {
    title: "Damaged and incomplete inventories",
    text: &[
        "Each file is compared with the hash in the manifest before it is used; if anything is not as it was written there \
         is no report. An inventory that lacks something is reported on, with a warning.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: all is well, or the inventory is incomplete.",
        "1: the inventory cannot be read or is damaged.",
        "2: the command line was wrong, or the inventory has no such directory.",
    ],
    man_only: true,
};
