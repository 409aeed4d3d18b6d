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

const COUNTED: &str = "What is counted";
const VISITED: &str = "Which files are visited";
const LINES: &str = "Which lines are printed";
const SIZES: &str = "How sizes look";
const TIMES: &str = "Times";
const VIEWS: &str = "Other views";
const ENGINE: &str = "How the work is done";
const ABOUT: &str = "About the program";

/// The values of `--time`, in GNU's order, with synonyms side by side.
pub(crate) const TIME_WORDS: &[&str] = &["atime", "access", "use", "ctime", "status"];
/// The values of `--time-style`, in addition to `+FORMAT`.
pub(crate) const TIME_STYLES: &[&str] = &["full-iso", "long-iso", "iso"];
/// The values of `--by`.
pub(crate) const BY_WORDS: &[&str] = &["ext", "user", "group", "age", "type"];

/// All options. GNU's long options come first and in GNU's order, which appears in the message
/// about an ambiguous abbreviation.
pub(crate) const FLAGS: &[Flag<DuOption>] = &[
    both(DuOption::All, b'a', "all", LINES, "a line for every file, not for directories only"),
    both(DuOption::ApparentSize, b'A', "apparent-size", COUNTED, "count the lengths of files, not their space")
        .more(
            "Only regular files and symbolic links have a length here; everything else counts 0. The length \
             is usually less than the space, but more for a file with holes or on a compressing file system.",
        ),
    both(DuOption::BlockSize, b'B', "block-size", SIZES, "sizes in units of SIZE, rounded up; `-BM`: in MiB")
        .required("SIZE", ValueKind::Text),
    both(DuOption::Bytes, b'b', "bytes", SIZES, "lengths in bytes: short for `--apparent-size --block-size=1`"),
    both(DuOption::CountLinks, b'l', "count-links", COUNTED, "count a file again for each of its hard links")
        .more(
            "Without it a file counts once, where it is met first, under whatever name; so does a file that \
             is below two operands.",
        ),
    both(DuOption::Dereference, b'L', "dereference", VISITED, "follow every symbolic link"),
    both(
        DuOption::DereferenceArgs,
        b'D',
        "dereference-args",
        VISITED,
        "follow symbolic links that are operands, no others",
    ),
    long(DuOption::Exclude, "exclude", VISITED, "pass over files that match PATTERN")
        .required("PATTERN", ValueKind::Text)
        .more(
            "PATTERN is a shell pattern for the whole path as it would be printed, or for what follows any \
             slash in it; `*` and `?` match slashes and leading dots too. What is passed over is not \
             counted, and neither is anything below it.",
        ),
    both(DuOption::ExcludeFrom, b'X', "exclude-from", VISITED, "pass over files that match any line of FILE")
        .required("FILE", ValueKind::File)
        .more("Blanks at the end of a line and empty lines do not count. FILE `-` is the standard input."),
    long(DuOption::Files0From, "files0-from", VISITED, "take the operands from F, where a NUL byte ends each")
        .required("F", ValueKind::File)
        .more("F `-` is the standard input. Operands on the command line are an error then."),
    both(DuOption::HumanReadable, b'h', "human-readable", SIZES, "short numbers in powers of 1024: 1K, 234M, 2G"),
    long(DuOption::Inodes, "inodes", COUNTED, "count inodes, not bytes"),
    long(DuOption::Si, "si", SIZES, "like `-h`, but in powers of 1000"),
    both(DuOption::MaxDepth, b'd', "max-depth", LINES, "lines no deeper than N levels below an operand")
        .required("N", ValueKind::Text)
        .more("`--max-depth=0` is `--summarize`. Deeper files are counted all the same."),
    both(DuOption::Null, b'0', "null", LINES, "end lines with a NUL byte, not with a newline"),
    both(DuOption::NoDereference, b'P', "no-dereference", VISITED, "follow no symbolic links (the default)"),
    both(DuOption::OneFileSystem, b'x', "one-file-system", VISITED, "stay on the file system of each operand"),
    both(DuOption::SeparateDirs, b'S', "separate-dirs", COUNTED, "leave subdirectories out of a directory's size"),
    both(DuOption::Summarize, b's', "summarize", LINES, "one line for each operand"),
    both(DuOption::Total, b'c', "total", LINES, "one more line at the end: the grand total"),
    both(DuOption::Threshold, b't', "threshold", LINES, "no lines below SIZE; if SIZE is negative, none above it")
        .required("SIZE", ValueKind::Text),
    long(DuOption::Time, "time", TIMES, "show the latest modification in each subtree; WORD names another time")
        .optional("WORD", ValueKind::Words(TIME_WORDS))
        .more(
            "`atime`, `access` and `use`: the last access. `ctime` and `status`: the last change of the \
             inode.",
        ),
    long(DuOption::TimeStyle, "time-style", TIMES, "how times look: `full-iso`, `long-iso`, `iso` or `+FORMAT`")
        .required("STYLE", ValueKind::Words(TIME_STYLES))
        .more("FORMAT is what date(1) takes. The default is `$TIME_STYLE`, or else `long-iso`."),
    flag::help(ABOUT),
    flag::version(ABOUT),
    short(DuOption::DereferenceArgs, b'H', VISITED, "the same as `-D`"),
    short(DuOption::Kibibytes, b'k', SIZES, "the same as `--block-size=1K`"),
    short(DuOption::Mebibytes, b'm', SIZES, "the same as `--block-size=1M`"),
    long(DuOption::Tree, "tree", VIEWS, "a tree with bars, the largest first, that fits the terminal")
        .added()
        .more(
            "Directories, with `-a` files too, each with its share of everything that was measured. `N more` \
             are the inodes below a directory that there is no row for; without such a row they come to less \
             than any entry that has one. Without a terminal there are 24 lines of 80 columns. This view and \
             the next two show short sizes as `-h` does, unless an option chooses the unit.",
        ),
    long(DuOption::Top, "top", VIEWS, "the N largest files and directories anywhere below")
        .required("N", ValueKind::Text)
        .added()
        .more(
            "Size, type and path, with tabs between, and on a terminal a header above. Types are letters as in find(1)'s `-printf %y`: `d`, \
             `f`, `l` and so on. On a terminal, paths are quoted where they have to be.",
        ),
    long(DuOption::By, "by", VIEWS, "totals by KEY: `ext`, `user`, `group`, `age` or `type`")
        .attached("KEY", ValueKind::Words(BY_WORDS))
        .added()
        .more(
            "Size, number of inodes, share and group, with tabs between, and on a terminal a header above. Directories have no extension and \
             are a group of their own. Names of users and groups are those in /etc/passwd and /etc/group. An \
             age is the time since the last modification, or since that of `--time`. `--threshold` is for \
             groups, and `--max-depth` has no effect. The `=` is needed: `--by` alone has always been short \
             for `--bytes`.",
        ),
    long(DuOption::From, "from", VISITED, "take everything from INVENTORY, not from the file system")
        .required("INVENTORY", ValueKind::File)
        .added()
        .more(
            "INVENTORY is what `fathom scan` makes, or a directory of `fathom scan --keep`, whose newest one answers. A FILE is a path as it was scanned, or relative to what was; \
             without any, everything that was scanned. Lines are those of a run at the time of the scan, but \
             files of one directory may come in another order. Where no file gets a line and no time, size or \
             name of a file matters, the answer comes from the rows of directories alone, in a moment. Links are \
             not followed; directories that the scan was to leave out are not counted.",
        ),
    long(DuOption::Json, "json", VIEWS, "the result as JSON, one object a line").added().more(
        "What a line or row shows becomes an object: `path`, `depth`, `type`, `bytes` (exact; `inodes` with \
         `--inodes`), `time` if that is shown, and what the view adds. A path that is not UTF-8 has \
         replacement characters, and `path_bytes` holds its bytes in hexadecimal. The last object has the \
         `total`, whether it is `complete`, and the number of `errors`.",
    ),
    long(DuOption::Color, "color", VIEWS, "colours: `auto` (on a terminal), `always` or `never`")
        .required("WHEN", ValueKind::Words(WHEN_WORDS))
        .added()
        .more(
            "Only the tree has colours. `auto`, the default, uses none if `NO_COLOR` is set and not empty.",
        ),
    long(DuOption::Progress, "progress", VIEWS, "progress: `auto` (on a terminal), `always` or `never`")
        .optional("WHEN", ValueKind::Words(WHEN_WORDS))
        .added()
        .more(
            "Entries and size so far, the rate, and the operations in flight, on standard error. `auto` \
             shows them after a second. It is the default; `--progress` alone is `always`.",
        ),
    long(DuOption::Io, "io", ENGINE, WALK_BRIEF).required("MODEL", ValueKind::Words(WALK_WORDS)).added(),
    long(DuOption::Threads, "threads", ENGINE, "use N threads throughout instead of adapting their number")
        .required("N", ValueKind::Text)
        .added(),
    long(DuOption::Verbose, "verbose", ENGINE, "say on standard error which model was used and what it did")
        .added(),
];

