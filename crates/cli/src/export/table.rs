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

const WRITTEN: &str = "Input and output";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<ExportOption>] = &[
    long(
        ExportOption::To,
        "to",
        WRITTEN,
        "write the format `jsonl`, `csv`, `nul`, `ncdu`, `sql` or `prometheus`",
    )
    .required("FORMAT", ValueKind::Words(FORMAT_WORDS)),
    both(
        ExportOption::Output,
        b'o',
        "output",
        WRITTEN,
        "write to FILE, replacing it (default: `-`, standard output)",
    )
    .required("FILE", ValueKind::File)
    .more(
        "The file is called FILE.part until it is complete and on the disk. It then replaces a regular \
             file of that name in one step; anything else is refused. Only its owner can read it, and \
             those who could read the file that it replaces. With `--to prometheus`, everybody can read \
             it.",
    ),
    long(
        ExportOption::GuardFormulas,
        "guard-formulas",
        WRITTEN,
        "prefix names that look like formulas with an apostrophe, in CSV",
    )
    .more(
        "Spreadsheets calculate cells that begin with `=`, `+`, `-`, `@`, a tab or a carriage return, \
             and file names can begin so. To a program that reads the file, the prefixed name is another \
             name.",
    ),
    long(ExportOption::Below, "below", WRITTEN, "write only the directory PATH and everything below it")
        .required("PATH", ValueKind::File)
        .more("PATH is a path in the inventory, or relative to a scanned tree."),
    long(
        ExportOption::Depth,
        "depth",
        WRITTEN,
        "write directories at most N levels below a PATH, with `prometheus` (default: 1)",
    )
    .required("N", ValueKind::Text),
    long(
        ExportOption::MaxSeries,
        "max-series",
        WRITTEN,
        "write at most N directories and N owners, with `prometheus` (default: 100)",
    )
    .required("N", ValueKind::Text)
    .more(
        "The largest are written. The other directories of each depth, and the other owners, are \
             summed up as `other`.",
    ),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const EXPORT: Command<ExportOption> = Command {
    name: "fathom export",
    brief: "write an inventory in the format of another program",
    usage: &["[OPTION]... --to FORMAT INVENTORY"],
    about: &[
        "Writes the contents of INVENTORY, which `fathom scan` made, in the format of another program. If \
         it is a directory of `fathom scan --keep`, the newest inventory in it is read. The scanned trees \
         are not read. Entries come in the order of the scan, a directory before its entries. Memory is \
         needed for each directory, but not for each entry.",
    ],
    sections: &[WRITTEN, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[FORMATS, TRUST, STATUS],
    examples: &[
        ("fathom export --to ncdu home.inv >home.ncdu", "for `ncdu -f home.ncdu`"),
        (
            "fathom export --to csv --below projects -o projects.csv home.inv",
            "one directory, for a spreadsheet",
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
        "`jsonl`: an object per line for each entry, with the members of `fathom list --json`. \
         `attributes` are letters of lsattr(1). `project`, `xattrs` and `acl` exist if the scan recorded \
         them. `link_target` is the target of a symbolic link, and `state` says how far a directory was \
         read: `complete`, `partial`, `failed` or `skipped`.",
        "`csv`: the same members as columns, as in RFC 4180, below a line with their names. Unknown values \
         are empty. A path that is not UTF-8 has replacement characters, and `path_bytes` holds its bytes \
         in hexadecimal.",
        "`nul`: the paths, each followed by a NUL byte, as `fathom list -0` prints them.",
        "`ncdu`: the format that `ncdu -f` reads, from version 1.9 on, with owners, modes and times for \
         `ncdu -e`. Several trees become subdirectories of `(several trees)`. Owners above 2147483647 and \
         times before 1970 are left out, because ncdu 1 rejects files that have them.",
        "`sql`: the tables of the inventory as statements for SQLite, in one transaction: `sqlite3 new.db \
         <FILE`. Times are in microseconds since 1970.",
        "`prometheus`: sums in Prometheus's text format, for the textfile collector of node_exporter: disk \
         usage, apparent size and number of entries in total (`fathom_bytes`), by owner \
         (`fathom_owner_bytes`) and by directory (`fathom_directory_bytes`), each file counted once; \
         directories by state, errors, the share of complete directories, and when the scan ended and how \
         long it took. Each series has the label `trees`, the scanned paths. Control characters, and bytes \
         that are not UTF-8, are written as `\\xNN` in labels.",
    ],
    man_only: true,
};

const TRUST: Note = Note {
    title: "Damaged and incomplete inventories",
    text: &["Each file is verified against its hash in the manifest before it is used; a difference is \
         reported. FILE is then not written, but standard output may have received a part. An incomplete \
         inventory is written as it is, with a warning."],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything was written; the inventory may be incomplete.",
        "1: the inventory cannot be read or is damaged, or the output cannot be written.",
        "2: the command line is wrong, or the inventory has no such directory.",
        "130: interrupted; FILE was not written.",
    ],
    man_only: true,
};
