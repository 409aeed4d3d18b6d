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

const REMOVED: &str = "What is removed, and how";
const SHOWN: &str = "What is asked and shown";
const ENGINE: &str = "How the work is done";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<RmOption>] = &[
    both(RmOption::Recursive, b'r', "recursive", REMOVED, "also remove directories, with everything in them"),
    short(RmOption::Recursive, b'R', REMOVED, "the same as -r"),
    long(RmOption::From0, "from0", REMOVED, "remove the paths in FILE, each ended by a NUL byte; `-` is standard input")
        .required("FILE", ValueKind::File)
        .more(
            "As `fathom list -0` and `find -print0` write them. They are below the working directory or, if they begin \
             with a slash, below `/`, and no symbolic link is followed in them: since they were listed, others may have \
             put one there. It cannot be combined with a PATH.",
        ),
    long(RmOption::Root, "root", REMOVED, "with --from0: only paths that begin with DIR, as `fathom list DIR` prints them")
        .required("DIR", ValueKind::File)
        .more("DIR itself may be, or lead through, a symbolic link. Behind it none is followed."),
    long(RmOption::Ids, "ids", REMOVED, "with --from0: before each path stand its device, inode number and time of change")
        .more(
            "As `fathom list --ids` and `find -printf '%D %i %C@ %p\\0'` write them. What has another inode by then, or \
             is a file that has been changed, stays.",
        ),
    long(RmOption::Trash, "trash", REMOVED, "move each PATH to the trash instead").more(
        "To the user's trash if that is on the same file system, otherwise to the trash at the top of the mount. \
         Nothing is ever copied: without a trash on its file system, a PATH stays where it is.",
    ),
    long(RmOption::DryRun, "dry-run", REMOVED, "only say how much would be removed, and with -v what"),
    both(RmOption::Force, b'f', "force", SHOWN, "ask nothing, and ignore a PATH that does not exist"),
    both(RmOption::Verbose, b'v', "verbose", SHOWN, "print each file and directory that is removed"),
    long(RmOption::Log, "log", SHOWN, "append a JSON object for each entry that is removed to FILE")
        .required("FILE", ValueKind::File),
    long(RmOption::Progress, "progress", ENGINE, "progress: `auto` (on a terminal), `always` or `never`")
        .optional("WHEN", ValueKind::Words(WHEN_WORDS)),
    long(RmOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)),
    long(RmOption::Threads, "threads", ENGINE, "use N threads throughout instead of adapting their number")
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
        "Removes each PATH; a directory only with `-r`. Many directories are emptied at once, with as many threads as \
         the storage can use.",
        "On a terminal, it first says how many files there are, how many bytes they take and how many the file system \
         gets back, and asks. To confirm more than 100 files or directories, the number of files must be typed. If there is more by \
         then, it asks again. What several PATHs share counts once. If standard \
         input is the list, it asks on the terminal, and without one requires `-f`.",
    ],
    sections: &[REMOVED, SHOWN, ENGINE, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[SAFETY, BYTES, LOG_NOTE, WALK_MODELS, STATUS],
    examples: &[
        ("fathom rm -r --dry-run projects", "how much it is, and how much would be free"),
        ("fathom rm -rf -v src", "a tree, without a question"),
        (
            "fathom list -n '*.log' --ids . | fathom rm -fv --ids --from0 -",
            "all logs, as they were when they were listed",
        ),
    ],
    see_also: &["fathom", "fathom-list", "rm"],
};

const SAFETY: Note = Note {
    title: "What is never removed",
    text: &[
        "Symbolic links are removed and never followed below a PATH. A mount point is an error and stays, with \
         everything in it. `/`, a PATH that ends in `.` or `..`, and the working directory with all directories that \
         contain it are refused.",
        "Every call is relative to an open directory, and directories are compared with those that were read before \
         they are removed, so another process cannot direct it to other files by renaming directories or by links.",
    ],
    man_only: false,
};

const BYTES: Note = Note {
    title: "Bytes",
    text: &[
        "The file system gets the space of a file back when its last name (hard link) is removed, so a file that has \
         another name elsewhere frees nothing. Space that several files share, and files that are still open, are not \
         taken into account.",
    ],
    man_only: true,
};

const LOG_NOTE: Note = Note {
    title: "Log",
    text: &[
        "Each line of `--log` is an object with `time`, `action` (`remove` or `trash`), `path`, `type`, `dev`, `ino` \
         and `bytes` (allocated). A path that is not UTF-8 has replacement characters, and `path_bytes` holds its \
         bytes in hexadecimal. If the log cannot be written, the removal stops.",
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
