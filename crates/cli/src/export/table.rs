//! The options of `fathom export`: names and help texts. `args.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportOption {
    To,
    GuardFormulas,
    Below,
    Output,
    Depth,
    MaxSeries,
}

/// The values of `--to`.
pub(crate) const FORMAT_WORDS: &[&str] = &["jsonl", "csv", "nul", "ncdu", "sql", "prometheus"];

const WRITTEN: &str = "What is written, and where it goes";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<ExportOption>] = &[
    long(ExportOption::To, "to", WRITTEN, "the format: `jsonl`, `csv`, `nul`, `ncdu`, `sql` or `prometheus`")
        .required("FORMAT", ValueKind::Words(FORMAT_WORDS)),
    both(ExportOption::Output, b'o', "output", WRITTEN, "write to FILE, which is replaced, instead of standard output (-)")
        .required("FILE", ValueKind::File)
        .more(
            "The file is called FILE.part until it is complete and on the disk. Then it replaces a regular file of that name in \
             one step; anything else is refused. Only its owner may read it, and those who may read the file that it replaces, or with \
             `--to prometheus` everybody.",
        ),
    long(ExportOption::GuardFormulas, "guard-formulas", WRITTEN, "an apostrophe before names in CSV that begin like a formula")
        .more(
            "Spreadsheets calculate what begins with `=`, `+`, `-`, `@`, a tab or a carriage return, and a file may be called \
             so. Such a name has an apostrophe before it, and is another name to a program that reads the file.",
        ),
    long(ExportOption::Below, "below", WRITTEN, "only the directory PATH and everything below it")
        .required("PATH", ValueKind::File)
        .more("PATH is a path in the inventory, or relative to one of the scanned trees."),
    long(ExportOption::Depth, "depth", WRITTEN, "with `prometheus`, directories down to N levels below a PATH (1)")
        .required("N", ValueKind::Text),
    long(ExportOption::MaxSeries, "max-series", WRITTEN, "with `prometheus`, at most N directories and N owners (100)")
        .required("N", ValueKind::Text)
        .more("The largest. All others of a depth, and all other owners, are added up as `other`."),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const EXPORT: Command<ExportOption> = Command {
    name: "fathom export",
    brief: "write an inventory in a format of other programs",
    usage: &["[OPTION]... --to FORMAT INVENTORY"],
    about: &[
        "Writes the contents of INVENTORY, which `fathom scan` made, in a format of other programs. The scanned \
         trees are not read. Entries come in the order of the scan, a directory before its entries; memory is needed for each \
         directory, but not for each entry. Of a directory of `fathom scan --keep`, the newest inventory is written.",
    ],
    sections: &[WRITTEN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[FORMATS, TRUST, STATUS],
    examples: &[
        ("fathom export --to ncdu home.inv >home.ncdu", "for `ncdu -f home.ncdu`"),
        (
            "fathom export --to csv --below projects -o projects.csv home.inv",
            "a part of it, for a spreadsheet",
        ),
        ("fathom export --to nul home.inv >home.paths", "every path, for `xargs -0`"),
        ("fathom export --to sql -o home.sql home.inv", "for `sqlite3 home.db <home.sql`"),
        ("fathom export --to prometheus -o home.prom home.inv", "for the textfile collector"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-list", "fathom-query", "fathom-top"],
};

const FORMATS: Note = Note {
    title: "Formats",
    text: &[
        "`jsonl`: an object a line for each entry, as `fathom list --json` writes it; `attributes` are letters of lsattr(1), `project`, `xattrs` and `acl` are there if the scan was asked for them, `link_target` is the target of a \
         symbolic link, and `state` how far a directory is known: `complete`, `partial`, `failed` or `skipped`.",
        "`csv`: the same members as columns, after RFC 4180, below a line with their names. What is unknown is empty. A \
         path that is not UTF-8 has replacement characters, and its bytes are in `path_bytes`, in hexadecimal.",
        "`nul`: the paths as they are, each with a zero byte behind it: what `fathom list -0` writes.",
        "`ncdu`: what `ncdu -f` reads, from version 1.9 on, with owners, modes and times for `ncdu -e`. Several trees \
         are in a directory of the name `(several trees)`. Owners above 2147483647 and times before 1970 are left out: \
         ncdu 1 reads no file that has them.",
        "`sql`: the tables of the inventory as statements for SQLite, in one transaction: `sqlite3 new.db <FILE`. Times \
         are in microseconds since 1970.",
        "`prometheus`: sums in Prometheus's text format, for the textfile collector of node_exporter: allocated and apparent bytes and entries of \
         everything (`fathom_bytes`), by owner (`fathom_owner_bytes`) and by directory (`fathom_directory_bytes`), each file counted once; directories by \
         state, errors, the share of complete directories, and when the scan ended and how long it took. Every series has the label `trees`, the \
         scanned paths. Control characters, and bytes that are not UTF-8, are `\\xNN` in labels.",
    ],
    man_only: true,
};

const TRUST: Note = Note {
    title: "Damaged and incomplete inventories",
    text: &[
        "Each file is compared with the hash in the manifest before it is used. If anything is not as it was written, that \
         is said; FILE is not made then, but standard output may have had a part. An inventory that lacks something is \
         written as it is, with a warning.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything was written; the inventory may be incomplete.",
        "1: the inventory cannot be read or is damaged, or the output cannot be written.",
        "2: the command line was wrong, or the inventory has no such directory.",
        "130: interrupted; FILE was not made.",
    ],
    man_only: true,
};
