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
    Full,
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

const SCANNED: &str = "What is scanned, and where it goes";
const ENGINE: &str = "How the work is done";
const ABOUT: &str = "About the program";

/// All options.
pub(crate) const FLAGS: &[Flag<ScanOption>] = &[
    both(ScanOption::Output, b'o', "output", SCANNED, "make the inventory in the new directory INVENTORY")
        .required("INVENTORY", ValueKind::File)
        .more(
            "The directory is called INVENTORY.part until the scan ends. An INVENTORY is complete, or its manifest \
         says what is missing. With `-` as INVENTORY, the finished inventory goes to standard output as a tar archive, \
         unless that is a terminal; the scan makes it in a temporary directory (`TMPDIR`) first, which takes as much \
         space as the archive.",
        ),
    long(ScanOption::Keep, "keep", SCANNED, "instead of `-o`: add a dated inventory to the store DIR, from the one before")
        .required("DIR", ValueKind::File)
        .more(
            "DIR is made if it does not exist. The inventory is named by the time, such as `2026-11-26T03-00-00Z.inv`, and made `--since` the \
             newest one in DIR of the same trees, machine and options whose scan came to its end; where there is none, every directory is \
             read. Each PATH is made absolute. With `--resume`, the newest scan of the same PATHs \
             that did not end is gone on with; without a PATH, of any. One run at a time may add to DIR. `fathom history` \
             lists it, `fathom grew` says what grew.",
        ),
    long(ScanOption::Full, "full", SCANNED, "with `--keep`, read every directory, whether it has changed or not")
        .more("Files that were written to in directories that have not changed have their new sizes only then: see Scanning again."),
    long(ScanOption::KeepLast, "keep-last", SCANNED, "after the scan, keep the last N inventories in DIR, and remove others")
        .required("N", ValueKind::Text)
        .more("What the four of these options keep is never removed, nor is the newest inventory: see fathom-history(1)."),
    long(ScanOption::KeepDaily, "keep-daily", SCANNED, "keep the newest inventory of each of the last N days that have any")
        .required("N", ValueKind::Text),
    long(ScanOption::KeepWeekly, "keep-weekly", SCANNED, "keep the newest inventory of each of the last N weeks")
        .required("N", ValueKind::Text),
    long(ScanOption::KeepMonthly, "keep-monthly", SCANNED, "keep the newest inventory of each of the last N months")
        .required("N", ValueKind::Text),
    long(ScanOption::Mode, "mode", SCANNED, "let others read the inventory: MODE is the octal permission bits of its files (600)")
        .required("MODE", ValueKind::Text)
        .more(
            "By default only its owner may read it: it has names that others may not be able to list. Users who may \
         read the files may enter the directory: `--mode=640` makes it 750.",
        ),
    both(ScanOption::OneFileSystem, b'x', "one-file-system", SCANNED, "nothing that is on another file system"),
    long(ScanOption::Exclude, "exclude", SCANNED, "nothing whose name or path matches GLOB, and nothing below it")
        .required("GLOB", ValueKind::Text)
        .more(
            "As `fathom du --exclude` has it: GLOB is held against the path from each of its names on, and `*` matches \
             slashes too. What is left out has no row; PATH itself is never left out. The manifest has the patterns.",
        ),
    long(ScanOption::ExcludeFrom, "exclude-from", SCANNED, "the same for each line of FILE").required("FILE", ValueKind::File),
    both(ScanOption::MaxDepth, b'd', "max-depth", SCANNED, "read nothing more than N levels below a PATH")
        .required("N", ValueKind::Text)
        .more("Directories at that level have a row with the state `skipped`; their entries are not read."),
    long(ScanOption::IgnoreVcs, "ignore-vcs", SCANNED, "nothing that `.gitignore`, `.ignore` and git's own lists leave out")
        .more("As `fathom list --ignore-vcs` has it."),
    long(ScanOption::Also, "also", SCANNED, "more columns: `project`, `xattrs`, `acl`, `ignored`, with commas")
        .required("COLUMNS", ValueKind::Words(&fathom_inventory::store::OptionalColumns::NAMES))
        .more(
            "`project` is the number by which project quotas are counted, `xattrs` the names of extended attributes, `acl` whether \
             there is an access control list. `xattrs` and `acl` take one call for each entry between them, `project` another (before \
             Linux 6.17 it opens each file: three). Without this option there are no such columns, and no such calls. `ignored` is \
             whether `--ignore-vcs` would leave the entry out, for `fathom report` and queries; it does not go with `--since`.",
        ),
    long(ScanOption::Resume, "resume", SCANNED, "go on with the scan that was to make INVENTORY and did not end")
        .more(
            "It may have been interrupted, killed, come to its deadline, or lost the machine. The operands, `-x`, `--also` and `--since` \
             are those of that scan, and need not be given; what it had put on the disk is checked, and kept as it is. Where \
             there is nothing to go on with, one of the operands given is begun.",
        ),
    long(ScanOption::Since, "since", SCANNED, "read only directories that have changed since the inventory PREVIOUS")
        .required("PREVIOUS", ValueKind::File)
        .more(
            "The entries of all other directories are taken from PREVIOUS, with their metadata of that time: names, \
             types and inode numbers are right, but sizes, times, owners and modes are as old as the directory's \
             `scanned` says. See Scanning again, below.",
        ),
    long(ScanOption::Estimate, "estimate", SCANNED, "no inventory: estimate what there is, within TIME (`500ms`, `10s`, `1h30m`)")
        .required("TIME", ValueKind::Text)
        .more(
            "Entries, sizes and the largest subtrees. If the time is enough for all of it, the answer is exact, and says so; if \
             it is enough to leave out nothing that may hold much, there are ranges of 95 % confidence. See Estimates, below.",
        ),
    long(ScanOption::Json, "json", SCANNED, "write the estimate as JSON, an object a line"),
    long(ScanOption::Rate, "rate", ENGINE, "look at N entries a second at most").required("N", ValueKind::Text).more(
        "On average: each thread may look at up to 1,024 entries of a directory at once.",
    ),
    long(ScanOption::MaxInFlight, "max-in-flight", ENGINE, "never have more than N system calls waiting at once")
        .required("N", ValueKind::Text),
    long(ScanOption::Checkpoint, "checkpoint", ENGINE, "write a checkpoint to the disk after every N entries (1000000)")
        .required("N", ValueKind::Text)
        .more("And every minute. `--resume` continues from the last checkpoint."),
    long(ScanOption::Deadline, "deadline", ENGINE, "end after TIME (`90s`, `1h30m`, `1.5d`) with what there is by then")
        .required("TIME", ValueKind::Text),
    long(ScanOption::Stats, "stats", ENGINE, "at the end, print a summary on standard error"),
    long(ScanOption::Progress, "progress", ENGINE, "progress: `auto` (on a terminal), `always` or `never`")
        .optional("WHEN", ValueKind::Words(WHEN_WORDS)),
    long(ScanOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)),
    long(ScanOption::Threads, "threads", ENGINE, "use N threads throughout instead of adapting their number")
        .required("N", ValueKind::Text),
    flag::help(ABOUT),
    flag::version(ABOUT),
];

