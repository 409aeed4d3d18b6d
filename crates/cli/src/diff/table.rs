//! The options of `fathom diff`. Only names and texts; what they do is `args.rs`'s.

use crate::command::{Command, Note};
use crate::flag::{Flag, Kind, both, long};

/// What an option asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Only,
    Below,
    Dirs,
    Lines,
    Json,
    Null,
    Parquet,
    Help,
    Version,
}

const CHANGES: &str = "What is shown";
const LOOKS: &str = "How it is shown";
const ABOUT: &str = "About the program";

/// Every option.
pub(crate) const FLAGS: &[Flag<Key>] = &[
    long(Key::Only, "only", CHANGES, "only these kinds of changes: `created,removed,modified,renamed`")
        .required("KINDS", Kind::Text)
        .more("The kinds are separated by commas, and each may be cut short: `--only=c,m`."),
    long(Key::Below, "below", CHANGES, "only the directory PATH and what is or was below it")
        .required("PATH", Kind::File)
        .more(
            "PATH is as one of the inventories has it, or relative to one of the trees that were scanned. What came from \
             elsewhere, or went there, is shown as renamed.",
        ),
    long(
        Key::Dirs,
        "dirs",
        CHANGES,
        "instead of changes, how much larger or smaller directories are, the largest difference first",
    )
    .more(
        "Each line has what was added to the space allocated, to the apparent size and to the number of entries, with \
         everything below the directory, and its path. A file with several names counts once. `~` stands before a line if \
         something below is missing in an inventory.",
    ),
    both(Key::Lines, b'n', "lines", CHANGES, "with `--dirs`, at most N lines; otherwise 20")
        .required("N", Kind::Text),
    long(Key::Json, "json", LOOKS, "JSON objects, one a line"),
    both(Key::Null, b'0', "null", LOOKS, "nothing but the paths, each with a NUL byte at its end")
        .more("Of what was renamed, the path that it has now."),
    long(Key::Parquet, "parquet", LOOKS, "a row for each change, in the new Parquet file FILE")
        .required("FILE", Kind::File)
        .more(
            "While it is made it is called FILE.part: what is called FILE is whole. Nothing that is there already is replaced. `-` \
             is standard output.",
        ),
    long(Key::Help, "help", ABOUT, "show this help and end"),
    long(Key::Version, "version", ABOUT, "show the version and end"),
];

/// The command.
pub(crate) const DIFF: Command<Key> = Command {
    name: "fathom diff",
    brief: "show what changed between two inventories",
    usage: &["[OPTION]... OLD NEW"],
    about: &[
        "Shows what changed from OLD to NEW, two inventories that `fathom scan` made of the same trees. Nothing of what was \
         scanned is looked at.",
        "A line is `+` and the path of what was created, `-` of what was removed, `M` of what was modified, with what \
         is another about it, or `R` and both paths of what was renamed. Directories end in a slash. The order is that of \
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
        "Renamed: device and inode are the same, the path is another. The time of birth has to be the same, too; where the \
         file system does not say that, size and last modification. A renamed directory is one change, and what is in it is \
         compared with what was in it. Where an inode has several names and one of them is as it was, another name is \
         created, and one less removed.",
        "Modified: type, size, last modification, permissions, owner, group, or what a symbolic link holds. If nothing but the \
         time of the inode's last change is another (extended attributes, or a time of modification that was set back), \
         that is shown as `ctime`; but not if there is another number of names. A file in the place of another of the same \
         name is compared with that one, and is no change if all of these are the same: so a copy can be compared with its \
         original. Of directories only permissions, owner and group count.",
        "A file where there was a directory, or the other way round, is one removed and one created. Times of access do not count.",
    ],
    man_only: true,
};

const LACKS: Note = Note {
    title: "Incomplete inventories",
    text: &[
        "What lies in a directory that one of the inventories lacks, or has not whole, is neither removed nor created: it may \
         be there. Such entries are not shown; standard error says how many there are, and what is incomplete. Nor is a tree \
         compared that only one of the inventories has. Trees are the same if they have the same path, or are the \
         only ones of their inventories.",
    ],
    man_only: true,
};

const OBJECTS: Note = Note {
    title: "JSON",
    text: &[
        "An object for each change: `change` (`created`, `removed`, `modified` or `renamed`), `path`, `old_path` of what was \
         renamed, `fields` (what is another: `type`, `size`, `mtime`, `mode`, `uid`, `gid`, `attributes`, `project`, `xattrs`, `acl`, `link_target`, `ctime`), and what \
         was known of it under `old` and is under `new`, with the members of `fathom list --json`. What is not \
         UTF-8 is in `path_bytes`, `old_path_bytes` and `link_target_bytes`, in hexadecimal. The last object has the numbers \
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
         and so on have the names and types of an inventory's columns. The bytes of what is not UTF-8 are in \
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
