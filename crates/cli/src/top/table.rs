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

const SHOWN: &str = "Output";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<TopOption>] = &[
    long(
        TopOption::By,
        "by",
        SHOWN,
        "list the largest of: `dir` (default), `file`, `user`, `group`, `ext`, `age`, `size`, `type` or \
         `depth`",
    )
    .required("WHAT", ValueKind::Words(BY_WORDS))
    .more(
        "`dir` lists the largest directories, each with everything below it, and `file` the largest \
             entries that are not directories. `user`, `group`, `ext` and `type` are totals by owner, \
             owning group, file name extension and type, largest first; equal disk usages are ordered by \
             apparent size. `age`, `size` and `depth` are totals by the time since the last modification, \
             by apparent size and by the number of parent directories, in ascending order.",
    ),
    both(
        TopOption::Lines,
        b'n',
        "lines",
        SHOWN,
        "print at most N lines (default: 20; all for `age`, `size` and `depth`)",
    )
    .required("N", ValueKind::Text),
    long(TopOption::Below, "below", SHOWN, "count only the directory PATH and everything below it")
        .required("PATH", ValueKind::File)
        .more("PATH is a path in the inventory, or relative to a scanned tree."),
    long(TopOption::Json, "json", SHOWN, "print JSON, one object per line"),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const TOP: Command<TopOption> = Command {
    name: "fathom top",
    brief: "show what takes the most space in an inventory",
    usage: &["[OPTION]... INVENTORY"],
    about: &[
        "Shows what takes the most space in INVENTORY, as it was when `fathom scan` made it. If it is a \
         directory of `fathom scan --keep`, the newest inventory in it is read. The scanned trees are not \
         read.",
        "Each line has the disk usage, the apparent size (0 for directories), the number of entries, the \
         share of the disk usage, and the directory, file or group, below a header on a terminal. Each name \
         of a file is an entry. The size of a file with several names counts once: in a total under the \
         first name in the order of the scan, and in each directory that has any of its names.",
    ],
    sections: &[SHOWN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[OBJECTS, TRUST, STATUS],
    examples: &[
        ("fathom top home.inv", "the largest directories"),
        ("fathom top --by user --below projects home.inv", "the disk usage of each user below one directory"),
        ("fathom top --by file -n 100 --json home.inv", "the largest files, as JSON"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-du"],
};

const OBJECTS: Note = Note {
    title: "JSON",
    text: &["Each line becomes an object with `bytes` (disk usage), `apparent`, `entries` and `share`. \
         Directories and files have a `path`. Totals have `by` and `key`, which is null for entries that \
         lack the property, and owners have an `id`. Text that is not UTF-8 is in `path_bytes`, in \
         hexadecimal. The last object has the `total` and whether the inventory is `complete`."],
    man_only: true,
};

const TRUST: Note = Note {
    title: "Damaged and incomplete inventories",
    text: &[
        "Each file is verified against its hash in the manifest before it is used; if one differs, nothing \
         is reported. An incomplete inventory is reported with a warning.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: done; the inventory may be incomplete.",
        "1: the inventory cannot be read, or is damaged.",
        "2: the command line is wrong, or the inventory has no such directory.",
    ],
    man_only: true,
};
