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

const CHANGES: &str = "Change selection";
const LOOKS: &str = "Output";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<DiffOption>] = &[
    long(
        DiffOption::Only,
        "only",
        CHANGES,
        "show only these changes, with commas: `created`, `removed`, `modified`, `renamed`",
    )
    .required("KINDS", ValueKind::Text)
    .more("Each kind can be abbreviated: `--only=c,m`."),
    long(
        DiffOption::Below,
        "below",
        CHANGES,
        "show only the directory PATH, and everything that is or was below it",
    )
    .required("PATH", ValueKind::File)
    .more(
        "PATH is a path in one of the inventories, or relative to a scanned tree. An entry that was \
             moved into or out of PATH is shown as renamed.",
    ),
    long(DiffOption::Dirs, "dirs", CHANGES, "show how much directories grew or shrank, instead of changes")
        .more(
            "The largest difference comes first. Each line has the change of the disk usage, of the \
             apparent size and of the number of entries, including everything below the directory, and the \
             path, below a header on a terminal. Each name of a file is an entry; its size counts once. `~` \
             precedes a line if something below the directory is missing in an inventory.",
        ),
    both(DiffOption::Lines, b'n', "lines", CHANGES, "print at most N lines (default: 20), with `--dirs`")
        .required("N", ValueKind::Text),
    long(DiffOption::Json, "json", LOOKS, "print JSON, one object per line"),
    both(DiffOption::Null, b'0', "null", LOOKS, "print only the paths, each ended by a NUL byte")
        .more("A renamed entry has its new path."),
    long(DiffOption::Parquet, "parquet", LOOKS, "write a row for each change to the Parquet file FILE")
        .required("FILE", ValueKind::File)
        .more(
            "The file is called FILE.part until it is complete and on the disk. It then replaces a regular \
             file of that name in one step; anything else is refused. Only its owner can read it, and \
             those who could read the file that it replaces. `-` is standard output.",
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
        "Shows what changed from OLD to NEW, two inventories that `fathom scan` made of the same trees. \
         The scanned trees are not read.",
        "Each line is `+` and the path of a created entry, `-` and the path of a removed entry, `M`, the \
         path and the changed fields of a modified entry, or `R` and both paths of a renamed entry. \
         Directories end in a slash. Lines are ordered by the bytes of the paths.",
    ],
    sections: &[CHANGES, LOOKS, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[RULES, LACKS, OBJECTS, COLUMNS, ENVIRONMENT, STATUS],
    examples: &[
        ("fathom diff old.inv new.inv", "everything that changed"),
        ("fathom diff --dirs old.inv new.inv", "where the space went"),
        ("fathom diff --only=created,modified -0 old.inv new.inv", "the paths to copy"),
        ("fathom diff --below projects --json old.inv new.inv", "the changes in one directory, as JSON"),
        (
            "fathom diff --parquet changes.parquet old.inv new.inv",
            "the changes as a table for programs that read Parquet",
        ),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-top", "fathom-query"],
};

const RULES: Note = Note {
    title: "What counts as which change",
    text: &[
        "Renamed: device and inode are the same, and the path differs. The birth time must be the same \
         too; on file systems without birth times, size and last modification. A renamed directory is one \
         change, and its new entries are compared with its old ones. If an inode has several names and one \
         of them is unchanged, a new name counts as created, and a missing name as removed.",
        "Modified: type, size, last modification, permissions, owner, group, or the target of a symbolic \
         link differs. If only the time of the inode's last change differs (extended attributes, or a \
         modification time that was set back), the change is shown as `ctime`, unless the number of names \
         differs. A file that replaced another of the same name is compared with it, and is unchanged if \
         all of these are the same; so a copy can be compared with its original. For directories, only \
         permissions, owner and group count.",
        "A file that replaced a directory, or a directory that replaced a file, is one removal and one \
         creation. Access times are ignored.",
    ],
    man_only: true,
};

const LACKS: Note = Note {
    title: "Incomplete inventories",
    text: &[
        "If a directory is missing or incomplete in one of the inventories, its entries count neither as \
         removed nor as created, because they may exist. They are not shown; standard error says how many \
         there are, and which inventory is incomplete. A tree that only one inventory has is not compared. \
         Trees are the same if they have the same path, or are the only trees of their inventories.",
    ],
    man_only: true,
};

const OBJECTS: Note = Note {
    title: "JSON",
    text: &[
        "Each change is an object with `change` (`created`, `removed`, `modified` or `renamed`), `path`, \
         the `old_path` of a renamed entry, `fields` (the names of the changed fields: `type`, `size`, \
         `mtime`, `mode`, `uid`, `gid`, `attributes`, `project`, `xattrs`, `acl`, `link_target`, `ctime`), \
         and its old and new metadata as `old` and `new`, with the members of `fathom list --json`. The \
         bytes of text that is not UTF-8 are in `path_bytes`, `old_path_bytes` and `link_target_bytes`, in \
         hexadecimal. The last object has the number of each kind of change as `total`, the number of \
         entries that may have changed as `unknown`, and whether both inventories are `complete`.",
        "With `--dirs`, each line becomes an object with `path`, `bytes` (disk usage), `apparent`, \
         `entries` and `complete`, and the last object has the `total`.",
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
    text: &["TMPDIR: the directory for data that does not fit in 64 MiB of memory (default: /tmp)."],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: nothing changed.",
        "1: something changed.",
        "2: the command line is wrong, an inventory cannot be read or is damaged, the output cannot be \
         written, or no change was found but an inventory is incomplete.",
    ],
    man_only: true,
};
