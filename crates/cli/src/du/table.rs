//! The options of `fathom du`: GNU du 9.11's, then fathom's additions. Names and help texts;
//! `args.rs` implements them.

use crate::models::{WALK_BRIEF, WALK_MODELS, WALK_WORDS};
use crate::shared::cmdline::description::{Command, Note};
use crate::shared::flag::{self, Flag, ValueKind, both, long, short};
use crate::shared::grammar;
use crate::shared::value::WHEN_WORDS;

/// The options of `fathom du`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DuOption {
    All,
    ApparentSize,
    BlockSize,
    Bytes,
    CountLinks,
    Dereference,
    DereferenceArgs,
    Exclude,
    ExcludeFrom,
    Files0From,
    HumanReadable,
    Inodes,
    Si,
    MaxDepth,
    Null,
    NoDereference,
    OneFileSystem,
    SeparateDirs,
    Summarize,
    Total,
    Threshold,
    Time,
    TimeStyle,
    Kibibytes,
    Mebibytes,
    Tree,
    Top,
    By,
    From,
    Json,
    Color,
    Progress,
    Io,
    Threads,
    Verbose,
}

const COUNTED: &str = "Counting";
const VISITED: &str = "File selection";
const LINES: &str = "Output lines";
const SIZES: &str = "Size format";
const TIMES: &str = "Times";
const VIEWS: &str = "Views";
const ENGINE: &str = "Performance";
const ABOUT: &str = "General";

/// The values of `--time`, in GNU's order, with synonyms side by side.
pub(crate) const TIME_WORDS: &[&str] = &["atime", "access", "use", "ctime", "status"];
/// The values of `--time-style`, in addition to `+FORMAT`.
pub(crate) const TIME_STYLES: &[&str] = &["full-iso", "long-iso", "iso"];
/// The values of `--by`.
pub(crate) const BY_WORDS: &[&str] = &["ext", "user", "group", "age", "type"];

