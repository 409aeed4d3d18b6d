//! The options of `fathom explore`: names and help texts. `args.rs` implements them.

use crate::models::{WALK_BRIEF, WALK_MODELS, WALK_WORDS};
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};

/// The options of `fathom explore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExploreOption {
    Since,
    Remote,
    Ssh,
    OneFileSystem,
    Exclude,
    ExcludeFrom,
    Si,
    ApparentSize,
    Sort,
    NoMouse,
    PrintMarked,
    ReadOnly,
    Io,
    Threads,
}

/// The values of `--sort`.
pub(crate) const SORT_WORDS: &[&str] = &["size", "name", "count", "mtime", "growth"];

const SHOWN: &str = "What is shown";
const ACTIONS: &str = "What can be done";
const ENGINE: &str = "How the work is done";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<ExploreOption>] = &[
    long(ExploreOption::Since, "since", SHOWN, "a column with the growth since the inventory OLDER")
        .required("OLDER", ValueKind::File)
        .more(
            "Entries that only OLDER has are shown too, with the letter `-`, where the present inventory has all entries of the \
             directory and was made with the same exclusions.",
        ),
    long(ExploreOption::Remote, "remote", SHOWN, "the tree at PATH on another machine, which ssh reaches as HOST")
        .required("HOST:PATH", ValueKind::Text)
        .more("`fathom scan` scans it there, so fathom has to be installed there, and the inventory is kept here until the end."),
    long(ExploreOption::Ssh, "ssh", ENGINE, "the command for `--remote`, with its options: `ssh -p 2222`")
        .required("COMMAND", ValueKind::Text)
        .more("It is given `--`, HOST and the command for the shell there."),
    both(ExploreOption::OneFileSystem, b'x', "one-file-system", SHOWN, "skip directories on other file systems"),
    long(ExploreOption::Exclude, "exclude", SHOWN, "nothing whose name or path matches GLOB, and nothing below it")
        .required("GLOB", ValueKind::Text)
        .more("As `fathom du --exclude` has it. A directory that is removed is removed with what is left out."),
    both(ExploreOption::ExcludeFrom, b'X', "exclude-from", SHOWN, "the same for each line of FILE").required("FILE", ValueKind::File),
    long(ExploreOption::Si, "si", SHOWN, "sizes in powers of 1000 instead of 1024"),
    long(ExploreOption::ApparentSize, "apparent-size", SHOWN, "apparent sizes instead of disk usage; the key `a` changes it"),
    long(ExploreOption::Sort, "sort", SHOWN, "sort by `size`, `name`, `count`, `mtime` or `growth` at first")
        .required("COLUMN", ValueKind::Words(SORT_WORDS)),
    long(ExploreOption::PrintMarked, "print0-marked", ACTIONS, "at the end, print the paths of the marked entries, each with a NUL")
        .more("Standard output may then be a pipe: the screen is drawn on the terminal of the session (`/dev/tty`)."),
    long(ExploreOption::ReadOnly, "read-only", ACTIONS, "remove nothing, and start no program"),
    long(ExploreOption::NoMouse, "no-mouse", ACTIONS, "leave the mouse to the terminal, for selecting text"),
    long(ExploreOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)),
    long(ExploreOption::Threads, "threads", ENGINE, "use N threads throughout instead of adapting their number")
        .required("N", ValueKind::Text),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const EXPLORE: Command<ExploreOption> = Command {
    name: "fathom explore",
    brief: "look through file trees and inventories in the terminal, and clean up",
    usage: &[
        "[OPTION]... [--since OLDER] [PATH]...",
        "[OPTION]... INVENTORY [--since OLDER]",
        "[OPTION]... --remote HOST:PATH [--since OLDER]",
    ],
    about: &[
        "Shows what takes the space in each PATH, or else in the current directory, while it is being walked. An INVENTORY, \
         as `fathom scan` makes it, opens at once, however large it is.",
        "Directories are entered with Enter and left with the arrow to the left. Entries can be marked with Space, and then \
         moved to the trash, deleted, or printed for other programs. `?` shows all keys.",
    ],
    sections: &[SHOWN, ACTIONS, ENGINE, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[KEYS, FILTERS, MARKS, WALK_MODELS, STATUS],
    examples: &[
        ("fathom explore", "the current directory"),
        ("fathom explore -x /", "one file system"),
        ("fathom explore --since monday.inv today.inv", "what has grown since Monday"),
        ("fathom explore --remote nas:/srv", "a tree on another machine"),
        ("fathom explore --print0-marked ~ | xargs -0 du -sh", "choose entries for another program"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-top", "fathom-du"],
};

const KEYS: Note = Note {
    title: "Keys",
    text: &[
        "Arrows, `h`, `j`, `k`, `l`, Page Up, Page Down, Home, End and the mouse move; Enter enters a directory.",
        "`1` to `6`: tree, largest files, by extension, by owner, by age, treemap.",
        "`n`, `s`, `C`, `M`, `w` sort by name, size, count, time of modification and growth, and again the other way round. \
         `a` changes between disk usage and apparent size, `t` puts directories first, `e` hides names that begin with a dot.",
        "`g`, `c`, `m`, `u` turn the columns share, count, modification and owner on and off; columns for which there is no \
         room are left out.",
        "`/` sets a filter, `f` finds a name or a path, `i` shows everything about an entry, `?` the keys.",
        "`r` reads a directory again, `p` pauses the walk, `b` runs a shell in the directory, `o` opens the entry, `v` shows \
         its text in `$PAGER`, `y` copies its path to the clipboard of the terminal. `E` writes all rows of the view to a new \
         file, as comma-separated values with sizes in bytes. `q` quits, and `Q` prints the path of \
         the directory then.",
        "The letter beside the size: `~` is being walked, `.` something below could not be read, `!` could not be read, `>` \
         is left out, `-` is gone since the older inventory, `H` has several names (hard links), `@` is neither a file nor a directory, `e` is an empty directory.",
        "A file with several names counts once in the size of each directory that has one of them, at any depth, as in ncdu; \
         each name is an entry.",
    ],
    man_only: true,
};

const FILTERS: Note = Note {
    title: "Filters",
    text: &[
        "A filter is a list of words, separated by spaces, which must all hold: `size>10M`, `size<=4K`, `age>30d`, `age<12h`, \
         `type:f,l`, `owner:NAME`, a part of a name, or a pattern for a whole name (`*.log`). `!` before a word negates it; a word with spaces is in quotes. \
         An age is like `90s`, `12h`, `30d`, `2w` or `1y` (365 days). With a word that has no meaning, the prompt stays open. \
         A filter applies to the rows of the view; in the list of the largest files, to those of all directories.",
        "To delete by a rule: `2`, then `/` with `*.log age>1y`, `+` to mark all that is shown, and `d`.",
    ],
    man_only: true,
};

const MARKS: Note = Note {
    title: "Marks and removal",
    text: &[
        "A mark is the inode that was shown under a path, not a line on the screen: sorting, filtering and reading again do \
         not change what is marked.",
        "`d` deletes and `D` moves to the trash the marked entries, or the one under the cursor if none is marked. Before, \
         it is said how many files and directories this is, and how much space the file system will get back. For more \
         than 100 files or directories, the number of files has to be typed. An entry that has become another inode, and a \
         file that has been changed since it was shown, are not removed.",
        "Everything that was removed is in the log `$XDG_STATE_HOME/fathom/removed.jsonl` (`~/.local/state/fathom/removed.jsonl`), \
         in the format of `fathom rm --log`.",
        "`W` writes a shell script that removes the marked entries, Tab lists them, `*` inverts the marks, `+` marks all that \
         is shown, and `-` takes all marks away.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: the user has quit.",
        "1: the terminal failed.",
        "2: the command line was wrong, there is no terminal, or the tree or the inventory cannot be opened.",
        "130, 143, 129: interrupted, by Ctrl-C, SIGTERM or SIGHUP; no paths are printed.",
    ],
    man_only: true,
};
