//! The options of `fathom list`: names and help texts. `args.rs` implements them.

use crate::models::{WALK_BRIEF, WALK_MODELS, WALK_WORDS};
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};
use crate::shared::value::WHEN_WORDS;

/// The options of `fathom list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListOption {
    Type,
    Name,
    Regex,
    Size,
    Newer,
    Older,
    Empty,
    MinDepth,
    MaxDepth,
    OneFileSystem,
    From,
    Prune,
    Hidden,
    NoHidden,
    IgnoreVcs,
    Dereference,
    Null,
    Ids,
    Format,
    Json,
    Order,
    Count,
    Stats,
    Progress,
    Io,
    Threads,
}

const LISTED: &str = "Entry selection";
const VISITED: &str = "Directory selection";
const LOOKS: &str = "Output";
const ENGINE: &str = "Performance";
const ABOUT: &str = "General";

/// The values of `--order`.
pub(crate) const ORDER_WORDS: &[&str] = &["path", "any"];

/// All options.
pub(crate) const FLAGS: &[Flag<ListOption>] = &[
    both(
        ListOption::Type,
        b't',
        "type",
        LISTED,
        "list only entries of these types, with commas: `f`, `d`, `l`, `p`, `s`, `c`, `b`",
    )
    .required("TYPES", ValueKind::Text)
    .more(
        "The letters stand for regular files, directories, symbolic links, FIFOs, sockets, character \
             devices and block devices.",
    ),
    both(
        ListOption::Name,
        b'n',
        "name",
        LISTED,
        "list only names matching the wildcard pattern GLOB; repeat to allow several",
    )
    .required("GLOB", ValueKind::Text)
    .more(
        "Patterns are those of `-name` of find(1): `*`, `?` and brackets, which also match a leading \
             dot.",
    ),
    long(
        ListOption::Regex,
        "regex",
        LISTED,
        "list only paths that the regular expression RE matches as a whole",
    )
    .required("RE", ValueKind::Text)
    .more(
        "The path begins with PATH as given, as for `-regex` of find(1). The syntax is that of Rust's \
             regex crate.",
    ),
    both(
        ListOption::Size,
        b's',
        "size",
        LISTED,
        "list only entries larger than SIZE (`+`), smaller (`-`) or of exactly SIZE",
    )
    .required("[+-]SIZE", ValueKind::Text)
    .more(
        "SIZE is a number of bytes or has a unit, and is compared exactly: `+10M` is more than 10 * \
             1024 * 1024 bytes. fathom(1) lists all units.",
    ),
    long(ListOption::Newer, "newer", LISTED, "list only entries modified after WHEN")
        .required("WHEN", ValueKind::File),
    long(ListOption::Older, "older", LISTED, "list only entries modified before WHEN")
        .required("WHEN", ValueKind::File),
    long(ListOption::Empty, "empty", LISTED, "list only empty files and directories").more(
        "These are, as for `-empty` of find(1), regular files of 0 bytes and directories without \
             entries. Each directory is opened once more. With `--from`, only directories that the scan \
             read completely are listed, and none if the scan excluded names.",
    ),
    long(
        ListOption::MinDepth,
        "min-depth",
        LISTED,
        "skip entries fewer than N levels below a PATH (default: 0)",
    )
    .required("N", ValueKind::Text),
    both(
        ListOption::MaxDepth,
        b'd',
        "max-depth",
        VISITED,
        "descend at most N levels below a PATH (default: all)",
    )
    .required("N", ValueKind::Text),
    both(ListOption::OneFileSystem, b'x', "one-file-system", VISITED, "stay on the file system of each PATH"),
    long(ListOption::From, "from", VISITED, "read INVENTORY instead of the file system")
        .required("INVENTORY", ValueKind::File)
        .more(
            "INVENTORY is an inventory made by `fathom scan`, or a directory of `fathom scan --keep`, \
             whose newest inventory is read. Each PATH is a path in the inventory, or relative to a \
             scanned tree; without PATH, all scanned trees are listed. Entries come in the order of the \
             scan. `%F` and `%Z` are empty, and the type of a link's target (`%Y`) is unknown.",
        ),
    long(
        ListOption::Prune,
        "prune",
        VISITED,
        "skip names matching GLOB, and everything below them; repeatable",
    )
    .required("GLOB", ValueKind::Text),
    long(ListOption::Hidden, "hidden", VISITED, "include names that begin with a dot (default)"),
    long(
        ListOption::NoHidden,
        "no-hidden",
        VISITED,
        "skip names that begin with a dot, and everything below them",
    ),
    long(
        ListOption::IgnoreVcs,
        "ignore-vcs",
        VISITED,
        "skip files that `.gitignore` and `.ignore` files exclude",
    )
    .more(
        "Excluded directories are skipped with everything below them. A repository's \
             `.git/info/exclude` and git's `core.excludesFile` apply too. As in git, `.gitignore` applies \
             only in repositories; `.ignore`, which is meant for tools like this one, applies everywhere \
             and takes precedence. Ignore files above a PATH apply too, but a PATH itself is never \
             skipped, and neither is `.git`.",
    ),
    both(ListOption::Dereference, b'L', "dereference", VISITED, "follow symbolic links"),
    both(ListOption::Null, b'0', "null", LOOKS, "end each line with a NUL byte instead of a newline"),
    long(
        ListOption::Ids,
        "ids",
        LOOKS,
        "print device, inode and change time before each path, for `fathom rm --ids`",
    )
    .more("Same as `--format '%D %i %C@ %p\\0'`."),
    both(
        ListOption::Format,
        b'f',
        "format",
        LOOKS,
        "print FORMAT for each entry, as `-printf` of find(1) does",
    )
    .required("FORMAT", ValueKind::Text),
    both(ListOption::Json, b'j', "json", LOOKS, "print JSON, one object per line").more(
        "The members are `path`, `type` (a letter of `--type`), `size`, `blocks`, `mode`, `uid`, \
             `gid`, `nlink`, `ino`, `dev` and times. A path that is not UTF-8 has replacement characters, \
             and `path_bytes` holds its bytes in hexadecimal.",
    ),
    long(
        ListOption::Order,
        "order",
        LOOKS,
        "print in the order `path` (default; always the same) or `any` (as found; faster)",
    )
    .required("ORDER", ValueKind::Words(ORDER_WORDS))
    .more(
        "`path` is the order of find(1): the entries of a directory follow it, in the order in which \
             they are read. It does not depend on the I/O model or the number of threads.",
    ),
    both(ListOption::Count, b'c', "count", LOOKS, "print only the number of entries"),
    long(ListOption::Stats, "stats", LOOKS, "print a summary on standard error at the end"),
    long(
        ListOption::Progress,
        "progress",
        ENGINE,
        "show progress: `auto` (default; only on a terminal), `always` or `never`",
    )
    .optional("WHEN", ValueKind::Words(WHEN_WORDS)),
    long(ListOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)),
    long(
        ListOption::Threads,
        "threads",
        ENGINE,
        "use N threads (1 to 4096) instead of adapting their number",
    )
    .required("N", ValueKind::Text),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const LIST: Command<ListOption> = Command {
    name: "fathom list",
    brief: "list files and directories",
    usage: &["[OPTION]... [PATH]..."],
    about: &[
        "Lists each PATH and everything below it, like find(1) but in parallel. Without PATH, lists what \
         is below the current directory. An entry must match all options given.",
    ],
    sections: &[LISTED, VISITED, LOOKS, ENGINE, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[WHEN_NOTE, WALK_MODELS, STATUS],
    examples: EXAMPLES,
    see_also: &["fathom", "fathom-du", "find"],
};

const WHEN_NOTE: Note = Note {
    title: "Times",
    text: &["WHEN is an age (`90s`, `15m`, `1h30m`, `1.5d`, `2w`, `1y`), a date with or without a time \
         (`2026-01-31`, `2026-01-31 12:00`, `2026-01-31T12:00:00Z`), seconds since 1970 (`@1769850000`), \
         or the path of a file, which stands for its modification time; a symbolic link is followed."],
    man_only: false,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything was read, whether or not anything was listed.",
        "1: something could not be read or written.",
        "2: the command line is wrong.",
        "130: interrupted.",
    ],
    man_only: true,
};

const EXAMPLES: &[(&str, &str)] = &[
    ("fathom list src", "everything in src"),
    ("fathom list -t f -s +100M ~", "regular files larger than 100 MiB"),
    ("fathom list --newer 1d --no-hidden .", "everything modified since yesterday, except hidden files"),
    ("fathom list -n '*.log' -0 /var/log | fathom du -c --files0-from=-", "all logs, and their total"),
    ("fathom list --prune node_modules -f '%s %p\\n' .", "sizes and paths, skipping every node_modules"),
    ("fathom list -c -t d --order any /usr", "the number of directories"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_spelled_once_and_stands_under_a_heading() {
        for (at, flag) in FLAGS.iter().enumerate() {
            assert!(LIST.sections.contains(&flag.section), "{flag:?}");
            for other in &FLAGS[..at] {
                assert!(flag.long != other.long, "{flag:?}");
                assert!(flag.short.is_none() || flag.short != other.short, "{flag:?}");
            }
        }
    }
}