/// All options. GNU's long options come first and in GNU's order, which appears in the message
/// about an ambiguous abbreviation.
pub(crate) const FLAGS: &[Flag<DuOption>] = &[
    both(DuOption::All, b'a', "all", LINES, "print every file, not only directories"),
    both(
        DuOption::ApparentSize,
        b'A',
        "apparent-size",
        COUNTED,
        "count the lengths of files instead of their disk usage",
    )
    .more(
        "Only regular files and symbolic links have a length here; everything else counts as 0. The \
             length is usually less than the disk usage, but greater for a sparse file or on a compressing \
             file system.",
    ),
    both(
        DuOption::BlockSize,
        b'B',
        "block-size",
        SIZES,
        "print sizes in units of SIZE, rounded up; `-BM` for MiB (default: 1K)",
    )
    .required("SIZE", ValueKind::Text),
    both(
        DuOption::Bytes,
        b'b',
        "bytes",
        SIZES,
        "print lengths in bytes; same as `--apparent-size --block-size=1`",
    ),
    both(DuOption::CountLinks, b'l', "count-links", COUNTED, "count a file once for each of its hard links")
        .more(
            "Without this option, a file counts once, under the first of its names that is found, even if \
             it is below two operands.",
        ),
    both(DuOption::Dereference, b'L', "dereference", VISITED, "follow all symbolic links"),
    both(
        DuOption::DereferenceArgs,
        b'D',
        "dereference-args",
        VISITED,
        "follow symbolic links that are operands, and no others",
    ),
    long(DuOption::Exclude, "exclude", VISITED, "skip files that match PATTERN")
        .required("PATTERN", ValueKind::Text)
        .more(
            "PATTERN is a shell pattern. It is matched against the whole path as printed, and against \
             every part of it that follows a slash; `*` and `?` also match slashes and leading dots. A \
             directory is skipped with everything below it. Skipped files are not counted.",
        ),
    both(
        DuOption::ExcludeFrom,
        b'X',
        "exclude-from",
        VISITED,
        "skip files that match a pattern in FILE, one per line",
    )
    .required("FILE", ValueKind::File)
    .more(
        "Blanks at the end of a line and empty lines are ignored. If FILE is `-`, standard input is \
             read.",
    ),
    long(DuOption::Files0From, "files0-from", VISITED, "read the operands from F, each ended by a NUL byte")
        .required("F", ValueKind::File)
        .more("If F is `-`, standard input is read. Operands on the command line are then an error."),
    both(
        DuOption::HumanReadable,
        b'h',
        "human-readable",
        SIZES,
        "print short sizes in powers of 1024, such as 1K, 234M, 2G",
    ),
    long(DuOption::Inodes, "inodes", COUNTED, "count inodes instead of bytes"),
    long(DuOption::Si, "si", SIZES, "print short sizes in powers of 1000"),
    both(
        DuOption::MaxDepth,
        b'd',
        "max-depth",
        LINES,
        "print at most N levels below an operand (default: all)",
    )
    .required("N", ValueKind::Text)
    .more("`--max-depth=0` is the same as `--summarize`. Deeper files are counted, but not printed."),
    both(DuOption::Null, b'0', "null", LINES, "end each line with a NUL byte instead of a newline"),
    both(DuOption::NoDereference, b'P', "no-dereference", VISITED, "follow no symbolic links (default)"),
    both(
        DuOption::OneFileSystem,
        b'x',
        "one-file-system",
        VISITED,
        "stay on the file system of each operand",
    ),
    both(
        DuOption::SeparateDirs,
        b'S',
        "separate-dirs",
        COUNTED,
        "exclude subdirectories from a directory's size",
    ),
    both(DuOption::Summarize, b's', "summarize", LINES, "print only the total of each operand"),
    both(DuOption::Total, b'c', "total", LINES, "print a grand total at the end"),
    both(
        DuOption::Threshold,
        b't',
        "threshold",
        LINES,
        "omit lines below SIZE or, if SIZE is negative, lines above it",
    )
    .required("SIZE", ValueKind::Text),
    long(
        DuOption::Time,
        "time",
        TIMES,
        "print the latest modification time in each subtree, or the time that WORD names",
    )
    .optional("WORD", ValueKind::Words(TIME_WORDS))
    .more(
        "`atime`, `access` and `use` name the last access; `ctime` and `status` name the last change \
             of the inode.",
    ),
    long(
        DuOption::TimeStyle,
        "time-style",
        TIMES,
        "print times as `full-iso`, `long-iso`, `iso` or `+FORMAT` (default: long-iso)",
    )
    .required("STYLE", ValueKind::Words(TIME_STYLES))
    .more("FORMAT is a format of date(1). `$TIME_STYLE` sets another default."),
    flag::help(ABOUT),
    flag::version(ABOUT),
    short(DuOption::DereferenceArgs, b'H', VISITED, "same as `-D`"),
    short(DuOption::Kibibytes, b'k', SIZES, "same as `--block-size=1K`"),
    short(DuOption::Mebibytes, b'm', SIZES, "same as `--block-size=1M`"),
    long(DuOption::Tree, "tree", VIEWS, "draw a tree with bars, largest first, that fits the terminal")
        .added()
        .more(
            "Shows directories, and with `-a` files, each with its share of everything that was measured. \
             A row `N more` stands for the inodes below a directory that have no row of their own; if \
             there is no such row, they take less than any entry that is shown. Without a terminal, the \
             tree has 24 lines of 80 columns. This view and the next two print short sizes as `-h` does, \
             unless an option chooses the unit.",
        ),
    long(DuOption::Top, "top", VIEWS, "print the N largest files and directories at any depth")
        .required("N", ValueKind::Text)
        .added()
        .more(
            "Prints size, type and path, separated by tabs, below a header on a terminal. Types are the \
             letters of `-printf %y` of find(1): `d`, `f`, `l` and so on. On a terminal, paths are quoted \
             where necessary.",
        ),
    long(DuOption::By, "by", VIEWS, "print totals by KEY: `ext`, `user`, `group`, `age` or `type`")
        .attached("KEY", ValueKind::Words(BY_WORDS))
        .added()
        .more(
            "Prints size, number of inodes, share and group, separated by tabs, below a header on a \
             terminal. Directories have no extension and form a group of their own. Names of users and \
             groups come from /etc/passwd and /etc/group. The age is the time since the last modification, \
             or since the time that `--time` names. `--threshold` applies to groups, and `--max-depth` has \
             no effect. The `=` is required: `--by` alone is GNU's abbreviation of `--bytes`.",
        ),
    long(DuOption::From, "from", VISITED, "read INVENTORY instead of the file system")
        .required("INVENTORY", ValueKind::File)
        .added()
        .more(
            "INVENTORY is an inventory made by `fathom scan`, or a directory of `fathom scan --keep`, \
             whose newest inventory is read. A FILE is a path as it was scanned, or relative to a scanned \
             tree; without FILE, all scanned trees are shown. The lines are those of a run at the time of \
             the scan, but the files of a directory may come in another order. If no files are printed and \
             no time, size or name of a file matters, only the rows of directories are read, which takes a \
             moment. Links are not followed. Directories that the scan skipped are not counted.",
        ),
    long(DuOption::Json, "json", VIEWS, "print JSON, one object per line").added().more(
        "Each line or row becomes an object with `path`, `depth`, `type`, `bytes` (exact; `inodes` \
             with `--inodes`), `time` if times are shown, and the additional members of the view. A path \
             that is not UTF-8 has replacement characters, and `path_bytes` holds its bytes in \
             hexadecimal. The last object has the `total`, whether it is `complete`, and the number of \
             `errors`.",
    ),
    long(
        DuOption::Color,
        "color",
        VIEWS,
        "show colours: `auto` (default; only on a terminal), `always` or `never`",
    )
    .required("WHEN", ValueKind::Words(WHEN_WORDS))
    .added()
    .more("Only the tree has colours. With `auto`, there are none if `NO_COLOR` is set and not empty."),
    long(
        DuOption::Progress,
        "progress",
        VIEWS,
        "show progress: `auto` (default; only on a terminal), `always` or `never`",
    )
    .optional("WHEN", ValueKind::Words(WHEN_WORDS))
    .added()
    .more(
        "Shows the entries and bytes found so far, the rate, and the operations in flight, on standard \
             error. With `auto`, progress appears after a second. `--progress` alone is `always`.",
    ),
    long(DuOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)).added(),
    long(DuOption::Threads, "threads", ENGINE, "use N threads (1 to 4096) instead of adapting their number")
        .required("N", ValueKind::Text)
        .added(),
    long(
        DuOption::Verbose,
        "verbose",
        ENGINE,
        "report on standard error which I/O model was used and what it did",
    )
    .added(),
];

