//! The options of `fathom scan`: names and help texts. `args.rs` implements them.

use crate::models::{WALK_BRIEF, WALK_MODELS, WALK_WORDS};
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long};
use crate::shared::value::WHEN_WORDS;

/// The options of `fathom scan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanOption {
    Output,
    Keep,
    OnlyChanged,
    KeepLast,
    KeepDaily,
    KeepWeekly,
    KeepMonthly,
    OneFileSystem,
    Mode,
    Exclude,
    ExcludeFrom,
    MaxDepth,
    IgnoreVcs,
    Also,
    Resume,
    Since,
    Estimate,
    Json,
    Deadline,
    Rate,
    MaxInFlight,
    Checkpoint,
    Stats,
    Progress,
    Io,
    Threads,
}

const SCANNED: &str = "Input and output";
const ENGINE: &str = "Performance and limits";
const ABOUT: &str = "General";

/// All options.
pub(crate) const FLAGS: &[Flag<ScanOption>] = &[
    both(ScanOption::Output, b'o', "output", SCANNED, "write the inventory to the new directory INVENTORY")
        .required("INVENTORY", ValueKind::File)
        .more(
            "The directory is called INVENTORY.part until the scan ends. An INVENTORY is complete, or its \
             manifest says what is missing. If INVENTORY is `-`, the finished inventory is written to \
             standard output as a tar archive, unless that is a terminal. The scan first makes it in a \
             temporary directory (`TMPDIR`), which takes as much space as the archive.",
        ),
    long(ScanOption::Keep, "keep", SCANNED, "add a dated inventory to the store DIR, instead of `-o`")
        .required("DIR", ValueKind::File)
        .more(
            "DIR is created if it does not exist. The inventory is named after the time, such as \
             `2026-11-26T03-00-00Z.inv`. Each PATH is made absolute. `--resume` continues the newest \
             stopped scan of the same PATHs or, without a PATH, of any. Only one run at a time can add to \
             DIR. `fathom history` lists the store, and `fathom grew` shows what grew.",
        ),
    long(
        ScanOption::OnlyChanged,
        "only-changed",
        SCANNED,
        "skip directories that have not changed since the last inventory in the store; with `--keep`",
    )
    .more(
        "For trees that are too large to read each time: as with `--since` from the newest finished \
             inventory in DIR that has the same trees, machine and options. If there is none, every \
             directory is read. A file that was changed in place keeps its old size in the inventory until \
             its directory changes: see Scanning again.",
    ),
    long(
        ScanOption::KeepLast,
        "keep-last",
        SCANNED,
        "keep the last N inventories in DIR, and remove others after the scan",
    )
    .required("N", ValueKind::Text)
    .more(
        "The newest inventory, and all that any of these four options keeps, are never removed: see \
             fathom-history(1).",
    ),
    long(
        ScanOption::KeepDaily,
        "keep-daily",
        SCANNED,
        "keep the newest inventory of each of the last N days that have any",
    )
    .required("N", ValueKind::Text),
    long(
        ScanOption::KeepWeekly,
        "keep-weekly",
        SCANNED,
        "keep the newest inventory of each of the last N weeks that have any",
    )
    .required("N", ValueKind::Text),
    long(
        ScanOption::KeepMonthly,
        "keep-monthly",
        SCANNED,
        "keep the newest inventory of each of the last N months that have any",
    )
    .required("N", ValueKind::Text),
    long(
        ScanOption::Mode,
        "mode",
        SCANNED,
        "set the permission bits of the inventory's files, in octal (default: 600)",
    )
    .required("MODE", ValueKind::Text)
    .more(
        "By default, only the owner can read an inventory, because it has names that others may not be \
             able to list. Users who can read the files can enter the directory: `--mode=640` makes it \
             750.",
    ),
    both(ScanOption::OneFileSystem, b'x', "one-file-system", SCANNED, "stay on the file system of each PATH"),
    long(
        ScanOption::Exclude,
        "exclude",
        SCANNED,
        "skip entries whose name or path matches GLOB, and everything below them; repeatable",
    )
    .required("GLOB", ValueKind::Text)
    .more(
        "GLOB works as in `fathom du --exclude`: it is matched against every part of the path that \
             begins at a name, and `*` also matches slashes. A skipped entry has no row. A PATH itself is \
             never skipped. The manifest records the patterns.",
    ),
    long(
        ScanOption::ExcludeFrom,
        "exclude-from",
        SCANNED,
        "skip entries that match a pattern in FILE, one per line",
    )
    .required("FILE", ValueKind::File),
    both(
        ScanOption::MaxDepth,
        b'd',
        "max-depth",
        SCANNED,
        "descend at most N levels below a PATH (default: all)",
    )
    .required("N", ValueKind::Text)
    .more("Directories at that level have a row with the state `skipped`, and are not read."),
    long(
        ScanOption::IgnoreVcs,
        "ignore-vcs",
        SCANNED,
        "skip files that `.gitignore`, `.ignore` and git's own lists exclude",
    )
    .more("The rules are those of `fathom list --ignore-vcs`."),
    long(
        ScanOption::Also,
        "also",
        SCANNED,
        "record more columns, with commas: `project`, `xattrs`, `acl`, `ignored`",
    )
    .required("COLUMNS", ValueKind::Words(&fathom_inventory::store::OptionalColumns::NAMES))
    .more(
        "`project` is the number that project quotas use, `xattrs` the names of extended attributes, \
             and `acl` whether there is an access control list. `xattrs` and `acl` together take one \
             system call per entry, `project` another one (before Linux 6.17 three, because it opens each \
             file). Without this option, these columns and calls do not exist. `ignored` is whether \
             `--ignore-vcs` would skip the entry, for `fathom report` and queries; it excludes `--since`.",
    ),
    long(ScanOption::Resume, "resume", SCANNED, "continue the scan of INVENTORY that was stopped").more(
        "The scan may have been interrupted or killed, have reached its deadline, or the machine may \
             have crashed. Operands, `-x`, `--also` and `--since` are those of the stopped scan, and can \
             be omitted. What it had written is verified and kept. If there is nothing to continue, a new \
             scan of the operands starts.",
    ),
    long(
        ScanOption::Since,
        "since",
        SCANNED,
        "read only directories that have changed since the inventory PREVIOUS",
    )
    .required("PREVIOUS", ValueKind::File)
    .more(
        "The entries of all other directories are copied from PREVIOUS: their names, types and inode \
             numbers are current, but their sizes, times, owners and modes are as old as the directory's \
             `scanned` says. See Scanning again.",
    ),
    long(
        ScanOption::Estimate,
        "estimate",
        SCANNED,
        "estimate the contents within TIME, such as 500ms, 10s or 1h30m; write no inventory",
    )
    .required("TIME", ValueKind::Text)
    .more(
        "Estimates entries, sizes and the largest subtrees. If there is time to read everything, the \
             answer is exact, and says so. If there is time to read every directory that may be large, \
             ranges of 95 % confidence are given. See Estimates.",
    ),
    long(ScanOption::Json, "json", SCANNED, "print the estimate as JSON, one object per line"),
    long(ScanOption::Rate, "rate", ENGINE, "read at most N entries per second (default: no limit)")
        .required("N", ValueKind::Text)
        .more("This is an average: each thread may read up to 1,024 entries of a directory at once."),
    long(
        ScanOption::MaxInFlight,
        "max-in-flight",
        ENGINE,
        "run at most N system calls at once (default: no limit)",
    )
    .required("N", ValueKind::Text),
    long(
        ScanOption::Checkpoint,
        "checkpoint",
        ENGINE,
        "write a checkpoint after every N entries (default: 1000000)",
    )
    .required("N", ValueKind::Text)
    .more("A checkpoint is also written every minute. `--resume` continues from the last one."),
    long(
        ScanOption::Deadline,
        "deadline",
        ENGINE,
        "stop after TIME, such as 90s, 1h30m or 1.5d, and keep what was found",
    )
    .required("TIME", ValueKind::Text),
    long(ScanOption::Stats, "stats", ENGINE, "print a summary on standard error at the end"),
    long(
        ScanOption::Progress,
        "progress",
        ENGINE,
        "show progress: `auto` (default; only on a terminal), `always` or `never`",
    )
    .optional("WHEN", ValueKind::Words(WHEN_WORDS)),
    long(ScanOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)),
    long(
        ScanOption::Threads,
        "threads",
        ENGINE,
        "use N threads (1 to 4096) instead of adapting their number",
    )
    .required("N", ValueKind::Text),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const SCAN: Command<ScanOption> = Command {
    name: "fathom scan",
    brief: "record file trees for later queries",
    usage: &[
        "[OPTION]... -o INVENTORY PATH...",
        "[OPTION]... -o INVENTORY --resume [PATH]...",
        "[OPTION]... --keep DIR PATH...",
        "[OPTION]... --estimate TIME PATH...",
    ],
    about: &[
        "Records the names, types, sizes, owners and times of each PATH and everything below it in an \
         inventory: a directory of Parquet files, which `fathom query` and all programs that read Parquet \
         can query. It also has a row for each directory, with the sums of everything below it.",
        "With `--estimate`, samples the trees instead, and estimates what an inventory would contain.",
    ],
    sections: &[SCANNED, ENGINE, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[INCOMPLETE, AGAIN, ESTIMATES, WALK_MODELS, STATUS],
    examples: &[
        ("fathom scan -o home.inv ~", "record the home directory"),
        ("fathom scan -x -o root.inv /", "record one file system"),
        ("fathom scan --deadline 8h -o nfs.inv /mnt/nfs", "as much as one night allows"),
        ("fathom scan --deadline 8h -o nfs.inv --resume", "continue the next night"),
        (
            "fathom scan --since nfs.inv -o nfs-2.inv /mnt/nfs",
            "read only directories that have changed, in a fraction of the time",
        ),
        (
            "fathom scan --also xattrs,acl -o srv.inv /srv",
            "also record names of extended attributes, and which files have an ACL",
        ),
        ("fathom scan --keep store --keep-daily 14 --keep-weekly 8 /srv", "every night, for `fathom grew`"),
        (
            "ssh nas fathom scan -o - /srv | tar -xC srv.inv",
            "scan on another machine, and keep the inventory here, in an existing directory",
        ),
        ("fathom scan --estimate 30s /srv", "estimate how much there is, and where"),
    ],
    see_also: &["fathom", "fathom-query", "fathom-top", "fathom-list", "fathom-history", "fathom-grew"],
};

const INCOMPLETE: Note = Note {
    title: "Incomplete inventories",
    text: &[
        "A directory that cannot be read, or only in part, has a row that says so, and the table of errors \
         has the cause. An incomplete inventory is reported by the exit status, on standard error and in \
         its manifest. A scan that was interrupted or reached its deadline keeps what it found, and \
         `--resume` completes it.",
    ],
    man_only: true,
};

const AGAIN: Note = Note {
    title: "Scanning again",
    text: &[
        "With `--since`, each directory is looked at, but read only if its inode number, modification time \
         or change time differs from PREVIOUS. Creating, removing or renaming a file modifies its \
         directory, so no such change is missed. Writing to a file, or changing its owner or mode, does \
         not modify its directory. In directories that were not read, the size, blocks, times, owner, \
         group, mode and link count of entries other than directories are therefore copied from PREVIOUS, \
         and so are the sums. The column `scanned` of a directory says when it was read.",
        "A directory is always read if it changed later than two seconds before PREVIOUS began, or if \
         PREVIOUS does not know everything in it. Two assumptions are made: the file system maintains the \
         times of directories as POSIX requires, and its clock differs from this machine's by at most two \
         seconds.",
        "At the end, the number of directories that were not read is printed. The manifest has it as \
         `since`.",
    ],
    man_only: true,
};

const ESTIMATES: Note = Note {
    title: "Estimates",
    text: &[
        "For the first half of the time, the directories that seem to contain most, by link count and \
         size, are read and counted exactly. Of the other directories known by then, some are drawn at \
         random and read, and each counts as many times as the probability of drawing it requires. On \
         average this is right for any tree.",
        "A range in parentheses contains the truth in 95 of 100 runs. It is printed only if each directory \
         that may be large was read with a probability of at least 90 %. For sizes that means every \
         directory; for entries, each directory that may have subdirectories by its link count. Without a \
         range, the line says `about` how much was estimated, and `at least` how much was counted.",
        "A file with several names counts for its share of the size under each name: the sum is right if \
         all its names are in the estimated trees.",
        "After Ctrl-C, the last estimate is printed. Estimates are made after a tenth, a third and all of \
         TIME; before the first, only what was counted. A run takes at most 1.2 times TIME, or one second \
         if that is longer.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: the inventory is complete.",
        "1: the inventory was written, but something is missing in it.",
        "2: no inventory was written: the command line is wrong, or writing failed.",
        "130, 143, 129: interrupted by Ctrl-C, SIGTERM or SIGHUP; the inventory has what was found, and \
         `--resume` continues it.",
        "For an estimate: 1 if something could not be read and is missing in it.",
    ],
    man_only: true,
};
