//! The options of `fathom import`: names and help texts. `args.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom import`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportOption {
    From,
    Output,
    Bytes,
    BlockSize,
    OnlyDirs,
    Total,
}

/// The values of `--from`.
pub(crate) const FROM_WORDS: &[&str] = &["ncdu", "gdu", "du"];

const READ: &str = "Input and output";
const DU: &str = "Options of the du command";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<ImportOption>] = &[
    long(ImportOption::From, "from", READ, "name the program that wrote FILE: `ncdu`, `gdu` or `du`")
        .required("PROGRAM", ValueKind::Words(FROM_WORDS)),
    both(ImportOption::Output, b'o', "output", READ, "write the inventory to the new directory INVENTORY")
        .required("INVENTORY", ValueKind::File)
        .more(
            "The directory is called INVENTORY.part until it is complete. An existing INVENTORY is not \
             replaced.",
        ),
    long(ImportOption::Bytes, "bytes", DU, "read the numbers as apparent sizes in bytes, as of `du -b`"),
    long(
        ImportOption::BlockSize,
        "block-size",
        DU,
        "read the numbers as blocks of SIZE bytes, as of `du -B SIZE` (default: 1K)",
    )
    .required("SIZE", ValueKind::Text),
    long(ImportOption::OnlyDirs, "only-dirs", DU, "read every line as a directory, as of du without `-a`")
        .more(
            "Without this option, a path without entries is read as a file, even if it is an empty \
             directory. With it, the inventory is incomplete, because it lacks the files, but the sums of \
             directories are right.",
        ),
    long(ImportOption::Total, "total", DU, "verify and skip the last line, `total`, of `du -c`").more(
        "The total must be the sum of the trees, which it is not after `du -S`, or if an operand of du \
             is below a later one. Without this option, the line is read as an entry named `total`. If du \
             speaks another language than English, call `LC_ALL=C du -c`.",
    ),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const IMPORT: Command<ImportOption> = Command {
    name: "fathom import",
    brief: "make an inventory from the output of ncdu, gdu or du",
    usage: &["[OPTION]... --from PROGRAM -o INVENTORY FILE"],
    about: &[
        "Makes an inventory from FILE, in which another program recorded a file tree, perhaps on another \
         machine. `-` is standard input. The other commands read it like an inventory of `fathom scan`.",
        "Values that the program did not write are unknown in the inventory. Memory is needed for each \
         level of the tree, but not for each entry.",
    ],
    sections: &[READ, DU, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[FORMATS, TRUST, STATUS],
    examples: &[
        (
            "fathom import --from ncdu -o nas.inv nas.ncdu",
            "the output of `ncdu -0 -e -o nas.ncdu /` on another machine",
        ),
        ("fathom import --from gdu -o nas.inv nas.json", "the output of `gdu -n -o nas.json /`"),
        (
            "du -0ac /srv | fathom import --from du --total -o srv.inv -",
            "the output of du, with any names, verified to be complete",
        ),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-export", "fathom-top", "fathom-diff"],
};

const FORMATS: Note = Note {
    title: "Formats",
    text: &[
        "`ncdu`: the output of `ncdu -o` (ncdu 1 and 2, JSON format version 1). Without `ncdu -e` there \
         are no owners, modes and times. Entries that ncdu could not read are missing in the inventory \
         too. Entries that a pattern excluded are left out; other file systems become directories with the \
         state `skipped`. The output of `fathom export --to ncdu` is read back with the same sums.",
        "`gdu`: the output of `gdu -o`. Directories themselves have no sizes.",
        "`du`: the output of GNU du, best with `-0ac`: names with line breaks are lost without `-0`. The \
         numbers must be whole, not those of `du -h`. A directory itself has what its line has in excess \
         of its entries. With `--bytes`, the disk usage is unknown and counts as 0: `fathom explore` and \
         `fathom du --from` show sizes with `--apparent-size`, and `fathom grew` shows no growth.",
    ],
    man_only: true,
};

const TRUST: Note = Note {
    title: "Damaged files",
    text: &[
        "If FILE is damaged or truncated, the error and its position are reported, and no INVENTORY is \
         written.",
        "The output of du does not mark its end: if it was cut off after a line, the parent directories \
         are missing, and their contents become separate trees. Only the total shows this: call `du -c`, \
         and use `--total`.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: the inventory was written; standard error says if the program could not read everything.",
        "1: FILE cannot be read or is damaged, or the inventory cannot be written.",
        "2: the command line is wrong.",
        "130: interrupted; INVENTORY was not written.",
    ],
    man_only: true,
};
