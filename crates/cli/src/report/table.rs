//! The options of `fathom report`: names and help texts. `args.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportOption {
    Output,
    Since,
}

const WRITTEN: &str = "Input and output";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<ReportOption>] = &[
    both(
        ReportOption::Output,
        b'o',
        "output",
        WRITTEN,
        "write the page to FILE, replacing it; `-` is standard output",
    )
    .required("FILE", ValueKind::File)
    .more(
        "The file is called FILE.part until it is complete and on the disk. It then replaces a regular \
             file of that name in one step; anything else is refused. Only its owner can read it, and \
             those who could read the file that it replaces.",
    ),
    long(ReportOption::Since, "since", WRITTEN, "show what grew since the inventory OLDER of the same trees")
        .required("OLDER", ValueKind::File),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const REPORT: Command<ReportOption> = Command {
    name: "fathom report",
    brief: "write an inventory as one HTML page with a map",
    usage: &["[OPTION]... -o FILE INVENTORY"],
    about: &[
        "Writes INVENTORY as one HTML page: a zoomable map of the files, and tables of the largest \
         directories and files, of sizes, ages, types, extensions, owners and errors. The numbers are \
         those of `fathom top`. If it is a directory of `fathom scan --keep`, the newest inventory in it \
         is read. The scanned trees are not read.",
        "The page is one file of less than 1.5 MB for any tree. It opens from the disk and needs no \
         network. The map shows the 20,000 largest directories and files; the rest of a directory is one \
         area with its sums.",
    ],
    sections: &[WRITTEN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[KEYS, TRUST, STATUS],
    examples: &[
        ("fathom report -o home.html home.inv", "a map of the home directory"),
        ("fathom report -o grown.html --since old.inv home.inv", "the same with its growth"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-top", "fathom-diff"],
};

const KEYS: Note = Note {
    title: "On the page",
    text: &[
        "A click opens a directory, or copies the path of a file, quoted for a shell. On the map, arrow \
         keys select, Enter opens, Escape and Backspace go back, and `c` copies the path. The table beside \
         the map has the same numbers, for the keyboard and for screen readers.",
        "`Find` lists the entries of the map whose names contain a text. The map is coloured by type, age, \
         owner or extension, and with `--since` also by growth; pressing a colour of the legend hides the \
         others. The type follows from the extension, or else from the name (`libc.so.6`) and the execute \
         permission. A click on the head of a column sorts, and \"Copy as CSV\" copies a table with exact \
         numbers. Imported entries without a disk usage are shown by their apparent size.",
    ],
    man_only: true,
};

const TRUST: Note = Note {
    title: "Damaged inventories and hostile names",
    text: &[
        "Each file is verified against its hash in the manifest before it is used; if one differs, no page \
         is written. An incomplete inventory is shown with a warning. Names are data of the page, never \
         markup, and its Content-Security-Policy admits only its own script and style. Control characters \
         are shown as escapes.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: the page was written; the inventory may be incomplete.",
        "1: an inventory cannot be read or is damaged, or the page cannot be written.",
        "2: the command line is wrong.",
    ],
    man_only: true,
};
