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

const LISTED: &str = "Which entries are listed";
const VISITED: &str = "Which directories are read";
const LOOKS: &str = "How they look";
const ENGINE: &str = "How the work is done";
const ABOUT: &str = "About the program";

/// The values of `--order`.
pub(crate) const ORDER_WORDS: &[&str] = &["path", "any"];

/// All options.
pub(crate) const FLAGS: &[Flag<ListOption>] = &[
    both(ListOption::Type, b't', "type", LISTED, "only entries of these types: `f,d,l,p,s,c,b`, one or several")
        .required("TYPES", ValueKind::Text)
        .more("Regular files, directories, symbolic links, fifos, sockets, character and block devices."),
    both(ListOption::Name, b'n', "name", LISTED, "only names that match the wildcard pattern GLOB; of several, any")
        .required("GLOB", ValueKind::Text)
        .more("As `-name` of find(1): `*`, `?` and brackets, which match a leading dot too."),
    long(ListOption::Regex, "regex", LISTED, "only paths that the regular expression RE matches as a whole")
        .required("RE", ValueKind::Text)
        .more("From the root as it was given, as `-regex` of find(1), but in the syntax of Rust's regex crate."),
    both(ListOption::Size, b's', "size", LISTED, "only sizes of more (`+SIZE`), less (`-SIZE`) or just SIZE")
        .required("[+-]SIZE", ValueKind::Text)
        .more("SIZE is in bytes, or has a unit: `+10M` is more than 10 * 1024 * 1024 bytes, exactly. fathom(1) has all units."),
    long(ListOption::Newer, "newer", LISTED, "only what was modified after WHEN").required("WHEN", ValueKind::File),
    long(ListOption::Older, "older", LISTED, "only what was modified before WHEN").required("WHEN", ValueKind::File),
    long(ListOption::Empty, "empty", LISTED, "only empty files and directories")
        .more("As `-empty` of find(1): regular files of 0 bytes, and directories without entries. Each directory is opened once more. With --from, directories that the scan read completely, and none if it left names out."),
    long(ListOption::MinDepth, "min-depth", LISTED, "nothing less than N levels below the roots")
        .required("N", ValueKind::Text),
    both(ListOption::MaxDepth, b'd', "max-depth", VISITED, "nothing more than N levels below the roots")
        .required("N", ValueKind::Text),
    both(ListOption::OneFileSystem, b'x', "one-file-system", VISITED, "nothing that is on another file system"),
    long(ListOption::From, "from", VISITED, "list what INVENTORY has, not the file system")
        .required("INVENTORY", ValueKind::File)
        .more(
            "`fathom scan` makes inventories; of a directory of `fathom scan --keep`, the newest one answers. Each PATH is a path in the inventory, or relative to a scanned tree; \
         without PATH, everything is listed. Entries come in the order of the scan; `%F` and `%Z` are empty, and \
         the type of a link's target (`%Y`) is unknown.",
        ),
    long(ListOption::Prune, "prune", VISITED, "without names that match GLOB, and without everything below them")
        .required("GLOB", ValueKind::Text),
    long(ListOption::Hidden, "hidden", VISITED, "with names that begin with a dot; the default"),
    long(ListOption::NoHidden, "no-hidden", VISITED, "without names that begin with a dot, and everything below them"),
    long(ListOption::IgnoreVcs, "ignore-vcs", VISITED, "without what `.gitignore` and `.ignore` files leave out").more(
        "With what is below it. Also what a repository's `.git/info/exclude` and git's `core.excludesFile` say. As \
         in git, `.gitignore` counts in repositories alone; `.ignore`, which is for such tools as this one, counts \
         anywhere, and more. Files above a PATH have their say too, but no PATH itself is left out, nor is `.git`.",
    ),
    both(ListOption::Dereference, b'L', "dereference", VISITED, "follow symbolic links"),
    both(ListOption::Null, b'0', "null", LOOKS, "end each line with a NUL byte, not a newline"),
    long(ListOption::Ids, "ids", LOOKS, "before each path its device, inode number and time of change, for `fathom rm --ids`")
        .more("The same as `--format '%D %i %C@ %p\\0'`."),
    both(ListOption::Format, b'f', "format", LOOKS, "print FORMAT for each entry, as `-printf` of find(1) does")
        .required("FORMAT", ValueKind::Text),
    both(ListOption::Json, b'j', "json", LOOKS, "one JSON object a line").more(
        "`path`, `type` (a letter as in `--type`), `size`, `blocks`, `mode`, `uid`, `gid`, `nlink`, `ino`, \
         `dev` and times. A path that is not UTF-8 has replacement characters, and `path_bytes` holds its bytes \
         in hexadecimal.",
    ),
    long(ListOption::Order, "order", LOOKS, "`path`: the same order every time; `any`: as found, which is faster")
        .required("ORDER", ValueKind::Words(ORDER_WORDS))
        .more(
            "`path`, the default, is the order of find(1): the entries of a directory follow it, in the order in which they are read. It does not depend on the I/O model or the number of threads.",
        ),
    both(ListOption::Count, b'c', "count", LOOKS, "only print how many entries there are"),
    long(ListOption::Stats, "stats", LOOKS, "at the end, print a summary on standard error"),
    long(ListOption::Progress, "progress", ENGINE, "progress: `auto` (on a terminal), `always` or `never`")
        .optional("WHEN", ValueKind::Words(WHEN_WORDS)),
    long(ListOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)),
    long(ListOption::Threads, "threads", ENGINE, "use N threads throughout instead of adapting their number")
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
        "Lists each PATH and everything below it, as find(1) does but in parallel; without PATH, what is \
         below the current directory. What several options ask for must all hold.",
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
    text: &[
        "WHEN is a time ago (`90s`, `15m`, `1h30m`, `1.5d`, `2w`, `1y`), a date and time (`2026-01-31`, `2026-01-31 \
         12:00`, `2026-01-31T12:00:00Z`), seconds since 1970 (`@1769850000`), or the path of a file, whose time \
         of modification is meant; of a symbolic link, that of the file it leads to.",
    ],
    man_only: false,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything was read, whether or not anything was listed.",
        "1: something could not be read or written.",
        "2: the command line was wrong.",
        "130: interrupted.",
    ],
    man_only: true,
};

const EXAMPLES: &[(&str, &str)] = &[
    ("fathom list src", "everything in src"),
    ("fathom list -t f -s +100M ~", "regular files of more than 100 MiB"),
    ("fathom list --newer 1d --no-hidden .", "what was modified since yesterday, but nothing hidden"),
    ("fathom list -n '*.log' -0 /var/log | fathom du -c --files0-from=-", "all logs and their total"),
    ("fathom list --prune node_modules -f '%s %p\\n' .", "sizes and paths, without a kind of directory"),
    ("fathom list -c -t d --order any /usr", "how many directories there are"),
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
