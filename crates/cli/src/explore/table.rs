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

const SHOWN: &str = "What to show";
const ACTIONS: &str = "Actions";
const ENGINE: &str = "Performance";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<ExploreOption>] = &[
    long(ExploreOption::Since, "since", SHOWN, "show the growth since the inventory OLDER in a column")
        .required("OLDER", ValueKind::File)
        .more(
            "Entries that exist only in OLDER are shown too, marked with `-`, in directories that the \
             current inventory has completely, if it was made with the same exclusions.",
        ),
    long(
        ExploreOption::Remote,
        "remote",
        SHOWN,
        "show the tree at PATH on another machine, which ssh reaches as HOST",
    )
    .required("HOST:PATH", ValueKind::Text)
    .more(
        "`fathom scan` runs there, so fathom must be installed there. The inventory is kept here until \
             fathom exits.",
    ),
    long(
        ExploreOption::Ssh,
        "ssh",
        ENGINE,
        "set the command for `--remote`, with its options (default: `ssh`)",
    )
    .required("COMMAND", ValueKind::Text)
    .more("An example is `ssh -p 2222`. `--`, HOST and the command for the remote shell are appended."),
    both(
        ExploreOption::OneFileSystem,
        b'x',
        "one-file-system",
        SHOWN,
        "stay on the file system of each PATH",
    ),
    long(
        ExploreOption::Exclude,
        "exclude",
        SHOWN,
        "skip entries whose name or path matches GLOB, and everything below them; repeatable",
    )
    .required("GLOB", ValueKind::Text)
    .more(
        "GLOB works as in `fathom du --exclude`. Removing a directory also removes what was skipped in \
             it.",
    ),
    both(
        ExploreOption::ExcludeFrom,
        b'X',
        "exclude-from",
        SHOWN,
        "skip entries that match a pattern in FILE, one per line",
    )
    .required("FILE", ValueKind::File),
    long(ExploreOption::Si, "si", SHOWN, "show sizes in powers of 1000 instead of 1024"),
    long(
        ExploreOption::ApparentSize,
        "apparent-size",
        SHOWN,
        "show apparent sizes instead of disk usage; the key `a` switches",
    ),
    long(
        ExploreOption::Sort,
        "sort",
        SHOWN,
        "sort by `size` (default), `name`, `count`, `mtime` or `growth` at first",
    )
    .required("COLUMN", ValueKind::Words(SORT_WORDS)),
    long(
        ExploreOption::PrintMarked,
        "print0-marked",
        ACTIONS,
        "print the paths of the marked entries at exit, each ended by a NUL byte",
    )
    .more("Standard output may be a pipe: the screen is drawn on the controlling terminal (`/dev/tty`)."),
    long(
        ExploreOption::ReadOnly,
        "read-only",
        ACTIONS,
        "disable removal and all commands that start programs",
    ),
    long(ExploreOption::NoMouse, "no-mouse", ACTIONS, "leave the mouse to the terminal, for selecting text"),
    long(ExploreOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)),
    long(
        ExploreOption::Threads,
        "threads",
        ENGINE,
        "use N threads (1 to 4096) instead of adapting their number",
    )
    .required("N", ValueKind::Text),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const EXPLORE: Command<ExploreOption> = Command {
    name: "fathom explore",
    brief: "browse file trees and inventories in the terminal, and clean up",
    usage: &[
        "[OPTION]... [--since OLDER] [PATH]...",
        "[OPTION]... INVENTORY [--since OLDER]",
        "[OPTION]... --remote HOST:PATH [--since OLDER]",
    ],
    about: &[
        "Shows what takes the space in each PATH while it is being walked. Without PATH, shows the current \
         directory. An INVENTORY made by `fathom scan` opens at once, however large it is.",
        "Enter opens a directory, and the left arrow leaves it. Space marks an entry; marked entries can \
         be moved to the trash, deleted, or printed for other programs. `?` shows all keys.",
    ],
    sections: &[SHOWN, ACTIONS, ENGINE, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[KEYS, FILTERS, MARKS, WALK_MODELS, STATUS],
    examples: &[
        ("fathom explore", "browse the current directory"),
        ("fathom explore -x /", "browse one file system"),
        ("fathom explore --since monday.inv today.inv", "what grew since Monday"),
        ("fathom explore --remote nas:/srv", "a tree on another machine"),
        ("fathom explore --print0-marked ~ | xargs -0 du -sh", "choose entries for another program"),
    ],
    see_also: &["fathom", "fathom-scan", "fathom-top", "fathom-du"],
};

const KEYS: Note = Note {
    title: "Keys",
    text: &[
        "Arrows, `h`, `j`, `k`, `l`, Page Up, Page Down, Home, End and the mouse move; Enter enters a \
         directory.",
        "`1` to `6`: tree, largest files, by extension, by owner, by age, treemap.",
        "`n`, `s`, `C`, `M`, `w` sort by name, size, count, modification time and growth; pressed again, \
         in reverse. `a` switches between disk usage and apparent size, `t` puts directories first, `e` \
         hides names that begin with a dot.",
        "`g`, `c`, `m`, `u` turn the columns share, count, modification and owner on and off; columns that \
         do not fit are left out.",
        "`/` sets a filter, `f` finds a name or a path, `i` shows everything about an entry and about the \
         space of its file system, `?` shows the keys.",
        "The last line has the size of the file system and its free space. If they take much, it also has \
         the space of deleted files that are still open, with the process that has the largest one open, \
         as far as the descriptors in /proc show it; and space in no file of the tree, if the tree is a whole file system and was read \
         without errors.",
        "`r` reads a directory again, `p` pauses the walk, `b` runs a shell in the directory, `o` opens \
         the entry, `v` shows its text in `$PAGER`, `y` copies its path to the clipboard of the terminal. \
         `E` writes all rows of the view to a new file, as comma-separated values with sizes in bytes. `q` \
         quits, and `Q` also prints the path of the directory.",
        "The letter beside the size: `~` being walked, `.` something below could not be read, `!` could \
         not be read, `>` skipped, `<` skipped entries in it (`--exclude`, `-X`), `-` \
         removed since the older inventory, `H` has several names (hard links), `@` neither a file nor a \
         directory, `e` an empty directory.",
        "A file with several names counts once in the size of each directory that has one of them, at any \
         depth, as in ncdu; each name is an entry. `(64M shared)` behind a directory means that 64M of it \
         have names elsewhere, too: removing the directory does not free them.",
    ],
    man_only: true,
};

const FILTERS: Note = Note {
    title: "Filters",
    text: &[
        "A filter is a list of words, separated by spaces, which must all match: `size>10M`, `size<=4K`, \
         `age>30d`, `age<12h`, `type:f,l`, `owner:NAME`, a part of a name, or a pattern for a whole name \
         (`*.log`). `!` before a word negates it; a word with spaces is quoted. An age is like `90s`, \
         `12h`, `30d`, `2w` or `1y` (365 days), and a size like `10M`, both as in `fathom list`. If a \
         word is not understood, the prompt stays open. A filter applies to the rows of the view.",
        "In the list of the largest files (`2`), a filter searches all files below the directory: the \
         largest 1,000 that match are shown, and all of them are counted. Esc stops a search. `+` and `*` \
         change the marks of all files that match, up to 250,000.",
        "To delete by a rule: `2`, then `/` with `*.log age>1y`, `+` to mark everything shown, and `d`.",
    ],
    man_only: true,
};

const MARKS: Note = Note {
    title: "Marks and removal",
    text: &[
        "A mark belongs to the inode that was shown under a path, not to a line on the screen: sorting, \
         filtering and reading again do not change what is marked.",
        "`d` deletes the marked entries, and `D` moves them to the trash; without marks, they apply to the \
         entry under the cursor. The number of files and directories, and the space that will be freed, \
         are shown first. For more than 100 files or directories, the number of files must be typed. An \
         entry that has become another inode, or a file that has changed since it was shown, is not \
         removed.",
        "Every removal is logged in `$XDG_STATE_HOME/fathom/removed.jsonl` \
         (`~/.local/state/fathom/removed.jsonl`), in the format of `fathom rm --log`.",
        "`W` writes a shell script that removes the marked entries, Tab lists them, `*` inverts the marks, \
         `+` marks everything shown, and `-` clears all marks.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: the user quit.",
        "1: the terminal failed.",
        "2: the command line is wrong, there is no terminal, or the tree or inventory cannot be opened.",
        "130, 143, 129: interrupted by Ctrl-C, SIGTERM or SIGHUP; no paths are printed.",
    ],
    man_only: true,
};