/// The description of the command.
pub(crate) const DU: Command<DuOption> = Command {
    name: "fathom du",
    brief: "show the disk usage of files and directories",
    usage: &["[OPTION]... [FILE]...", "[OPTION]... --files0-from=F"],
    about: &[
        "Shows the disk usage of each FILE, for a directory including everything below it. Without FILE, \
         shows the current directory.",
    ],
    sections: &[LINES, SIZES, COUNTED, VISITED, TIMES, VIEWS, ENGINE, ABOUT],
    flags: FLAGS,
    commands: &[],
    notes: &[SIZE_NOTE, SAME_NOTE, WALK_MODELS, ENVIRONMENT, STATUS],
    examples: EXAMPLES,
    see_also: &["fathom", "fathom-io", "du", "df"],
};

const SIZE_NOTE: Note = Note {
    title: "Sizes",
    text: &[
        grammar::SIZE,
        "`--block-size` also takes `human-readable` and `si`.",
        "Without an option, the unit comes from DU_BLOCK_SIZE, BLOCK_SIZE or BLOCKSIZE, whichever is set \
         first. Without them it is 1024 bytes, or 512 bytes if POSIXLY_CORRECT is set.",
    ],
    man_only: false,
};

const SAME_NOTE: Note = Note {
    title: "Order and repeatability",
    text: &[
        "Lines are printed while the scan runs, in the order of GNU du: the contents of a directory before \
         the directory, and the operands one after the other. The output does not depend on the I/O model \
         or the number of threads, and neither does the name under which a file with several hard links is \
         counted.",
    ],
    man_only: true,
};

const ENVIRONMENT: Note = Note {
    title: "Environment",
    text: &[
        "DU_BLOCK_SIZE, BLOCK_SIZE, BLOCKSIZE: the default unit of sizes.",
        "POSIXLY_CORRECT: units of 512 bytes, and no options after the first operand.",
        "TIME_STYLE: the default of `--time-style`.",
        "TZ: the time zone of times.",
        "LC_ALL, LC_CTYPE, LANG: the character set of messages and patterns: UTF-8 or ASCII.",
        "LINES, COLUMNS: the size of the tree, in place of the terminal's.",
        "FATHOM_PROFILE, XDG_CONFIG_HOME, HOME: the location of the profile for `--io auto`.",
        "NO_COLOR: no colours, unless `--color` asks for them.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything was counted.",
        "1: something could not be counted, or the command line is wrong.",
        "130: interrupted.",
    ],
    man_only: true,
};

/// The name `fathom du` is replaced with the name by which the program was called.
const EXAMPLES: &[(&str, &str)] = &[
    ("fathom du -sh *", "the size of each file and directory here"),
    ("fathom du -hd1 /var | sort -h", "the directories of /var, smallest first"),
    ("fathom du -x -t1G /", "directories of at least 1 GiB on the root file system"),
    ("fathom du -ac --time src", "every file below src, with times and a total"),
    ("find . -name '*.log' -print0 | fathom du -c --files0-from=-", "all logs, and their total"),
    ("fathom du --tree ~", "the home directory as a tree with bars"),
    ("fathom du --top=20 ~", "its twenty largest files and directories"),
    ("fathom du --by=ext src", "disk usage by file name extension"),
    ("fathom du -hd1 --from home.inv", "the same lines from an inventory, in a moment"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_spelled_once_and_stands_under_a_heading() {
        for (at, flag) in FLAGS.iter().enumerate() {
            assert!(flag.short.is_some() || flag.long.is_some(), "{flag:?}");
            assert!(DU.sections.contains(&flag.section), "{flag:?}");
            for other in &FLAGS[..at] {
                assert!(flag.long.is_none() || flag.long != other.long, "{flag:?}");
                assert!(flag.short.is_none() || flag.short != other.short, "{flag:?}");
            }
        }
    }

    #[test]
    fn additions_come_last_and_take_no_letter() {
        let first = FLAGS.iter().position(|flag| flag.added).unwrap();
        assert!(FLAGS[first..].iter().all(|flag| flag.added && flag.short.is_none()));
    }

    #[test]
    fn texts_are_one_sentence_without_a_dot() {
        for flag in FLAGS {
            assert!(!flag.brief.is_empty() && !flag.brief.ends_with('.'), "{flag:?}");
            assert!(flag.more.is_empty() || flag.more.ends_with('.'), "{flag:?}");
        }
    }
}