/// The description of the command.
pub(crate) const DU: Command<DuOption> = Command {
    name: "fathom du",
    brief: "show how much space files and directories take",
    usage: &["[OPTION]... [FILE]...", "[OPTION]... --files0-from=F"],
    about: &[
        "Shows how much space each FILE takes on its storage, for a directory with everything below it; \
         without FILE, the current directory.",
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
        "Without an option the unit is that of DU_BLOCK_SIZE, BLOCK_SIZE or BLOCKSIZE, the first that is \
         set, or else 1024 bytes; 512 if POSIXLY_CORRECT is set.",
    ],
    man_only: false,
};

const SAME_NOTE: Note = Note {
    title: "Order and repeatability",
    text: &["Lines come while the scan runs, in the order of GNU du: what is in a directory before the \
         directory, operands one after the other. The output does not depend on the I/O model or the number \
         of threads, not even on which name a file with several hard links is counted under."],
    man_only: true,
};

const ENVIRONMENT: Note = Note {
    title: "Environment",
    text: &[
        "DU_BLOCK_SIZE, BLOCK_SIZE, BLOCKSIZE: the default unit of sizes.",
        "POSIXLY_CORRECT: units of 512 bytes, and no options after the first operand.",
        "TIME_STYLE: the default of `--time-style`.",
        "TZ: the time zone of times.",
        "LC_ALL, LC_CTYPE, LANG: the characters that messages and patterns know: UTF-8 or ASCII.",
        "LINES, COLUMNS: the size of the tree, whatever that of the terminal.",
        "FATHOM_PROFILE, XDG_CONFIG_HOME, HOME: where the profile for `--io auto` is.",
        "NO_COLOR: no colours, unless `--color` asks for them.",
    ],
    man_only: true,
};

const STATUS: Note = Note {
    title: "Exit status",
    text: &[
        "0: everything was counted.",
        "1: something was not, or the command line was wrong.",
        "130: interrupted.",
    ],
    man_only: true,
};

/// The name `fathom du` is replaced with the name by which the program was called.
const EXAMPLES: &[(&str, &str)] = &[
    ("fathom du -sh *", "one short line for each file and directory here"),
    ("fathom du -hd1 /var | sort -h", "the directories of /var, smallest first"),
    ("fathom du -x -t1G /", "directories of a GiB or more on the root file system"),
    ("fathom du -ac --time src", "every file below src, with times and a total"),
    ("find . -name '*.log' -print0 | fathom du -c --files0-from=-", "all logs and their total"),
    ("fathom du --tree ~", "a picture of the home directory"),
    ("fathom du --top=20 ~", "the twenty largest things in it"),
    ("fathom du --by=ext src", "space by file name extension"),
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
