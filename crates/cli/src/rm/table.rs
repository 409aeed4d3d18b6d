//! The options of `fathom rm`: names and help texts. `args.rs` implements them.

use crate::models::{WALK_BRIEF, WALK_MODELS, WALK_WORDS};
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long, short};
use crate::shared::value::WHEN_WORDS;

/// The options of `fathom rm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RmOption {
    Recursive,
    From0,
    Root,
    Ids,
    Trash,
    DryRun,
    Force,
    Verbose,
    Log,
    Progress,
    Io,
    Threads,
}

const REMOVED: &str = "Removal";
const SHOWN: &str = "Confirmation and output";
const ENGINE: &str = "Performance";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<RmOption>] = &[
    both(RmOption::Recursive, b'r', "recursive", REMOVED, "remove directories too, with everything in them"),
    short(RmOption::Recursive, b'R', REMOVED, "same as `-r`"),
    long(
        RmOption::From0,
        "from0",
        REMOVED,
        "remove the paths in FILE, each ended by a NUL byte; `-` is standard input",
    )
    .required("FILE", ValueKind::File)
    .more(
        "The list has the format of `fathom list -0` and `find -print0`. Paths are below the working \
             directory or, if they begin with a slash, below `/`. No symbolic link in them is followed, \
             because somebody may have put it there since they were listed. Cannot be combined with a \
             PATH.",
    ),
    long(
        RmOption::Root,
        "root",
        REMOVED,
        "accept only paths that begin with DIR, as `fathom list DIR` prints them; with `--from0`",
    )
    .required("DIR", ValueKind::File)
    .more("DIR itself may be, or lead through, a symbolic link. Behind DIR, none is followed."),
    long(
        RmOption::Ids,
        "ids",
        REMOVED,
        "expect device, inode and change time before each path; with `--from0`",
    )
    .more(
        "The list has the format of `fathom list --ids` and `find -printf '%D %i %C@ %p\\0'`. A path \
             that has another inode by then, or a file that has changed, is not removed.",
    ),
    long(RmOption::Trash, "trash", REMOVED, "move each PATH to the trash instead").more(
        "The trash is the user's, if it is on the same file system, or else the one at the top of the \
             mount. Nothing is copied: without a trash on its file system, a PATH is not removed.",
    ),
    long(
        RmOption::DryRun,
        "dry-run",
        REMOVED,
        "show how much would be removed, and with `-v` what; remove nothing",
    ),
    both(RmOption::Force, b'f', "force", SHOWN, "never ask, and ignore a PATH that does not exist"),
    both(RmOption::Verbose, b'v', "verbose", SHOWN, "print each file and directory that is removed"),
    long(RmOption::Log, "log", SHOWN, "append a JSON object for each removed entry to FILE")
        .required("FILE", ValueKind::File),
    long(
        RmOption::Progress,
        "progress",
        ENGINE,
        "show progress: `auto` (default; only on a terminal), `always` or `never`",
    )
    .optional("WHEN", ValueKind::Words(WHEN_WORDS)),
    long(RmOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)),
    long(RmOption::Threads, "threads", ENGINE, "use N threads (1 to 4096) instead of adapting their number")
        .required("N", ValueKind::Text),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const RM: Command<RmOption> = Command {
    name: "fathom rm",
    brief: "remove files and directories in parallel, or move them to the trash",
    usage: &["[OPTION]... PATH...", "[OPTION]... --from0 FILE"],
    about: &[
        "Removes each PATH, and directories with `-r`. Many directories are emptied in parallel, with as \
         many threads as the storage can use.",
        "On a terminal, first shows the number of files, their size and how much space will be freed, and \
         asks for confirmation: for more than 100 files or directories, by typing the number of files. If \
         there are more by then, asks again. Files that several PATHs share count once. If standard input \
         is the list of paths, the question is asked on the terminal; without one, `-f` is required.",
    ],
    sections: &[REMOVED, SHOWN, ENGINE, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[SAFETY, BYTES, LOG_NOTE, WALK_MODELS, STATUS],
    examples: &[
        ("fathom rm -r --dry-run projects", "how much there is, and how much would be freed"),
        ("fathom rm -rf -v src", "remove a tree without a question"),
        (
            "fathom list -n '*.log' --ids . | fathom rm -fv --ids --from0 -",
            "all logs, unless they changed since they were listed",
        ),
    ],
    see_also: &["fathom", "fathom-list", "rm"],
};

const SAFETY: Note = Note {
    title: "What is never removed",
    text: &[
        "Symbolic links are removed, and never followed below a PATH. A mount point is an error and is \
         kept, with everything in it. `/`, a PATH that ends in `.` or `..`, and the working directory with \
         all its parents are refused.",
        "Each call is relative to an open directory, and a directory is removed only if it is the one that \
         was read. Another process therefore cannot redirect the removal to other files by renaming \
         directories or creating links.",
    ],
    man_only: false,
};

const BYTES: Note = Note {
    title: "Bytes",
    text: &["The file system frees the space of a file when its last name (hard link) is removed and no \
         process has it open any more. So a file with another name elsewhere frees nothing, and an open \
         file frees its space later: `--dry-run` and the question name a process that has the largest one \
         open, as far as the descriptors in /proc show it. Files that are only mapped are not known. Space \
         that several files share is not taken into account."],
    man_only: true,
};

const LOG_NOTE: Note = Note {
    title: "Log",
    text: &[
        "Each line of `--log` is an object with `time`, `action` (`remove` or `trash`), `path`, `type`, \
         `dev`, `ino` and `bytes` (disk usage). A path that is not UTF-8 has replacement characters, and \
         `path_bytes` holds its bytes in hexadecimal. If the log cannot be written, the removal stops.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything was removed.",
        "1: something could not be removed, or the answer to the question was no.",
        "2: the command line was wrong, or a file that it names could not be opened.",
        "130 or another number above 128: a signal ended it. It says how much was removed.",
    ],
    man_only: true,
};