/// The description of the command.
pub(crate) const SCAN: Command<ScanOption> = Command {
    name: "fathom scan",
    brief: "make an inventory of file trees, to be asked later",
    usage: &[
        "[OPTION]... -o INVENTORY PATH...",
        "[OPTION]... -o INVENTORY --resume [PATH]...",
        "[OPTION]... --keep DIR PATH...",
        "[OPTION]... --estimate TIME PATH...",
    ],
    about: &[
        "Writes what each PATH and everything below it is (names, types, sizes, owners, times) to a directory of \
         Parquet files, which `fathom query` and every other program that reads Parquet can ask. It has a row for each \
         directory, too, with the sums of all that is below.",
        "With `--estimate`, samples the trees instead, and says about what an inventory of them would have.",
    ],
    sections: &[SCANNED, ENGINE, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[INCOMPLETE, AGAIN, ESTIMATES, WALK_MODELS, STATUS],
    examples: &[
        ("fathom scan -o home.inv ~", "an inventory of the home directory"),
        ("fathom scan -x -o root.inv /", "of one file system"),
        ("fathom scan --deadline 8h -o nfs.inv /mnt/nfs", "what can be had in a night"),
        ("fathom scan --deadline 8h -o nfs.inv --resume", "and the next night, from there on"),
        (
            "fathom scan --since nfs.inv -o nfs-2.inv /mnt/nfs",
            "what has changed since, in a fraction of the time",
        ),
        (
            "fathom scan --also xattrs,acl -o srv.inv /srv",
            "with the names of extended attributes, and who has an ACL",
        ),
        ("fathom scan --keep store --keep-daily 14 --keep-weekly 8 /srv", "every night, for `fathom grew`"),
        (
            "ssh nas fathom scan -o - /srv | tar -xC srv.inv",
            "scan there, and keep the inventory here, in a new directory",
        ),
        ("fathom scan --estimate 30s /srv", "about how much there is, and where"),
    ],
    see_also: &["fathom", "fathom-query", "fathom-top", "fathom-list", "fathom-history", "fathom-grew"],
};

const INCOMPLETE: Note = Note {
    title: "Incomplete inventories",
    text: &[
        "A directory that cannot be read, or only in part, has a row that says so, and the table of errors has the \
         cause. An inventory that lacks anything is said to be incomplete, by the exit status, on standard error and in its \
         manifest. That of a scan that was interrupted or came to its deadline has what was found until then, and `--resume` \
         completes it.",
    ],
    man_only: true,
};

const AGAIN: Note = Note {
    title: "Scanning again",
    text: &[
        "With `--since` each directory is looked at, but read only if its inode number or its time of \
         modification or change is not what PREVIOUS has. A file that is made, removed or renamed modifies \
         its directory, so no such change is missed. A file that is written to, or whose owner or mode is \
         changed, does not: of directories that were not read, the size, blocks, times, owner, group, mode \
         and number of links of entries other than directories are those of PREVIOUS, and sums of them are as \
         old. The column `scanned` of a directory says how old that is.",
        "A directory is read in any case if it was changed less than two seconds before PREVIOUS was begun or \
         later, or if anything in it was unknown to PREVIOUS. What is relied on: the filesystem keeps times \
         of directories as POSIX has them, and its clock is no more than two seconds from this machine's.",
        "At the end it is said how much was not read; the manifest has it as `since`.",
    ],
    man_only: true,
};

const ESTIMATES: Note = Note {
    title: "Estimates",
    text: &[
        "Directories that seem to hold most, by their link counts and sizes, are read for good until half of the time is over; \
         of those known by then and not read, some are drawn at random, read, and counted for as many times as the odds of drawing \
         them say. On average that is right, whatever the tree is like.",
        "A range in parentheses holds the truth in 95 of 100 runs. It is given only if each directory that may hold much \
         was read with a probability of 90 % or more; for sizes that is every directory, for entries each that may have \
         subdirectories by its link count. Otherwise the line says `about` what, and `at least` what was counted.",
        "A file with several names counts for its share of the file's size under each: right in sum if all of its names are in what is \
         estimated.",
        "After Ctrl-C there is the last estimate, which may be of the time until a tenth or a third of TIME was over; before \
         that, only what was counted. No run takes longer than 1.2 times TIME, or one second if that is longer.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: the inventory is complete.",
        "1: there is an inventory, but something is missing in it.",
        "2: there is none: the command line was wrong, or it could not be written.",
        "130, 143, 129: interrupted, by Ctrl-C, SIGTERM or SIGHUP; there is an inventory of what was found until then, and \
         `--resume` goes on with it.",
        "For an estimate, likewise: 1 if something could not be read, which is missing in it.",
    ],
    man_only: true,
};
