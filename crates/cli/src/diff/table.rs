//! The options of `fathom diff`: names and help texts. `args.rs` implements them.

use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffOption {
    Only,
    Below,
    Dirs,
    Lines,
    Json,
    Null,
    Parquet,
}

const CHANGES: &str = "What is shown";
const LOOKS: &str = "How it is shown";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<DiffOption>] = &[
    long(DiffOption::Only, "only", CHANGES, "only these kinds of changes: `created,removed,modified,renamed`")
        .required("KINDS", ValueKind::Text)
        .more("The kinds are separated by commas, and each may be cut short: `--only=c,m`."),
    long(DiffOption::Below, "below", CHANGES, "only the directory PATH and everything that is or was below it")
        .required("PATH", ValueKind::File)
        .more(
            "PATH is a path in one of the inventories, or relative to one of the scanned trees. An entry that was \
         moved into or out of PATH is shown as renamed.",
        ),
    long(
        DiffOption::Dirs,
        "dirs",
        CHANGES,
        "instead of changes, how much larger or smaller directories are, the largest difference first",
    )
    .more(
        "Each line has the change of the allocated space, of the apparent size and of the number of entries, \
         including everything below the directory, and its path; on a terminal, a header comes first. A file with several names counts once. `~` stands before a line if \
         something below is missing in an inventory.",
    ),
    both(DiffOption::Lines, b'n', "lines", CHANGES, "with `--dirs`, at most N lines; otherwise 20")
        .required("N", ValueKind::Text),
    long(DiffOption::Json, "json", LOOKS, "JSON objects, one a line"),
    both(DiffOption::Null, b'0', "null", LOOKS, "nothing but the paths, each with a NUL byte at its end")
        .more("For a renamed entry, the new path."),
    long(DiffOption::Parquet, "parquet", LOOKS, "a row for each change, in the Parquet file FILE")
        .required("FILE", ValueKind::File)
        .more(
            "The file is called FILE.part until it is complete and on the disk. Then it replaces a regular file of that name in \
             one step; anything else is refused. Only its owner may read it, and those who may read the file that it replaces. \
             `-` is standard output.",
        ),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const DIFF: Command<DiffOption> = Command {
    name: "fathom diff",
    brief: "show what changed between two inventories",
    usage: &["[OPTION]... OLD NEW"],
    about: &[
        "Shows what changed from OLD to NEW, two inventories that `fathom scan` made of the same trees. The scanned trees are not read.",
        "A line is `+` and the path of a created entry, `-` and that of a removed one, `M` and that of a modified \
         one with the fields that changed, or `R` and both paths of a renamed one. Directories end in a slash. The order is that of \
         the paths' bytes.",
    ],
    sections: &[CHANGES, LOOKS, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[RULES, LACKS, OBJECTS, COLUMNS, ENVIRONMENT, STATUS],
    examples: &[
        ("fathom diff old.inv new.inv", "everything that changed"),
        ("fathom diff --dirs old.inv new.inv", "where the space went since then"),
        ("fathom diff --only=created,modified -0 old.inv new.inv", "the paths of what is to be copied"),
        ("fathom diff --below projects --json old.inv new.inv", "in one directory, for programs"),
        ("fathom diff --parquet changes.parquet old.inv new.inv", "for whatever reads Parquet"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-top", "fathom-query"],
};

const RULES: Note = Note {
    title: "What counts as which change",
    text: &[
        "Renamed: device and inode are the same, and the path differs. The birth time must be the same, too; on \
         file systems without birth times, size and last modification. A renamed directory is one change, and its \
         new entries are compared with its old ones. If an inode has several names and one of them is unchanged, a \
         new name counts as created, and a missing one as removed.",
        "Modified: type, size, last modification, permissions, owner, group, or the target of a symbolic link \
         differs. If only the time of the inode's last change differs (extended attributes, or a modification time \
         that was set back), the change is shown as `ctime`, unless the number of names differs. A file that \
         replaced another of the same name is compared with it, and is no change if all of these are the same: so \
         a copy can be compared with its original. For directories only permissions, owner and group count.",
        "A file where there was a directory, or the other way round, is one removed and one created. Times of access do not count.",
    ],
    man_only: true,
};

const LACKS: Note = Note {
    title: "Incomplete inventories",
    text: &[
        "If a directory is missing or incomplete in one of the inventories, its entries count neither as removed \
         nor as created, because they may exist. Such entries are not shown; standard error says how many there \
         are, and which inventory is incomplete. A tree that only one of the inventories has is not compared. Trees are the same if they have the same path, or are the \
         only ones of their inventories.",
    ],
    man_only: true,
};

const OBJECTS: Note = Note {
    title: "JSON",
    text: &[
        "An object for each change: `change` (`created`, `removed`, `modified` or `renamed`), `path`, `old_path` of a renamed entry, `fields` (the names of the changed fields: `type`, `size`, `mtime`, `mode`, `uid`, `gid`, `attributes`, `project`, `xattrs`, `acl`, `link_target`, `ctime`), and its old and new metadata under `old` and `new`, with the members of `fathom list --json`. The bytes \
         of text that is not UTF-8 are in `path_bytes`, `old_path_bytes` and `link_target_bytes`, in hexadecimal. The last object has the numbers \
         of changes under `total`, that of entries of which nothing can be said as `unknown`, and whether both \
         inventories are `complete`.",
        "With `--dirs`, an object for each line, with `path`, `bytes` (allocated), `apparent`, `entries` and `complete`, and \
         the `total` in the last.",
    ],
    man_only: true,
};

const COLUMNS: Note = Note {
    title: "Parquet",
    text: &[
        "The columns `change`, `path`, `old_path` and `fields` are as in JSON; `old_type`, `new_type`, `old_size`, `new_size` \
         and so on have the names and types of an inventory's columns. The bytes of text that is not UTF-8 are in \
         `path_raw`, `old_path_raw`, `old_link_raw` and `new_link_raw`.",
    ],
    man_only: true,
};

const ENVIRONMENT: Note = Note {
    title: "Environment",
    text: &["TMPDIR: where to put changes and entries that do not fit in 64 MiB of memory; otherwise /tmp."],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: nothing changed.",
        "1: something did.",
        "2: the command line was wrong, an inventory cannot be read or is damaged, the output cannot be written, or no change \
         was found in what is known while an inventory is incomplete.",
    ],
    man_only: true,
};
