//! The options of `fathom report`: names and help texts. `args.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportOption {
    Output,
    Since,
}

const WRITTEN: &str = "What is written, and where it goes";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<ReportOption>] = &[
    both(ReportOption::Output, b'o', "output", WRITTEN, "write the page to FILE, which is replaced, or with `-` to standard output")
        .required("FILE", ValueKind::File)
        .more(
            "The file is called FILE.part until it is complete and on the disk. Then it replaces a regular file of that name in \
             one step; anything else is refused. Only its owner may read it, and those who may read the file that it replaces.",
        ),
    long(ReportOption::Since, "since", WRITTEN, "show what grew since the inventory OLDER of the same trees")
        .required("OLDER", ValueKind::File),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const REPORT: Command<ReportOption> = Command {
    name: "fathom report",
    brief: "show an inventory as one page with a map",
    usage: &["[OPTION]... -o FILE INVENTORY"],
    about: &[
        "Writes INVENTORY, which `fathom scan` made, as one HTML page: a map of the files that zooms, and tables of the \
         largest directories and files, of sizes, ages, types, extensions, owners and errors. The scanned trees are not read. \
         The numbers are those of `fathom top`. Of a directory of `fathom scan --keep`, the newest inventory is shown.",
        "The page is one file of less than 1.5 MB for any tree, opens from the disk, and needs no network. The map has the \
         20,000 largest directories and files; the rest of a directory is one area with its sums.",
    ],
    sections: &[WRITTEN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[KEYS, TRUST, STATUS],
    examples: &[
        ("fathom report -o home.html home.inv", "where the space of a home directory is"),
        ("fathom report -o grown.html --since old.inv home.inv", "what grew since then"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-top", "fathom-diff"],
};

const KEYS: Note = Note {
    title: "On the page",
    text: &[
        "A click opens a directory, or copies the path of a file, quoted for a shell. On the map, arrow keys select, Enter \
         opens, Escape and Backspace go back, `c` copies the path. The table beside the map has the same numbers, for the \
         keyboard and for screen readers.",
        "`Find` lists the entries of the map with a text in their names. The map is coloured by type, age, owner or \
         extension, with `--since` also by growth; a colour of the legend that is pressed hides the others. The type is that of \
         the extension, or else of the name (`libc.so.6`) and of the permission to run it. The head of a column sorts, and \
         \"Copy as CSV\" copies a table with its exact numbers. What an import knows only the apparent size of is shown by that.",
    ],
    man_only: true,
};

const TRUST: Note = Note {
    title: "Damaged inventories and hostile names",
    text: &[
        "Each file is compared with the hash in the manifest before it is used; if anything is not as it was written, there \
         is no page. An inventory that lacks something is shown, with a warning. Names are data of the page, never markup, \
         and its Content-Security-Policy admits its own script and style and nothing else. Control characters are shown as \
         escapes.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: the page was written; the inventory may be incomplete.",
        "1: an inventory cannot be read or is damaged, or the page cannot be written.",
        "2: the command line was wrong.",
    ],
    man_only: true,
};
