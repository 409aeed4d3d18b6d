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

const READ: &str = "What is read, and where it goes";
const DU: &str = "How du was called";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<ImportOption>] = &[
    long(ImportOption::From, "from", READ, "the program that wrote FILE: `ncdu`, `gdu` or `du`")
        .required("PROGRAM", ValueKind::Words(FROM_WORDS)),
    both(ImportOption::Output, b'o', "output", READ, "make the inventory in the new directory INVENTORY")
        .required("INVENTORY", ValueKind::File)
        .more("The directory is called INVENTORY.part until it is complete. An existing INVENTORY is not replaced."),
    long(ImportOption::Bytes, "bytes", DU, "`du -b`: the numbers are apparent sizes in bytes"),
    long(ImportOption::BlockSize, "block-size", DU, "the numbers are blocks of SIZE bytes, as of `du -B SIZE`; otherwise 1K")
        .required("SIZE", ValueKind::Text),
    long(ImportOption::OnlyDirs, "only-dirs", DU, "without `-a`: every line is a directory")
        .more(
            "Without this option, a path without others below it is taken for a file, even if it is an empty directory. With it, the \
             inventory is incomplete, as it lacks the files, but the sums of directories are right.",
        ),
    long(ImportOption::Total, "total", DU, "`du -c`: the last line, `total`, is checked and left out")
        .more("It has to be the sum of the trees, which it is not after `du -S`, or if an operand of du is below a later one. Without this \
               option, such a line is an entry of that name. In other languages than English, call `LC_ALL=C du -c`."),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const IMPORT: Command<ImportOption> = Command {
    name: "fathom import",
    brief: "make an inventory of what ncdu, gdu or du wrote",
    usage: &["[OPTION]... --from PROGRAM -o INVENTORY FILE"],
    about: &[
        "Makes an inventory of FILE, which another program wrote about a file tree, perhaps on another machine. `-` is standard input. \
         The other commands then answer from it as from one that `fathom scan` made.",
        "What the program did not write is unknown in the inventory. Memory is needed for each level of the tree, but not for each entry.",
    ],
    sections: &[READ, DU, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[FORMATS, TRUST, STATUS],
    examples: &[
        (
            "fathom import --from ncdu -o nas.inv nas.ncdu",
            "what `ncdu -0 -e -o nas.ncdu /` wrote, on another machine",
        ),
        ("fathom import --from gdu -o nas.inv nas.json", "what `gdu -n -o nas.json /` wrote"),
        (
            "du -0ac /srv | fathom import --from du --total -o srv.inv -",
            "what du finds, whatever the names, and all of it",
        ),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-export", "fathom-top", "fathom-diff"],
};

const FORMATS: Note = Note {
    title: "Formats",
    text: &[
        "`ncdu`: what `ncdu -o` writes (ncdu 1 and 2, the JSON format of version 1). Without `ncdu -e` there are no owners, modes and times. What it could not read is \
         missing in the inventory, too. Entries that a pattern excludes are left out; other file systems are directories that were skipped. \
         What `fathom export --to ncdu` wrote has the same sums again.",
        "`gdu`: what `gdu -o` writes. Directories themselves have no sizes.",
        "`du`: what GNU du writes, best with `-0ac`: names with line breaks are lost without `-0`. The \
         numbers have to be whole: not those of `du -h`. A directory has what its line has beyond those below it. After `--bytes` the disk \
         usage is unknown and counts as 0: `fathom explore` and `fathom du --from` show the sizes with `--apparent-size`, `fathom grew` shows no growth.",
    ],
    man_only: true,
};

const TRUST: Note = Note {
    title: "Damaged files",
    text: &[
        "If FILE is damaged or ends too early, that is said, with the position, and no INVENTORY is made.",
        "The output of du has no end: if it was cut off after a line, the directories above are missing, and what is there are trees of their own. Only \
         the total tells: call `du -c`, and give `--total`.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: there is an inventory, which may lack what the program could not read; standard error says so.",
        "1: there is none: FILE cannot be read or is damaged, or the inventory cannot be written.",
        "2: the command line was wrong.",
        "130: interrupted; INVENTORY was not made.",
    ],
    man_only: true,
};
